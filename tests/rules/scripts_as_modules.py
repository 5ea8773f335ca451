"""Programs of `scripts/`, which have no ending, as modules."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def load(name: str) -> Any:
    module_name = name.replace("-", "_")
    loader = SourceFileLoader(module_name, str(SCRIPTS / name))
    spec = importlib.util.spec_from_loader(module_name, loader)
    assert spec is not None
    # No compiled copy beside the script.
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module
