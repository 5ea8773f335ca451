"""Calls a function right after certain modules have been imported.

Imports only `sys`, because Python processes that never use torch load it too.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Callable


class ImportWatch:
    """A finder that leaves finding to the others and adds a call after the module has run."""

    def __init__(
        self,
        names: Collection[str],
        after: Callable[[ModuleType], object],
        before: Callable[[str], object] | None = None,
    ) -> None:
        """`before` is called with the module's name before any part of it is loaded."""
        self._names = frozenset(names)
        self._after = after
        self._before = before

    def install(self) -> None:
        """Install in front of Python's own finders."""
        sys.meta_path.insert(0, self)

    def catch_up(self) -> None:
        """Make the calls for modules that are already imported."""
        for name in sorted(self._names):
            module = sys.modules.get(name)
            if module is not None:
                self._after(module)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Part of Python's protocol of finders."""
        if fullname not in self._names:
            return None
        if self._before is not None:
            self._before(fullname)
        # Only later finders: an earlier one, which may watch the same module, is asking.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(fullname, path, target) if find_spec else None
            if spec is not None:
                self._call_after_execution(spec)
                return spec
        return None

    def _call_after_execution(self, spec: ModuleSpec) -> None:
        loader = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        original = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            original(module)
            self._after(module)

        try:
            # Set on the instance, so that `torch.__loader__` keeps its class.
            loader.exec_module = exec_module  # type: ignore[method-assign]
        except AttributeError:
            sys.stderr.write(f"ghostgpu: cannot watch the import of {spec.name}\n")
