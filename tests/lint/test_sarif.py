"""What `ghostgpu lint --format sarif` writes, held against the official schema and opened by
Microsoft's reader.

`make test-lint` brings both, the schema through npm.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from sarif.loader import load_sarif_file

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GHOSTGPU_COMMAND") or str(REPOSITORY / "target/release/ghostgpu")
SCHEMA = os.environ.get("GHOSTGPU_SARIF_SCHEMA")

SCRIPT = """\
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
total = 0
for inputs, targets in torch.utils.data.DataLoader(data):
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    total += loss  # ghostgpu: ignore[no-such-rule]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A script, a notebook, half a script and a file that is none, under names that need care."""
    lines = SCRIPT.splitlines(keepends=True)
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}}
    cell |= {"outputs": [], "source": ["%matplotlib inline\n", *lines]}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "train 100%.py").write_text(SCRIPT)
    (tmp_path / "模型.ipynb").write_text(json.dumps(notebook, indent=1))
    (tmp_path / "half.py").write_text(f"{SCRIPT}def (:\n")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    return tmp_path


def lint(folder: Path, *form: str) -> Any:
    words = [PROGRAM, "lint", *form, "--select", "summed-loss"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not SCHEMA, reason="there is no npm to bring the schema")
def test_it_is_valid(folder: Path) -> None:
    schema = json.loads(Path(str(SCHEMA)).read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    found = validator.iter_errors(lint(folder, "--format", "sarif"))
    problems = [f"{list(it.path)}: {it.message}" for it in found]
    assert problems == []


def test_another_reader_sees_the_same_findings(folder: Path) -> None:
    path = folder / "out.sarif"
    path.write_text(json.dumps(lint(folder, "--format", "sarif")))
    read = load_sarif_file(str(path))
    seen = sorted(
        (unquote(record["Location"]), record["Severity"], record["Code"])
        for record in read.get_records()
    )
    ours = lint(folder, "--json")["findings"]
    assert seen == sorted((it["file"], it["severity"], it["rule"]) for it in ours)
    assert len(seen) == 6


def test_a_region_of_a_notebook_is_one_of_its_file(folder: Path) -> None:
    results = lint(folder, "--format", "sarif")["runs"][0]["results"]
    text = (folder / "模型.ipynb").read_text().splitlines()
    for result in results:
        place = result["locations"][0]["physicalLocation"]
        if place["artifactLocation"]["uri"].endswith("ipynb"):
            line = text[place["region"]["startLine"] - 1]
            column = place["region"]["startColumn"] - 1
            word = "total" if result["ruleId"] == "summed-loss" else "no-such-rule"
            assert line[column:].startswith(word)
