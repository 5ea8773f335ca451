"""A step that runs out of memory is repeated in more chunks, with the gradients of the whole batch.

Calls of models run as they are until one fails. It is then repeated in two chunks, four, and so on,
and the model stays at that number. Nothing is left of a failed attempt: generators and buffers are
put back, gradients of chunks never reach a parameter before all of them are there, and frames and
tensors that the error held are let go before the next attempt. If dropout was drawn in forward and
backward fails, the same chunks are repeated with what they keep on the host, since other chunks
would draw other masks. PyTorch freeing its cache again and again counts as running out, too.

Saves: what a step needs too much.
Costs: nothing until memory runs out; then the failed attempt, and one more forward pass a step.
Numbers: the same up to rounding, as with chunking.
Conflicts: chunking, which is a fixed number of chunks; optimizer-in-backward, which changes
parameters before a step can still fail.
Refused: what chunking refuses.
"""

from __future__ import annotations

from .chunking import in_words, model_calls
from .trick import Trick


class SurvivingOom(Trick):
    """Retries with more chunks."""

    name = "surviving-oom"

    def install(self) -> None:
        self._calls = model_calls(self.hooks)
        self._calls.chunker.survives = True

    def did(self) -> str | None:
        words = in_words(self._calls.chunker)
        reasons = self._calls.chunker.growth
        return words and "; ".join([words, *reasons[:3]])

    def line(self) -> str | None:
        return "model, optimizer = ghostgpu.fit(model, optimizer, survive_oom=True)"
