"""`ghostgpu max-batch`: the largest batch that fits, by rehearsals, and scripts without one."""

from __future__ import annotations

import pytest
from conftest import MIB, Ask, Rehearse

# The script reads its batch from the environment, so that a plain run can use any.
TRAINING = """
import argparse, os, torch
from torch.utils.data import DataLoader, TensorDataset
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=int(os.environ.get("BATCH", "4")))
batch = parser.parse_args().batch_size
data = TensorDataset(torch.randn(3000, 256), torch.zeros(3000, dtype=torch.long))
model = torch.nn.Sequential(
    torch.nn.Linear(256, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096), torch.nn.GELU(),
    torch.nn.Linear(4096, 10)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for inputs, labels in DataLoader(data, batch_size=batch, shuffle=True):
    # Every sample counts for many, so that the card is full before this test has cost much.
    outputs = model(inputs.cuda().repeat(16, 1))
    torch.nn.functional.cross_entropy(outputs, labels.cuda().repeat(16)).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
OF_RANKS = """
import os, torch, torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
model = torch.nn.Sequential(torch.nn.Linear(64, 1 << 20), torch.nn.Linear(1 << 20, 1)).cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(4000, 64))
for (inputs,) in DataLoader(data, batch_size=8, sampler=DistributedSampler(data)):
    model(inputs.cuda()).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""
CARD = ("--gpu", "h200", "--memory", "1500MiB")
PEAKS = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes")


def test_the_batch_of_the_loader_is_found_and_equals_plain_runs(
    ask: Ask, rehearse_reference: Rehearse
) -> None:
    done = ask("max-batch", *CARD, "train.py", script=TRAINING).expect(0)
    largest = done["largest_batch"]
    assert done["confirmation"] == "equal"
    assert done["limited_by"]["kind"] == "memory"
    assert done["set_through"] == "the DataLoader iterated at train.py:13"
    assert (done["own_batch"], done["samples"]) == (4, 3000)
    rehearsed = {each["batch"]: each for each in done["rehearsed"]}
    assert rehearsed[largest]["fits"] is True
    assert rehearsed[largest + 1]["fits"] is False
    assert done["growth"]["bytes_each"] > 4096 * 4
    smaller = min(batch for batch in rehearsed if batch < largest // 2 and batch > 2)
    for batch, code in ((smaller, 0), (largest, 0), (largest + 1, 3)):
        plain = rehearse_reference(
            TRAINING, *CARD, "--no-retry", environment={"BATCH": str(batch)}
        ).expect(code)
        if code == 0:
            assert [plain[name] for name in PEAKS] == [rehearsed[batch][name] for name in PEAKS]


@pytest.mark.at_length
def test_an_argument_leads_to_the_same_batch_forked_or_not(ask: Ask) -> None:
    by_argument = ask(
        "max-batch", *CARD, "--arg", "--batch-size", "train.py", script=TRAINING
    ).expect(0)
    assert by_argument["set_through"] == "the argument --batch-size"
    assert by_argument["not_forked"] is None
    largest = by_argument["largest_batch"]
    options = ("--no-fork", "--at-most", str(largest + 1), "--arg", "--batch-size")
    again = ask(
        "max-batch", *CARD, *options, "train.py", "--batch-size", str(largest), script=TRAINING
    ).expect(0)
    assert again["largest_batch"] == largest
    assert again["confirmation"] == "found-by-runs"


@pytest.mark.reference
@pytest.mark.at_length
def test_the_trainer_of_transformers_is_searched_through_its_loader(ask: Ask) -> None:
    script = """
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
config = BertConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=1024, vocab_size=1000)
rows = [{"input_ids": [1] * 64, "labels": 0}] * 5000
arguments = TrainingArguments("out", per_device_train_batch_size=8, report_to=[],
                              save_strategy="no", disable_tqdm=True)
Trainer(BertForSequenceClassification(config), arguments, train_dataset=rows).train()
"""
    done = ask("max-batch", "--gpu", "h200", "--memory", "1500MiB", "train.py", script=script)
    done.expect(0)
    assert done["own_batch"] == 8
    assert done["largest_batch"] > 8
    assert done["confirmation"] == "equal"


@pytest.mark.reference
def test_lightning_is_searched_through_the_loader_it_trains_with(ask: Ask) -> None:
    script = """
import lightning, torch
from torch.utils.data import DataLoader, TensorDataset

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(512, 16384)

    def training_step(self, batch, index):
        return self.net(batch[0].repeat(64, 1)).sum()

    def validation_step(self, batch, index):
        self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

data = TensorDataset(torch.randn(4000, 512))
trainer = lightning.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False)
trainer.fit(Model(), DataLoader(data, batch_size=16), DataLoader(data, batch_size=8))
"""
    done = ask("max-batch", "--gpu", "h200", "--memory", "1500MiB", "train.py", script=script)
    done.expect(0)
    assert done["own_batch"] == 16
    assert done["limited_by"]["kind"] == "memory"
    assert done["confirmation"] == "equal"


@pytest.mark.at_length
def test_a_setting_that_is_read_in_the_script_s_own_way_is_tried_in_whole_runs(ask: Ask) -> None:
    script = """
import sys, torch
settings = {"data.batch": "4", "lr": "0.1"}
for word in sys.argv[1:]:
    key, value = word.split("=")
    if key not in settings:
        sys.exit(f"there is no setting {key}")
    settings[key] = value
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=float(settings["lr"]))
for _ in range(2):
    model(torch.zeros(int(settings["data.batch"]) << 12, 1024).cuda()).sum().backward()
    optimizer.step()
"""
    words = ("--gpu", "h200", "--memory", "1500MiB", "--arg", "data.batch=", "train.py")
    done = ask("max-batch", *words, "data.batch=8", script=script).expect(0)
    assert done["largest_batch"] > 8
    assert done["not_forked"] == "since the script does not read its arguments with argparse"
    unknown = ask("max-batch", "--gpu", "t4", "--arg", "size=", "train.py", script=script)
    assert unknown.code == 1
    assert "there is no setting size" in unknown.stderr


def test_data_that_ends_before_the_memory_does_is_the_limit(ask: Ask) -> None:
    script = TRAINING.replace("3000", "50")
    done = ask("max-batch", "--gpu", "h200", "train.py", script=script).expect(0)
    assert (done["largest_batch"], done["limited_by"]) == (50, {"kind": "data"})
    assert "all 50 samples of the data set are one batch" in done.stdout


@pytest.mark.at_length
def test_an_argument_is_bounded_by_the_data_too(ask: Ask) -> None:
    script = TRAINING.replace("3000", "50")
    words = ("--gpu", "h200", "--arg", "--batch-size", "train.py")
    for own in ("4", "600"):
        done = ask("max-batch", *words, "--batch-size", own, script=script).expect(0)
        assert (done["largest_batch"], done["limited_by"]) == (50, {"kind": "data"})


@pytest.mark.parametrize("bound", [(), ("--at-most", "64")])
def test_an_argument_without_effect_is_found_out(ask: Ask, bound: tuple[str, ...]) -> None:
    ignored = "parser.parse_args()\nbatch = 4"
    script = TRAINING.replace("batch = parser.parse_args().batch_size", ignored)
    words = ("--gpu", "h200", *bound, "--arg", "--batch-size", "train.py")
    done = ask("max-batch", *words, script=script).expect(2)
    assert "the argument `--batch-size` does not set the batch" in done.stderr
    assert "--arg" in done.stderr
    assert done.answer is None


# 31 samples are left over in an epoch, and evaluation takes ten times the batch of training.
EPOCHS = """
import argparse, os, torch
from torch.utils.data import DataLoader, TensorDataset
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
data = TensorDataset(torch.randn(3000, 256), torch.zeros(3000, dtype=torch.long))
model = torch.nn.Sequential(
    torch.nn.Linear(256, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 4096), torch.nn.GELU(),
    torch.nn.Linear(4096, 10)
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=args.batch_size)
for epoch in range(args.epochs):
    model.train()
    for inputs, labels in loader:
        outputs = model(inputs.cuda().repeat(2, 1))
        torch.nn.functional.cross_entropy(outputs, labels.cuda().repeat(2)).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    for inputs, labels in DataLoader(data, batch_size=loader.batch_size):
        kept = model(inputs.cuda().repeat(20, 1))
"""


@pytest.mark.parametrize(
    "words", [(), pytest.param(("--arg", "--batch-size"), marks=pytest.mark.at_length)]
)
def test_an_evaluation_that_needs_more_than_training_limits_the_batch(
    ask: Ask, rehearse_reference: Rehearse, words: tuple[str, ...]
) -> None:
    # The bound avoids rehearsals of batches that are far too large.
    whole = ("--budget", "60s", "--at-most", "400", *words)
    done = ask("max-batch", *CARD, *whole, "train.py", script=EPOCHS).expect(0)
    largest = done["largest_batch"]
    assert done["confirmation"] == "equal"
    assert done["limited_by"]["kind"] == "memory"
    assert done["limited_by"]["part"] == "evaluation at train.py:24"
    assert "evaluation" in [part["part"] for part in done["answer"]["covered"]]
    rehearsed = {each["batch"]: each for each in done["rehearsed"]}
    assert rehearsed[largest + 1]["fits"] is False
    # Judged by the first steps alone, a far larger batch would fit.
    for batch, extent, code in (
        (3 * largest, ("--steps", "3"), 0),
        (largest, ("--full",), 0),
        (largest + 1, ("--full",), 3),
    ):
        text = EPOCHS.replace("default=4", f"default={batch}")
        rehearse_reference(text, *CARD, *extent, "--no-retry").expect(code)


LOOP = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.1)
batch = parser.parse_args().batch_size
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.randn(batch, 1024).cuda()).sum().backward()
    optimizer.step()
"""

OWN_SAMPLER = """
import torch
from torch.utils.data import DataLoader
class Pairs:
    def __iter__(self):
        return iter([[0, 1], [2, 3]])
model = torch.nn.Linear(4, 4).cuda()
for inputs in DataLoader(torch.randn(10, 4), batch_sampler=Pairs()):
    model(inputs.cuda())
"""


@pytest.mark.parametrize(
    ("script", "words", "sentence", "hint"),
    [
        (LOOP, (), "the script never iterated a torch.utils.data.DataLoader", "--batch-size"),
        (LOOP, ("--arg", "--batch"), "the script has no argument `--batch`", "`--batch-size`"),
        (OWN_SAMPLER, (), "takes its batches from a Pairs, which has no `batch_size`", "--arg"),
    ],
)
def test_a_script_without_a_batch_to_set_is_said_to_have_none(
    ask: Ask, script: str, words: tuple[str, ...], sentence: str, hint: str
) -> None:
    done = ask("max-batch", "--gpu", "t4", *words, "train.py", script=script).expect(2)
    assert sentence in done.stderr
    assert hint in done.stderr
    assert done.answer is None


def test_a_batch_of_one_that_does_not_fit_is_exit_code_3(ask: Ask) -> None:
    script = TRAINING.replace("repeat(16", "repeat(200000")
    done = ask("max-batch", *CARD, "train.py", script=script).expect(3)
    assert done["largest_batch"] is None
    assert "not even 1 fits" in done.stdout


def test_a_script_that_fails_by_itself_keeps_its_exit_code_and_words(ask: Ask) -> None:
    script = TRAINING.replace("optimizer.step()", "raise SystemExit(7)")
    done = ask("max-batch", *CARD, "train.py", script=script).expect(7)
    assert "the script failed with a batch of" in done.stderr


def test_a_card_has_room_for_what_was_found(ask: Ask) -> None:
    done = ask("max-batch", *CARD, "--at-most", "6", "train.py", script=TRAINING).expect(0)
    assert (done["largest_batch"], done["limited_by"]) == (6, {"kind": "asked"})
    assert done["answer"]["peak_device_bytes"] <= 1500 * MIB


@pytest.mark.at_length
def test_the_largest_batch_of_every_rank_is_found_with_whole_runs(ask: Ask) -> None:
    words = ("--gpu", "h200", "--memory", "2500MiB", "--count", "2", "--steps", "2", "--")
    launcher = ("torchrun", "--standalone", "--nproc-per-node", "2", "train.py")
    done = ask("max-batch", *words, *launcher, script=OF_RANKS).expect(0)
    largest = done["largest_batch"]
    fits = {each["batch"]: each["fits"] for each in done["rehearsed"]}
    assert (fits[largest], fits[largest + 1]) == (True, False)
    assert done["own_batch"] == 8
    assert [rank["rank"] for rank in done["answer"]["ranks"]] == [0, 1]
    assert f"{largest} on each of 2 × " in done.stdout
    assert "since there are several cards" in done["not_forked"]
