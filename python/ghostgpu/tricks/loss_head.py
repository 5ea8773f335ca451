"""Cross-entropy of a causal model without ever holding all logits at once.

Tokens go through the last matrix and the loss in chunks. The gradient of each chunk is computed
immediately, so that its logits need not be kept. If a script or another model
computes large logits and then their cross-entropy, the logits stay, but nothing else of their size
is kept (`cross_entropy_in_pieces`).

Saves: the logits, their copy in float32 and their gradient: tokens times vocabulary, three times;
of logits that stay a copy in the precision of the loss, and in backward two.
Costs: nothing to speak of for large vocabularies; the gradient of the matrix is held from forward
on.
Numbers: the same up to rounding: mean over all tokens that are not ignored, or sum divided by the
number of items that the trainer counts.
Conflicts: none. A model's `logits` are None while it trains with labels.
Refused: models that do something to their logits (soft-capping, scaling) before the loss; scripts
that write over logits whose loss was computed in pieces, or differentiate its gradients.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable

from .hooks import Hooks
from .refusal import Refused
from .trick import Trick

if TYPE_CHECKING:
    import torch
    from torch import nn

IGNORED = -100


def chunked_cross_entropy(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    labels: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    ignore_index: int = IGNORED,
    reduction: str = "mean",
    num_items: Any = None,
    shift: bool = False,
    chunks: int = 8,
) -> torch.Tensor:
    """The cross-entropy of `hidden @ weight.T + bias`, without holding all logits.

    Args:
        hidden: What goes into the last matrix, `(..., width)`.
        weight: The last matrix, `(vocabulary, width)`.
        labels: The right tokens, `(...)`; those equal to `ignore_index` do not count.
        bias: Added to the logits, `(vocabulary,)`.
        ignore_index: The label of tokens that do not count.
        reduction: `mean` over the tokens that count, or `sum`.
        num_items: Divide the sum by this instead, as trainers that accumulate gradients do.
        shift: Whether the label of a token is the one after it, as in causal models.
        chunks: Into how many pieces the tokens are cut.
    """
    from .loss_head_function import chunked_loss

    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be `mean` or `sum`, not {reduction!r}")
    if labels.shape != hidden.shape[:-1]:
        shapes = f"{list(labels.shape)} and {list(hidden.shape)}"
        raise ValueError(f"labels and hidden states do not go together: {shapes}")
    if shift:
        from torch.nn.functional import pad

        labels = pad(labels, (0, 1), value=ignore_index)[..., 1:]
    tokens = hidden.reshape(-1, hidden.shape[-1])
    is_mean = reduction == "mean" and num_items is None
    loss = chunked_loss(tokens, weight, bias, labels.reshape(-1), ignore_index, chunks, is_mean)
    if num_items is not None:
        divided: torch.Tensor = loss / num_items
        return divided
    return loss


class LossHead(Trick):
    """Computes the loss of causal models of transformers in chunks."""

    name = "loss-head"

    def __init__(self, torch: Any, hooks: Hooks, options: Mapping[str, str]) -> None:
        super().__init__(torch, hooks, options)
        self._heads: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._models: set[str] = set()
        self._losses = 0
        """Losses of logits that were there anyway."""

    def install(self) -> None:
        self.hooks.around_models.append(self._call)
        self.hooks.refuses_in_backward = True
        from .cross_entropy_in_pieces import replacement

        functional = self.torch.nn.functional
        pieces = max(2, int(self.options["chunks"]))
        functional.cross_entropy = functools.wraps(functional.cross_entropy)(
            replacement(functional.cross_entropy, pieces, self._note)
        )

    def _note(self) -> None:
        self._losses += 1

    def _call(self, make: Callable[..., Any], module: Any, arguments: Any, options: Any) -> Any:
        model = causal_model(module)
        is_training = self.hooks.has_graph and options.get("labels") is not None
        if model is None or not is_training:
            return make(*arguments, **options)
        chunks = max(2, int(self.options["chunks"]))
        if model not in self._heads:
            try:
                require_plain_head(make, model, arguments, options, chunks)
            except Refused as refused:
                # A rehearsal runs the comparison only for its memory: nothing is computed.
                if not self.hooks.is_rehearsed:
                    raise self.refused(refused.reason, refused.alternative) from None
            self._heads[model] = True
            self._models.add(type(model).__name__)
        with HeadInPieces(model, chunks):
            return make(*arguments, **options)

    def did(self) -> str | None:
        pieces = f"in {self.options['chunks']} pieces"
        if self._models:
            return f"the loss of {', '.join(sorted(self._models))} {pieces}"
        return f"cross-entropy without copies of its logits, {pieces}" if self._losses else None

    def line(self) -> str | None:
        if not self._models:
            return None
        return "loss = ghostgpu.chunked_cross_entropy(hidden, head.weight, labels, shift=True)"


def causal_model(module: Any) -> Any:
    """The causal language model of transformers in a module, if its loss can be replaced."""
    for part in module.modules():
        is_theirs = any(
            kind.__name__ == "PreTrainedModel" and kind.__module__.startswith("transformers.")
            for kind in type(part).__mro__
        )
        if is_theirs and hasattr(type(part), "loss_function"):
            named = type(part).__name__
            is_causal = "CausalLM" in named or "LMHead" in named
            return part if is_causal and _head(part) is not None else None
    return None


def _head(model: Any) -> nn.Module | None:
    from torch import nn

    head = model.get_output_embeddings()
    return head if type(head) is nn.Linear else None


class HeadInPieces:
    """A context in which a model's head passes hidden states on and its loss takes them."""

    def __init__(self, model: Any, chunks: int) -> None:
        self._model = model
        self._chunks = chunks
        head = _head(model)
        assert head is not None
        self._head: Any = head

    def __enter__(self) -> None:
        self._head.forward = lambda hidden: hidden
        self._had = self._model.__dict__.get("_loss_function")
        self._model.__dict__["_loss_function"] = self._loss
        self._handle = self._model.register_forward_hook(_without_logits)

    def __exit__(self, *_: object) -> None:
        del self._head.forward
        if self._had is None:
            del self._model.__dict__["_loss_function"]
        else:
            self._model.__dict__["_loss_function"] = self._had
        self._handle.remove()

    def _loss(
        self,
        logits: torch.Tensor,
        labels: torch.Tensor,
        vocab_size: int | None = None,
        num_items_in_batch: Any = None,
        ignore_index: int = IGNORED,
        shift_labels: torch.Tensor | None = None,
        **_: Any,
    ) -> torch.Tensor:
        is_shifted = shift_labels is not None
        right = shift_labels if shift_labels is not None else labels
        return chunked_cross_entropy(
            logits,
            self._head.weight,
            right.to(logits.device),
            bias=self._head.bias,
            ignore_index=ignore_index,
            num_items=num_items_in_batch,
            shift=not is_shifted,
            chunks=self._chunks,
        )


def _without_logits(model: Any, arguments: Any, output: Any) -> Any:
    """Remove the logits of an output, which are hidden states here."""
    if isinstance(output, dict) and "logits" in output:
        output["logits"] = None
        return output
    if isinstance(output, tuple) and len(output) > 1:
        return (output[0], None, *output[2:])
    return output


def require_plain_head(
    make: Callable[..., Any], model: Any, arguments: Any, options: Any, chunks: int
) -> None:
    """Compare both losses on one sample; refuse models whose head is more than a matrix."""
    import torch

    from .chunking.nested import flatten_arguments
    from .chunking.surroundings import RandomState

    nested = flatten_arguments(arguments, options)
    samples = len(options["labels"])
    one = [
        leaf[:1]
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and len(leaf) == samples
        else leaf
        for leaf in nested.leaves
    ]
    few_arguments, few_options = nested.with_leaves(one)
    cards = tuple({each.get_device() for each in model.parameters() if each.is_cuda})
    state = RandomState.now(cards)
    with torch.no_grad():
        whole = make(*few_arguments, **few_options)
        state.restore()
        with HeadInPieces(model, chunks):
            pieces = make(*few_arguments, **few_options)
        state.restore()
        before, after = (
            each["loss"] if isinstance(each, dict) else each[0] for each in (whole, pieces)
        )
        is_close = torch.allclose(before.float(), after.float(), rtol=2e-2, equal_nan=True)
    if not is_close:
        raise Refused(
            f"the loss of {type(model).__name__} cannot be computed in pieces: it does more than "
            "a matrix product and cross-entropy.",
            "use chunking, which leaves the model as it is",
        )
