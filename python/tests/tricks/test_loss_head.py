# Modules and gradients are reached by index and name, which torch's types do not know.
# ruff: noqa: E501
# mypy: disable-error-code="arg-type,assignment,attr-defined,index,misc,name-defined,no-any-return,no-untyped-call,operator,union-attr"
"""Cross-entropy in pieces is cross-entropy."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from ghostgpu.tricks.loss_head import (  # noqa: E402
    HeadInPieces,
    causal_model,
    chunked_cross_entropy,
    require_plain_head,
)
from ghostgpu.tricks.refusal import Refused  # noqa: E402


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("chunks", [1, 3, 100])
@pytest.mark.parametrize("reduction", ["mean", "sum", "items"])
@pytest.mark.parametrize("shift", [False, True])
def test_loss_and_gradients_are_those_of_cross_entropy(
    chunks: int, reduction: str, shift: bool
) -> None:
    torch.manual_seed(0)
    hidden, weight, bias = numbers(3, 7, 5), numbers(11, 5), numbers(11)
    labels = torch.randint(0, 11, (3, 7))
    labels[0, 2:5] = labels[2, 0] = -100

    def plain() -> torch.Tensor:
        logits = F.linear(hidden, weight, bias)
        right = labels
        if shift:
            logits, right = logits[:, :-1], labels[:, 1:]
        kind = "mean" if reduction == "mean" else "sum"
        loss = F.cross_entropy(logits.flatten(0, 1), right.flatten(), reduction=kind)
        return loss / 17 if reduction == "items" else loss

    found = chunked_cross_entropy(
        hidden,
        weight,
        labels,
        bias=bias,
        reduction="mean" if reduction == "items" else reduction,
        num_items=torch.tensor(17) if reduction == "items" else None,
        shift=shift,
        chunks=chunks,
    )
    expected = plain()
    assert torch.allclose(found, expected, rtol=1e-13)
    for one, other in zip(
        torch.autograd.grad(found * 3, [hidden, weight, bias]),
        torch.autograd.grad(expected * 3, [hidden, weight, bias]),
    ):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-14)


def test_frozen_weights_get_no_gradient() -> None:
    hidden, weight = numbers(4, 5), numbers(11, 5).detach()
    chunked_cross_entropy(hidden, weight, torch.arange(4)).backward()
    assert hidden.grad is not None and weight.grad is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"reduction": "none"}, "`mean` or `sum`"), ({"labels": torch.arange(3)}, "do not go")],
)
def test_arguments_that_do_not_go_together_are_named(options: dict[str, Any], reason: str) -> None:
    arguments = {"hidden": numbers(4, 5), "weight": numbers(11, 5), "labels": torch.arange(4)}
    with pytest.raises(ValueError, match=reason):
        chunked_cross_entropy(**{**arguments, **options})


def models() -> dict[str, Any]:
    transformers = pytest.importorskip("transformers")
    small = {"vocab_size": 40, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    return {
        "gpt2": transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=1, n_head=2, **ids)
        ),
        "llama": transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                hidden_size=16, intermediate_size=24, num_key_value_heads=2, **small, **ids
            )
        ),
        "gemma2": transformers.Gemma2ForCausalLM(
            transformers.Gemma2Config(
                hidden_size=16,
                intermediate_size=24,
                num_key_value_heads=2,
                head_dim=8,
                final_logit_softcapping=0.5,
                **small,
                **ids,
            )
        ),
    }


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_causal_models_have_the_same_gradients(name: str) -> None:
    torch.manual_seed(0)
    model = models()[name].eval()
    ids = torch.randint(0, 40, (3, 9))
    batch = {"input_ids": ids, "labels": ids.masked_fill(ids % 5 == 0, -100)}
    expected = model(**batch)
    expected.loss.backward()
    gradients = [each.grad.clone() for each in model.parameters()]
    model.zero_grad()
    assert causal_model(model) is model
    require_plain_head(model, model, (), batch, 2)
    with HeadInPieces(model, 2):
        found = model(**batch)
    found.loss.backward()
    assert found.logits is None
    assert torch.allclose(found.loss, expected.loss, rtol=1e-6)
    for each, gradient in zip(model.parameters(), gradients):
        assert torch.allclose(each.grad, gradient, rtol=1e-4, atol=1e-6)
    assert model(**batch).logits is not None, "nothing is left behind"


def test_a_model_that_does_something_to_its_logits_is_refused() -> None:
    torch.manual_seed(0)
    model = models()["gemma2"].eval()
    with torch.no_grad():
        model.lm_head.weight.mul_(100)
    ids = torch.randint(0, 40, (3, 9))
    with pytest.raises(Refused, match="Gemma2ForCausalLM"):
        require_plain_head(model, model, (), {"input_ids": ids, "labels": ids}, 2)
