"""What scripts need with a change that `ghostgpu explain --script` rehearses, edited by hand.

The tests of the agent compare the change it makes with the edited script, on a virtual card. This
runs the edited scripts, on whatever card there is:

    python ground_truth/harness/changes.py --out DIR
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from short_scripts import measure_all

SCRIPTS = Path(__file__).resolve().parents[2] / "python" / "tests" / "change_cases.py"


def edited_scripts() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("change_cases", SCRIPTS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    cases: dict[str, Any] = module.CASES
    return {name: case.by_hand for name, case in cases.items()}


def main() -> None:
    scripts = {(name,): code for name, code in edited_scripts().items()}
    measure_all("changes", __doc__, scripts)


if __name__ == "__main__":
    main()
