"""A model that is ready to be trained, whatever library it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable


@dataclass
class Built:
    """A model on the CPU and what it takes to train it."""

    model: Any
    kind: str
    """The class of the model, for people."""
    source: str
    """Where its configuration came from, for people."""
    task: str
    inputs: Callable[[int, int | None], dict[str, Any]]
    """A batch of that many samples, of that many tokens if they have any, on the CPU."""
    loss: Callable[[Any, dict[str, Any]], Any]
    """The loss of a model for a batch on the card."""
    outputs: Callable[[Any, dict[str, Any]], Any]
    """The outputs of a model for a batch on the card, without a loss."""
    sample: str
    """What one sample is: `128 tokens`, `an image of 224 × 224`."""
    seq: int | None
    """Tokens of a sample; None for images."""
    longest_seq: int | None = None
    """The most tokens that the model can take."""
    enable_checkpointing: Callable[[], None] | None = None
    """None where the library cannot do that."""
