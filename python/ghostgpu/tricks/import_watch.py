"""Calls a function right after certain modules have been imported.

Kept free of imports beyond `sys`: it is loaded by Python processes that never touch torch.
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
    """Finds nothing itself; lets the others find, and adds a call after the module has run."""

    def __init__(
        self,
        names: Collection[str],
        after: Callable[[ModuleType], object],
        before: Callable[[str], object] | None = None,
    ) -> None:
        """`before` is called with the name, when nothing of the module is loaded yet."""
        self._names = frozenset(names)
        self._after = after
        self._before = before

    def install(self) -> None:
        """Stand in front of Python's own finders."""
        sys.meta_path.insert(0, self)

    def catch_up(self) -> None:
        """Make the calls for modules that had been imported before."""
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
        # Those behind it: the one in front, which may watch the same module, is asking.
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
            # On the instance, so that `torch.__loader__` stays what it would have been.
            loader.exec_module = exec_module  # type: ignore[method-assign]
        except AttributeError:
            sys.stderr.write(f"ghostgpu: cannot watch the import of {spec.name}\n")
