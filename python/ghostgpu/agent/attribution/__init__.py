"""Whose bytes: tells the memory log what the script was doing, and what its memory is.

The stand-in library writes down every block that PyTorch's allocator hands out, in order. The parts
here add to that log, as things happen: which module runs (`modules`), which stage the script is in
(`stages`), and which memory turned out to be a parameter, a gradient, an optimizer's state, saved
for the backward pass, or an input (`owners`, `saved_tensors`). PyTorch's own history of the same
process, with the Python stacks, goes into a file beside it (`history`).

All of it only looks: a rehearsal with and without it allocates the same.
"""

from .recorder import MemoryRecorder

__all__ = ["MemoryRecorder"]
