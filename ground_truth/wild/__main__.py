"""`python ground_truth/wild prepare|measure|compare`: see ground_truth/README.md."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from wild import compare, measure, prepare

COMMANDS = {"prepare": prepare.main, "measure": measure.main, "compare": compare.main}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python ground_truth/wild {{{','.join(COMMANDS)}}} …")
    sys.exit(COMMANDS[sys.argv[1]](sys.argv[2:]))
