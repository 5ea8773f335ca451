"""Single operations whose allocations are compared one by one; one module per family."""

from . import attention, convolution, indexing, linear_algebra, losses, normalisation, ordering
from .operation import OPERATIONS, Operation

FAMILIES = (ordering, indexing, linear_algebra, normalisation, convolution, attention, losses)

__all__ = ["FAMILIES", "OPERATIONS", "Operation"]
