"""Trainers and model libraries, unmodified, in the reference environment."""

from __future__ import annotations

import pytest
from conftest import MIB, Rehearse

TINY_GPT2 = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=4, n_embd=128, vocab_size=1000))
tokens = torch.randint(0, 1000, (16, 64))
"""


def test_the_hugging_face_trainer_trains_and_leaves_no_checkpoint(
    rehearse_reference: Rehearse,
) -> None:
    done = rehearse_reference(
        TINY_GPT2
        + """
from transformers import Trainer, TrainingArguments
data = [{"input_ids": row, "labels": row} for row in tokens]
arguments = TrainingArguments(
    output_dir="out", per_device_train_batch_size=4, max_steps=10, save_steps=2, report_to=[],
    bf16=True, logging_steps=1,
)
Trainer(model, arguments, train_dataset=data).train()
"""
    ).expect(0)
    assert done["steps"] == 3
    assert list((done.folder / "out").glob("checkpoint-*/*.safetensors")) == []


def test_generated_text_ends_at_its_greatest_length(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=500)).cuda()
        prompt = torch.ones(2, 8, dtype=torch.int64, device="cuda")
        for options in ({"do_sample": True}, {"num_beams": 3}):
            text = model.generate(prompt, max_new_tokens=6, pad_token_id=0, **options)
            print("generated", len(text))
        """,
        "--timeout",
        "120s",
    ).expect(0)
    assert done.stdout.count("generated 2") == 2


def test_accelerate_prepares_and_trains(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        TINY_GPT2
        + """
from accelerate import Accelerator
from torch.utils.data import DataLoader
accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=2)
model, optimizer, batches = accelerator.prepare(
    model, torch.optim.AdamW(model.parameters()), DataLoader(tokens, batch_size=4)
)
print("on", accelerator.device.type)
for _ in range(3):
    for batch in batches:
        with accelerator.accumulate(model):
            accelerator.backward(model(input_ids=batch, labels=batch).loss)
            optimizer.step()
            optimizer.zero_grad()
"""
    ).expect(0)
    assert "on cuda" in done.stdout
    assert done["steps"] == 3


def test_lightning_fits(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        TINY_GPT2
        + """
import lightning
from torch.utils.data import DataLoader

class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model

    def training_step(self, batch, index):
        return self.model(input_ids=batch, labels=batch).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

trainer = lightning.Trainer(
    max_epochs=2, accelerator="gpu", devices=1, precision="16-mixed", logger=False,
    enable_progress_bar=False,
)
trainer.fit(Module(), DataLoader(tokens, batch_size=4))
"""
    ).expect(0)
    assert done["steps"] == 3


@pytest.mark.parametrize(
    "memory_format",
    [pytest.param("contiguous_format", marks=pytest.mark.at_length), "channels_last"],
)
def test_a_torchvision_network_trains(rehearse_reference: Rehearse, memory_format: str) -> None:
    done = rehearse_reference(
        f"""
import torch, torchvision
model = torchvision.models.resnet18().cuda().to(memory_format=torch.{memory_format})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    images = torch.randn(8, 3, 224, 224, device="cuda").to(memory_format=torch.{memory_format})
    labels = torch.zeros(8, dtype=torch.long, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    ).expect(0)
    assert done["steps"] == 3
    assert done["refused"] == []
    # 11.7 million parameters with gradients and momentum, and activations.
    assert done["peak_allocated_bytes"] > 3 * 44 * MIB


def test_shapes_that_depend_on_values_are_assumed_aloud(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
import torch
x = torch.randn(1000, device="cuda")
chosen = x[x > 0]
print("chosen", chosen.numel())
"""
    ).expect(0)
    count = int(done.stdout.split("chosen")[1].split()[0])
    assert count > 0
    assert any("train.py:4" in sentence for sentence in done["assumptions"]), done["assumptions"]


def test_a_recurrent_network_trains(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
import torch
model = torch.nn.LSTM(64, 128, num_layers=2, dropout=0.1, batch_first=True).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    result, _ = model(torch.randn(8, 32, 64, device="cuda"))
    result.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    ).expect(0)
    assert done["steps"] == 3
