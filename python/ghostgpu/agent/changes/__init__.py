"""Changes to what the script does, made while it runs: what advice asks a user to write.

`ghostgpu explain --script` tries its advice with them. Each is one file, and does to the byte what
the line does that it stands for. A change says what it has done; one that found no place to do
anything says so, and then nothing has been tried.
"""

from __future__ import annotations

from typing import Any

from ..ending import Ending
from ..guard import quietly
from ..report import RECORD, ChangeReport
from .autocast import Autocast
from .bfloat16_weights import Bfloat16Weights
from .change import Change
from .checkpointing import Checkpointing
from .drop_gradients import DropGradients
from .drop_last import DropLast
from .hooks import Hooks
from .lean_optimizer import LeanOptimizer
from .memory_fraction import LeaveRoom, NoLimit
from .no_cudnn_benchmark import NoCudnnBenchmark
from .no_grad_evaluation import NoGradEvaluation
from .small_evaluation_batch import SmallEvaluationBatch

_ALL: dict[str, type[Change]] = {
    # The names are those of `Change` in `crates/session/src/request.rs`.
    "autocast": Autocast,
    "bfloat16-weights": Bfloat16Weights,
    "checkpointing": Checkpointing,
    "drop-gradients": DropGradients,
    "drop-last": DropLast,
    "lean-optimizer": LeanOptimizer,
    "leave-room": LeaveRoom,
    "no-cudnn-benchmark": NoCudnnBenchmark,
    "no-grad-evaluation": NoGradEvaluation,
    "no-limit": NoLimit,
    "small-evaluation-batch": SmallEvaluationBatch,
}


def start(torch: Any, names: tuple[str, ...], ending: Ending) -> None:
    """Make these changes from now on, and have them reported at the end."""
    hooks = Hooks(torch)
    made: list[tuple[str, Change]] = []
    for name in names:
        kind = _ALL.get(name)
        if kind is None:
            RECORD.note(f"there is no change `{name}`")
            continue
        change = kind(torch, hooks)
        quietly(change.install)()
        made.append((name, change))
    hooks.install()

    def tell() -> None:
        for name, change in made:
            report = ChangeReport(name, change.did(), change.line(), change.other_results())
            RECORD.report.changes.append(report)

    ending.add_last_act(tell)
