"""Rehearses everything of a training that can matter to its memory, and no more.

A training repeats itself: the same step a thousand times, an epoch ten times. What counts for
memory is what differs: the first steps, the largest and the smallest batch, the last batch of a
pass, evaluation, a checkpoint, and the first steps after them. So passes over data are cut in the
middle (`passes`), and the script is ended when nothing new has been seen for a few steps
(`progress`) or when the time for it is spent. What was seen, and what was not, is in the report.
"""

from .coverage import Coverage

__all__ = ["Coverage"]
