"""What other tools come to on a card that a job does not fit: they look for a batch that does.

    python rivals.py accelerate bert --wanted 96 --found found.json

`accelerate` has `find_executable_batch_size`, which begins at the batch that is wanted and takes
nine tenths of it until a training ends; `lightning` has `Tuner.scale_batch_size`, which doubles a
small batch until memory runs out and bisects from there. Both need the card. Written down are the
time until they know, the batch that they end with, and the time of a step with it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).resolve().parent / "scripts"))

from models import MODELS, Job, OneSample  # type: ignore[import-not-found]

#: As many steps as Lightning's finder makes of each batch; more follow to measure their time.
STEPS_OF_A_TRIAL = 3
STEPS = 10


def with_accelerate(name: str, wanted: int) -> dict[str, Any]:
    from accelerate.utils import find_executable_batch_size

    begin = time.perf_counter()
    known_after = 0.0
    times: list[float] = []

    def train(batch_size: int) -> int:
        nonlocal known_after
        job = MODELS[name]()
        model = job.model.cuda().train()
        optimizer = job.optimizer(model)
        for step, batch in enumerate(loader(job, batch_size)):
            started = time.perf_counter()
            batch = {key: values.cuda() for key, values in batch.items()}
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=job.is_mixed):
                loss = job.loss(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
            if step + 1 == STEPS_OF_A_TRIAL:
                known_after = time.perf_counter() - begin
            elif step >= STEPS_OF_A_TRIAL:
                times.append(time.perf_counter() - started)
        return batch_size

    batch_size = find_executable_batch_size(train, starting_batch_size=wanted)()
    return answer(batch_size, known_after, times)


def loader(job: Job, batch_size: int) -> DataLoader[Any]:
    return DataLoader(OneSample(job.sample, batch_size * STEPS), batch_size=batch_size)


def with_lightning(name: str, _: int) -> dict[str, Any]:
    import lightning
    from lightning.pytorch.tuner import Tuner

    job = MODELS[name]()

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = job.model
            self.batch_size = 2

        def train_dataloader(self) -> DataLoader[Any]:
            data = OneSample(job.sample, 8192 * STEPS)
            return DataLoader(data, batch_size=self.batch_size)

        def training_step(self, batch: Any, _: int) -> Any:
            return job.loss(self.model, batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return job.optimizer(self.model)

    times: list[float] = []

    class StepTimes(lightning.Callback):
        def on_train_batch_start(self, *_: Any) -> None:
            self.begin = time.perf_counter()

        def on_train_batch_end(self, *_: Any) -> None:
            torch.cuda.synchronize()
            times.append(time.perf_counter() - self.begin)

    trainer = lightning.Trainer(
        max_steps=STEPS,
        accelerator="cuda",
        devices=1,
        precision="bf16-mixed" if job.is_mixed else "32-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[StepTimes()],
    )
    module = Module()
    begin = time.perf_counter()
    Tuner(trainer).scale_batch_size(module, mode="binsearch", steps_per_trial=STEPS_OF_A_TRIAL)
    known_after = time.perf_counter() - begin
    times.clear()
    try:
        trainer.fit(module)
    except torch.OutOfMemoryError:
        # The batch that it found does not train.
        return {"batch": module.batch_size, "known_after_seconds": round(known_after, 2)}
    return answer(module.batch_size, known_after, times[STEPS_OF_A_TRIAL:])


def answer(batch_size: int, known_after: float, times: list[float]) -> dict[str, Any]:
    step = statistics.median(times)
    return {
        "batch": batch_size,
        "known_after_seconds": round(known_after, 2),
        "step_seconds": round(step, 5),
        "samples_per_second": round(batch_size / step, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=("accelerate", "lightning"))
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--wanted", type=int, required=True, help="the batch that is too large")
    parser.add_argument("--found", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    # The time to answer is the tool's, not that of the first use of the card.
    torch.zeros(1).cuda()
    find = {"accelerate": with_accelerate, "lightning": with_lightning}[options.tool]
    options.found.write_text(json.dumps(find(options.model, options.wanted)))


if __name__ == "__main__":
    main()
