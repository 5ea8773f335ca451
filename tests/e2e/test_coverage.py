"""A rehearsal covers what a whole training does, without doing all of it."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pytest
from conftest import MIB, Answered, Rehearse

BUDGET = ("--budget", "40s")

SLOW = {"STEP_SECONDS": "0.15"}
"""For the environment of a script: its batches take processor time, as those of a training do whose
passes are too long to be rehearsed whole."""
BUDGET_OF_SLOW = ("--budget", "30s")

SLOW_DOWN = """
import os, time

def think():
    ends = time.process_time() + float(os.environ.get("STEP_SECONDS", 0))
    while time.process_time() < ends:
        pass

"""

SETUP = f"""
{SLOW_DOWN}
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)
).cuda()
optimizer = torch.optim.Adam(model.parameters())


def train(loader):
    model.train()
    for (x,) in loader:
        think()
        loss = model(x.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def evaluate(loader, before_batch=lambda: None):
    model.eval()
    results = []
    with torch.no_grad():
        for (x,) in loader:
            before_batch()
            results.append(model(x.cuda()).sum(1).cpu())
    return torch.cat(results)
"""

EPOCHS = """
data = TensorDataset(torch.randn(20_100, 1024))
loader = DataLoader(data, 200, shuffle=True)
for epoch in range(50):
    train(loader)
    print(len(evaluate(DataLoader(data, 700))))
    torch.save(model.state_dict(), "model.pt")
"""

LONGEST_IN_THE_MIDDLE = """
class Lengths(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return (torch.zeros(3000 if index == 211 else 30 if index == 212 else 300, 1024),)

for epoch in range(2):
    train(DataLoader(Lengths(), batch_size=None, sampler=range(400)))
"""

EVALUATION_KEEPS_ITS_RESULTS = """
data = TensorDataset(torch.randn(12_000, 1024))
for epoch in range(2):
    train(DataLoader(data, 200))
    model.eval()
    with torch.no_grad():
        results = torch.cat([model(x.cuda()) for (x,) in DataLoader(data, 100)])
    del results
"""

EVALUATION_AT_THE_VERY_END = """
data = TensorDataset(torch.randn(4_000, 1024))
for epoch in range(60):
    train(DataLoader(data, 200))
evaluate(DataLoader(data, 4_000))
"""

ACCUMULATION = """
data = TensorDataset(torch.randn(9_050, 1024))
for epoch in range(3):
    for index, (x,) in enumerate(loader := DataLoader(data, 50)):
        think()
        model(x.cuda()).square().mean().backward()
        if (index + 1) % 8 == 0 or index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
"""

EVALUATION_WITHOUT_EVAL = """
data = torch.randn(20_000, 1024)
for begin in range(0, EPOCHS * 300, 100):
    model(data[:100].cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
with torch.no_grad():
    model(data.cuda())
"""

EVALUATION_BEFORE_AND_AFTER = """
data = TensorDataset(torch.randn(2_000, 1024))
evaluate(DataLoader(data, 2_000))
for epoch in range(EPOCHS):
    train(DataLoader(data, 100))
evaluate(DataLoader(data, 2_000))
"""

EVALUATION_OF_A_LARGER_SET_AT_THE_END = """
def embed(samples):
    model.eval()
    with torch.no_grad():
        loader = DataLoader(TensorDataset(torch.randn(samples, 1024)), 100)
        return torch.cat([model(x.cuda()) for (x,) in loader])

for epoch in range(EPOCHS):
    train(DataLoader(TensorDataset(torch.randn(2_000, 1024)), 100))
    embed(500)
embed(20_000)
"""

ANOTHER_TRAINING_AFTER_THE_FIRST = """
data = TensorDataset(torch.randn(2_000, 1024))
for width in (1024, 2048, 8192):
    model = torch.nn.Sequential(
        torch.nn.Linear(1024, width), torch.nn.ReLU(), torch.nn.Linear(width, 1024)
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(EPOCHS):
        train(DataLoader(data, 100))
"""

ACCUMULATION_IN_MANY_EPOCHS = """
data = TensorDataset(torch.randn(400, 1024))
for epoch in range(100_000):
    for index, (x,) in enumerate(DataLoader(data, 20)):
        model(x.cuda()).square().mean().backward()
        if (index + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
"""

TRAINS_MORE_LAYERS_FROM_A_STEP_ON = """
for parameter in model[0].parameters():
    parameter.requires_grad_(False)
data = TensorDataset(torch.randn(20_000, 1024))
for epoch in range(2):
    for index, (x,) in enumerate(DataLoader(data, 200)):
        if epoch == 0 and index == 24:
            for parameter in model.parameters():
                parameter.requires_grad_(True)
        think()
        optimizer.zero_grad()
        model(x.cuda()).square().mean().backward()
        optimizer.step()
"""

KEEPS_RESULTS_FROM_A_STEP_ON = """
kept, step = [], 0
for epoch in range(2):
    for (x,) in DataLoader(TensorDataset(torch.randn(20_000, 1024)), 200):
        think()
        out = model(x.cuda())
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
        step += 1
        if step > BEGIN:
            kept.append(out.detach())
"""


def parts(answer: Answered) -> dict[str, str]:
    return {each["part"]: each["detail"] for each in answer["covered"]}


def peaks(answer: Answered) -> tuple[Any, Any]:
    return answer["peak_allocated_bytes"], answer["peak_reserved_bytes"]


@pytest.mark.parametrize(
    ("loop", "most_steps"),
    [
        pytest.param(EPOCHS, 60, id="epochs", marks=pytest.mark.at_length),
        # From the longest batch on, none is left out: they differ in size, and there is time.
        pytest.param(LONGEST_IN_THE_MIDDLE, 650, id="lengths"),
        pytest.param(
            EVALUATION_KEEPS_ITS_RESULTS, 15, id="kept-results", marks=pytest.mark.at_length
        ),
        pytest.param(
            EVALUATION_AT_THE_VERY_END,
            75,
            id="evaluation-at-the-end",
            marks=pytest.mark.at_length,
        ),
        pytest.param(ACCUMULATION, 9, id="accumulation", marks=pytest.mark.at_length),
        pytest.param(TRAINS_MORE_LAYERS_FROM_A_STEP_ON, 40, id="more-layers"),
    ],
)
def test_the_peaks_of_a_whole_training_come_out_with_few_of_its_steps(
    rehearse: Rehearse, loop: str, most_steps: int
) -> None:
    whole = rehearse(SETUP + loop, "--full", "--no-breakdown", "--no-retry").expect(0)
    assert whole["covered"] == []
    options = (*BUDGET_OF_SLOW, "--no-breakdown", "--no-retry")
    covered = rehearse(SETUP + loop, *options, environment=SLOW).expect(0)
    assert covered["steps"] <= most_steps < whole["steps"]
    assert peaks(covered) == peaks(whole)
    assert covered["not_reached"] == []


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(EVALUATION_WITHOUT_EVAL, id="without-eval"),
        pytest.param(
            EVALUATION_BEFORE_AND_AFTER, id="before-and-after", marks=pytest.mark.at_length
        ),
        pytest.param(
            EVALUATION_OF_A_LARGER_SET_AT_THE_END, id="larger-set", marks=pytest.mark.at_length
        ),
        pytest.param(ANOTHER_TRAINING_AFTER_THE_FIRST, id="another-training"),
    ],
)
def test_what_comes_after_many_steps_is_in_the_peaks(rehearse: Rehearse, loop: str) -> None:
    options = ("--no-breakdown", "--no-retry")
    few, many = (SETUP + loop.replace("EPOCHS", epochs) for epochs in ("3", "40"))
    whole = rehearse(few, "--full", *options).expect(0)
    covered = rehearse(many, *BUDGET, *options).expect(0)
    assert peaks(covered) == peaks(whole)
    assert "end-of-script" in parts(covered)


def test_what_grows_from_a_later_step_on_is_seen(rehearse: Rehearse) -> None:
    loop = SETUP + KEEPS_RESULTS_FROM_A_STEP_ON.replace("BEGIN", "20")
    done = rehearse(loop, *BUDGET_OF_SLOW, "--no-retry", environment=SLOW).expect(0)
    assert re.search(r"^grows +[0-9.]+ KiB per step from train.py:", done.stdout, re.MULTILINE)


def test_a_step_that_is_too_far_away_is_named(rehearse: Rehearse) -> None:
    loop = SETUP + KEEPS_RESULTS_FROM_A_STEP_ON.replace("BEGIN", "150")
    done = rehearse(loop, *BUDGET_OF_SLOW, "--no-retry", environment=SLOW).expect(0)
    (told,) = [each for each in done["assumptions"] if "step > 150" in each]
    assert "`step > 150` (train.py:49)" in told


def test_an_epoch_that_is_only_begun_still_makes_a_step(rehearse: Rehearse) -> None:
    done = rehearse(SETUP + ACCUMULATION_IN_MANY_EPOCHS, "--budget", "20s", "--no-retry").expect(0)
    assert done["stopped_by_step_limit"]


def test_what_was_covered_is_named(rehearse: Rehearse) -> None:
    done = rehearse(SETUP + EPOCHS, *BUDGET_OF_SLOW, "--no-retry", environment=SLOW).expect(0)
    assert parts(done) == {
        "steps": str(done["steps"]),
        "largest-batch": "200×1024",
        "smallest-batch": "100×1024",
        "last-batch": "100×1024",
        "evaluation": "at train.py:32",
        "checkpoint": "at train.py:45",
        # Five in the first, which is shortened.
        "next-epoch": f"{done['steps'] - 5} steps",
    }


def test_an_evaluation_that_takes_more_than_a_step_is_what_does_not_fit(rehearse: Rehearse) -> None:
    loop = """
data = TensorDataset(torch.randn(40_000, 1024))
for epoch in range(9):
    train(DataLoader(data, 100))
    evaluate(DataLoader(data, 40_000))
"""
    steps = rehearse(SETUP + loop, "--memory", "1000MiB", "--no-retry").expect(0)
    assert steps["peak_device_bytes"] < 900 * MIB
    done = rehearse(SETUP + loop, *BUDGET, "--memory", "1000MiB", "--no-retry").expect(3)
    assert done["oom"]["stage"] == "evaluation"


def test_an_evaluation_that_is_not_reached_in_time_is_named(rehearse: Rehearse) -> None:
    loop = """
step = 0
while True:
    train(DataLoader(TensorDataset(torch.randn(400, 1024)), 200))
    step += 1
    if step == 1_000_000:
        evaluate(None)
"""
    done = rehearse(SETUP + loop, "--budget", "3s", "--no-retry", "--no-breakdown")
    assert [each["part"] for each in done["not_reached"]] == ["evaluation"]
    assert "train.py:32" in done["not_reached"][0]["because"]


def test_a_script_that_counts_its_results_is_rehearsed_with_whole_passes(
    rehearse: Rehearse,
) -> None:
    loop = """
data = TensorDataset(torch.randn(8_000, 1024))
for epoch in range(2):
    train(DataLoader(data, 100))
    assert len(evaluate(DataLoader(data, 100), think)) == len(data), "results are missing"
"""
    options = (*BUDGET_OF_SLOW, "--no-retry", "--no-breakdown")
    done = rehearse(SETUP + loop, *options, environment=SLOW).expect(0)
    assert any("results are missing" in sentence for sentence in done["assumptions"])
    assert "end-of-script" in parts(done) or done["steps"] >= 80


@pytest.mark.parametrize("workers", [0, 2])
def test_data_that_is_slow_to_load_is_not_loaded_to_be_dropped(
    rehearse: Rehearse, workers: int
) -> None:
    loop = f"""
import os, time

class Slow(Dataset):
    def __len__(self):
        return 1_000_050

    def __getitem__(self, index):
        with open("loaded", "a") as file:
            file.write("x" if index < 1_000_000 else "L")
        return (torch.zeros(1024),)

for epoch in range(2):
    train(DataLoader(Slow(), 100, num_workers={workers}))
"""
    done = rehearse(SETUP + loop, *BUDGET, "--no-retry", "--no-breakdown").expect(0)
    loaded = (done.folder / "loaded").read_text()
    assert len(loaded) < 10_000
    # The last 50 samples are a smaller batch, in each of two passes.
    assert parts(done)["last-batch"] == "50×1024"
    assert loaded.count("L") == 100


def test_a_stream_without_an_end_is_left_after_a_while(rehearse: Rehearse) -> None:
    loop = """
class Stream(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randn(1024)

train((x,) for x in ())
for epoch in range(2):
    train(([x] for x in DataLoader(Stream(), 64)))
"""
    done = rehearse(SETUP + loop, *BUDGET, "--no-retry", "--no-breakdown").expect(0)
    assert [each["part"] for each in done["not_reached"]] == ["last-batch"]


SAMPLER_WITHOUT_AN_END = """
class Sampler(torch.utils.data.Sampler):
    def __iter__(self):
        while True:
            yield from range(500)

    def __len__(self):
        return 2 ** 31

def step(x):
    think()
    model(x.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

loader = DataLoader(TensorDataset(torch.randn(500, 1024)), 100, sampler=Sampler())
"""


@pytest.mark.parametrize(
    "loop",
    [
        "batches = iter(loader)\nfor index in range(20_000): step(next(batches)[0])",
        "for index, (x,) in enumerate(loader):\n    step(x)\n    if index == 20_000: break",
    ],
    ids=["next", "for"],
)
def test_a_sampler_without_an_end_is_left_after_a_while(rehearse: Rehearse, loop: str) -> None:
    script = SETUP + SAMPLER_WITHOUT_AN_END + loop
    done = rehearse(script, *BUDGET_OF_SLOW, "--no-retry", environment=SLOW).expect(0)
    assert done["steps"] < 200


def test_a_pass_that_stays_on_the_host_is_not_shortened(rehearse: Rehearse) -> None:
    loop = """
data = TensorDataset(torch.randn(5_000, 1024))
seen = sum(len(x) for (x,) in DataLoader(data, 10))
print("seen", seen)
for epoch in range(2):
    train(DataLoader(data, 100))
"""
    done = rehearse(SETUP + loop, *BUDGET, "--no-retry", "--no-breakdown").expect(0)
    assert "seen 5000" in done.stdout


def test_lightning_validates_though_its_epoch_is_shortened(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        SLOW_DOWN
        + textwrap.dedent("""
        import lightning, torch
        from torch.utils.data import DataLoader, TensorDataset

        class Job(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(512, 512)

            def training_step(self, batch, _):
                think()
                return self.layer(batch[0]).square().mean()

            def validation_step(self, batch, _):
                self.layer(batch[0])

            def on_validation_end(self):
                print("validated", self.global_step)

            def configure_optimizers(self):
                return torch.optim.Adam(self.parameters())

        data = TensorDataset(torch.randn(5_050, 512))
        trainer = lightning.Trainer(
            max_epochs=30, accelerator="gpu", devices=1, logger=False,
            enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
        )
        trainer.fit(Job(), DataLoader(data, 100), DataLoader(data, 500))
        """),
        *BUDGET_OF_SLOW,
        "--no-retry",
        "--no-breakdown",
        environment=SLOW,
    ).expect(0)
    # The first two epochs, and later ones in a hurry, of 1,530 steps.
    assert done["steps"] <= 60
    assert done.stdout.startswith("validated ")
    assert {"evaluation", "last-batch", "checkpoint", "next-epoch"} <= set(parts(done))


def test_the_trainer_evaluates_before_its_five_hundredth_step(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        SLOW_DOWN
        + textwrap.dedent("""
        import torch
        from transformers import BertConfig, BertForSequenceClassification
        from transformers import Trainer, TrainingArguments

        rows = [{"input_ids": torch.ones(32, dtype=torch.long), "labels": 0} for _ in range(8_004)]
        config = BertConfig(
            hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=256
        )
        model = BertForSequenceClassification(config)
        model.register_forward_pre_hook(lambda *_: think())
        trainer = Trainer(
            model,
            TrainingArguments(
                "out", per_device_train_batch_size=8, eval_strategy="steps", eval_steps=500,
                save_steps=500, report_to=[], disable_tqdm=True,
            ),
            train_dataset=rows,
            eval_dataset=rows[:400],
        )
        trainer.train()
        """),
        *BUDGET_OF_SLOW,
        "--no-retry",
        "--no-breakdown",
        environment=SLOW,
    ).expect(0)
    assert done["steps"] <= 20
    assert {"evaluation", "last-batch", "checkpoint", "next-epoch"} <= set(parts(done))


@pytest.mark.parametrize(
    "options", [("--steps", "3", "--full"), ("--steps", "3", "--budget", "5s")]
)
def test_steps_a_budget_and_the_whole_script_exclude_each_other(
    rehearse: Rehearse, options: tuple[str, ...]
) -> None:
    done = rehearse(SETUP, *options)
    assert done.code == 2
    assert "cannot be used with" in done.stderr
