"""The trainings of `train.py` as PyTorch's MemTracker sees them, and as DeepSpeed's formulas do.

    python measure_ranks.py virtual tracked.jsonl --train tracked.py
    python tracked.py compare ../../h200/ranks/ranks.jsonl virtual.jsonl tracked.jsonl

`MemTracker` (for FSDP2: `FSDPMemTracker`) is a mode of PyTorch's dispatcher that adds up the
storages of tensors. It needs a card, which is virtual here, and code around the loop: this program
puts it around the plain loop that most cases have. torchtitan's estimator is `FSDPMemTracker`
around torchtitan's own trainer, so its figure is that of the tracker. The formula is that of
DeepSpeed's `estimate_zero3_model_states_mem_needs`, for cases in which parameters are shared out as
in ZeRO 3.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

STRATEGIES = ("ddp", "zero", "fsdp1", "fsdp2", "hsdp", "tensor")
"""By how their names begin: cases whose loop may be the plain one."""


def main() -> None:
    if sys.argv[1] == "compare":
        compare(*map(Path, sys.argv[2:5]))
        return
    import small_model
    import train

    plain = small_model.train
    # Ranks are forked from a process that has imported the modules of all cases.
    for module in list(sys.modules.values()):
        if getattr(module, "train", None) is plain:
            setattr(module, "train", tracked_train)  # noqa: B010
    train.main()


def tracked_train(
    model: Any,
    optimizer: Any,
    inputs: Callable[[], Any] | None = None,
    before_step: Callable[[], Any] | None = None,
    set_to_none: bool = True,
) -> None:
    """The plain loop of `small_model`, with a tracker around it."""
    import small_model
    import torch
    import train
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed.fsdp import FSDPModule

    inputs, before_step = inputs or small_model.batch, before_step or small_model.nothing
    # The whole model: the tensors that FSDP2 makes of parameters have the size of all shards.
    train.MORE_FIGURES["parameters"] = sum(each.numel() for each in model.parameters())
    train.MORE_FIGURES["largest_layer"] = max(
        sum(each.numel() for each in module.parameters(recurse=False)) for module in model.modules()
    )
    if isinstance(model, FSDPModule):
        tracker: Any = FSDPMemTracker(model, optimizer)
    else:
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
    with tracker:
        for _ in range(small_model.STEPS):
            loss = model(inputs()).square().mean()
            loss.backward()
            before_step()
            optimizer.step()
            optimizer.zero_grad(set_to_none=set_to_none)
            # It keeps what it knows of a module for one pass only.
            tracker.reset_mod_stats()
    card = torch.device("cuda", torch.cuda.current_device())
    train.MORE_FIGURES["tracked"] = tracker.get_tracker_snapshot("peak")[card]["Total"]


def zero3_bytes(parameters: int, largest_layer: int, ranks: int) -> float:
    """DeepSpeed's formula for ZeRO 3 without offloading: model states, and one gathered layer."""
    return 4 * largest_layer + 18 * parameters / ranks


@dataclass(frozen=True)
class Error:
    """How far a figure is from the nearest of those that a real rank had."""

    case: str
    off_by: float
    real: int

    @property
    def percent(self) -> float:
        return 100 * self.off_by / self.real

    def __str__(self) -> str:
        return f"{self.percent:+6.1f} % ({self.off_by / 2**20:+.0f} MiB, {self.case})"


def compare(real_file: Path, virtual_file: Path, tracked_file: Path) -> None:
    """How far each is from what real ranks had, in per cent of the real peak."""
    from measure_ranks import peaks_seen, ranks_of, read

    real, virtual, tracked = map(read, (real_file, virtual_file, tracked_file))
    cases = sorted(
        case
        for case in real.keys() & virtual.keys() & tracked.keys()
        if case.startswith(STRATEGIES) and "tracked" in tracked[case][-1]["figures"][0]
    )
    rows: dict[str, list[Error]] = {}
    for case in cases:
        for rank in range(ranks_of(case)):
            of_real = peaks_seen(real[case], case, rank)
            mine, theirs = virtual[case][-1]["figures"][rank], tracked[case][-1]["figures"][rank]
            guesses = {
                "ghostgpu, allocated": (mine["allocated"], 0),
                "ghostgpu, reserved": (mine["reserved"], 1),
                "MemTracker, of what is allocated": (theirs["tracked"], 0),
                "MemTracker, of what is reserved": (theirs["tracked"], 1),
            }
            if case.startswith("fsdp2"):
                states = zero3_bytes(theirs["parameters"], theirs["largest_layer"], ranks_of(case))
                guesses["DeepSpeed's formula, of what is reserved"] = (states, 1)
            for name, (guess, place) in guesses.items():
                nearest = min((each[place] for each in of_real), key=lambda it: abs(it - guess))
                rows.setdefault(name, []).append(Error(case, guess - nearest, nearest))
    print(f"{len(cases)} cases: {' '.join(cases)}")
    for name, errors in rows.items():
        errors.sort(key=lambda error: abs(error.percent))
        exact = sum(error.off_by == 0 for error in errors)
        middle, worst = errors[len(errors) // 2], errors[-1]
        print(f"{name:42} {exact:3} of {len(errors):3} exact, median {middle}, worst {worst}")


if __name__ == "__main__":
    main()
