"""Writes the files that fuzzing starts from: snapshots in all forms, recordings, and messages.

cargo build --release -p ghostgpu-report --example made_up && python fuzz/make_corpus.py
"""

from __future__ import annotations

import pickle
import pickletools
import re
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BASE = 0x7F00_0000_0000


def frames(first_line: int) -> list[dict[str, Any]]:
    names = [("torch::unwind::unwind()", "??", 0), ("forward", "/x/site-packages/torch/nn/a.py", 7)]
    return [
        *({"name": name, "filename": file, "line": line} for name, file, line in names),
        {"name": "main", "filename": "/home/me/train.py", "line": first_line},
    ]


def entry(action: str, addr: int, size: int, time_us: int, **more: Any) -> dict[str, Any]:
    key = "device_free" if action == "oom" else "addr"
    return {"action": action, key: addr, "size": size, "stream": 0, "time_us": time_us, **more}


def segment(device: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "device": device,
        "address": BASE,
        "total_size": 2097152,
        "allocated_size": 1024,
        "active_size": 1536,
        "requested_size": 1100,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [
            block(BASE, 1024, 1000, "active_allocated", frames=frames(3)),
            block(BASE + 1024, 512, 100, "active_pending_free", frames=[]),
            block(BASE + 1536, 2095616, 0, "inactive", frames=[]),
        ],
        **more,
    }


def block(address: int, size: int, requested: int, state: str, **more: Any) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": requested, "state": state, **more}


def settings(**more: Any) -> dict[str, Any]:
    return {
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128",
        "max_split_size": 134217728,
        "garbage_collection_threshold": 0.5,
        "expandable_segments": False,
        "roundup_power2_divisions": {str(1 << power): 0 for power in range(16)},
        **more,
    }


def modern() -> dict[str, Any]:
    """As torch 2.15 writes it, with two devices, host memory and every kind of event."""
    stack = frames(12)
    again = list(stack)
    more = {"compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0), "frames": stack}
    trace = [
        entry("segment_alloc", BASE, 2097152, 10, **more),
        entry("alloc", BASE, 1000, 11, **{**more, "frames": again}),
        entry("alloc", BASE + 1024, 100, 12, **{**more, "user_metadata": "weights"}),
        entry("annotate", BASE, 1000, 13, **{**more, "user_metadata": "saved", "pool_id": (0, 1)}),
        entry("free_requested", BASE + 1024, 100, 14, **more),
        entry("free_completed", BASE + 1536, 64, 15, **{**more, "forward_frames": ["a", "b"]}),
        entry("oom", 1 << 33, 1 << 34, 16, **more),
        entry("snapshot", 0, 1000, 17),
        entry("segment_map", BASE + (1 << 21), 2097152, 18, **more),
        entry("segment_unmap", BASE + (1 << 21), 2097152, 19, internal_metadata="x"),
    ]
    return {
        "segments": [segment(), segment(1, segment_pool_id=(0, 1), is_expandable=True)],
        "device_traces": [trace, [entry("alloc", BASE, 1000, 11, frames=stack)], []],
        "allocator_settings": settings(max_round_threshold=-1, trace_alloc_overflowed=True),
        "external_annotations": [
            {"stage": "START", "name": "step", "device": 0, "time_us": 10},
            {"stage": "END", "name": "step", "device": 0, "time_us": 18},
        ],
        "host_segments": [segment(-1)],
        "host_traces": [entry("segment_alloc", BASE, 4096, 3, frames=frames(1))],
    }


def one_device() -> dict[str, Any]:
    """A list of one item is written without a bracket."""
    stack = frames(5)
    return {
        "segments": [segment()],
        "device_traces": [[entry("alloc", BASE, 1000, 1, frames=stack)]],
    }


def long_trace() -> dict[str, Any]:
    """More entries than Python appends at once."""
    stacks = [frames(line) for line in range(5)]
    trace = [
        entry(
            "alloc" if number % 2 == 0 else "free_completed",
            BASE,
            512,
            number,
            frames=stacks[number % 5],
        )
        for number in range(1002)
    ]
    return {"segments": [], "device_traces": [trace], "allocator_settings": settings()}


def oldest() -> list[dict[str, Any]]:
    """torch 1.13: segments alone, blocks with a history and without an address."""
    history = [
        {"addr": BASE, "real_size": 1000, "frames": frames(9)},
        {"addr": BASE, "real_size": 5},
    ]
    return [
        {
            "device": 0,
            "address": BASE,
            "total_size": 2097152,
            "allocated_size": 1024,
            "active_size": 1024,
            "stream": 0,
            "segment_type": "large",
            "blocks": [
                {"size": 1024, "state": "active_allocated", "history": history},
                {"size": 2096128, "state": "inactive"},
            ],
        }
    ]


def refers_back() -> dict[str, Any]:
    """An entry in two lists, and a list of frames outside the trace."""
    stack = frames(5)
    first = entry("alloc", BASE, 1000, 1, frames=stack)
    return {
        "segments": [segment(frames=stack)],
        "device_traces": [[first, entry("alloc", BASE + 1024, 5, 2, frames=stack)], [first]],
        "future_key": [first, stack],
    }


class CppPickler:
    """Writes what torch/csrc/jit/serialization/pickler.cpp writes.

    Protocol 2, objects put into the memo after their content, a whole list appended at once,
    addresses as signed 64 bits.
    """

    def __init__(self) -> None:
        self.out = bytearray(b"\x80\x02")
        self.strings: dict[str, int] = {}
        self.shared: dict[int, int] = {}
        self.next_slot = 0

    def put(self) -> int:
        slot = self.next_slot
        self.out += b"q" + bytes([slot]) if slot < 256 else b"r" + struct.pack("<I", slot)
        self.next_slot += 1
        return slot

    def get(self, slot: int) -> None:
        self.out += b"h" + bytes([slot]) if slot < 256 else b"j" + struct.pack("<I", slot)

    def push(self, value: Any) -> None:
        if isinstance(value, bool):
            self.out += b"\x88" if value else b"\x89"
        elif isinstance(value, int):
            self.push_int(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            if value in self.strings:
                self.get(self.strings[value])
            else:
                text = value.encode()
                self.out += b"X" + struct.pack("<I", len(text)) + text
                self.strings[value] = self.put()
        elif id(value) in self.shared:
            self.get(self.shared[id(value)])
        else:
            self.push_container(value)
            self.shared[id(value)] = self.put()

    def push_int(self, value: int) -> None:
        if 0 <= value < 256:
            self.out += b"K" + bytes([value])
        elif 0 <= value < 65536:
            self.out += b"M" + struct.pack("<H", value)
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += b"\x8a\x08" + struct.pack("<Q", value & ((1 << 64) - 1))

    def push_container(self, value: Any) -> None:
        if isinstance(value, dict):
            self.out += b"}("
            for key, item in value.items():
                self.push(key)
                self.push(item)
            self.out += b"u"
        elif isinstance(value, list):
            self.out += b"]("
            for item in value:
                self.push(item)
            self.out += b"e"
        else:
            self.out += b"("
            for item in value:
                self.push(item)
            self.out += b"t"


def as_cpp_writes(value: Any) -> bytes:
    pickler = CppPickler()
    pickler.push(value)
    return bytes(pickler.out) + b"."


def main() -> None:
    forms = {
        "modern": modern(),
        "one_device": one_device(),
        "long_trace": long_trace(),
        "oldest": oldest(),
        "refers_back": refers_back(),
    }
    for name, value in forms.items():
        for protocol in (0, 2, 3, 4, 5):
            write("snapshot", f"{name}-{protocol}", pickle.dumps(value, protocol))
        write("snapshot", f"{name}-cpp", as_cpp_writes(value))
        write("snapshot", f"{name}-optimized", pickletools.optimize(pickle.dumps(value, 4)))
    for name, value in plain_values().items():
        for protocol in range(6):
            write("pickle", f"{name}-{protocol}", pickle.dumps(value, protocol))
    write_recordings()
    logs()


def write_recordings() -> None:
    """Whole files, and what is packed in them: the names, a byte of 255, the first card."""
    maker = HERE.parent / "target/release/examples/made_up"
    kinds = [("training", 1, 1), ("training", 2, 3)]
    kinds += [("random", seed, 10 * seed) for seed in range(1, 7)]
    for kind, first, second in kinds:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "made-up.ghost"
            words = [str(maker), str(path), kind, str(first), str(second)]
            subprocess.run(words, check=True, timeout=60)
            content = path.read_bytes()
        write("recording", f"{kind}-{first}-file", content)
        sections, at = [], 12
        while at < len(content):
            end = at + 9 + int.from_bytes(content[at + 1 : at + 9], "little")
            sections.append(zlib.decompress(content[at + 9 : end]))
            at = end
        write("recording", f"{kind}-{first}-values", sections[1] + b"\xff" + sections[2])


def logs() -> None:
    """The first message of each kind in the corpus of `explain`."""
    corpus = HERE.parent / "crates/explain/tests/corpus.toml"
    pattern = re.compile(r"text = \'\'\'\n(.*?)\'\'\'\nkind = \"(.*?)\"", re.DOTALL)
    for text, kind in reversed(pattern.findall(corpus.read_text(encoding="utf-8"))):
        write("explain", kind, text.encode())


def plain_values() -> dict[str, Any]:
    shared: list[Any] = [1, "two"]
    shared.append(shared)
    return {
        "scalars": [None, True, False, 0, -1, 255, 65536, 1 << 40, -(1 << 70), 1.5, float("inf")],
        "texts": ["", "a", "größe", "\udcff", "x" * 300, "line\nfeed \\u"],
        "containers": {
            "list": [[], [1]],
            "tuple": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
            5: {},
        },
        "shared": [shared, shared, (shared,)],
        "many": {number: str(number) for number in range(1100)},
        "bytes": [b"", b"abc", bytearray(b"xyz"), {1, 2}, frozenset("ab")],
    }


def write(target: str, name: str, content: bytes) -> None:
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
