"""Runs a script under a limit for PyTorch's memory, as `smallest_limits.py` does on a real card.

python ground_truth/verdicts/limited.py BYTES SCRIPT [ARGUMENTS]...
"""

from __future__ import annotations

import runpy
import sys

import torch

limit_bytes, script = int(sys.argv[1]), sys.argv[2]
total = torch.cuda.get_device_properties(0).total_memory
# Half a byte more, since PyTorch rounds the product down.
torch.cuda.set_per_process_memory_fraction((limit_bytes + 0.5) / total)
del sys.argv[:2]
runpy.run_path(script, run_name="__main__")
