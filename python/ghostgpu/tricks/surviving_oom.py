"""A step that runs out of memory is repeated in more chunks, with the gradients of the whole batch.

Calls of models run as they are until one fails. It is then repeated in two chunks, four, and so on,
and the model stays at that number. Nothing is left of a failed attempt: generators and buffers are
put back, gradients of chunks never reach a parameter before all of them are there, and frames and
tensors that the error held are let go before the next attempt. If dropout was drawn in forward and
backward fails, the same chunks are repeated with what they keep on the host, since other chunks
would draw other masks. PyTorch freeing its cache again and again counts as running out, too.

An optimizer's step that runs out before it has changed anything is made parameter by parameter. The
script's own lines, such as its loss, cannot be repeated: where these run out, the line is named.

Saves: what a step needs too much.
Costs: a model's results, which stay until backward (a large vocabulary's logits: 7 % of GPT-2's
peak); once memory runs out the failed attempt, and then one more forward pass a step.
Numbers: the same up to rounding, as with chunking.
Conflicts: chunking, which is a fixed number of chunks; optimizer-in-backward, which changes
parameters before a step can still fail.
What chunking refuses runs as it is, and where memory runs out the reason is told.
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any

from .chunking import in_words, model_calls
from .surviving_oom_errors import is_given_up, is_out_of_memory
from .surviving_oom_steps import SurvivingSteps
from .trick import Trick
from .user_code import is_user_code


class SurvivingOom(Trick):
    """Retries with more chunks."""

    name = "surviving-oom"

    def install(self) -> None:
        self._calls = model_calls(self.hooks)
        self._calls.chunker.survives = True
        self._steps = SurvivingSteps(self.torch)
        self.hooks.around_steps.append(self._steps.step)
        self._tell_of_own_lines()

    def _tell_of_own_lines(self) -> None:
        original = sys.excepthook

        def tell(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> Any:
            original(kind, error, trace)
            # What we gave up has its own report.
            if is_out_of_memory(self.torch, error) and not is_given_up(error):
                uncut = list(self._calls.chunker.left_alone.values())
                sys.stderr.write(f"ghostgpu: surviving-oom: {own_line(trace, uncut)}\n")

        sys.excepthook = tell

    def did(self) -> str | None:
        words = in_words(self._calls.chunker)
        reasons = [*self._calls.chunker.growth[:3], *self._steps.repeated[:1]]
        return "; ".join([*([words] if words else []), *reasons]) or None

    def nothing_because(self) -> str:
        for reason in self._calls.chunker.left_alone.values():
            return f"memory did not run out, and where it does: {reason}"
        return "memory did not run out"

    def line(self) -> str | None:
        return "model, optimizer = ghostgpu.fit(model, optimizer, survive_oom=True)"


def own_line(trace: TracebackType | None, uncut: list[str]) -> str:
    """Says which line of the script ran out of memory outside of what can be repeated.

    `uncut`: why models could not be repeated in chunks.
    """
    lines = [each for each in traceback.extract_tb(trace) if is_user_code(each.filename)]
    place = f"{lines[-1].filename}:{lines[-1].lineno}" if lines else "a line of the script"
    if uncut:
        return f"memory ran out at {place}. {uncut[0]}"
    return (
        f"memory ran out at {place}, outside of a model's call and of an optimizer's step, and the "
        "script's own lines cannot be repeated. Smaller results help: --chunk-loss for the logits "
        "of large vocabularies, or a smaller batch with --accumulate."
    )
