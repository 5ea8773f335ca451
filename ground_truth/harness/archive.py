"""Results as many small files, and as the one file that travels."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """All results of a folder, by case."""
    paths = sorted((folder / "cases").glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in paths}


def read_events(folder: Path, name: str) -> dict[str, Any] | None:
    path = folder / "events" / f"{name}.json.gz"
    if not path.exists():
        return None
    with gzip.open(path, "rt") as file:
        return dict(json.load(file))


def pack(folder: Path) -> list[dict[str, Any]]:
    """Writes `results.json.gz` with everything in the folder; returns the results."""
    results = read_results(folder)
    events = {
        path.name.removesuffix(".json.gz"): base64.b64encode(path.read_bytes()).decode()
        for path in sorted((folder / "events").glob("*.json.gz"))
    }
    with gzip.open(folder / "results.json.gz", "wt") as file:
        json.dump({"results": results, "events": events}, file, separators=(",", ":"))
    return list(results.values())


def unpack(packed: Path, folder: Path, largest_event_file: int) -> list[str]:
    """Takes a packed file apart; returns the cases whose history was too long to keep."""
    with gzip.open(packed, "rt") as file:
        content = json.load(file)
    (folder / "cases").mkdir(parents=True, exist_ok=True)
    (folder / "events").mkdir(parents=True, exist_ok=True)
    for name, result in content["results"].items():
        (folder / "cases" / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    left_out = []
    for name, text in content["events"].items():
        data = base64.b64decode(text)
        if len(data) > largest_event_file:
            left_out.append(name)
            continue
        (folder / "events" / f"{name}.json.gz").write_bytes(data)
    return left_out
