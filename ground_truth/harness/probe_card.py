"""Queries a real card for what the virtual one must answer, and writes one compressed JSON.

    python ground_truth/harness/probe_card.py --out probe_card.json.gz [--only growth]

Every question runs in a child of its own, forked before CUDA is first used: the costs measured
are those of a fresh process, while torch is imported only once. Questions that need other
allocator settings go to another copy of this program, because torch reads them when imported.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch  # noqa: E402  (imported once, before forking; CUDA is not touched here)

from probe import addresses, growth, mappings, oom_texts, pinned, pools, properties  # noqa: E402

CHILD_LIMIT_S = 25.0
SETTINGS_VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"


def questions() -> dict[str, Callable[[], Any]]:
    """Every question in the order asked: the ones nothing can replace come first."""
    table: dict[str, Callable[[], Any]] = {
        "properties": properties.probe,
        "addresses": addresses.probe,
        "mappings": mappings.probe,
        "pool/as_delivered": pools.probe_as_delivered,
        "pool/as_pytorch_uses_it": pools.probe_as_pytorch_uses_it,
        "growth/in_order": lambda: growth.probe_in_order(list(growth.STAGES)),
        "growth/in_reverse_order": lambda: growth.probe_in_order(list(growth.STAGES)[::-1]),
        "pinned": pinned.probe,
    }
    settings = os.environ.get(SETTINGS_VARIABLE, "")
    if settings:
        table.clear()
    for name in oom_texts.SITUATIONS:
        if oom_texts.required_settings(name) == settings:
            table[f"oom/{name}"] = lambda n=name: oom_texts.probe(n)
    for name in growth.STAGES if not settings else ():
        table[f"growth/alone/{name}"] = lambda n=name: growth.probe_alone(n)
    return table


def ask_in_child(question: Callable[[], Any]) -> dict[str, Any]:
    """Runs `question` in a forked child and returns what it answered, or how it ended."""
    with tempfile.NamedTemporaryFile(suffix=".json", delete=False) as file:
        answer_path = file.name
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        # os._exit skips the parent's exit handlers, which belong to the parent alone.
        try:
            answer: dict[str, Any] = {"answer": question()}
        except BaseException:  # noqa: BLE001
            answer = {"failed": traceback.format_exc()}
        try:
            Path(answer_path).write_text(json.dumps(answer))
        finally:
            os._exit(0)
    status = _wait(child)
    try:
        answer = json.loads(Path(answer_path).read_text())
    except ValueError:
        answer = {"failed": f"the child ended with status {status} before it could answer"}
    finally:
        os.unlink(answer_path)
    answer["seconds"] = round(time.monotonic() - started, 2)
    return answer


def _wait(child: int) -> int:
    """The child's status; one that takes too long is ended."""
    deadline = time.monotonic() + CHILD_LIMIT_S
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="only questions whose name contains this")
    parser.add_argument(
        "--deadline", type=float, default=120.0, help="stop asking after this many seconds"
    )
    options = parser.parse_args()
    started = time.monotonic()
    answers: dict[str, Any] = {
        "command": ["python", "ground_truth/harness/probe_card.py", *sys.argv[1:]],
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "module_loading": os.environ.get("CUDA_MODULE_LOADING"),
        "questions": {},
    }
    for name, question in questions().items():
        if options.only not in name:
            continue
        if time.monotonic() - started > options.deadline:
            answers["questions"][name] = {"failed": "not asked: out of time"}
            continue
        answer = ask_in_child(question)
        answers["questions"][name] = answer
        verdict = "failed" if "failed" in answer else "answered"
        print(f"{answer['seconds']:6.2f} s  {verdict:8}  {name}", flush=True)
        # Written after every answer, so that a run cut short still leaves what it learned.
        _write(options.out, answers)
    for settings in _other_settings():
        answers["questions"].update(_ask_elsewhere(settings, options))
        _write(options.out, answers)
    return 0


def _other_settings() -> list[str]:
    if os.environ.get(SETTINGS_VARIABLE):
        return []
    return sorted({oom_texts.required_settings(name) for name in oom_texts.SITUATIONS} - {""})


def _ask_elsewhere(settings: str, options: argparse.Namespace) -> dict[str, Any]:
    """The answers of a copy of this program that runs under other allocator settings."""
    part = options.out.with_name("settings-part.json.gz")
    command = [sys.executable, __file__, "--out", str(part), "--only", options.only]
    environment = {**os.environ, SETTINGS_VARIABLE: settings}
    try:
        subprocess.run(command, env=environment, timeout=60, check=False)
        with gzip.open(part, "rt") as file:
            return dict(json.load(file)["questions"])
    except (OSError, subprocess.TimeoutExpired) as failure:
        return {f"oom/under {settings}": {"failed": str(failure)}}
    finally:
        part.unlink(missing_ok=True)


def _write(path: Path, answers: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    with gzip.open(temporary, "wt") as file:
        json.dump(answers, file, separators=(",", ":"))
    os.replace(temporary, path)


if __name__ == "__main__":
    sys.exit(main())
