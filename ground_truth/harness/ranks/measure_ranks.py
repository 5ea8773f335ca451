"""Measures trainings of several ranks on one real card, or on virtual cards, and compares the two.

    python measure_ranks.py real OUT.jsonl [CASE ...]
    python measure_ranks.py virtual OUT.jsonl [CASE ...] --ghostgpu PROGRAM
    python measure_ranks.py compare REAL.jsonl VIRTUAL.jsonl

With `--history FOLDER` every rank also leaves its memory history there, with Python's stacks.

NCCL refuses two ranks on one card of one host. Here each rank says that it is a host of its own
(`NCCL_HOSTID`), so that several share the one card and talk through sockets; what each rank's
allocator does is what it does on a card of its own. Each case is one line of JSON, written when it
has ended: a run that was stopped goes on with the cases that are missing. A case takes about 20 s.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

TRAIN = Path(__file__).with_name("train.py")

CASES = {
    **dict.fromkeys(("ddp", "ddp-views", "ddp-buckets", "ddp-accumulation", "zero"), 2),
    **dict.fromkeys(("fsdp2", "fsdp2-bf16", "fsdp2-keep", "fsdp2-meta", "fsdp1", "fsdp1-bf16"), 2),
    **dict.fromkeys(("tensor", "experts", "pipeline", "sync-batch-norm"), 2),
    **dict.fromkeys(("ddp-static", "ddp-unused"), 2),
    "hsdp": 4,
}
"""Cases and their numbers of ranks, the most telling first."""

TIMEOUT_S = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("real", "virtual", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("rest", nargs="*", help="cases, or the file to compare with")
    parser.add_argument("--ghostgpu", default="ghostgpu")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--history", type=Path, help="a folder for histories of every rank")
    arguments = parser.parse_args()
    if arguments.action == "compare":
        compare(read(arguments.file), read(Path(arguments.rest[0])))
        return
    if arguments.history is not None:
        arguments.history.mkdir(parents=True, exist_ok=True)
        os.environ["RANKS_HISTORY"] = str(arguments.history.absolute())
    done = read(arguments.file)
    for case in arguments.rest or CASES:
        if case in done:
            continue
        ranks = CASES[case]
        if arguments.action == "real":
            figures, problem = measure_real(arguments.python, case, ranks)
        else:
            figures, problem = measure_virtual(arguments, case, ranks)
        line = {"case": case, "ranks": ranks, "figures": figures, "problem": problem}
        with arguments.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def read(path: Path) -> dict[str, Any]:
    """What a file has, by case; one that failed is measured again."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {line["case"]: line for line in lines if not line["problem"]}


def measure_real(python: str, case: str, ranks: int) -> tuple[list[Any], str | None]:
    """Ranks as processes that share one real card."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": "0",
        "RANKS_SHARE_CARD": "1",
        "NCCL_SOCKET_IFNAME": "lo",
        "NCCL_IB_DISABLE": "1",
    }
    processes = [
        subprocess.Popen(
            [python, str(TRAIN), case],
            env={**os.environ, **shared, "RANK": str(rank), "NCCL_HOSTID": f"host-{rank}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    output, problem = "", None
    for process in processes:
        try:
            text, errors = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            text, errors = process.communicate()
            problem = "it did not end in time"
        output += text
        if process.returncode and problem is None:
            problem = errors[-1000:]
    return figures_in(output), problem


def measure_virtual(arguments: Any, case: str, ranks: int) -> tuple[list[Any], str | None]:
    """Ranks as `torchrun` starts them, on virtual cards."""
    words = [arguments.ghostgpu, "run", "--gpu", arguments.gpu, "--count", str(ranks), "--full"]
    words += ["--no-retry", "--no-breakdown", "--python", arguments.python]
    # A history that PyTorch dumps is a file like a checkpoint.
    words += ["--keep-checkpoints"] if arguments.history is not None else []
    words += ["--"]
    words += ["torchrun", "--standalone", "--nproc-per-node", str(ranks), str(TRAIN), case]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return figures_in(done.stdout), done.stderr[-1000:] if done.returncode else None


def figures_in(output: str) -> list[Any]:
    """What the ranks printed, in their order; two may have come to stand on one line."""
    decoder = json.JSONDecoder()
    found = [decoder.raw_decode(part)[0] for part in output.split("figures ")[1:]]
    return sorted(found, key=lambda rank: int(rank["rank"]))


def compare(real: dict[str, Any], virtual: dict[str, Any]) -> None:
    """One line for each case: equal, or by how much each rank differs."""
    for case in sorted(real.keys() & virtual.keys()):
        pairs = zip(real[case]["figures"], virtual[case]["figures"])
        differences = [
            {name: there[name] - here[name] for name in ("allocated", "reserved", "allocations")}
            for here, there in pairs
        ]
        is_equal = all(not each["allocated"] and not each["reserved"] for each in differences)
        print(json.dumps({"case": case, "equal": is_equal, "virtual_minus_real": differences}))


if __name__ == "__main__":
    main()
