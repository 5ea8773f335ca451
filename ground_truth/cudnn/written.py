"""Answers of the card, as the compressed documents that are kept here."""

from __future__ import annotations

import gzip
import json
import os
import sys
from typing import Any


def write_answer(answer: Any, folder: str, name: str) -> None:
    """Writes a document, and says how large it is."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with gzip.open(path, "wt", compresslevel=9) as stream:
        json.dump(answer, stream, separators=(",", ":"))
    print(f"{path}: {os.path.getsize(path)} bytes", file=sys.stderr)
