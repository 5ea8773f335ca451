"""Gradients and times of tricks on a real card, as lines of JSON.

    python ground_truth/harness/trick_gradients.py --out FILE
    python ground_truth/harness/trick_gradients.py --table FILE

Needs torch, and transformers and torchvision for the large models; no card of ours and nothing
built. Three parts, under three minutes on an H200:

* gradients: each case of `python/tests/tricks/training_cases.py` in float32, plain and in chunks;
  the difference must be at most twice the noise: that between two plain runs, or to float64,
* out of memory: steps under `set_per_process_memory_fraction` that fail as they are, and whose
  gradients must be those of a step that had room,
* times: chunks of 4, and windows of 4, against the plain step. Chunks are also timed in a loop that
  zeroes its gradients between forward and backward, where models that compute their loss themselves
  are not differentiated at once (`tricks/chunking/at_once.py`).

`--table` shows what is in such a file, and computes nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from pathlib import Path
from typing import Any, Callable

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "python"), str(REPOSITORY / "python" / "tests" / "tricks")]

import ghostgpu  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from ghostgpu.tricks.chunking.chunker import Chunker  # noqa: E402
from torch import nn  # noqa: E402
from training_cases import (  # type: ignore[import-not-found]  # noqa: E402
    CASES,
    Result,
    by_hand,
    plain,
    trained,
)

Write = Callable[[dict[str, Any]], None]


def through(chunker: Chunker) -> Callable[..., Any]:
    return lambda model, *args, **options: chunker.call(model.__call__, model, args, options)


def off(one: Result, other: Result) -> float:
    """The largest difference of a gradient, as a part of the largest of all."""
    pairs = [
        (first, second)
        for first, second in zip(one.gradients, other.gradients)
        if first is not None and second is not None
    ]
    largest = max(float(second.abs().max()) for _, second in pairs)
    return max(float((first.double() - second).abs().max()) for first, second in pairs) / largest


def gradients(write: Write) -> None:
    for name, case in CASES.items():
        if not case.is_possible:
            continue
        chunks = 3
        reference = by_hand(chunks) if case.draws else plain
        torch.set_default_dtype(torch.float64)
        exact = trained(case, reference, 1)
        torch.set_default_dtype(torch.float32)
        expected = trained(case, reference, 1)
        noise = off(trained(case, reference, 1), expected)
        if not case.draws:  # other masks are drawn in float64
            noise = max(noise, off(expected, exact))
        noise = max(noise, 8 * float(torch.finfo(torch.float32).eps))
        found = off(trained(case, through(_chunker(chunks)), 1), expected)
        write(
            {
                "part": "gradients",
                "case": name,
                "difference": found,
                "noise": noise,
                "is_right": found <= 2 * noise,
            }
        )


def _chunker(chunks: int, survives: bool = False) -> Chunker:
    made = Chunker()
    made.chunks, made.survives = chunks, survives
    return made


class Block(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


def out_of_memory(write: Write) -> None:
    """Real errors: the plain step must fail where the surviving one has the right gradients."""
    for dropout in (0.0, 0.1):
        capped(dropout, write)


def capped(dropout: float, write: Write) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(1024, dropout) for _ in range(6))).cuda()
    x = torch.randn(128, 256, 1024, device="cuda")

    def step(call: Callable[..., Any]) -> list[torch.Tensor]:
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        call(model, x).square().mean().backward()
        return [each.grad.clone() for each in model.parameters()]

    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step(plain)
    needed = torch.cuda.max_memory_reserved()
    model.zero_grad(set_to_none=True)
    for part in (0.8, 0.6, 0.45):
        gc.collect()
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        limit = before + part * (needed - before)
        torch.cuda.set_per_process_memory_fraction(limit / total)
        line: dict[str, Any] = {"part": "out of memory", "dropout": dropout, "room": part}
        try:
            step(plain)
            line["plain_fails"] = False
        except torch.cuda.OutOfMemoryError:
            line["plain_fails"] = True
        gc.collect()
        torch.cuda.empty_cache()
        made = _chunker(1, survives=True)
        # The second step knows its number of chunks from the beginning.
        for at in ("first step", "second step"):
            try:
                found: list[torch.Tensor] | None = step(through(made))
            except RuntimeError as error:
                found = None
                line[f"{at}: report"] = str(error)[:300]
            if found is None:
                continue
            torch.cuda.set_per_process_memory_fraction(1.0)
            chunks = max(made.chunked.values(), default=1)
            # Masks are drawn chunk by chunk.
            expected = step(by_hand(chunks) if dropout else plain)
            worst = max(
                float((one - other).abs().max() / other.abs().max())
                for one, other in zip(found, expected)
            )
            line[f"{at}: difference"] = worst
            line[f"{at}: chunks"] = chunks
            del found, expected
            model.zero_grad(set_to_none=True)
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.set_per_process_memory_fraction(limit / total)
        line["growth"] = made.growth[:4]
        line["held_bytes"] = torch.cuda.memory_allocated() - before
        write(line)
        torch.cuda.set_per_process_memory_fraction(1.0)


# Times


def bert() -> tuple[nn.Module, Callable[[int], Any]]:
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig()).cuda().train()

    def batch(samples: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(0, 30000, (samples, 256), device="cuda")
        return {"input_ids": ids, "labels": torch.zeros(samples, dtype=torch.long, device="cuda")}

    return model, batch


def gpt2() -> tuple[nn.Module, Callable[[int], Any]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).cuda().train()

    def batch(samples: int) -> dict[str, torch.Tensor]:
        ids = torch.randint(0, 50000, (samples, 512), device="cuda")
        return {"input_ids": ids, "labels": ids}

    return model, batch


def resnet() -> tuple[nn.Module, Callable[[int], Any]]:
    from torchvision.models import resnet50

    model = resnet50().cuda().train()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()  # in training mode chunks are refused
    return model, lambda samples: {"x": torch.randn(samples, 3, 224, 224, device="cuda")}


def vit() -> tuple[nn.Module, Callable[[int], Any]]:
    from torchvision.models import vit_b_16

    model = vit_b_16().cuda().train()
    return model, lambda samples: {"x": torch.randn(samples, 3, 224, 224, device="cuda")}


TIMED = {
    # Enough to keep a large card busy with a quarter of them.
    "BERT-base": (bert, 512),
    "GPT-2": (gpt2, 128),
    "ResNet-50": (resnet, 1024),
    "ViT-B": (vit, 1024),
}


def loss_of(out: Any) -> torch.Tensor:
    loss: torch.Tensor = out.loss if hasattr(out, "loss") else out.float().square().mean()
    return loss


def times(write: Write) -> None:
    for name, (make, samples) in TIMED.items():
        try:
            write(timed(name, make, samples))
        except ImportError as error:
            write({"part": "times", "model": name, "missing": str(error)})
        gc.collect()
        torch.cuda.empty_cache()


def timed(name: str, make: Callable[[], Any], samples: int) -> dict[str, Any]:
    model, batch = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    whole = batch(samples)
    small = [{key: each[at::4] for key, each in whole.items()} for at in range(4)]

    def plain_step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of(model(**whole))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    chunker, of_late = _chunker(4), _chunker(4)

    def chunked_step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of(chunker.call(model.__call__, model, (), whole))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    def late_step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = loss_of(of_late.call(model.__call__, model, (), whole))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def by_hand_step() -> None:
        for each in small:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = loss_of(model(**each)) / 4
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    def windowed_step() -> None:
        for each in small:
            with ghostgpu.accumulate(model, optimizer, 4) as window:
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = loss_of(model(**each))
                window.backward(loss, count=samples // 4)

    line: dict[str, Any] = {"part": "times", "model": name, "samples": samples}
    steps = {
        "plain": plain_step,
        "chunks of 4": chunked_step,
        "chunks of 4, zeroed late": late_step,
        "4 batches by hand": by_hand_step,
        "window of 4": windowed_step,
    }
    for kind, step in steps.items():
        line[kind] = measured(step)
        optimizer.zero_grad()
    line["chunks cost"] = line["chunks of 4"]["seconds"] / line["plain"]["seconds"] - 1
    of_plain = line["window of 4"]["seconds"] / line["plain"]["seconds"] - 1
    of_hand = line["window of 4"]["seconds"] / line["4 batches by hand"]["seconds"] - 1
    line["window costs"], line["window costs over by hand"] = of_plain, of_hand
    return line


def measured(step: Callable[[], None], count: int = 6) -> dict[str, Any]:
    gc.collect()
    torch.cuda.empty_cache()
    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    taken = []
    for _ in range(count):
        at = time.perf_counter()
        step()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - at)
    return {"seconds": sorted(taken)[count // 2], "peak_bytes": torch.cuda.max_memory_allocated()}


def show(lines: list[dict[str, Any]]) -> None:
    """A short table: whether all is right, and what each way to cut a batch costs."""
    checked = [line for line in lines if "is_right" in line]
    wrong = [line["case"] for line in checked if not line["is_right"]]
    print(f"gradients  {len(checked) - len(wrong)} of {len(checked)} cases are right {wrong or ''}")
    survived = [line for line in lines if "plain_fails" in line]
    finished = [line for line in survived if "second step: difference" in line]
    print(f"memory     {len(finished)} of {len(survived)} steps that ran out of it were finished")
    for line in lines:
        if "plain" not in line:
            continue
        plain_way = line["plain"]
        print(f"{line['model']:10} {_figures(plain_way)}  plain, {line['samples']} samples")
        for kind, way in line.items():
            if kind != "plain" and isinstance(way, dict):
                more = way["seconds"] / plain_way["seconds"] - 1
                print(f"{'':10} {_figures(way)} {more:+6.1%}  {kind}")


def _figures(way: dict[str, Any]) -> str:
    return f"{1000 * way['seconds']:7.1f} ms {way['peak_bytes'] / 2**30:7.3f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path)
    where.add_argument("--table", type=Path)
    parser.add_argument("--parts", default="gradients,memory,times")
    options = parser.parse_args()
    if options.table is not None:
        show([json.loads(line) for line in options.table.read_text().splitlines()])
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    parts = {"gradients": gradients, "memory": out_of_memory, "times": times}
    with options.out.open("w") as file:

        def write(line: dict[str, Any]) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()
            print(json.dumps(line), flush=True)

        write({"torch": torch.__version__, "card": torch.cuda.get_device_name()})
        for name in options.parts.split(","):
            begun = time.perf_counter()
            if name == "gradients":
                with torch.device("cuda"):
                    parts[name](write)
            else:
                torch.set_default_dtype(torch.float32)
                parts[name](write)
            write({"part": name, "took_seconds": round(time.perf_counter() - begun, 1)})
    show([json.loads(line) for line in options.out.read_text().splitlines()])


if __name__ == "__main__":
    main()
