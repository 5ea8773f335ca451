"""Records the snapshots of this folder: small jobs that touch every part of the format.

    ghostgpu run --gpu h200 --count 2 --steps 0 --keep-checkpoints -- python record.py OUT

It works as well on a machine with two real cards. Names of folders are shortened in what is
written; everything else is as the installed torch made it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import pickle
import pickletools
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent


def record(**options: Any) -> None:
    torch.cuda.memory._record_memory_history(None)
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(**options)


def train(device: str) -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)]).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(32, 256, device=device)).relu().sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def out_of_memory() -> None:
    with contextlib.suppress(torch.cuda.OutOfMemoryError):
        torch.empty(1 << 45, device="cuda")


def streams_and_pools() -> None:
    side = torch.cuda.Stream()
    kept = torch.ones(1 << 20, device="cuda")
    with torch.cuda.stream(side):
        other = torch.ones(1 << 19, device="cuda")
        kept.record_stream(side)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.ones(1 << 18, device="cuda")
    del kept, other, inside


def shorten(name: str) -> str:
    for folder, short in (
        (str(Path(torch.__file__).parents[1]), "/venv/lib/python3/site-packages"),
        (str(Path(sys.base_prefix)), "/usr"),
        (str(HERE), "/home/me/project"),
    ):
        name = name.replace(folder, short)
    if "/python/ghostgpu" in name:
        return "/ghostgpu" + name[name.index("/python/ghostgpu") :]
    is_elsewhere = name.startswith("/") and not name.startswith(("/venv", "/usr", "/home/me"))
    return "/elsewhere/" + name.rsplit("/", 1)[-1] if is_elsewhere else name


def shorten_frames(snapshot: dict[str, Any]) -> None:
    """In place, so that what was shared stays shared."""
    holders: list[Any] = list(snapshot.get("host_segments", ())) + snapshot["segments"]
    for segment in list(holders):
        holders.extend(segment["blocks"])
    for trace in (*snapshot["device_traces"], snapshot.get("host_traces", ())):
        holders.extend(trace)
    done: set[int] = set()
    for holder in holders:
        for frame in holder.get("frames", ()):
            if id(frame) not in done:
                done.add(id(frame))
                frame["filename"] = shorten(frame["filename"])


def write(out: Path, name: str, snapshot: dict[str, Any], protocol: int) -> None:
    shorten_frames(snapshot)
    content = pickle.dumps(snapshot, protocol)
    version = ".".join(torch.__version__.split(".")[:2])
    path = out / f"{name}-torch{version}-protocol{protocol}.pickle.gz"
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def from_cpp() -> bytes | None:
    """What the writer of C++ programs makes: `torch::cuda::_memory_snapshot_pickled()`."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cuda.so"))
    function = getattr(library, "_ZN5torch4cuda24_memory_snapshot_pickledB5cxx11Ev", None)
    if function is None:
        return None

    class StdString(ctypes.Structure):
        _fields_ = (
            ("data", ctypes.c_void_p),
            ("size", ctypes.c_size_t),
            ("rest", ctypes.c_byte * 16),
        )

    function.restype = None
    result = StdString()
    function(ctypes.byref(result))
    return ctypes.string_at(result.data, result.size)


def hide_folders(content: bytes) -> bytes:
    """Gives folders other names of the same length: lengths are in the file."""
    changed = bytearray(content)
    for instruction, argument, at in pickletools.genops(content):
        if instruction.name != "BINUNICODE" or at is None or not str(argument).startswith("/"):
            continue
        folder, _, name = str(argument).rpartition("/")
        own = folder == str(HERE)
        short = (
            "/home/me/"
            if own
            else "/venv/site-packages/"
            if "/site-packages" in folder
            else "/usr/"
        )
        replaced = f"{(short + '_' * len(folder))[: len(folder)]}/{name}".encode()
        changed[at + 5 : at + 5 + len(replaced)] = replaced
    return bytes(changed)


def main() -> None:
    out = Path(sys.argv[1])
    torch.zeros(1, device="cuda")
    record(stacks="python", max_entries=100_000)
    train("cuda:0")
    train("cuda:1")
    out_of_memory()
    streams_and_pools()
    write(out, "two-cards", torch.cuda.memory._snapshot(), 4)
    record(stacks="all", context="alloc", max_entries=50)
    train("cuda:0")
    write(out, "ring-of-50", torch.cuda.memory._snapshot(), 5)
    record(enabled="state", max_entries=10)
    kept = torch.ones(1000, device="cuda")
    write(out, "state-alone", torch.cuda.memory._snapshot(), 2)
    if "record_pinned_host_memory" in str(torch.cuda.memory._record_memory_history.__doc__):
        record(stacks="python", record_pinned_host_memory=True)
        pinned = torch.empty(1 << 20, pin_memory=True)
        torch.cuda.memory._set_memory_metadata("weights")
        weight = torch.ones(1 << 20, device="cuda")
        annotate: Any = vars(torch.cuda.memory)["_annotate_tensor"]
        annotate(weight, "saved for backward")
        write(out, "host-and-metadata", torch.cuda.memory._snapshot(), 4)
        del pinned, weight
    record(stacks="python", max_entries=200)
    train("cuda:0")
    content = from_cpp()
    if content is not None:
        version = ".".join(torch.__version__.split(".")[:2])
        content = hide_folders(content)
        (out / f"cpp-torch{version}-protocol2.pickle.gz").write_bytes(
            gzip.compress(content, 9, mtime=0)
        )
    del kept


if __name__ == "__main__":
    main()
