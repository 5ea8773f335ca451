"""Writes training scripts of many kinds, for `bench/lint.py`: the same ones every time.

python bench/training_scripts.py FOLDER [COUNT]

Each is assembled from a model, a data set, a loop, an evaluation and what surrounds them in real
projects, with its own names and numbers; about one in three has a mistake that costs memory.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from script_parts import ARGUMENTS, DATASETS, EVALUATIONS, HEADERS, IMPORTS, LOOPS, MAIN, MODELS

SEED = 20240229


def script(index: int) -> str:
    """The script with this number, which alone decides its contents."""
    dice = random.Random(SEED + index)
    kind = dice.randrange(len(MODELS))
    is_careless = dice.random() < 1 / 3
    careful = {"loss_value": "loss.item()", "no_grad": "@torch.no_grad()\n", "keep": ".cpu()"}
    careful |= {"map_location": ', map_location="cpu"', "set_to_none": "True", "between": "pass"}
    careless = {"loss_value": "loss", "no_grad": "", "keep": "", "map_location": ""}
    careless |= {"set_to_none": "False", "between": "torch.cuda.empty_cache()"}
    words = {key: dice.choice((value, careless[key])) for key, value in careful.items()}
    names = {
        "name": f"train_{index:04}",
        "subject": dice.choice(("a classifier", "a language model", "an encoder", "a baseline")),
        "data": dice.choice(("data", "datasets/small", "/mnt/data", "corpus")),
        "Data": dice.choice(("Image", "Token", "Table", "Sensor", "Review")) + str(index % 7),
        "Model": dice.choice(("Net", "Encoder", "Classifier", "Tower")) + str(index % 11),
        "activation": dice.choice(("ReLU", "GELU", "SiLU")),
        "optimizer": dice.choice(("AdamW", "Adam", "NAdam")),
        "guard": dice.choice(("no_grad", "inference_mode")),
        "total": dice.choice(("total", "running_loss", "epoch_loss")),
        "history": dice.choice(("losses", "history", "all_losses")),
        "to_card": dice.choice(("", "", ".cuda()")) if is_careless else "",
    }
    numbers = {
        "epochs": dice.randrange(3, 300),
        "batch": 2 ** dice.randrange(3, 10),
        "lr": dice.choice((1e-4, 3e-4, 1e-3, 0.1)),
        "accumulate": dice.choice((1, 2, 4, 8)),
        "seed": dice.randrange(10_000),
        "block": 2 ** dice.randrange(6, 12),
        "vocab": dice.choice((8_000, 32_000, 50_257)),
        "width": 2 ** dice.randrange(5, 11),
        "layers": dice.randrange(2, 7),
        "heads": dice.choice((4, 8)),
        "features": dice.randrange(8, 512),
        "classes": dice.choice((2, 10, 100, 1_000)),
        "every": dice.choice((10, 50, 100)),
        "smoothing": dice.choice((0.0, 0.1)),
    }
    parts = [dice.choice(HEADERS), IMPORTS, ARGUMENTS, DATASETS[min(kind, 2)], MODELS[kind]]
    parts += [dice.choice(LOOPS), dice.choice(EVALUATIONS), MAIN]
    everything = names | numbers | (words if is_careless else careful)
    return "".join(part.format(**everything) for part in parts)


def write(folder: Path, count: int) -> int:
    """Write this many scripts, some folders deep, and return their number of lines."""
    lines = 0
    for index in range(count):
        text = script(index)
        path = folder / f"project{index % 20:02}" / f"train_{index:04}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        lines += text.count("\n")
    return lines


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    print(write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 1_000), "lines")
