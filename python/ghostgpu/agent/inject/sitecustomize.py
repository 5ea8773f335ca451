"""Python's own start-up hook: loads the agent into every Python process of a rehearsal.

The command line puts this folder first in `PYTHONPATH`, so that `site` imports this file before
the script runs. It installs one light import hook, then gives way to whatever `sitecustomize` the
user or the distribution has. It stays in the environment, so that child processes get it too, but
leaves `sys.path`, so that the script sees the path it would have without us.
"""

import os
import sys

_own_folder = os.path.dirname(os.path.abspath(__file__))
# Under a private name and from this folder: the script's environment may have another ghostgpu,
# or none. The package object only provides a search path; `ghostgpu/__init__.py` is never executed.
_package = type(sys)("_ghostgpu")
_package.__path__ = [os.path.dirname(os.path.dirname(_own_folder))]
sys.modules[_package.__name__] = _package

from _ghostgpu.tricks.startup import give_way  # type: ignore[import-not-found]  # noqa: E402

if os.environ.get("GHOSTGPU_SESSION"):
    try:
        from _ghostgpu import agent  # type: ignore[import-not-found]

        agent.install_import_hook()
    except Exception as error:  # a broken agent must not break the script's Python
        sys.stderr.write(f"ghostgpu: the agent could not be started: {error!r}\n")
give_way(_own_folder)
