"""Training loops written by others: HF Trainer, Accelerate, Lightning, torchvision's reference.

Steps are reported from inside each framework's own callback, after its optimizer step.
"""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from case import case
from cases.optimizers import mlp
from cases.transformers_models import bert
from context import Context


class Sentences(Dataset[dict[str, torch.Tensor]]):
    """Token numbers kept in memory, with labels for a masked language model."""

    def __init__(self, rows: int, length: int, vocabulary: int) -> None:
        self.ids = torch.arange(rows * length).view(rows, length) % vocabulary

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = self.ids[index]
        return {"input_ids": row, "labels": row, "attention_mask": torch.ones_like(row)}


def _sentences(context: Context, batch: int) -> Sentences:
    rows = batch * (context.steps + 1)
    return Sentences(rows, context.pick(128, 16), context.pick(30522, 100))


def train_with_trainer(context: Context, **options: Any) -> None:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    size = context.batch(16)
    model = bert(batch=16)(context).model

    class StepReporter(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **extra: Any) -> None:
            context.step_done()

    with tempfile.TemporaryDirectory() as folder:
        accumulate = options.get("gradient_accumulation_steps", 1)
        context.start()
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=size // accumulate,
            max_steps=context.steps,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=context.device == "cpu",
            **options,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=_sentences(context, size),
            callbacks=[StepReporter()],
        )
        trainer.train()


def _precision_flags(context: Context) -> dict[str, bool]:
    # The flags need a card; the table's self-check trains in fp32.
    if context.device == "cpu" or context.case.precision == "fp32":
        return {}
    return {context.case.precision: True}


case("trainer", script=lambda c: train_with_trainer(c), alone=True)
case(
    "trainer-bf16", script=lambda c: train_with_trainer(c, **_precision_flags(c)), precision="bf16"
)
case(
    "trainer-fp16", script=lambda c: train_with_trainer(c, **_precision_flags(c)), precision="fp16"
)
case(
    "trainer-checkpointing-accumulation",
    script=lambda c: train_with_trainer(
        c, gradient_checkpointing=True, gradient_accumulation_steps=2
    ),
)
case("trainer-adafactor", script=lambda c: train_with_trainer(c, optim="adafactor"))


def train_with_accelerate(context: Context, accumulate: int = 1) -> None:
    from accelerate import Accelerator

    size = context.batch(16)
    model = bert(batch=16)(context).model
    context.start()
    precision = context.case.precision
    accelerator = Accelerator(
        cpu=context.device == "cpu",
        mixed_precision="no" if precision == "fp32" or context.device == "cpu" else precision,
        gradient_accumulation_steps=accumulate,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    loader = DataLoader(_sentences(context, size), batch_size=size // accumulate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    model.train()
    done = 0
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            done += 1
            context.step_done()
        if done == context.steps:
            break


case("accelerate", script=train_with_accelerate)
case("accelerate-bf16", script=train_with_accelerate, precision="bf16", alone=True)
case("accelerate-fp16-accumulation", script=lambda c: train_with_accelerate(c, 2), precision="fp16")


def train_with_lightning(context: Context) -> None:
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl  # type: ignore[no-redef]

    job = mlp(context)

    class Module(pl.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = job.model

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            loss = job.loss(self.net, batch)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    class StepReporter(pl.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, *arguments: Any, **options: Any) -> None:
            context.step_done()

    precision: Any = {"fp32": "32-true", "fp16": "16-mixed", "bf16": "bf16-mixed"}[
        context.case.precision
    ]
    if context.device == "cpu":
        precision = "32-true"
    context.start()
    trainer = pl.Trainer(
        max_steps=context.steps,
        accelerator="gpu" if context.device == "cuda" else "cpu",
        devices=1,
        precision=precision,
        callbacks=[StepReporter()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches = [job.make_batch(step) for step in range(context.steps + 1)]
    trainer.fit(Module(), DataLoader(batches, batch_size=None))  # type: ignore[arg-type]


case("lightning", script=train_with_lightning)
case("lightning-fp16", script=train_with_lightning, precision="fp16")
case("lightning-bf16", script=train_with_lightning, precision="bf16", alone=True)


class Pictures(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, rows: int, side: int) -> None:
        self.rows, self.side = rows, side

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.zeros(3, self.side, self.side), index % 1000


def train_like_torchvision(context: Context) -> None:
    """The reference script's shape: workers, pinned memory, scheduler, EMA, metrics every step."""
    import torchvision

    size, side = context.batch(64), context.pick(176, 64)
    model = torchvision.models.resnet50(weights=None)
    on_card = context.device == "cuda"
    loader = DataLoader(
        Pictures(size * context.steps, side), batch_size=size, num_workers=2, pin_memory=on_card
    )
    context.start()
    model.to(context.device)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": 1e-4}, {"params": plain, "weight_decay": 0.0}],
        lr=0.1,
        momentum=0.9,
    )
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=5)
    scaler = context.scaler()
    average = torch.optim.swa_utils.AveragedModel(
        model, avg_fn=lambda old, new, count: 0.999 * old + 0.001 * new, use_buffers=True
    )
    for image, target in loader:
        image, target = (value.to(context.device, non_blocking=True) for value in (image, target))
        with context.autocast():
            output = model(image)
            loss = loss_of(output, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
        warmup.step()
        with torch.inference_mode():
            best = output.topk(5, 1)[1].t()
            best.eq(target[None]).float().sum().item()
        loss.item()
        context.step_done()


case("torchvision-reference", script=train_like_torchvision, rough_seconds=12)
case(
    "torchvision-reference-fp16", script=train_like_torchvision, precision="fp16", rough_seconds=12
)
