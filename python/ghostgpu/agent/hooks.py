"""The import hook: calls the agent right after a module it cares about has been imported.

Kept free of imports beyond `sys`: it is loaded by Python processes that never touch torch.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_WATCHED = frozenset(
    {
        "torch",
        "safetensors.torch",
        "torch.distributed.checkpoint.filesystem",
        "lightning.fabric.utilities.cloud_io",
        "lightning_fabric.utilities.cloud_io",
        "triton.runtime.jit",
        "lightning.pytorch.loops.training_epoch_loop",
        "pytorch_lightning.loops.training_epoch_loop",
        "transformers.trainer_callback",
    }
)


class _WatchingFinder:
    """Finds nothing itself; lets the others find, and adds a call after the module has run."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname not in _WATCHED:
            return None
        if fullname == "torch":
            # Before anything of torch is loaded: loading it may already touch a real driver.
            from . import preload

            preload.require()
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                _call_after_execution(spec)
                return spec
        return None


def _call_after_execution(spec: ModuleSpec) -> None:
    loader = spec.loader
    if loader is None or not hasattr(loader, "exec_module"):
        return
    original = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        original(module)
        _after_import(module)

    try:
        # On the instance, so that `torch.__loader__` stays what it would have been.
        loader.exec_module = exec_module  # type: ignore[method-assign]
    except AttributeError:
        sys.stderr.write(f"ghostgpu: cannot watch the import of {spec.name}\n")


def _after_import(module: ModuleType) -> None:
    try:
        from . import activation

        activation.after_import(module)
    except Exception as error:
        try:
            _report(module.__name__, error)
        except Exception:
            sys.stderr.write(f"ghostgpu: the agent failed at an import: {error!r}\n")


def _report(module: str, error: Exception) -> None:
    """Write the report at once: whatever writes it at the end may not have been installed."""
    import os

    from .report import RECORD
    from .shared_numbers import SESSION_VARIABLE

    RECORD.fault(f"could not start after the import of {module} ({error!r}): nothing was watched")
    RECORD.write(os.path.dirname(os.environ[SESSION_VARIABLE]))


def install() -> None:
    """Put the hook in front of Python's own finders, once."""
    if not any(type(finder).__name__ == _WatchingFinder.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _WatchingFinder())
