"""A recording as lines of text, for the example `replay` of `crates/allocator`.

python ground_truth/allocator/as_text.py NAME.json [SNAPSHOT.pickle.gz] > FILE

release VERSION, settings TEXT, total BYTES, limit BYTES
t ACTION ADDRESS BYTES STREAM                                   an entry of the history
s ADDRESS TOTAL STREAM KIND A,B EXPANDABLE SIZE:ASKED:STATE,...   a segment at the end
+ KEY VALUE VALUE ...       a statistic at each `snapshot` entry, and at the end
"""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List


def lines(facts: Dict[str, Any], snapshot: Dict[str, Any]) -> Iterator[str]:
    environment = facts["environment"]
    total = environment["total_bytes"]
    yield f"release {environment['torch']}"
    yield f"settings {facts['settings']}"
    yield f"total {total}"
    if facts["cap_gib"] is not None:
        yield f"limit {int(facts['cap_gib'] * 2**30 / total * total)}"
    for entry in snapshot["device_traces"][0]:
        address = entry.get("addr", entry.get("device_free", 0))
        yield f"t {entry['action']} {address} {entry['size']} {entry['stream']}"
    for segment in snapshot["segments"]:
        blocks = ",".join(
            f"{block['size']}:{block['requested_size']}:{block['state']}"
            for block in segment["blocks"]
        )
        pool = segment["segment_pool_id"]
        yield (
            f"s {segment['address']} {segment['total_size']} {segment['stream']} "
            f"{segment['segment_type']} {pool[0]},{pool[1]} "
            f"{int(segment['is_expandable'])} {blocks}"
        )
    for key, values in facts["statistics"].items():
        if all(isinstance(value, int) for value in values):
            yield " ".join(["+", key, *(str(value) for value in values)])


def read(path: Path) -> List[str]:
    facts = json.loads(path.read_text())
    with gzip.open(path.with_suffix(".pickle.gz")) as packed:
        snapshot = pickle.load(packed)
    return list(lines(facts, snapshot))


if __name__ == "__main__":
    print("\n".join(read(Path(sys.argv[1]))))
