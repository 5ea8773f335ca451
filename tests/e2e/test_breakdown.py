"""What a run's memory was made of: every byte has the right owner, whatever the script does."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
from conftest import MIB, PROGRAM, Answered, Rehearse

# 64 MiB of parameters in one layer of 4096 x 4096, with 16 MiB for a batch of 1024.
MODEL = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4096, 4096, bias=False)

    def forward(self, x):
        return torch.tanh(self.inner(x))

model = nn.Sequential(Layer(), Layer()).cuda()
optimizer = torch.optim.Adam(model.parameters())

def batch():
    return torch.randn(1024, 4096).cuda()
"""


KEEPING = '    kept.append(torch.ones(4 << 20, device="cuda") * loss.detach())'


OF_OLD_TORCHES = "the file has no annotations (before torch 2.5)"
"""The one thing that a history of torch 2.4 lacks."""


def report(done: Answered) -> dict[str, Any]:
    """The JSON report of the recording that a run wrote."""
    words = [str(PROGRAM), "report", str(done.folder / "run.ghost"), "--json"]
    document: dict[str, Any] = json.loads(subprocess.check_output(words))
    assert set(document["warnings"]) <= {OF_OLD_TORCHES}
    return document


WILL_RUN_OUT = 5


def recorded(rehearse: Rehearse, script: str, *options: str, code: int = 0) -> dict[str, Any]:
    done = rehearse(script, "--record", "run.ghost", *options).expect(code)
    assert not [note for note in done["notes"] if "agent failed" in note]
    (card,) = report(done)["cards"]
    peaks = (done["peak_allocated_bytes"], done["peak_reserved_bytes"])
    if code != 3:
        at_peak, at_most = card["at_peak"], card["at_reserved_peak"]
        assert (at_peak["allocated_bytes"], at_most["reserved_bytes"]) == peaks
    return dict(card)


@pytest.mark.every_torch
def test_every_byte_of_a_training_has_its_owner(rehearse: Rehearse) -> None:
    script = (
        MODEL
        + """
for _ in range(3):
    loss = model(batch()).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
"""
    )
    card = recorded(rehearse, script)
    parts = card["at_peak"]["parts"]
    assert parts["parameter"] == 2 * 64 * MIB
    assert parts["gradient"] == 2 * 64 * MIB
    assert parts["optimizer_state"] == 4 * 64 * MIB
    assert sum(parts.values()) == card["at_peak"]["on_card_bytes"]
    stages = [row["stage"] for row in card["stages"]["rows"]]
    for stage in ("moving", "forward", "backward", "optimizer_step"):
        assert stage in stages
    paths = {module["path"] for module in card["modules"]}
    assert {"0.inner", "1.inner"} <= paths


def test_what_autograd_keeps_is_known_when_memory_runs_out(rehearse: Rehearse) -> None:
    script = (
        MODEL
        + """
kept = model(batch())
hidden = batch()
for _ in range(1000):
    hidden = model[0](hidden)
"""
    )
    card = recorded(rehearse, script, "--memory", "2GiB", "--no-retry", code=3)
    assert card["out_of_memory"]
    assert card["at_end"]["parts"]["activation"] > 500 * MIB


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_layers_keep_only_their_inputs(
    rehearse_reference: Rehearse, reentrant: bool
) -> None:
    script = (
        MODEL
        + f"""
from torch.utils.checkpoint import checkpoint
for _ in range(2):
    x = batch().requires_grad_()
    for layer in model:
        x = checkpoint(layer, x, use_reentrant={reentrant})
    x.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    card = recorded(rehearse_reference, script)
    assert card["at_peak"]["parts"]["parameter"] == 2 * 64 * MIB
    rows = card["stages"]["rows"]
    (forward,) = (row for row in rows if row["stage"] == "forward" and row["part"] == "first_step")
    assert forward["stayed"].get("activation", 0) <= 2 * 16 * MIB


def test_a_script_that_profiles_itself_is_recorded(rehearse_reference: Rehearse) -> None:
    script = (
        MODEL
        + """
model(batch()).sum().backward()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    model(batch()).sum().backward()
optimizer.step()
print("operators", any(each.key == "aten::linear" for each in profile.key_averages()))
"""
    )
    done = rehearse_reference(script, "--record", "run.ghost").expect(0)
    assert "operators True" in done.stdout
    assert report(done)["cards"][0]["at_peak"]["parts"]["parameter"] == 2 * 64 * MIB


def test_a_recording_that_ends_within_an_optimizer_step_prints_nothing(
    rehearse_reference: Rehearse,
) -> None:
    script = (
        MODEL
        + """
import sys
(name,) = [name for name in sys.modules if name.endswith("attribution.recorder")]
sys.modules[name].MAX_ALLOCATIONS = 10
for _ in range(3):
    model(batch()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    done = rehearse_reference(script, "--record", "run.ghost").expect(0)
    assert "was recorded for the first" in done.stdout + " ".join(done["notes"])
    assert not [word for word in ("RecordFunction", "Leaked") if word in done.stderr]


def test_a_result_that_is_kept_in_each_step_is_named_with_its_line(rehearse: Rehearse) -> None:
    script = (
        MODEL
        + f"""
kept = []
for _ in range(4):
    loss = model(batch()).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
{KEEPING}
"""
    )
    done = rehearse(script, "--record", "run.ghost", "--steps", "0").expect(0)
    line = script.splitlines().index(KEEPING) + 1
    assert "16.00 MiB per step" in done.stdout
    assert "\nnext           ghostgpu lint train.py" in done.stdout
    told = rehearse(script, "--verbose", "--steps", "0").expect(0)
    assert f"16.00 MiB more in each step from train.py:{line}" in " ".join(told.stdout.split())
    growth = report(done)["cards"][0]["growth"]
    assert growth["bytes_per_step"] == 16 * MIB
    assert growth["sources"][0]["kept_in"] == f"`kept`, a list (train.py:{line})"


def test_what_an_object_of_the_script_keeps_is_named_by_its_attribute(
    rehearse_reference: Rehearse,
) -> None:
    script = (
        MODEL
        + """
class History:
    def __init__(self):
        self.outputs = []

    def note(self, step, output):
        self.outputs.append((step, output))

def main():
    history = History()
    for step in range(4):
        output = model(batch())
        output.sum().backward()
        history.note(step, output)
        optimizer.step()
        optimizer.zero_grad()

main()
"""
    )
    card = recorded(rehearse_reference, script, code=WILL_RUN_OUT)
    (source, *_) = card["growth"]["sources"]
    line = script.splitlines().index("        self.outputs.append((step, output))") + 1
    assert source["kept_in"] == f"`history.outputs`, a list (train.py:{line})"


HIDDEN_KEEPERS = {
    "a list of functions": (
        "callbacks.append(lambda output=output: output.sum())",
        "`callbacks`, a list (train.py:{line})",
    ),
    "a chain of pairs on a model": (
        "model.last = (getattr(model, 'last', None), output.detach())",
        "`model.last`, a tuple",
    ),
}


@pytest.mark.parametrize("name", HIDDEN_KEEPERS)
def test_what_keeps_every_step_is_named_and_not_what_each_step_replaces(
    rehearse_reference: Rehearse, name: str
) -> None:
    keeping, expected = HIDDEN_KEEPERS[name]
    script = (
        MODEL
        + f"""
callbacks = []
for step in range(6):
    output = model(batch())
    output.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    {keeping}
"""
    )
    card = recorded(rehearse_reference, script, code=WILL_RUN_OUT)
    (source, *_) = card["growth"]["sources"]
    line = script.splitlines().index(f"    {keeping}") + 1
    assert source["kept_in"] == expected.format(line=line)


def test_with_and_without_it_the_same_is_allocated(rehearse: Rehearse) -> None:
    script = (
        MODEL
        + """
for _ in range(3):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(batch()).float().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    fields = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes", "allocations")
    with_it = rehearse(script, "--verbose").expect(0)
    without = rehearse(script, "--verbose", "--no-breakdown").expect(0)
    assert "at the peak" in with_it.stdout
    assert "at the peak" not in without.stdout
    for field in fields:
        if field in with_it.answer:  # type: ignore[operator]
            assert with_it[field] == without[field], field


def test_there_is_nothing_to_record_without_cuda(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference("import torch", "--record", "run.ghost").expect(2)
    assert "there is no recording to write" in done.stderr
    assert not (done.folder / "run.ghost").exists()


def test_compiled_models_are_compiled_as_without_it(rehearse: Rehearse) -> None:
    script = (
        MODEL
        + """
from torch._dynamo.utils import counters
compiled = torch.compile(Layer().cuda(), backend="aot_eager")
for _ in range(2):
    compiled(batch()).sum().backward()
print("graphs", counters["stats"]["unique_graphs"], "calls", counters["stats"]["calls_captured"])
"""
    )
    with_it = rehearse(script, "--verbose").expect(0)
    without = rehearse(script, "--no-breakdown").expect(0)
    found = re.search(r"graphs (\d+) calls (\d+)", with_it.stdout)
    assert found and int(found[1]) == 1 and int(found[2]) > 0, with_it.stdout
    assert found[0] in without.stdout
    assert with_it["peak_allocated_bytes"] == without["peak_allocated_bytes"]
    assert "forward" in with_it.stdout


def test_the_answer_as_json_has_the_same_breakdown_as_the_report(
    rehearse_reference: Rehearse,
) -> None:
    script = MODEL + "model(batch()).sum().backward(); optimizer.step()"
    done = rehearse_reference(script, "--record", "run.ghost").expect(0)
    assert done["schema"] == "ghostgpu.run/1"
    breakdown, (card,) = done["breakdown"], report(done)["cards"]
    assert (breakdown["schema"], breakdown["warnings"]) == ("ghostgpu.report/1", [])
    (same,) = breakdown["cards"]
    for name in ("at_peak", "at_end", "stages", "steps", "modules", "rule_of_thumb", "growth"):
        assert same[name] == card[name], name
    assert same["holders"]["rows"] == card["holders"]["rows"][:20]
    assert same["holders"]["rows"][0]["stack"]
    without = rehearse_reference(script, "--no-breakdown").expect(0)
    assert without["breakdown"] is None
    assert without["breakdown_missing_because"] == "it was left out (--no-breakdown)"


def test_an_allocator_without_a_history_is_named_as_the_reason(rehearse: Rehearse) -> None:
    script = MODEL + "model(batch()).sum().backward()"
    setting = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    done = rehearse(script, "--verbose", environment=setting).expect(0)
    assert done["breakdown"] is None
    assert "(cudaMallocAsync) keeps no history" in done["breakdown_missing_because"]
    told = " ".join(done.stdout.split())
    assert "what the memory was made of is unknown: the allocator that the script chose" in told
    refused = rehearse(script, "--report", "page.html", environment=setting).expect(2)
    assert "there is no recording to write: the allocator" in refused.stderr


@pytest.mark.parametrize(
    "work",
    [
        "torch.linalg.eigh(a)",
        "torch.linalg.qr(a)",
        "torch.triangular_solve(a, sparse)",
        "torch.nn.Conv2d(64, 64, 3, padding=1).cuda()(a.view(1, 64, 64, 64))",
    ],
)
def test_what_libraries_were_given_to_work_in_is_a_workspace(
    rehearse_reference: Rehearse, work: str
) -> None:
    script = f"""
import torch
a = torch.randn(512, 512, device="cuda")
rows = torch.arange(513, device="cuda")
sparse = torch.sparse_csr_tensor(rows, rows[:-1], torch.ones(512, device="cuda"), (512, 512))
torch.cuda.synchronize()
{work}
"""
    card = recorded(rehearse_reference, script)
    came = [row["came"]["workspace"] for row in card["stages"]["rows"]]
    assert sum(came) > 0


def test_building_moving_evaluating_and_a_later_step_are_stages_of_their_own(
    rehearse_reference: Rehearse,
) -> None:
    script = (
        MODEL
        + """
with torch.device("cuda"):
    teacher = Layer()
for _ in range(3):
    with torch.no_grad():
        teacher(batch())
    model(batch()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    done = rehearse_reference(script, "--verbose", "--record", "run.ghost").expect(0)
    for title in ("building the model", "moving the model", "step 1, forward", "evaluation"):
        assert title in done.stdout
    assert "The first step allocates the optimizer's state (256.00 MiB)" in done.stdout
    rows = done["breakdown"]["cards"][0]["stages"]["rows"]
    built = [row for row in rows if (row["part"], row["stage"]) == ("setup", "script")]
    assert [row["stayed"]["parameter"] for row in built] == [64 * MIB]
    parts = {row["part"] for row in rows}
    assert parts == {"setup", "first_step", "later_step", "evaluation"}
    for row in rows:
        assert row["came_bytes"] == sum(row["came"].values())
        assert row["stayed_bytes"] <= row["came_bytes"]
        assert row["peak_allocated_bytes"] > 0
