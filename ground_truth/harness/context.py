"""What a case sees of the run it is in: device, sizes, and where to report a finished step."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    import torch

    from case import Case

#: A file that a case which wants the card to itself locks while it uses the card.
LOCK_VARIABLE = "GROUND_TRUTH_CARD_LOCK"


class Context:
    """One run of one case.

    `tiny` shrinks models and batches, so that the whole table can be tried on a CPU.
    """

    def __init__(
        self,
        case: Case,
        *,
        device: str = "cuda",
        tiny: bool = False,
        batch_size: int | None = None,
        on_start: Callable[[], None] = lambda: None,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.case = case
        self.device = device
        self.tiny = tiny
        self._batch_size = batch_size
        self._on_start = on_start
        self._on_step = on_step
        self._lock: Any = None

    @property
    def steps(self) -> int:
        return min(self.case.steps, 2) if self.tiny else self.case.steps

    def pick(self, real: int, tiny: int) -> int:
        return tiny if self.tiny else real

    def batch(self, usual: int) -> int:
        """The batch size: the one a search asks for, or the case's own."""
        if self._batch_size is not None:
            return self._batch_size
        return self.pick(usual, 2)

    def start(self) -> None:
        """Starts CUDA. Comes after everything that only needs the CPU.

        Whoever wants the card alone holds the lock from here to the end of the process.
        """
        lock_path = os.environ.get(LOCK_VARIABLE)
        if lock_path and self.case.alone and self.device == "cuda":
            self._lock = open(lock_path, "w")  # noqa: SIM115  (held until the process ends)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._on_start()

    def step_done(self) -> None:
        self._on_step()

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        if self.case.precision == "bf16":
            return torch.autocast(self.device, dtype=torch.bfloat16)
        if self.case.precision == "fp16":
            # Some CPU kernels have no half precision; the table's self-check takes bf16 there.
            dtype = torch.float16 if self.device == "cuda" else torch.bfloat16
            return torch.autocast(self.device, dtype=dtype)
        return contextlib.nullcontext()

    def scaler(self) -> torch.amp.GradScaler:
        """A scaler whose first scale is low enough that no step overflows and is skipped.

        A skipped step depends on values, which differ between a card that computes and one that
        does not; the one case about the default scale says so in its name.
        """
        import torch

        return torch.amp.GradScaler(
            self.device, init_scale=2.0, enabled=self.case.precision == "fp16"
        )
