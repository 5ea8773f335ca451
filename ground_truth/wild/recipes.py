"""Made-up data: files in the formats that public scripts read, the same on every machine.

A recipe takes the folder or file to write and options from `scripts.toml`. Values are arbitrary but
seeded; what matters to memory are the numbers of samples and their shapes.
"""

from __future__ import annotations

import array
import csv
import json
import pickle
import random
import struct
import wave
from pathlib import Path
from typing import Any, Callable

SEED = 7

RECIPES: dict[str, Callable[..., None]] = {}


def recipe(function: Callable[..., None]) -> Callable[..., None]:
    RECIPES[function.__name__.replace("_", "-")] = function
    return function


def make(name: str, target: Path, options: dict[str, Any]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    RECIPES[name](target, **options)


@recipe
def mnist(root: Path, train: int = 256, test: int = 64, name: str = "MNIST") -> None:
    """The four raw files that `torchvision.datasets.MNIST` and its likes read."""
    raw = root / name / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    generator = random.Random(SEED)
    for prefix, count in (("train", train), ("t10k", test)):
        images = struct.pack(">IIII", 0x803, count, 28, 28) + generator.randbytes(count * 784)
        labels = struct.pack(">II", 0x801, count) + bytes(index % 10 for index in range(count))
        (raw / f"{prefix}-images-idx3-ubyte").write_bytes(images)
        (raw / f"{prefix}-labels-idx1-ubyte").write_bytes(labels)


@recipe
def cifar(root: Path, train: int = 256, test: int = 64, classes: int = 10) -> None:
    """The pickled batches of CIFAR-10 or CIFAR-100."""
    generator = random.Random(SEED)

    def batch(count: int) -> dict[str, Any]:
        import numpy

        pixels = numpy.frombuffer(generator.randbytes(count * 3072), dtype=numpy.uint8)
        labels = [index % classes for index in range(count)]
        key = "labels" if classes == 10 else "fine_labels"
        return {"data": pixels.reshape(count, 3072), key: labels}

    names = [f"class{index}" for index in range(classes)]
    if classes == 10:
        folder = root / "cifar-10-batches-py"
        parts = [train // 5 + (1 if index < train % 5 else 0) for index in range(5)]
        contents: dict[str, Any] = {
            f"data_batch_{index + 1}": batch(count) for index, count in enumerate(parts)
        }
        contents["test_batch"] = batch(test)
        contents["batches.meta"] = {"label_names": names}
    else:
        folder = root / "cifar-100-python"
        contents = {"train": batch(train), "test": batch(test)}
        contents["meta"] = {"fine_label_names": names}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(pickle.dumps(content))


def _picture(width: int, height: int, mode: str, generator: random.Random) -> Any:
    from PIL import Image

    # A small random picture, enlarged: as smooth as a photograph, and quick to make.
    channels = {"L": 1, "RGB": 3}[mode]
    small = Image.frombytes(mode, (8, 8), generator.randbytes(64 * channels))
    return small.resize((width, height), Image.Resampling.BICUBIC)


@recipe
def pictures(
    folder: Path, count: int = 16, width: int = 64, height: int = 64, kind: str = "jpg"
) -> None:
    """A flat folder of pictures: 0001.jpg, 0002.jpg, …"""
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(SEED)
    for index in range(1, count + 1):
        _picture(width, height, "RGB", generator).save(folder / f"{index:04}.{kind}")


@recipe
def picture_folders(
    root: Path,
    classes: int = 2,
    each: int = 16,
    width: int = 64,
    height: int = 64,
    kind: str = "jpg",
    names: list[str] | None = None,
) -> None:
    """One folder of pictures for each class, as `ImageFolder` reads them."""
    generator = random.Random(SEED)
    for label in names or [f"class{index:03}" for index in range(classes)]:
        folder = root / label
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(1, each + 1):
            _picture(width, height, "RGB", generator).save(folder / f"{label}_{index:04}.{kind}")


@recipe
def masks(
    folder: Path,
    count: int = 16,
    width: int = 64,
    height: int = 64,
    values: int = 2,
    suffix: str = "",
) -> None:
    """Pictures of class numbers: 0001.png, 0002.png, …, a rectangle for each class."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for index in range(1, count + 1):
        mask = Image.new("L", (width, height), 0)
        for value in range(1, values):
            left = value * width // values
            mask.paste(value, (left, 0, (value + 1) * width // values, height))
        mask.save(folder / f"{index:04}{suffix}.png")


@recipe
def text(file: Path, lines: int = 200, words: int = 12, vocabulary: int = 200) -> None:
    """Lines of words from a small vocabulary."""
    generator = random.Random(SEED)
    known = _vocabulary(vocabulary, generator)
    written = [" ".join(generator.choice(known) for _ in range(words)) for _ in range(lines)]
    file.write_text("\n".join(written) + "\n")


@recipe
def name_list(file: Path, lines: int = 500, longest: int = 10) -> None:
    """One lower-case name on each line; the first is the longest that there can be."""
    generator = random.Random(SEED)
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [letters[:longest]]
    while len(names) < lines:
        length = generator.randint(3, longest)
        names.append("".join(generator.choice(letters) for _ in range(length)))
    file.write_text("\n".join(names) + "\n")


def _vocabulary(size: int, generator: random.Random) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    known: dict[str, None] = {}
    while len(known) < size:
        known["".join(generator.choice(letters) for _ in range(generator.randint(2, 8)))] = None
    return list(known)


@recipe
def tokens(file: Path, count: int = 20_000, vocabulary: int = 50, header: bool = False) -> None:
    """Token numbers as 16-bit integers, with the header of llm.c's files if asked for."""
    generator = random.Random(SEED)
    content = array.array("H", (generator.randrange(vocabulary) for _ in range(count))).tobytes()
    if header:
        content = struct.pack("<256i", 20240520, 1, count, *[0] * 253) + content
    file.write_bytes(content)


@recipe
def pickled(file: Path, content: Any) -> None:
    """A pickle of what `scripts.toml` says."""
    file.write_bytes(pickle.dumps(content))


@recipe
def written(file: Path, content: str) -> None:
    """A text file with this content."""
    file.write_text(content)


@recipe
def json_file(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content))


@recipe
def table(file: Path, columns: list[str], rows: int = 200) -> None:
    """A CSV file of numbers between 0 and 1."""
    generator = random.Random(SEED)
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(columns)
        for _ in range(rows):
            writer.writerow([f"{generator.random():.4f}" for _ in columns])


@recipe
def sounds(folder: Path, names: list[str], each: int = 8, rate: int = 16_000) -> None:
    """A second of noise in 16-bit mono for each file, one folder for each word."""
    generator = random.Random(SEED)
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for index in range(each):
            with wave.open(str(folder / name / f"{index:04}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(rate)
                file.writeframes(generator.randbytes(rate * 2))


@recipe
def arrays(file: Path, shapes: dict[str, list[int]], top: int | None = None) -> None:
    """A `.npz` file of floats between 0 and 1, or of integers below `top`."""
    import numpy

    generator = numpy.random.default_rng(SEED)
    made: Any = {
        name: generator.random(shape, dtype=numpy.float32)
        if top is None
        else generator.integers(0, top, shape)
        for name, shape in shapes.items()
    }
    numpy.savez(file, **made)


@recipe
def tensor(file: Path, shape: list[int], kind: str = "float64") -> None:
    """What `torch.save` writes for one array of numpy, or one tensor if `kind` is "tensor"."""
    import numpy
    import torch

    values = numpy.random.default_rng(SEED).random(shape)
    torch.save(torch.tensor(values) if kind == "tensor" else values.astype(kind), file)


@recipe
def weights(file: Path, model: str) -> None:
    """Random weights of one of torchvision's models, under the name that its download has."""
    import torch
    import torchvision

    torch.manual_seed(SEED)
    torch.save(torchvision.models.get_model(model, weights=None).state_dict(), file)


@recipe
def point_clouds(root: Path, classes: list[str], each: int = 12, points: int = 1024) -> None:
    """ModelNet40 as text files of points with normals, with its lists of names."""
    generator = random.Random(SEED)
    train: list[str] = []
    test: list[str] = []
    for label in classes:
        (root / label).mkdir(parents=True, exist_ok=True)
        for index in range(1, each + 1):
            name = f"{label}_{index:04}"
            (train if index <= each * 2 // 3 else test).append(name)
            rows = (
                ",".join(f"{generator.uniform(-1, 1):.5f}" for _ in range(6)) for _ in range(points)
            )
            (root / label / f"{name}.txt").write_text("\n".join(rows) + "\n")
    for size in ("10", "40"):
        (root / f"modelnet{size}_shape_names.txt").write_text("\n".join(classes) + "\n")
        (root / f"modelnet{size}_train.txt").write_text("\n".join(train) + "\n")
        (root / f"modelnet{size}_test.txt").write_text("\n".join(test) + "\n")
