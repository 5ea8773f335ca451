"""Python's own start-up hook: brings tricks into every Python process of a launched training.

`ghostgpu launch` puts this folder first in `PYTHONPATH`, so that `site` imports this file before
the script runs. It waits for the import of torch, then gives way to whatever `sitecustomize` the
user or the distribution has. It stays in the environment, so that child processes get it too, but
leaves `sys.path`, so that the script sees the path it would have without us.
"""

import os
import sys


def _install(package_folder: str) -> None:
    # Under a private name and by its place: the script's environment may hold another ghostgpu, or
    # none. The package around it is never executed: it is only a place.
    package = type(sys)("_ghostgpu")
    package.__path__ = [package_folder]
    sys.modules[package.__name__] = package
    from _ghostgpu.tricks import launching  # type: ignore[import-not-found]

    launching.install()


def _give_way(own_folder: str) -> None:
    """Run the next `sitecustomize`: the one Python would have found without this folder."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own_folder]
    own_module = sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # `import` insists on finding what it started to load.
        if own_module is not None:
            sys.modules.setdefault(__name__, own_module)


_own_folder = os.path.dirname(os.path.abspath(__file__))
if os.environ.get("GHOSTGPU_TRICKS"):
    try:
        _install(os.path.dirname(os.path.dirname(_own_folder)))
    except Exception as error:
        # Without its tricks a training would not be the one that was asked for. `site` survives
        # every exception but this one.
        sys.stderr.write(f"ghostgpu: the tricks could not be started: {error!r}\n")
        sys.stderr.flush()
        os._exit(2)
_give_way(_own_folder)
