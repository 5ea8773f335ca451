"""Trainings that a framework runs: HF `Trainer`, Accelerate, Lightning."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Callable

import torch
import torch.distributed as dist
from small_model import BATCH, STEPS, TOKENS, WIDTH, Block, Model, adam


def trainer(**options: Any) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    ids = torch.arange(TOKENS)
    data = [{"input_ids": ids, "labels": ids}] * 64
    config = GPT2Config(n_layer=2, n_embd=256, n_head=4, vocab_size=5000)
    quiet: dict[str, Any] = {"save_strategy": "no", "report_to": [], "disable_tqdm": True}
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=BATCH, max_steps=STEPS, **quiet, **options
        )
        Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data).train()


def trainer_fsdp(version: int) -> None:
    wrap = {"version": version, "transformer_layer_cls_to_wrap": ["GPT2Block"]}
    trainer(fsdp="full_shard auto_wrap", fsdp_config=wrap, bf16=True)


def accelerated(**options: Any) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(**options)
    model: Any = Model()
    optimizer: Any = adam(model)
    data = torch.utils.data.TensorDataset(torch.randn(64, TOKENS, WIDTH))
    loader: Any = torch.utils.data.DataLoader(data, batch_size=BATCH)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, (batch,) in enumerate(loader):
        with accelerator.accumulate(model):
            loss = model(batch).float().square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.gather_for_metrics(loss.detach())
        if step + 1 == STEPS:
            break


def accelerated_fsdp(version: int) -> None:
    from accelerate import FullyShardedDataParallelPlugin

    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=version,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["Block"],
    )
    accelerated(fsdp_plugin=plugin, mixed_precision="bf16")


def lightning(strategy: str, **options: Any) -> None:
    import pytorch_lightning
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from pytorch_lightning.strategies import FSDPStrategy

    class Module(pytorch_lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            loss = self.model(batch[0]).square().mean()
            self.log("loss", loss, sync_dist=True)
            return loss

        def configure_optimizers(self) -> Any:
            return adam(self)

    data = torch.utils.data.TensorDataset(torch.randn(64, TOKENS, WIDTH))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    size = dist.get_world_size()
    # Ranks that share a real card are nodes with one card each.
    devices, nodes = (1, size) if os.environ.get("RANKS_SHARE_CARD") else (size, 1)
    switched_off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    quiet: dict[str, Any] = dict.fromkeys(switched_off, False)
    pytorch_lightning.Trainer(
        accelerator="gpu",
        devices=devices,
        num_nodes=nodes,
        strategy=FSDPStrategy(auto_wrap_policy={Block}) if strategy == "fsdp" else strategy,
        plugins=[TorchElasticEnvironment()],
        max_steps=STEPS,
        **quiet,
        **options,
    ).fit(Module(), loader)


CASES: dict[str, Callable[[], None]] = {
    "trainer": trainer,
    "trainer-accumulation": lambda: trainer(gradient_accumulation_steps=2, bf16=True),
    "trainer-fsdp2": lambda: trainer_fsdp(2),
    "accelerate": accelerated,
    "accelerate-accumulation": lambda: accelerated(gradient_accumulation_steps=2),
    "accelerate-fsdp1": lambda: accelerated_fsdp(1),
    "accelerate-fsdp2": lambda: accelerated_fsdp(2),
    "lightning": lambda: lightning("ddp"),
    "lightning-fsdp": lambda: lightning("fsdp"),
}
