"""Which files hold what a training computed, judged by their names.

A rehearsal computes nothing, so such a file from a rehearsal is worthless, and an existing one must
survive. Only the name can tell: a script may write its weights with `torch.save`, `pickle` or
`numpy`, and copy them with `shutil`.
"""

from __future__ import annotations

import os

_WEIGHTS = frozenset(
    (
        *("pt", "pth", "pt2", "ckpt", "safetensors", "distcp", "bin", "weights"),
        *("onnx", "h5", "hdf5", "gguf", "pdparams", "t7"),
    )
)
"""Parts of names (after a dot) that always mean weights, also in `best.pth.tar`."""

_VALUES = _WEIGHTS | frozenset(("npy", "npz", "pkl", "pickle", "joblib", "msgpack"))
"""Parts of names that may also mean data, prepared before the card is used."""

_DESCRIPTIONS = frozenset({"json", "yaml", "yml"})
"""Parts of names of files that describe the weights beside them."""


def is_weights(path: str) -> bool:
    """Whether a file of this name is a checkpoint, or a part of one."""
    return not _WEIGHTS.isdisjoint(_parts(path))


def may_hold_values(path: str) -> bool:
    """Whether a file of this name, written while a card is in use, may hold computed values."""
    return not _VALUES.isdisjoint(_parts(path))


def is_curve(path: str) -> bool:
    """Whether TensorBoard would show a file of this name as a run's losses, or Lightning has
    written it as such: `version_0/metrics.csv`."""
    folder, name = os.path.split(path)
    is_of_version = os.path.basename(folder).startswith("version_")
    return "tfevents" in _parts(path) or (name == "metrics.csv" and is_of_version)


def describes_weights(path: str) -> bool:
    """Whether a file of this name says how to read the weights in its folder."""
    return not _DESCRIPTIONS.isdisjoint(_parts(path))


def _parts(path: str) -> list[str]:
    return os.path.basename(path).lower().split(".")[1:]
