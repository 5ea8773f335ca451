"""Describes snapshots as Python's own unpickler reads them: FILE.txt for each FILE.

python cpython_snapshots.py FILE...
"""

from __future__ import annotations

import gzip
import pickle
import sys
from pathlib import Path
from typing import Any


def bits(value: int) -> int:
    return value & ((1 << 64) - 1)


def stack(holder: dict[str, Any], key: str = "frames") -> str:
    def one(frame: Any) -> str:
        if isinstance(frame, str):
            return f":0:{frame}"
        return f"{frame.get('filename', '')}:{frame.get('line', 0)}:{frame.get('name', '')}"

    frames = holder.get(key) or ()
    return ";".join(one(frame) for frame in frames if isinstance(frame, (str, dict)))


def pool(value: Any) -> str:
    return "-" if value is None else f"{bits(value[0])},{bits(value[1])}"


def describe_segment(segment: dict[str, Any]) -> list[str]:
    numbers = " ".join(
        str(bits(segment[key]))
        for key in ("address", "total_size", "allocated_size", "active_size", "stream")
    )
    lines = [
        f"segment {segment['device']} {numbers} {segment.get('requested_size', '-')} "
        f"{segment['segment_type']} {pool(segment.get('segment_pool_id'))} "
        f"{str(segment.get('is_expandable', False)).lower()} {stack(segment)}"
    ]
    address = segment["address"]
    for block in segment["blocks"]:
        address = block.get("address", address)
        history = block.get("history", [])
        first = history[0] if history and block["state"] != "inactive" else {}
        requested = block.get("requested_size", first.get("real_size", "-"))
        frames = stack(block) or stack(first)
        lines.append(f"block {bits(address)} {block['size']} {requested} {block['state']} {frames}")
        address += block["size"]
    return lines


def describe_entry(entry: dict[str, Any]) -> str:
    address = 0 if entry["action"] == "oom" else bits(entry["addr"])
    texts = [
        entry.get(key, "") for key in ("compile_context", "user_metadata", "internal_metadata")
    ]
    return (
        f"event {entry['action']} {address} {entry['size']} {entry.get('device_free', '-')} "
        f"{bits(entry['stream'])} {entry.get('time_us', 0)} {pool(entry.get('pool_id'))} "
        f"{'|'.join(texts)} {stack(entry)} {stack(entry, 'forward_frames')}"
    )


def entries(trace: Any) -> list[dict[str, Any]]:
    """What can be read as an entry of a trace that may be none."""
    return [entry for entry in trace if isinstance(entry, dict)] if isinstance(trace, list) else []


def describe(snapshot: Any) -> str:
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot}
    lines: list[str] = []
    for segment in snapshot["segments"]:
        lines += describe_segment(segment)
    for device, trace in enumerate(snapshot.get("device_traces", ())):
        lines.append(f"device {device}")
        lines += map(describe_entry, entries(trace))
    for segment in snapshot.get("host_segments", ()):
        lines += describe_segment(segment)
    lines += map(describe_entry, entries(snapshot.get("host_traces")))
    for annotation in snapshot.get("external_annotations", ()):
        lines.append(
            "annotation "
            + " ".join(str(annotation[key]) for key in ("name", "stage", "device", "time_us"))
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    for name in sys.argv[1:]:
        content = Path(name).read_bytes()
        if name.endswith(".gz"):
            content = gzip.decompress(content)
        snapshot = pickle.loads(content)
        if name.endswith(".written"):
            # Not only read by Python: written as Python writes it, to the byte.
            assert pickle.dumps(snapshot, 4) == content, name
        Path(name + ".txt").write_text(describe(snapshot))


if __name__ == "__main__":
    main()
