"""What Python imports first in every process of a measured script, on real and virtual cards alike.

The script itself stays as its authors wrote it. This file seeds the random number generators, lets
made-up data stand for data sets that have a checksum, puts silent modules in the place of ones that
only draw or log, and writes down at the end what PyTorch's allocator counted.

    WILD_RECORD   the folder that every process with a card writes its figures to, as <pid>.json
    WILD_SILENT   names of modules to replace, separated by commas
    WILD_EVENTS   if set, the allocator's history is written too
    WILD_STEPS    ends the script after this many optimizer steps, where no argument of its own does
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import random
import sys
import types
from typing import Any, Callable, Optional, Sequence

SEED = 1


class SilentModule(types.ModuleType):
    """A module whose every name is something that takes everything and does nothing."""

    __path__: list[str] = []
    __version__ = "999"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Silence()


class Silence:
    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass

    def __call__(self, *_arguments: Any, **_options: Any) -> Silence:
        return self

    def __getattr__(self, name: str) -> Silence:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, _key: Any) -> Silence:
        return self

    def __setitem__(self, _key: Any, _value: Any) -> None:
        pass

    def __fspath__(self) -> str:
        # A logger's folder, to which scripts write files of their own.
        return "."

    def __iter__(self) -> Any:
        # `figure, axes = plt.subplots()` is what this is for.
        return iter((self, self))

    def __enter__(self) -> Silence:
        return self

    def __exit__(self, *_error: Any) -> None:
        pass


class SilentImports(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in self.names):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return SilentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function once a module has been imported by anybody."""

    def __init__(self, callbacks: dict[str, Callable[[types.ModuleType], None]]) -> None:
        self.callbacks = callbacks

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        callback = self.callbacks.pop(fullname, None)
        if callback is None:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is None:
                continue
            if spec.loader is not None:
                _call_after_execution(spec.loader, callback)
            return spec
        return None


def _call_after_execution(loader: Any, callback: Callable[[types.ModuleType], None]) -> None:
    execute = loader.exec_module

    def execute_and_call(module: types.ModuleType) -> None:
        loader.exec_module = execute
        execute(module)
        callback(module)

    loader.exec_module = execute_and_call


def _seed_numpy(numpy: Any) -> None:
    numpy.random.seed(SEED)


def _seed_and_record(torch: Any) -> None:
    import atexit

    torch.manual_seed(SEED)
    steps = [0]
    last = int(os.environ.get("WILD_STEPS", "0"))

    def count(*_arguments: Any) -> None:
        steps[0] += 1
        if steps[0] == last:
            sys.exit(0)

    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(count)
    if os.environ.get("WILD_EVENTS"):
        # Once the script itself has come to use the card, and not before.
        torch.cuda._lazy_call(lambda: _keep_history(torch))
    atexit.register(_record, torch, steps)


def _keep_history(torch: Any) -> None:
    torch.cuda.memory._record_memory_history(context=None, max_entries=2_000_000)


#: One letter for each kind of event. Memory is freed when no stream uses it any more.
LETTERS = {
    "alloc": "a",
    "free_requested": "r",
    "free_completed": "f",
    "segment_alloc": "S",
    "segment_free": "F",
    "segment_map": "M",
    "segment_unmap": "U",
    "oom": "O",
    "snapshot": "",
}


def _history(torch: Any) -> list[str]:
    """The events of each card: letters with sizes, separated by blanks; of segments the address,
    too."""
    traces = torch.cuda.memory._snapshot()["device_traces"]
    return [" ".join(filter(None, map(_written, trace))) for trace in traces]


def _written(event: dict[str, Any]) -> str:
    letter = LETTERS.get(event["action"])
    if not letter:
        return ""
    place = f"@{event['addr']:x}" if letter in "SF" else ""
    return f"{letter}{event['size']}{place}"


def _record(torch: Any, steps: list[int]) -> None:
    folder = os.environ.get("WILD_RECORD")
    if not folder or not torch.cuda.is_initialized():
        return
    cards = []
    for card in range(torch.cuda.device_count()):
        counted = torch.cuda.memory_stats(card)
        if not counted:
            continue
        cards.append(
            {
                "card": card,
                "peak_allocated_bytes": counted["allocated_bytes.all.peak"],
                "peak_reserved_bytes": counted["reserved_bytes.all.peak"],
                "allocations": counted["allocation.all.allocated"],
                "segments": counted["segment.all.allocated"],
                "retries": counted["num_alloc_retries"],
                "out_of_memory": counted["num_ooms"],
            }
        )
    figures: dict[str, Any] = {"optimizer_steps": steps[0], "cards": cards}
    if os.environ.get("WILD_EVENTS"):
        figures["events"] = _history(torch)
    with open(os.path.join(folder, f"{os.getpid()}.json"), "w") as file:
        json.dump(figures, file)


def _accept_made_up_data(utils: Any) -> None:
    utils.check_md5 = lambda path, md5, **options: True


random.seed(SEED)
if os.environ.get("WILD_RECORD"):
    sys.meta_path.insert(
        0,
        AfterImport(
            {
                "numpy": _seed_numpy,
                "torch": _seed_and_record,
                "torchvision.datasets.utils": _accept_made_up_data,
            }
        ),
    )
silent = [name for name in os.environ.get("WILD_SILENT", "").split(",") if name]
if silent:
    sys.meta_path.insert(0, SilentImports(silent))
