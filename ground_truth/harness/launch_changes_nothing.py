"""`launch` without options: the same numbers, bit for bit, in the same time.

    python ground_truth/harness/launch_changes_nothing.py --out nothing.json

Runs one training alternately by itself and launched, under deterministic settings, and compares
the digests of losses and parameters, and the times of a step. On a machine without a card the
digests are compared alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
PACKAGE = HERE.parents[2] / "python"
WARM_UP = 30


def train(steps: int) -> dict[str, Any]:
    """A small GPT-2, as a script would train it: what it computed, and how long steps took."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    card = "cuda" if torch.cuda.is_available() else "cpu"
    width, rows, length = (512, 8, 256) if card == "cuda" else (32, 2, 16)
    configuration = GPT2Config(n_layer=8, n_head=8, n_embd=width, n_positions=length)
    model = GPT2LMHeadModel(configuration).to(card).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    digest = hashlib.sha256()
    losses = []
    begin = 0.0
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            _finished(torch, card)
            begin = time.perf_counter()
        tokens = torch.randint(0, 50000, (rows, length), device=card)
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    _finished(torch, card)
    seconds = time.perf_counter() - begin
    for each in [torch.stack(losses), *model.state_dict().values()]:
        digest.update(each.cpu().numpy().tobytes())
    return {
        "digest": digest.hexdigest(),
        "last_loss": losses[-1].item(),
        "ms_per_step": seconds / steps * 1000,
        "allocated": torch.cuda.max_memory_allocated() if card == "cuda" else None,
    }


def _finished(torch: Any, card: str) -> None:
    if card == "cuda":
        torch.cuda.synchronize()


def run(is_launched: bool, steps: int) -> dict[str, Any]:
    launch = ["-m", "ghostgpu.tricks"] if is_launched else []
    command = [sys.executable, *launch, str(HERE), "--train", "--steps", str(steps)]
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "PYTHONPATH": str(PACKAGE)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"is_launched": is_launched, **result}


def compared(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Whether all runs computed the same, and how much longer a launched step took."""
    times = {
        kind: statistics.median(each["ms_per_step"] for each in runs if each["is_launched"] == kind)
        for kind in (False, True)
    }
    return {
        "are_equal": len({each["digest"] for each in runs}) == 1,
        "plain_ms": round(times[False], 4),
        "launched_ms": round(times[True], 4),
        "times_as_long": round(times[True] / times[False], 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("nothing.json"))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        print(json.dumps(train(arguments.steps)))
        return
    runs: list[dict[str, Any]] = []
    for place in range(arguments.repetitions):
        # Each kind goes first as often as the other, as cards become warm.
        for is_launched in (False, True) if place % 2 == 0 else (True, False):
            runs.append(run(is_launched, arguments.steps))
            print(json.dumps(runs[-1]), flush=True)
    result = {"steps": arguments.steps, **compared(runs), "runs": runs}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(compared(runs)))
    raise SystemExit(0 if result["are_equal"] else 1)


if __name__ == "__main__":
    main()
