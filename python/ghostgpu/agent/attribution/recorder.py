"""Connects the parts of attribution; starts recording when CUDA starts, and ends it."""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType
from typing import Any

from .. import shared_numbers
from ..guard import install, quietly
from ..own_frames import OwnFrames
from ..report import RECORD
from .history import History
from .memory_log import MemoryLog
from .modules import Modules
from .operators import Operators
from .owners import Owners
from .stages import Stages

_CHECKPOINT_FILE = os.path.join("torch", "utils", "checkpoint.py")

_STEP_TO_LOOK_AT = 3
"""After this step, and after the last one, the variables that keep earlier results are logged."""

MAX_ALLOCATIONS = 200_000
"""Recording ends with the first step that exceeds this: PyTorch symbolises its history at about
100,000 entries a second."""


class MemoryRecorder:
    """Records whose memory it is, in this process."""

    def __init__(self, torch: Any, run_dir: str, own_frames: OwnFrames, last_step: int = 0) -> None:
        self._torch = torch
        self._last_step = last_step
        self._run_dir = run_dir
        self._is_wanted = True
        self._log = MemoryLog()
        self._modules = Modules(torch, self._log)
        self._stages = Stages(torch, self._log)
        self._owners = Owners(torch, self._log, self._modules)
        self._history = History(torch, own_frames)
        self._operators = Operators(torch)
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        """Those that have stepped, in the order of their first steps. A script that makes a new one
        for each fold or phase must not keep the state of the old ones because of us."""

    def install(self) -> None:
        """Install the hooks; recording begins when the script starts CUDA."""
        self._modules.before_root = self._before_root
        self._modules.after_root = self._after_root
        self._stages.before_backward = self._owners.note_saved
        self._stages.after_backward = self._owners.note_gradients
        for part, unknown, install_part in (
            ("modules", "the modules that memory belongs to are not known", self._modules.install),
            ("stages", "the stages of a step are not known", self._stages.install),
            ("saved tensors", "what autograd has saved is not known", self._owners.install),
            ("optimizers", "optimizer state is not known as such", self._watch_optimizers),
            ("recording", "whose memory it is is not known", self._begin_with_cuda),
        ):
            install(part, unknown, install_part)

    def _begin_with_cuda(self) -> None:
        self._torch.cuda._lazy_call(quietly(self._start))

    def note_sent(self, tensor: Any) -> None:
        """A tensor was copied from the host to the card."""
        # During backward it is no input but something that was offloaded to the host.
        if self._log.is_on and self._stages.current != shared_numbers.BACKWARD:
            self._owners.note_sent(tensor)

    def note_out_of_memory(self) -> None:
        """Memory has run out: this may be the last chance to look."""
        if self._log.is_on:
            self._owners.note_everything(self._living_optimizers())
            self._log.flush()

    def finish(self) -> None:
        """End the recording and write PyTorch's history."""
        if not self._log.is_on:
            self._operators.stop_if_due()
            return
        self._operators.stop()
        self._write()

    def _write(self) -> None:
        self._history.write(self._path(shared_numbers.HISTORY_PREFIX, "pickle"))
        self._log.flush()
        self._log.stop()
        self._history.stop()

    def forget_parent(self) -> None:
        """A forked child records nothing: its parent's memory is not its own."""
        self._log.stop()

    def move_to(self, run_dir: str | None) -> None:
        """Record into another folder, or not at all (None). Called before CUDA starts."""
        self._is_wanted = run_dir is not None
        self._run_dir = run_dir or self._run_dir

    def _path(self, prefix: str, ending: str) -> str:
        return os.path.join(self._run_dir, f"{prefix}{os.getpid()}.{ending}")

    def _start(self) -> None:
        if not self._is_wanted:
            return
        try:
            self._history.start()
        except RuntimeError:
            backend = self._torch.cuda.get_allocator_backend()
            RECORD.report.unrecorded = (
                f"the allocator that the script chose ({backend}) keeps no history of what it "
                "hands out; PyTorch's own (`backend:native`) does"
            )
            return
        self._log.start(self._path(shared_numbers.MEMORY_LOG_PREFIX, "log"))
        self._stages.tell()
        self._operators.start()

    def _before_root(self, module: Any, arguments: Any, options: Any) -> None:
        self._operators.begin_call()
        is_evaluating = not self._torch.is_grad_enabled() and not _is_checkpointing()
        stage = shared_numbers.EVALUATION if is_evaluating else shared_numbers.FORWARD
        if self._stages.enter(stage):
            self._owners.note_model(module)
            self._owners.note_inputs(arguments, options)

    def _after_root(self, module: Any, result: Any) -> None:
        self._operators.end_call()
        if self._stages.current not in (shared_numbers.EVALUATION, shared_numbers.FORWARD):
            return
        # Saved tensors are usually logged when backward begins, but a model that is not in training
        # mode may never get there.
        if self._stages.current == shared_numbers.FORWARD and not module.training:
            self._owners.note_saved(self._owners.tensors_in(result))
        self._stages.leave()

    def _watch_optimizers(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        before = quietly(self._before_step)

        def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            before(optimizer)

        before_step._torchdynamo_disable = True  # type: ignore[attr-defined]
        before_step._torchdynamo_disable_msg = "GhostGPU records"  # type: ignore[attr-defined]
        register_optimizer_step_pre_hook(before_step)

    def _before_step(self, optimizer: Any) -> None:
        if self._stages.enter(shared_numbers.OPTIMIZER_STEP):
            self._remember(optimizer)
            self._owners.note_gradients([optimizer])

    def _remember(self, optimizer: Any) -> None:
        known = self._optimizers.get(id(optimizer))
        if known is None or known() is not optimizer:
            # What had this number before is gone.
            self._optimizers.pop(id(optimizer), None)
            self._optimizers[id(optimizer)] = weakref.ref(optimizer)

    def _living_optimizers(self) -> list[Any]:
        found = (each() for each in self._optimizers.values())
        return [optimizer for optimizer in found if optimizer is not None]

    def note_step(self, optimizer: Any) -> None:
        """An optimizer step has ended and been counted."""
        if not self._log.is_on or self._stages.current != shared_numbers.OPTIMIZER_STEP:
            return
        self._owners.note_optimizer(optimizer)
        self._stages.leave()
        self._owners.begin_step()
        # By now, a variable that keeps something of every step holds several of them.
        if RECORD.report.steps in (_STEP_TO_LOOK_AT, self._last_step):
            self._owners.note_keepers(sys._getframe())
        statistics = self._torch._C._cuda_memoryStats(self._torch.cuda.current_device())
        if statistics["allocation"]["all"]["allocated"] > MAX_ALLOCATIONS:
            RECORD.note(
                f"whose memory it is was recorded for the first {RECORD.report.steps} steps"
            )
            # This is inside the range of an optimizer step, which ends before its profiler may.
            self._operators.stop_before_next_call()
            self._write()


def _is_checkpointing() -> bool:
    """Whether activation checkpointing runs the forward pass, which it may do without autograd."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith(_CHECKPOINT_FILE):
            return True
        frame = frame.f_back
    return False
