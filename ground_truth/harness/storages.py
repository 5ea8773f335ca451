"""Counts the storages of a case's parameters, buffers, gradients and optimizer state.

    python ground_truth/harness/storages.py gpt2-bf16 --out storages/gpt2-bf16.json

Each storage counts once, however many tensors share it. The figures are those of the last
optimizer step: gradients as the optimizer finds them, the rest as it leaves it. On a real card this
is the truth that the categories of a rehearsal are compared with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from run_case import environment_facts, start_again_with


class Counter:
    """Looks at every optimizer step; the last one counts."""

    def __init__(self) -> None:
        self.bytes: dict[str, int] = {}
        self._model: Any = None

    def install(self) -> None:
        import torch
        from torch.optim.optimizer import (
            register_optimizer_step_post_hook,
            register_optimizer_step_pre_hook,
        )

        register_optimizer_step_pre_hook(lambda optimizer, *_: self._before(optimizer))
        register_optimizer_step_post_hook(lambda optimizer, *_: self._after(optimizer))
        torch.nn.modules.module.register_module_forward_pre_hook(self._note_model)

    def _note_model(self, module: Any, arguments: Any) -> None:
        # The first module that is called is the model; those inside of it follow.
        if self._model is None:
            self._model = module

    def _before(self, optimizer: Any) -> None:
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        self.bytes["gradient"] = storage_bytes(parameter.grad for parameter in parameters)
        self.bytes["parameter"] = storage_bytes(self._model.parameters())
        self.bytes["buffer"] = storage_bytes(self._model.buffers())

    def _after(self, optimizer: Any) -> None:
        self.bytes["optimizer_state"] = storage_bytes(tensors_in(list(optimizer.state.values())))


def tensors_in(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)


def storage_bytes(tensors: Iterable[Any]) -> int:
    """Bytes of the different storages on the card."""
    storages = {}
    for tensor in tensors:
        if tensor is not None and tensor.is_cuda:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    import torch

    import cases  # noqa: F401
    from case import CASES
    from context import Context
    from training import train

    case = CASES[options.name]
    start_again_with(case.process_environment())
    counter = Counter()
    counter.install()
    torch.manual_seed(0)
    (case.script or train)(Context(case))
    result = {
        "case": case.name,
        "bytes": counter.bytes,
        "command": f"python ground_truth/harness/storages.py {case.name}",
        "environment": environment_facts(True),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
