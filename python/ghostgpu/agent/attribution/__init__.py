"""Whose memory it is: adds to the memory log what the script was doing and what its memory is for.

The stand-in library logs every block that PyTorch's allocator hands out, in order. The parts here
add to that log as things happen: which module runs (`modules`), which stage the script is in
(`stages`), and which memory is a parameter, a gradient, optimizer state, saved for the backward
pass, or an input (`owners`, `saved_tensors`). PyTorch's own history of the same process, with
Python stacks, goes into a file beside the log (`history`).

These parts only observe: a rehearsal allocates the same with and without them.
"""

from .recorder import MemoryRecorder

__all__ = ["MemoryRecorder"]
