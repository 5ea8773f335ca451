"""Public scripts as their authors wrote them, under `launch` with tricks: how each ended, its peak.

Collect them, measure a real card with Python alone, rehearse the same, and compare:

    python ground_truth/harness/launch_public_scripts.py prepare --sources CLONES --bundle BUNDLE
    python ground_truth/harness/launch_public_scripts.py launch --bundle BUNDLE --out launched.json
    python ground_truth/harness/launch_public_scripts.py rehearse --bundle BUNDLE --out virtual.json
    python ground_truth/harness/launch_public_scripts.py compare launched.json virtual.json

Scripts, their made-up data and how one is run are those of `ground_truth/wild`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from wild.manifest import Manifest, Script, read_manifest
from wild.one_run import run_script, versions
from wild.prepare import collect_packages, collect_script

PACKAGE = Path(__file__).resolve().parents[2] / "python"

TRICKS: dict[str, tuple[str, ...]] = {
    "examples-word-language-model-lstm": (
        *("", "--amp bf16", "--eval-no-grad", "--survive-oom", "--chunks 2"),
        *("--offload-activations=64KiB",),
    ),
    "examples-word-language-model-transformer": (
        *("", "--checkpoint auto", "--amp bf16", "--eval-no-grad", "--offload-activations=64KiB"),
        *("--checkpoint auto --amp bf16",),
    ),
    "examples-imagenet-resnet50": (
        *("", "--amp bf16", "--checkpoint auto", "--channels-last", "--optimizer for-loop"),
        *("--chunks 4", "--eval-chunks 2", "--inplace", "--empty-cache", "--early-zero-grad"),
    ),
    "nanogpt-train": (
        *("", "--checkpoint auto", "--chunks 4", "--optimizer offload", "--optimizer adafactor"),
        *("--survive-oom", "--eval-chunks 2", "--optimizer for-loop"),
    ),
    "timm-train-vit-tiny-ema": (
        *("", "--checkpoint auto", "--chunks 2", "--optimizer fused", "--amp bf16"),
        *("--optimizer in-backward", "--pure-bf16"),
    ),
    "lightning-transformer": (
        *("", "--checkpoint auto", "--amp bf16", "--accumulate 2", "--optimizer for-loop"),
    ),
    "vit-decorrelation": (
        *("", "--checkpoint auto", "--amp bf16", "--optimizer fused", "--optimizer in-backward"),
    ),
    "transformers-trainer": (
        *("", "--checkpoint auto", "--chunks 2", "--chunk-loss 8", "--accumulate 2"),
        *("--amp bf16", "--optimizer adafactor"),
    ),
}
"""Options of `launch` for each script; none is the script by itself."""


def chosen(manifest: Manifest) -> dict[str, Script]:
    return {script.name: script for script in manifest.scripts if script.name in TRICKS}


def prepare(sources: Path, bundle: Path, wheels: Path | None) -> None:
    manifest = read_manifest()
    scripts = list(chosen(manifest).values())
    for script in scripts:
        collect_script(script, sources, bundle / "repositories")
    collect_packages(replace(manifest, scripts=scripts), wheels, bundle / "packages")
    size = sum(file.stat().st_size for file in bundle.rglob("*") if file.is_file())
    print(f"{len(scripts)} scripts, {size / 2**20:.1f} MiB")


def launched(options: str) -> list[str]:
    # The variable PYTHONPATH is the script's own here.
    start = (
        f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); "
        "from ghostgpu.tricks.__main__ import main; main(sys.argv[1:])"
    )
    return [sys.executable, "-c", start, *options.split()]


def rehearsed(options: str) -> list[str]:
    command = os.environ.get("GHOSTGPU_COMMAND", "ghostgpu")
    fixed = ["--gpu", "h200", "--full", "--no-retry", "--no-breakdown", "--python", sys.executable]
    return [command, "run", *fixed, *options.split()]


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """Of the process with the most memory, and what was said about tricks."""
    kept = {key: result[key] for key in ("outcome", "exit_code", "seconds")}
    for process in result["processes"][:1]:
        kept["optimizer_steps"] = process["optimizer_steps"]
        for card in process["cards"][:1]:
            kept["allocated"] = card["peak_allocated_bytes"]
            kept["reserved"] = card["peak_reserved_bytes"]
    lines = result["output_end"].splitlines()
    kept["said"] = [line.strip() for line in lines if re.match(r"(ghostgpu|error): ", line)]
    if result["outcome"] != "completed":
        kept["output_end"] = result["output_end"][-1500:]
    return kept


def measure(
    out: Path, bundle: Path, is_real: bool, jobs: int, only: str, seconds: float, limit: float
) -> None:
    scripts = chosen(read_manifest())
    cases = [
        (f"{name} {options}".strip(), scripts[name], options)
        for name, all_options in TRICKS.items()
        for options in all_options
        if only in f"{name} {options}"
    ]
    begin = time.monotonic()
    present: dict[str, Any] = json.loads(out.read_text())["cases"] if out.exists() else {}

    def run(case: tuple[str, Script, str]) -> tuple[str, dict[str, Any] | None]:
        name, script, options = case
        if name in present or time.monotonic() - begin > seconds:
            return name, None
        prefix = launched(options) if is_real else rehearsed(options)
        return name, summary(run_script(script, bundle, prefix, limit, with_output=True))

    head = versions(sys.executable)
    with ThreadPoolExecutor(jobs) as pool:
        for name, result in pool.map(run, cases):
            if result is None:
                continue
            present[name] = result
            print(f"{name}: {result['outcome']} in {result['seconds']} s", flush=True)
            out.write_text(json.dumps({**head, "cases": present}, indent=1) + "\n")


FIELDS = ("outcome", "exit_code", "optimizer_steps", "allocated", "reserved")


def compare(real: Path, virtual: Path) -> int:
    """Print every case that differs; how many there are."""
    both = [json.loads(path.read_text())["cases"] for path in (real, virtual)]
    names = [name for name in both[0] if name in both[1]]
    different = 0
    for name in names:
        found = [[each[name].get(field) for field in FIELDS] for each in both]
        if found[0] != found[1]:
            different += 1
            print(f"{name}: launched {found[0]}, rehearsed {found[1]}")
    print(f"{len(names)} cases, {different} differ")
    return different


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("prepare")
    collecting.add_argument("--sources", type=Path, required=True)
    collecting.add_argument("--wheels", type=Path)
    collecting.add_argument("--bundle", type=Path, required=True)
    for name in ("launch", "rehearse"):
        measuring = commands.add_parser(name)
        measuring.add_argument("--bundle", type=Path, required=True)
        measuring.add_argument("--out", type=Path, required=True)
        measuring.add_argument("--jobs", type=int, default=1, help="scripts at the same time")
        measuring.add_argument("--only", default="", help="cases with this text in their name")
        measuring.add_argument("--seconds", type=float, default=1e9, help="begin none after this")
        measuring.add_argument("--limit", type=float, default=300, help="seconds for one script")
    comparing = commands.add_parser("compare")
    comparing.add_argument("real", type=Path)
    comparing.add_argument("virtual", type=Path)
    given = parser.parse_args(words)
    if given.command == "prepare":
        prepare(given.sources, given.bundle, given.wheels)
        return 0
    if given.command == "compare":
        return 1 if compare(given.real, given.virtual) else 0
    is_real = given.command == "launch"
    measure(given.out, given.bundle, is_real, given.jobs, given.only, given.seconds, given.limit)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
