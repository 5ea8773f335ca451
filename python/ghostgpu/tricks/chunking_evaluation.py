"""Batches go through the model in chunks where nothing is differentiated.

Saves: the activations of an evaluation but those of one chunk.
Costs: smaller, so slightly slower, kernels.
Numbers: the same up to rounding.
Conflicts: small-evaluation-batch does the same at the loader.
A model that cannot be cut runs as it is: its results would be others.
"""

from __future__ import annotations

from .chunking import in_words, model_calls
from .trick import Trick


class EvaluationChunks(Trick):
    """Evaluation in chunks."""

    name = "evaluation-chunks"

    def install(self) -> None:
        self._calls = model_calls(self.hooks)
        self._calls.chunker.evaluation_chunks = max(2, int(self.options["chunks"]))

    def did(self) -> str | None:
        return in_words(self._calls.chunker)
