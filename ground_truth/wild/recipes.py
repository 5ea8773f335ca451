"""Made-up data: files in the formats that public scripts read, the same on every machine.

A recipe takes the folder or file to write and options from `scripts.toml`. Values are arbitrary but
seeded; what matters to memory are the numbers of samples and their shapes.
"""

from __future__ import annotations

import array
import gzip
import json
import pickle
import random
import struct
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
    folder: Path,
    count: int = 16,
    width: int = 64,
    height: int = 64,
    kind: str = "jpg",
    prefix: str = "",
) -> None:
    """A flat folder of pictures: 0001.jpg, 0002.jpg, …"""
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(SEED)
    for index in range(1, count + 1):
        _picture(width, height, "RGB", generator).save(folder / f"{prefix}{index:04}.{kind}")


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
    prefix: str = "",
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
        mask.save(folder / f"{prefix}{index:04}{suffix}.png")


@recipe
def boxes(
    root: Path, count: int = 16, width: int = 320, height: int = 240, classes: int = 20
) -> None:
    """Pictures of objects, and lists of their boxes and classes in two files of JSON."""
    pictures(root / "pictures", count, width, height)
    generator = random.Random(SEED)
    objects = []
    for index in range(count):
        found = []
        for _ in range(1 + index % 4):
            left, top = generator.randrange(width // 2), generator.randrange(height // 2)
            found.append([left, top, left + width // 3, top + height // 3])
        labels = [generator.randrange(1, classes + 1) for _ in found]
        objects.append({"boxes": found, "labels": labels, "difficulties": [0] * len(found)})
    names = [f"pictures/{index:04}.jpg" for index in range(1, count + 1)]
    (root / "TRAIN_images.json").write_text(json.dumps(names))
    (root / "TRAIN_objects.json").write_text(json.dumps(objects))


@recipe
def mini_imagenet(root: Path, classes: int = 6, each: int = 20) -> None:
    """The pickled splits of miniImageNet, as its usual preparation for few-shot learning has it."""
    import numpy

    generator = numpy.random.default_rng(SEED)
    root.mkdir(parents=True, exist_ok=True)
    for split in ("train_phase_train", "val", "test"):
        data = generator.integers(0, 256, (classes * each, 84, 84, 3), dtype=numpy.uint8)
        labels = [index // each for index in range(classes * each)]
        file = root / f"miniImageNet_category_split_{split}.pickle"
        file.write_bytes(pickle.dumps({"data": data, "labels": labels}))


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
def token_pairs(
    file: Path, lines: int = 64, question: int = 40, answer: int = 24, vocabulary: int = 500
) -> None:
    """One JSON object on each line: the tokens of a context, and those of its completion."""
    generator = random.Random(SEED)

    def some(count: int) -> list[int]:
        return [generator.randrange(1, vocabulary) for _ in range(count)]

    rows = ({"context": some(question), "completion": some(answer)} for _ in range(lines))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@recipe
def numbers(file: Path, shape: list[int], highest: float = 1.0, kind: str = "float32") -> None:
    """An array of random numbers, as `numpy.save` writes it."""
    import numpy

    numpy.save(file, _random_array(shape, highest, kind))


@recipe
def several_numbers(file: Path, arrays: dict[str, list[int]], kind: str = "float32") -> None:
    """Arrays of random numbers by name, as `numpy.savez` writes them."""
    import numpy

    made = {name: _random_array(shape, 1.0, kind) for name, shape in arrays.items()}
    with file.open("wb") as output:
        numpy.savez(output, allow_pickle=False, **made)


@recipe
def numbers_by_name(
    folder: Path,
    names: list[str],
    shape: list[int],
    highest: float = 1.0,
    kind: str = "float32",
) -> None:
    """Several files of `numbers`, each with the same array."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        numbers(folder / f"{name}.npy", shape, highest, kind)


@recipe
def several_numbers_each(folder: Path, count: int, arrays: dict[str, list[int]]) -> None:
    """Several files of `several-numbers`: 0001.npz, 0002.npz, …"""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(1, count + 1):
        several_numbers(folder / f"{index:04}.npz", arrays)


@recipe
def table(file: Path, rows: int, columns: int, between: str = ",") -> None:
    """Random numbers as text."""
    generator = random.Random(SEED)
    written = (
        between.join(f"{generator.uniform(0.1, 1):.4f}" for _ in range(columns))
        for _ in range(rows)
    )
    file.write_text("\n".join(written) + "\n")


@recipe
def utterances(root: Path, speakers: int = 8, each: int = 3, frames: int = 160) -> None:
    """Mel spectra of several speakers with an embedding of each, and the pickled list of them."""
    import numpy

    generator = numpy.random.default_rng(SEED)
    listed = []
    for speaker in range(speakers):
        name = f"p{speaker:03}"
        (root / name).mkdir(parents=True, exist_ok=True)
        row: list[Any] = [name, generator.random(256, dtype=numpy.float32)]
        for index in range(each):
            row.append(f"{name}/{name}_{index:03}.npy")
            # Longer and shorter ones: what is too short is padded, the others are cropped.
            length = frames - 20 * index
            numpy.save(root / row[-1], generator.random((length, 80), dtype=numpy.float32))
        listed.append(row)
    (root / "train.pkl").write_bytes(pickle.dumps(listed))


def _random_array(shape: list[int], highest: float, kind: str) -> Any:
    import numpy

    return (numpy.random.default_rng(SEED).random(shape) * highest).astype(kind)


@recipe
def graphs(root: Path, name: str, count: int = 60, largest: int = 40, labels: int = 3) -> None:
    """Rings with a few chords, as the text files of the TU collection of graphs."""
    generator = random.Random(SEED)
    edges: list[str] = []
    owners: list[str] = []
    kinds: list[str] = []
    for graph in range(1, count + 1):
        # The first is as large as any: some scripts pad every graph to the largest they have.
        size = largest if graph == 1 else generator.randint(largest // 2, largest)
        first = len(owners) + 1
        pairs = {(place, (place + 1) % size) for place in range(size)}
        pairs |= {(place, place + size // 2) for place in range(0, size // 2, 5)}
        for one, other in sorted(pairs | {(other, one) for one, other in pairs}):
            edges.append(f"{first + one}, {first + other}")
        owners += [str(graph)] * size
        kinds += [str(generator.randrange(labels)) for _ in range(size)]
    root.mkdir(parents=True, exist_ok=True)
    columns = {
        "A": edges,
        "graph_indicator": owners,
        "node_labels": kinds,
        "graph_labels": [str(graph % 2 + 1) for graph in range(count)],
    }
    for column, rows in columns.items():
        (root / f"{name}_{column}.txt").write_text("\n".join(rows) + "\n")


@recipe
def written(file: Path, content: str) -> None:
    """A text file with this content."""
    file.write_text(content)


@recipe
def weights(file: Path, model: str) -> None:
    """Weights of one of torchvision's models, all alike, in the file that its download would be."""
    import torch
    import torchvision

    with torch.device("meta"):
        shapes = torchvision.models.get_model(model, weights=None).state_dict()
    torch.save(
        {key: torch.full_like(value, 0.01, device="cpu") for key, value in shapes.items()}, file
    )


@recipe
def layers(file: Path, shapes: dict[str, list[int]]) -> None:
    """Weights and biases of convolutions, all alike, by the names of the layers."""
    import torch

    state = {}
    for name, shape in shapes.items():
        state[f"{name}.weight"] = torch.full(shape, 0.01)
        state[f"{name}.bias"] = torch.full(shape[:1], 0.01)
    torch.save(state, file)


@recipe
def shape_parts(
    root: Path,
    category: str = "Chair",
    number: str = "03001627",
    train: int = 24,
    test: int = 8,
    points: int = 600,
    parts: int = 4,
) -> None:
    """ShapeNet's part annotations: points and the number of the part that each belongs to."""
    generator = random.Random(SEED)
    for folder in ("points", "points_label"):
        (root / number / folder).mkdir(parents=True, exist_ok=True)
    (root / "train_test_split").mkdir(exist_ok=True)
    (root / "synsetoffset2category.txt").write_text(f"{category}\t{number}\n")
    for split, count in (("train", train), ("val", test), ("test", test)):
        names = [f"{split}{index:04}" for index in range(count)]
        for name in names:
            rows = (
                " ".join(f"{generator.uniform(-1, 1):.5f}" for _ in range(3)) for _ in range(points)
            )
            (root / number / "points" / f"{name}.pts").write_text("\n".join(rows) + "\n")
            labels = "\n".join(str(1 + index * parts // points) for index in range(points))
            (root / number / "points_label" / f"{name}.seg").write_text(labels + "\n")
        listed = json.dumps([f"shape_data/{number}/{name}" for name in names])
        (root / "train_test_split" / f"shuffled_{split}_file_list.json").write_text(listed)


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


@recipe
def enwik8(file: Path, size: int = 92_000_000) -> None:
    """Compressed bytes of text, as many as scripts count on when they split off the last ones."""
    line = b"In the wild there are words of every kind, and markup [[between]] them.\n"
    content = (line * (size // len(line) + 1))[:size]
    file.write_bytes(gzip.compress(content, compresslevel=1, mtime=0))


@recipe
def language_model(
    folder: Path, layers: int = 4, width: int = 256, vocabulary: int = 2000, positions: int = 512
) -> None:
    """A causal model of transformers with a tokenizer of its own, as `from_pretrained` reads it."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    known = ["<unk>", "<end>", *_vocabulary(vocabulary - 2, random.Random(SEED))]
    words = {word: place for place, word in enumerate(known)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<end>", pad_token="<end>"
    ).save_pretrained(folder)
    torch.manual_seed(SEED)
    configuration = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        eos_token_id=1,
    )
    Qwen2ForCausalLM(configuration).save_pretrained(folder)
