"""Low-rank adapters: from peft if it is installed, else from a small wrapper.

Both freeze the model and add two low-rank matrices, in single precision, to each projection of
queries and values; their result is added to the projection's output.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import agent
from .failures import CannotEstimate

TARGETS = (
    # Queries and values, by what the families of models call them; fused projections after them.
    ("q_proj", "v_proj"),
    ("query", "value"),
    ("q_lin", "v_lin"),
    ("q", "v"),
    ("query_key_value",),
    ("qkv_proj",),
    ("qkv",),
    ("c_attn",),
    ("Wqkv",),
    ("in_proj",),
)


def add_adapters(torch: Any, model: Any, rank: int) -> Any:
    """The model with adapters of that rank, everything else frozen."""
    targets = _targets(model)
    try:
        peft: Any = importlib.import_module("peft")
    except Exception:  # not installed, or not for these versions of torch and transformers
        peft = None
    if peft is not None:
        config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=list(targets))
        wrapped = peft.get_peft_model(model, config)
        maker = f"peft {peft.__version__}"
    else:
        wrapped = _wrap(torch, model, targets, rank)
        maker = "GhostGPU's wrapper, since peft cannot be imported"
    agent.assume(f"adapters of rank {rank} on {' and '.join(targets)}, from {maker}")
    return wrapped


def _targets(model: Any) -> tuple[str, ...]:
    names = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if _sizes(module) is not None
    }
    for targets in TARGETS:
        if names.issuperset(targets):
            return targets
    raise CannotEstimate(
        "this model has no query and value projections for adapters",
        "remove `--lora`; for other adapters, rehearse your own script with `ghostgpu run`",
    )


def _sizes(module: Any) -> tuple[int, int] | None:
    """Width of input and output of a linear layer, of torch's kind or GPT-2's."""
    kind = type(module).__name__
    if kind == "Linear":
        return int(module.in_features), int(module.out_features)
    if kind == "Conv1D" and hasattr(module, "nf"):
        return int(module.weight.shape[0]), int(module.nf)
    return None


def _wrap(torch: Any, model: Any, targets: tuple[str, ...], rank: int) -> Any:
    class Adapted(torch.nn.Module):  # type: ignore[misc]
        """A frozen layer with two low-rank matrices."""

        def __init__(self, base: Any, sizes: tuple[int, int]) -> None:
            super().__init__()
            self.base = base
            self.down = torch.nn.Linear(sizes[0], rank, bias=False, dtype=torch.float32)
            self.up = torch.nn.Linear(rank, sizes[1], bias=False, dtype=torch.float32)

        def forward(self, inputs: Any) -> Any:
            outputs = self.base(inputs)
            kind = outputs.dtype
            outputs = outputs + self.up(self.down(inputs.to(self.down.weight.dtype))) * 2.0
            return outputs.to(kind)

    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for name, module in list(model.named_modules()):
        path, _, last = name.rpartition(".")
        sizes = _sizes(module)
        if last in targets and sizes is not None:
            setattr(model.get_submodule(path), last, Adapted(module, sizes))
    return model
