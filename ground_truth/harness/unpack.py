"""Takes a packed `results.json.gz` apart into the files that are kept in the project.

python ground_truth/harness/unpack.py results.json.gz ground_truth/h200
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from archive import unpack  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packed", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--largest-event-file", type=int, default=200_000, metavar="BYTES")
    options = parser.parse_args()
    left_out = unpack(options.packed, options.folder, options.largest_event_file)
    for name in left_out:
        print(f"the history of {name} is too long to keep")
    return 0


if __name__ == "__main__":
    sys.exit(main())
