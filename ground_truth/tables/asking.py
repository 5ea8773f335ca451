"""Calls functions of CUDA's libraries as a program would that has the recorder preloaded.

`ctypes.CDLL(None)` looks a name up in the order of the dynamic linker, so a preloaded recorder is
found first and passes the call on. Handles come from the libraries themselves.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from typing import Any, Callable, Iterator, Sequence

import torch

Call = Callable[..., int]


class Asker:
    """Functions by name, a place for answers, and a clock."""

    def __init__(self, library: str, create: str, seconds: float) -> None:
        self.program, self.library = ctypes.CDLL(None), ctypes.CDLL(library)
        self.handle = ctypes.c_void_p()
        # Big enough for whatever a function may look at; most look at nothing.
        self.memory = torch.zeros(1 << 24, device="cuda")
        self.data = ctypes.c_void_p(self.memory.data_ptr())
        status = self.helper(create)(ctypes.byref(self.handle))
        if status:
            raise SystemExit(f"{create}: status {status}")
        self.deadline = time.monotonic() + seconds
        self.asked = self.failed = 0

    def helper(self, function: str) -> Call:
        """A function that is not recorded: from what is preloaded, else from the library."""
        return getattr(self.program, function, None) or getattr(self.library, function)

    def ask(self, function: str, *arguments: Any) -> None:
        status = getattr(self.program, function)(*arguments)
        self.asked += 1
        self.failed += status != 0

    def is_over(self) -> bool:
        return time.monotonic() > self.deadline

    def report(self, what: str) -> None:
        late = ", stopped by the clock" if self.is_over() else ""
        print(f"{what}: {self.asked} asked, {self.failed} refused{late}", file=sys.stderr)


def long(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


def place() -> Any:
    return ctypes.byref(ctypes.c_int64())


def pairs(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    for first in sizes:
        for second in sizes:
            yield first, second


def seconds_argument(description: str | None) -> float:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=40.0)
    return float(parser.parse_args().seconds)
