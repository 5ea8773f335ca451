"""What each trick saves and costs on four models, by the code that `ghostgpu launch` runs.

On a machine with a card, with Python alone:

    PYTHONPATH=python python ground_truth/harness/launch_equals_rehearsal.py --out launched.jsonl

The same on a virtual card, and then both beside each other:

    ghostgpu run --gpu h200 --full --no-retry --no-breakdown \\
        ground_truth/harness/launch_equals_rehearsal.py --out rehearsed.jsonl
    python ground_truth/harness/launch_equals_rehearsal.py --compare launched.jsonl rehearsed.jsonl

Libraries are imported and models built once, and each case runs in a forked copy, which is the
first to touch the card. Every case is a line of JSON under its name; cases that the file has
already are left out, so that a run can go on where another ended (`--seconds`).
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from ghostgpu import tricks  # noqa: E402
from ghostgpu.tricks.refusal import Refused  # noqa: E402

STEPS = 3
LONGEST_CASE_SECONDS = 60
Request = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class Case:
    """Tricks, the models that they make sense for, and whether the script evaluates at its end."""

    requests: tuple[Request, ...] = ()
    models: tuple[str, ...] = ("bert-base", "gpt2", "resnet50", "vit-b")
    evaluates: bool = False


def one(name: str, *models: str, evaluates: bool = False, **options: str) -> Case:
    return Case(((name, options),), models or Case.models, evaluates)


CASES = {
    "plain": Case(),
    "checkpointing": one("checkpointing"),
    "checkpointing of 6": one("checkpointing", blocks="6"),
    "checkpointing, products kept": one("checkpointing", keep="matmuls"),
    "autocast bf16": one("autocast", dtype="bf16"),
    "autocast fp16": one("autocast", dtype="fp16"),
    "bfloat16-weights": one("bfloat16-weights"),
    "chunking": one("chunking", chunks="4"),
    # The loop zeroes its gradients after forward; only where they are gone before it are the chunks
    # of models that compute their loss differentiated at once.
    "chunking, early-zero-grad": Case(
        (("chunking", {"chunks": "4"}), ("early-zero-grad", {})), ("bert-base", "gpt2")
    ),
    "surviving-oom": one("surviving-oom"),
    "loss-head": one("loss-head", "gpt2"),
    "offload-activations": one("offload-activations"),
    "inplace-activations": one("inplace-activations", "resnet50"),
    "channels-last": one("channels-last", "resnet50", "vit-b"),
    "early-zero-grad": one("early-zero-grad"),
    "optimizer fused": one("optimizer-form", form="fused"),
    "optimizer for-loop": one("optimizer-form", form="for-loop"),
    "adafactor": one("adafactor"),
    "optimizer-in-backward": one("optimizer-in-backward"),
    "offload-optimizer": one("offload-optimizer"),
    "expandable segments": one("allocator"),
    "autocast, checkpointing, fused": Case(
        (("autocast", {}), ("checkpointing", {}), ("optimizer-form", {"form": "fused"}))
    ),
    "plain with evaluation": Case(evaluates=True),
    "no-grad-evaluation": one("no-grad-evaluation", evaluates=True),
    "drop-gradients": one("drop-gradients", evaluates=True),
    "evaluation-chunks": Case(
        (("no-grad-evaluation", {}), ("evaluation-chunks", {"chunks": "4"})), evaluates=True
    ),
    "empty-cache": one("empty-cache", evaluates=True),
}


@dataclass
class Workload:
    """A model on the host, a batch for it, and its loss."""

    model: Any
    batch: Callable[[], dict[str, Any]]
    loss: Callable[[Any, dict[str, Any]], Any]
    options: dict[str, Any] = field(default_factory=dict)


def workloads(wanted: set[str]) -> dict[str, Workload]:
    torch.manual_seed(0)
    made: dict[str, Callable[[], Workload]] = {
        "bert-base": _bert,
        "gpt2": _gpt2,
        "resnet50": lambda: _vision("resnet50"),
        "vit-b": lambda: _vision("vit_b_16"),
    }
    return {name: make() for name, make in made.items() if name in wanted}


def _own_loss(out: Any, batch: dict[str, Any]) -> Any:
    return out.loss


def _bert() -> Workload:
    from transformers import BertConfig, BertForSequenceClassification

    def batch() -> dict[str, Any]:
        tokens = torch.randint(0, 30000, (32, 256))
        return {"input_ids": tokens, "labels": torch.zeros(32, dtype=torch.long)}

    return Workload(BertForSequenceClassification(BertConfig()), batch, _own_loss)


def _gpt2() -> Workload:
    from transformers import GPT2Config, GPT2LMHeadModel

    def batch() -> dict[str, Any]:
        tokens = torch.randint(0, 50000, (8, 1024))
        return {"input_ids": tokens, "labels": tokens}

    return Workload(GPT2LMHeadModel(GPT2Config()), batch, _own_loss)


def _vision(name: str) -> Workload:
    import torchvision

    def batch() -> dict[str, Any]:
        return {"x": torch.randn(64, 3, 224, 224), "y": torch.randint(0, 1000, (64,))}

    def loss(out: Any, batch: dict[str, Any]) -> Any:
        return F.cross_entropy(out, batch["y"])

    return Workload(getattr(torchvision.models, name)(), batch, loss)


def train(workload: Workload, evaluates: bool) -> dict[str, Any]:
    """A plain loop, as a user would write it."""
    model = workload.model.cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    seconds = []
    model.train()
    for _ in range(STEPS):
        batch = {name: each.cuda() for name, each in workload.batch().items()}
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loss = workload.loss(_called(model, batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    if evaluates:
        del loss
        model.eval()
        for _ in range(2):
            # Twice the batch: evaluation would not be seen beside training otherwise.
            halves = workload.batch().items()
            batch = {name: torch.cat([each, each]).cuda() for name, each in halves}
            out = _called(model, batch)
            del out
    return {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        # The first step allocates and loads kernels.
        "seconds_per_step": round(sum(seconds[1:]) / (STEPS - 1), 4),
    }


def _called(model: Any, batch: dict[str, Any]) -> Any:
    return model(batch["x"]) if "x" in batch else model(**batch)


def run_case(case: Case, workload: Workload) -> dict[str, Any]:
    is_rehearsed = bool(os.environ.get("GHOSTGPU_SESSION"))
    try:
        started = tricks.start(torch, case.requests, is_rehearsed=is_rehearsed)
        torch.manual_seed(1)
        figures = train(workload, case.evaluates)
    except Refused as refused:
        return {"refused": refused.reason}
    except Exception as error:
        return {
            "failed": f"{type(error).__name__}: {error}",
            "where": traceback.format_exc()[-600:],
        }
    return {**figures, "did": {each.name: each.did for each in started.accounts()}}


def in_a_copy(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        # The threads of the pool did not come along, and OpenMP would wait for them.
        torch.set_num_threads(1)
        signal.alarm(LONGEST_CASE_SECONDS)
        with os.fdopen(writing, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    result: dict[str, Any] = json.loads(text) if text else {"failed": "it was killed"}
    return result


def measure(out: Path, seconds: float, models: set[str], only: str, wanted: set[str]) -> None:
    begin = time.monotonic()
    present = {line["name"]: line for line in _lines(out)}
    names = [
        (f"{model}/{name}", model, case)
        for model in Case.models
        for name, case in CASES.items()
        if model in models and model in case.models and only in name
    ]
    missing = [
        each for each in names if each[0] not in present and (not wanted or each[0] in wanted)
    ]
    loads = workloads({model for _, model, _ in missing})
    for name, model, case in missing:
        if time.monotonic() - begin > seconds:
            print(f"the time is over: {name} and what follows are left for the next run")
            return
        figures = in_a_copy(functools.partial(run_case, case, loads[model]))
        line = {"name": name, **figures, **_saved(name, case, figures, present)}
        present[name] = line
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def _saved(
    name: str, case: Case, figures: dict[str, Any], present: dict[str, Any]
) -> dict[str, Any]:
    plain = present.get(name.split("/")[0] + "/plain" + " with evaluation" * case.evaluates, {})
    if "allocated" not in figures or "allocated" not in plain:
        return {}
    return {
        "saved_allocated": plain["allocated"] - figures["allocated"],
        "saved_reserved": plain["reserved"] - figures["reserved"],
        "times_as_long": round(figures["seconds_per_step"] / plain["seconds_per_step"], 3),
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def compare(launched: Path, rehearsed: Path) -> int:
    """Print every case whose figures differ; how many there are."""
    real = {line["name"]: line for line in _lines(launched)}
    ours = {line["name"]: line for line in _lines(rehearsed)}
    different = 0
    for name in sorted(real.keys() & ours.keys()):
        fields = ("allocated", "reserved", "did", "refused")
        pair = [[line.get(field) for field in fields] for line in (real[name], ours[name])]
        if pair[0] != pair[1]:
            different += 1
            print(f"{name}: launched {pair[0]}, rehearsed {pair[1]}")
    print(f"{len(real.keys() & ours.keys())} cases, {different} differ")
    return different


def table(launched: Path) -> None:
    """Print what each trick saved of the peak, and how many times as long a step took."""
    lines = {line["name"]: line for line in _lines(launched)}
    print(f"{'':32}" + "".join(f"{model:>16}" for model in Case.models))
    for case in CASES:
        if not CASES[case].requests:
            continue
        cells = [_cell(lines.get(f"{model}/{case}")) for model in Case.models]
        print(f"{case:32}" + "".join(f"{cell:>16}" for cell in cells))


def _cell(line: dict[str, Any] | None) -> str:
    if line is None:
        return ""
    if "refused" in line:
        return "refused"
    share = line["saved_allocated"] / (line["allocated"] + line["saved_allocated"])
    return f"{-share:+.0%}  x{line['times_as_long']:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("launched.jsonl"))
    parser.add_argument("--seconds", type=float, default=170, help="begin no case after this long")
    parser.add_argument("--models", default=",".join(Case.models))
    parser.add_argument("--only", default="", help="cases with this text in their name")
    parser.add_argument("--names", default="", help="only these cases, with semicolons between")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("LAUNCHED", "REHEARSED"))
    parser.add_argument("--table", type=Path, metavar="LAUNCHED")
    arguments = parser.parse_args()
    if arguments.table:
        table(arguments.table)
        return
    if arguments.compare:
        raise SystemExit(1 if compare(*arguments.compare) else 0)
    models = set(arguments.models.split(","))
    names = set(filter(None, arguments.names.split(";")))
    measure(arguments.out, arguments.seconds, models, arguments.only, names)


if __name__ == "__main__":
    main()
