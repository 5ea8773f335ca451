"""Built-in configurations and named models have exactly as many parameters as published ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import PYTHONS, REPOSITORY, Ask

pytestmark = pytest.mark.reference

TABLE = Path(__file__).with_name("published_parameters.tsv")

# Built without memory, and counted as torch does: tied weights once.
COUNTER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch, transformers
import estimate.configurations as c
counts = {}
for name, class_name in json.load(sys.stdin):
    known = c.CONFIGURATIONS[name]
    config = transformers.AutoConfig.for_model(known.model_type, **known.fields)
    if class_name.endswith("ForImageClassification"):
        config.num_labels = 1000
    options = {"add_pooling_layer": False} if class_name.endswith("-") else {}
    with torch.device("meta"):
        model = getattr(transformers, class_name.rstrip("-"))(config, **options)
    count = sum(parameter.numel() for parameter in model.parameters())
    if known.fields.get("tie_word_embeddings") is False and config.tie_word_embeddings:
        # From 5.0 on, transformers ties every T5, whatever its configuration says.
        count += model.get_input_embeddings().weight.numel()
    counts[name + " " + class_name] = count
print(json.dumps([counts, sorted(c.CONFIGURATIONS)]))
"""


def published() -> dict[tuple[str, str], int]:
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    rows = [line.split("\t") for line in lines]
    assert all(len(row) == 4 and row[3] for row in rows), "each number has its source"
    return {(name, class_name): int(count) for name, class_name, count, _ in rows}


def test_every_built_in_configuration_has_its_published_number_of_parameters() -> None:
    expected = published()
    done = subprocess.run(
        [PYTHONS[0], "-c", COUNTER, str(REPOSITORY / "python" / "ghostgpu")],
        input=json.dumps(list(expected)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts, names = json.loads(done.stdout.splitlines()[-1])
    assert counts == {" ".join(key): count for key, count in expected.items()}
    assert names == sorted({name for name, _ in expected})


VISION = """
import json, sys, torch, torchvision
from torchvision.models import get_model_weights, list_models
pairs = {}
for name in list_models(module=torchvision.models):
    if name.startswith("regnet"):
        continue  # computes its widths with tensors, which have no values here
    with torch.device("meta"):
        model = torchvision.models.get_model(name, weights=None)
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    pairs[name] = [count, [each.meta["num_params"] for each in get_model_weights(name)]]
print(json.dumps(pairs))
"""


def test_torchvision_builds_what_it_published() -> None:
    """The library that builds `estimate torchvision:NAME` says how large its models are."""
    done = subprocess.run([PYTHONS[0], "-c", VISION], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pairs = json.loads(done.stdout.splitlines()[-1])
    # Some published weights are for larger images and have more positions.
    different = {name for name, (built, told) in pairs.items() if built not in told}
    # GoogLeNet trains with two more heads, which its published number does not count.
    assert different == {"googlenet"}
    assert pairs["resnet50"][0] == 25557032


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("bert-base", "--layers", "12"), "109,514,298"),
        pytest.param(
            ("torchvision:resnet50", "--image", "64"), "25,557,032", marks=pytest.mark.at_length
        ),
        pytest.param(("vit-base", "--classes", "1000"), "86,567,656", marks=pytest.mark.at_length),
    ],
)
def test_an_estimate_says_how_many_parameters_it_has(
    ask: Ask, words: tuple[str, ...], count: str
) -> None:
    options = ("--batch", "1", "--gpu", "h200", "--no-breakdown", "--no-retry")
    done = ask("estimate", *words, *options).expect(0)
    assert f"{count} parameters" in done.stdout
