"""Python's own start-up hook: loads tricks into every Python process of a launched training.

`ghostgpu launch` puts this folder first in `PYTHONPATH`, so that `site` imports this file before
the script runs. It waits for the import of torch, then gives way to whatever `sitecustomize` the
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

if os.environ.get("GHOSTGPU_TRICKS"):
    try:
        from _ghostgpu.tricks import launching  # type: ignore[import-not-found]

        launching.install()
    except Exception as error:
        # Without its tricks, this would not be the requested training. `site` catches every
        # exception except this one.
        sys.stderr.write(f"ghostgpu: the tricks could not be started: {error!r}\n")
        sys.stderr.flush()
        os._exit(2)
give_way(_own_folder)
