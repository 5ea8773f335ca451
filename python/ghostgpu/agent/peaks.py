"""The allocator's peaks since the script began, even if the script resets its statistics."""

from __future__ import annotations

import copy
import functools
from typing import Any, Callable

from .guard import quietly
from .report import RECORD, DevicePeaks, StepPeaks


def used_devices(torch: Any) -> list[int]:
    """The cards on which this process has a context.

    Asking must not initialise CUDA, nor create a context on the card of another rank, as reading
    the statistics does in older releases (2.8).
    """
    if not torch.cuda.is_initialized():
        return []
    has_context = torch._C._cuda_hasPrimaryContext
    return [device for device in range(torch.cuda.device_count()) if has_context(device)]


class PeakTracker:
    """Folds PyTorch's allocator statistics into maxima that a reset does not lower."""

    MAX_STEPS_IN_FULL = 1000
    """Beyond this, a step is recorded only if a peak has grown: runs may have millions."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._peaks: dict[int, DevicePeaks] = {}
        # What counters had reached before `reset_accumulated_memory_stats` set them to zero.
        self._retries_before_reset: dict[int, int] = {}
        self._allocations_before_reset: dict[int, int] = {}

    def forget_parent(self) -> None:
        """Start again in a forked child."""
        self.__init__(self._torch)  # type: ignore[misc]

    def fold(self) -> list[DevicePeaks]:
        """Take in the current statistics; returns the peaks of every device that was used."""
        for device in used_devices(self._torch):
            self._fold_device(device)
        return [self._peaks[device] for device in sorted(self._peaks)]

    def _fold_device(self, device: int) -> None:
        statistics = self._torch._C._cuda_memoryStats(device)
        allocated = statistics["allocated_bytes"]["all"]
        reserved = statistics["reserved_bytes"]["all"]
        if reserved["peak"] == 0 and device not in self._peaks:
            return
        peaks = self._peaks.setdefault(device, DevicePeaks(device))
        peaks.peak_allocated_bytes = max(peaks.peak_allocated_bytes, allocated["peak"])
        peaks.peak_reserved_bytes = max(peaks.peak_reserved_bytes, reserved["peak"])
        peaks.retries = self._retries_before_reset.get(device, 0) + statistics["num_alloc_retries"]
        peaks.allocations = (
            self._allocations_before_reset.get(device, 0)
            + statistics["allocation"]["all"]["allocated"]
        )

    def keep_counters_of(self, device: int) -> None:
        """Called before the accumulated counters of a device are set to zero."""
        self.fold()
        peaks = self._peaks.get(device)
        if peaks is not None:
            self._retries_before_reset[device] = peaks.retries
            self._allocations_before_reset[device] = peaks.allocations

    def note_step(self, step: int) -> None:
        """Record the peaks after an optimizer step; a later call for the same step wins."""
        devices = copy.deepcopy(self.fold())
        steps = RECORD.report.step_peaks
        if steps and steps[-1].step == step:
            steps[-1].devices = devices
        elif len(steps) < self.MAX_STEPS_IN_FULL or _sizes(steps[-1].devices) != _sizes(devices):
            steps.append(StepPeaks(step, devices))

    def install(self) -> None:
        """Fold before every reset, however the script reaches it.

        `torch.cuda.reset_peak_memory_stats`, its older names and `torch.accelerator` all end in
        these functions of `torch._C`, looked up when called.
        """
        self._before("_cuda_resetPeakMemoryStats", lambda device: self.fold())
        self._before("_cuda_resetAccumulatedMemoryStats", self.keep_counters_of)
        self._before("_accelerator_resetPeakStats", lambda device: self.fold())
        self._before("_accelerator_resetAccumulatedStats", self.keep_counters_of)

    def _before(self, name: str, action: Callable[[int], object]) -> None:
        original = getattr(self._torch._C, name, None)
        if original is None:
            return  # an older torch
        guarded = quietly(action)

        @functools.wraps(original)
        def wrapper(device: int) -> Any:
            guarded(device)
            return original(device)

        setattr(self._torch._C, name, wrapper)


def _sizes(devices: list[DevicePeaks]) -> list[tuple[int, int]]:
    return [(each.peak_allocated_bytes, each.peak_reserved_bytes) for each in devices]
