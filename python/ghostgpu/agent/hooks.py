"""The import hook: calls the agent right after a module it watches has been imported.

It imports almost nothing, because processes that never use torch load it too.
"""

from __future__ import annotations

import sys

from ..tricks.import_watch import ImportWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_WATCHED = frozenset(
    {
        "torch",
        "safetensors.torch",
        "torch.distributed.checkpoint.default_planner",
        "torch.distributed.checkpoint.filesystem",
        "lightning.fabric.utilities.cloud_io",
        "lightning_fabric.utilities.cloud_io",
        "triton.runtime.jit",
        "lightning.pytorch.loops.training_epoch_loop",
        "pytorch_lightning.loops.training_epoch_loop",
        "transformers.trainer_callback",
    }
)


class _AgentsWatch(ImportWatch):
    """A named class, so that `install` recognises it even if the agent is loaded twice."""


def _before_import(name: str) -> None:
    if name == "torch":
        # Before any part of torch is loaded: that alone may touch a real driver.
        from . import preload

        preload.require()


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
    """Write the report at once: the part that writes it at the end may not be installed."""
    import os

    from .report import RECORD
    from .shared_numbers import SESSION_VARIABLE

    RECORD.fault(f"could not start after the import of {module} ({error!r}): nothing was watched")
    RECORD.write(os.path.dirname(os.environ[SESSION_VARIABLE]))


def install() -> None:
    """Put the hook in front of Python's own finders, once."""
    if not any(type(finder).__name__ == _AgentsWatch.__name__ for finder in sys.meta_path):
        _AgentsWatch(_WATCHED, _after_import, _before_import).install()
