"""Python's own start-up hook: brings the agent into every Python process of a rehearsal.

The command line puts this folder first in `PYTHONPATH`, so that `site` imports this file before
the script runs. It installs one light import hook, then gives way to whatever `sitecustomize` the
user or the distribution has. It stays in the environment, so that child processes get it too, but
leaves `sys.path`, so that the script sees the path it would have without us.
"""

import os
import sys


def _install_import_hook(package_folder: str) -> None:
    # The agent is loaded under a private name and by its place: the script's environment may hold
    # another ghostgpu, or none. The package around it is never executed: it is only a place.
    package = type(sys)("_ghostgpu")
    package.__path__ = [package_folder]
    sys.modules[package.__name__] = package
    from _ghostgpu import agent  # type: ignore[import-not-found]

    agent.install_import_hook()


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


if os.environ.get("GHOSTGPU_SESSION"):
    try:
        _inject = os.path.dirname(os.path.abspath(__file__))
        _install_import_hook(os.path.dirname(os.path.dirname(_inject)))
    except Exception as error:  # a broken agent must not break the script's Python
        sys.stderr.write(f"ghostgpu: the agent could not be started: {error!r}\n")
_give_way(os.path.dirname(os.path.abspath(__file__)))
