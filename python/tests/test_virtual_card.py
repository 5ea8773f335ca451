"""The agent together with the real stand-in library."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Rehearse, needs_torch

pytestmark = needs_torch

GIB = 1 << 30

MODEL = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.Linear(4096, 16)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
def loss(batch=64):
    return model(torch.randn(batch, 1024).cuda()).sum()
"""


def test_peaks_are_written_for_each_step_and_survive_resets(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        MODEL
        + """
big = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
del big
for iteration in range(5):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    loss().backward()
    optimizer.step()
"""
    )
    assert (done.code, done.stderr) == (0, "")
    assert [each["step"] for each in done.report["step_peaks"]] == [1, 2, 3]
    (first,) = done.report["step_peaks"][0]["devices"]
    (last,) = done.report["peaks"]
    assert last["peak_allocated_bytes"] > 256 << 20
    assert last["peak_reserved_bytes"] >= last["peak_allocated_bytes"]
    assert last["allocations"] > first["allocations"] > 5
    assert done.report["cudnn"]


def test_a_script_that_never_starts_cuda_is_not_made_to(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        "import torch, atexit\natexit.register(lambda: print(torch.cuda.is_initialized()))"
    )
    assert done.report["peaks"] == []
    assert done.stdout.strip() == "False"


OOMS = {
    "setup": "torch.empty(30 << 30, dtype=torch.uint8, device='cuda')",
    "moving the model": "torch.nn.Linear(80000, 80000, device='meta').to_empty(device='cuda')",
    "forward": "model(torch.empty(2000000, 1024, device='cuda'))",
    "evaluation": "torch.no_grad()(lambda: model(torch.empty(2000000, 1024, device='cuda')))()",
    "backward": (
        "value = loss(); filler = torch.empty(torch.cuda.mem_get_info()[0] - (4 << 20), "
        "dtype=torch.uint8, device='cuda'); value.backward()"
    ),
    "optimizer step": (
        "loss().backward(); filler = torch.empty(torch.cuda.mem_get_info()[0] - (4 << 20), "
        "dtype=torch.uint8, device='cuda'); optimizer.step()"
    ),
}


@pytest.mark.parametrize("stage", OOMS)
def test_an_out_of_memory_error_is_told_with_its_stage_and_line(
    rehearse_on_card: Rehearse, stage: str
) -> None:
    done = rehearse_on_card(f"{MODEL}\n{OOMS[stage]}\n", card={"total_bytes": 24 * GIB})
    assert done.code == 1
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.stderr
    (oom,) = done.report["ooms"]
    assert (oom["stage"], oom["is_fatal"], oom["step"]) == (stage, True, 0)
    assert oom["message"].startswith("CUDA out of memory. Tried to allocate ")
    assert oom["requested_bytes"] > 0
    users = [frame for frame in oom["stack"] if frame["is_user_code"]]
    assert users[-1]["file"].endswith("script.py")
    assert users[-1]["source"] == OOMS[stage]


def test_a_caught_out_of_memory_error_is_kept_but_not_fatal(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        for size in (64, 1):
            try:
                torch.empty(size << 30, dtype=torch.uint8, device="cuda")
                print(size)
            except torch.OutOfMemoryError:
                pass
        """,
        card={"total_bytes": 24 * GIB},
    )
    assert (done.code, done.stdout.strip()) == (0, "1")
    (oom,) = done.report["ooms"]
    assert (oom["is_fatal"], oom["message"], oom["requested_bytes"]) == (False, "", 64 * GIB)
    assert done.report["exception"] is None


def test_a_workspace_that_pytorch_replaces_by_a_smaller_one_is_counted_and_not_listed(
    rehearse_on_card: Rehearse,
) -> None:
    done = rehearse_on_card(
        """
        import torch
        torch.backends.cudnn.benchmark = True
        images = torch.empty(64, 64, 112, 112, device="cuda")
        layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
        # Room for the output, and for less than the workspace that is proposed first.
        total = torch.cuda.mem_get_info()[1]
        room = torch.cuda.memory_reserved() + images.nbytes + (64 << 20)
        torch.cuda.set_per_process_memory_fraction(room / total)
        with torch.no_grad():
            layer(images)
        try:
            torch.empty(64 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            print("went on")
        """,
        card={"total_bytes": 24 * GIB},
    )
    assert (done.code, done.stdout.strip()) == (0, "went on"), done.stderr
    assert done.report["workspace_retries"] > 0
    (oom,) = done.report["ooms"]
    assert oom["requested_bytes"] == 64 * GIB


# An expression, the shape it gets, and words of the assumption that must be stated for it.
SHAPES: list[tuple[str, list[int], str]] = [
    ("torch.nonzero(x)", [8192, 2], "all 8192 elements are selected"),
    ("x[x > 0]", [8192], "all 8192 elements are selected"),
    ("torch.masked_select(x, x > 0)", [8192], "all 8192 elements are selected"),
    ("torch.where(x > 0)[1]", [8192], "all 8192 elements are selected"),
    ("torch.unique(x)", [8192], "all 8192 elements are different"),
    ("torch.unique(x, return_inverse=True, return_counts=True)[2]", [8192], "are different"),
    ("torch.unique(x, dim=0)", [64, 128], "all 64 slices along dimension 0"),
    ("torch.unique_consecutive(x)", [8192], "are different"),
    ("torch.unique_consecutive(x, dim=1)", [64, 128], "all 128 slices along dimension 1"),
    ("torch.bincount(x[0].long(), minlength=10)", [10], "no value is minlength or more"),
    ("torch.repeat_interleave(x, x[:, 0].long(), dim=0)", [64, 128], "each of the repeats"),
]


def test_shapes_that_depend_on_values_are_assumed_and_said(rehearse_on_card: Rehearse) -> None:
    lines = [f"print(list(({expression}).shape))" for expression, _, _ in SHAPES]
    weight = "torch.nn.Parameter(torch.ones(64, 128))"
    setting_up = ["import torch", f"x = {weight}.cuda().detach()"]
    done = rehearse_on_card("\n".join(setting_up + lines))
    assert done.stdout.splitlines() == [str(shape) for _, shape, _ in SHAPES], done.stderr
    for number, (expression, _, words) in enumerate(SHAPES, start=len(setting_up) + 1):
        told = [each for each in done.report["assumptions"] if f"script.py:{number}: " in each]
        assert len(told) == 1, f"{expression}: {told}"
        assert words in told[0]


def test_sizes_can_be_assumed_to_be_half_as_large(rehearse_on_card: Rehearse) -> None:
    script = """
        import torch
        x = torch.nn.Parameter(torch.ones(64, 128)).cuda().detach()
        print(len(x[x > 0]), int((x > 0).sum()), len(x.unique()), len(x.unique(dim=0)))
        print(len(torch.tensor([1, 0, 1]).cuda().nonzero()))
    """
    done = rehearse_on_card(script, halves_sizes=True)
    assert done.stdout.split() == ["4096", "4096", "4096", "32", "2"], done.stderr
    assert done.report["assumed_sizes"] == 1


def test_gradients_flow_through_an_assumed_selection(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        x = torch.randn(4, 4, device="cuda", requires_grad=True)
        x[x > 0].sum().backward()
        print(list(x.grad.shape))
        """
    )
    assert done.stdout.strip() == "[4, 4]", done.stderr


def test_lines_that_read_values_are_named_once(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        MODEL
        + """
for _ in range(3):
    print(loss().item())
if loss() > 1:
    print("not reached")
"""
    )
    assert done.stdout.split() == ["0.5"] * 3
    assert done.report["assumptions"] == [
        "Unknown values read as ordinary numbers (read at script.py:9, script.py:10)"
    ]


def test_a_large_model_moves_to_the_card_without_host_memory(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import resource, torch
        def resident_mib():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        torch.zeros(1).cuda()
        before = resident_mib()
        layers = torch.nn.ModuleList(torch.nn.Linear(8192, 8192, bias=False) for _ in range(8))
        layers.to("cuda", torch.bfloat16)
        print(resident_mib() - before < 200, layers[0].weight.dtype, layers[0].weight.device)
        print(torch.cuda.memory_allocated())
        """
    )
    assert done.stdout.split() == ["True", "torch.bfloat16", "cuda:0", str(GIB)], done.stdout


def test_compiled_code_does_not_compile_the_agent(rehearse_on_card: Rehearse) -> None:
    done = rehearse_on_card(
        """
        import torch
        select = torch.compile(lambda x: x[x > 0] * 2, backend="eager")
        print(list(select(torch.nn.Parameter(torch.ones(8, 8)).cuda().detach()).shape))
        initialise = torch.compile(lambda x: x.normal_() + 1, backend="eager", fullgraph=True)
        print(list(initialise(torch.empty(3, device="cuda")).shape))
        """
    )
    assert (done.stdout.splitlines(), done.stderr) == (["[64]", "[3]"], "")


HOSTS: dict[str, tuple[str, str]] = {
    "Lightning": (
        "lightning",
        """
        import lightning, torch
        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 8)
            def training_step(self, batch, index):
                return self.layer(batch[0]).sum()
            def configure_optimizers(self):
                return torch.optim.AdamW(self.parameters())
        data = torch.utils.data.TensorDataset(torch.randn(64, 8))
        trainer = lightning.Trainer(
            max_epochs=1, logger=False, enable_progress_bar=False, enable_model_summary=False
        )
        trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=4))
        print("not stopped")
        """,
    ),
    "the Hugging Face Trainer": (
        "transformers",
        """
        import torch, transformers
        config = transformers.BertConfig(
            hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
            vocab_size=50,
        )
        tokens = torch.ones(8, dtype=torch.long)
        data = [{"input_ids": tokens, "labels": tokens, "attention_mask": tokens}] * 64
        arguments = transformers.TrainingArguments(
            "out", report_to=[], max_steps=20, save_steps=2, disable_tqdm=True
        )
        model = transformers.BertForMaskedLM(config)
        transformers.Trainer(model, arguments, train_dataset=data).train()
        print("not stopped")
        """,
    ),
    "Accelerate": (
        "accelerate",
        """
        import accelerate, torch
        accelerator = accelerate.Accelerator(mixed_precision="bf16")
        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.AdamW(model.parameters())
        data = torch.utils.data.TensorDataset(torch.randn(64, 8))
        model, optimizer, loader = accelerator.prepare(
            model, optimizer, torch.utils.data.DataLoader(data, batch_size=4)
        )
        for batch, in loader:
            accelerator.backward(model(batch).sum())
            optimizer.step()
        print("not stopped")
        """,
    ),
}


@pytest.mark.parametrize("host", HOSTS)
def test_trainings_hosted_by_others_stop_cleanly(
    rehearse_on_card: Rehearse, host: str, tmp_path: Any
) -> None:
    package, script = HOSTS[host]
    pytest.importorskip(package)
    done = rehearse_on_card(script)
    assert (done.code, done.stdout.strip()) == (0, ""), done.stderr
    assert done.report["steps"] == 3
    assert done.report["stopped_by_step_limit"] is True
    assert done.report["peaks"][0]["peak_allocated_bytes"] > 0
    assert not list(tmp_path.glob("out/checkpoint-*"))
