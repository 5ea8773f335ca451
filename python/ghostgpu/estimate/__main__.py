"""What the command line starts: loads the package from its folder, under a private name.

The user's environment may have another ghostgpu, or none, and our modules must not hide any of its
own.
"""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location


def _main() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    name = "_ghostgpu_estimate"
    spec = spec_from_file_location(
        name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise SystemExit(f"ghostgpu: {folder} cannot be loaded")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)

    import importlib

    importlib.import_module(f"{name}.script").main()


if __name__ == "__main__":
    _main()
