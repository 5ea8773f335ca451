"""Rehearses everything in a training that can affect its memory, and no more.

A training repeats itself: the same step a thousand times, an epoch ten times. What matters for
memory is what differs: the first steps, the largest and the smallest batch, the last batch of a
pass, evaluation, a checkpoint, and the first steps after each. So passes over data are cut in the
middle (`passes`), and the script is ended when nothing new has been seen for a few steps
(`progress`) or the time budget is spent. The report says what was seen and what was not.
"""

from .coverage import Coverage

__all__ = ["Coverage"]
