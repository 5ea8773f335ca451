"""Which histories of PyTorch's allocator are recorded: jobs, and the settings each runs under.

A job is a case of the exactness proof, or one of the scripts in `scripts.py` that do what usual
training does not. Under each of its settings it really runs; the whole history is kept for the
first one and for those named in `WITH_HISTORY`, of the others only the figures. A what-if replay of
the first must come to the figures of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

#: What people try, by a short name for files.
SETTINGS: Dict[str, str] = {
    "default": "",
    "expandable": "expandable_segments:True",
    "split-128": "max_split_size_mb:128",
    "split-32": "max_split_size_mb:32",
    "round-8": "roundup_power2_divisions:8",
    "round-list": "roundup_power2_divisions:[4:2,64:4,256:8,>:4]",
    "large-segments": "large_segment_size_mb:64",
    "unsplit-rounding": "max_split_size_mb:64,max_non_split_rounding_mb:128",
}
#: The settings that every job is tried with.
USUAL = tuple(SETTINGS)


@dataclass(frozen=True)
class Recording:
    """One run: a job under one setting, perhaps with less memory."""

    job: str
    setting: str
    #: What `set_per_process_memory_fraction` allows.
    cap_gib: Optional[float] = None
    with_history: bool = False
    #: Python stacks in the history, as a user would record it.
    with_stacks: bool = False

    @property
    def name(self) -> str:
        cap = "" if self.cap_gib is None else f"-{self.cap_gib:g}GiB"
        return f"{self.job}+{self.setting}{cap}"


#: Cases of `ground_truth/harness`, by their names there.
JOBS: Tuple[str, ...] = (
    "resnet50",
    "vgg16",
    "unet",
    "densenet121",
    "vit-b-16-bf16",
    "lstm-2-layers-dropout",
    "bert",
    "gpt2-bf16",
    "t5-small",
    "llama-pure-bf16-checkpointing",
    "gpt2-varying-lengths-bf16",
    "bert-clipped-accumulated-fp16",
    "images-varying",
    "mlp-adamw-foreach",
)
#: Histories under another setting than the default: (job, setting, cap).
WITH_HISTORY: Tuple[Tuple[str, str, Optional[float]], ...] = (
    ("gpt2-varying-lengths-bf16", "expandable", None),
    ("images-varying", "expandable", None),
    ("bert", "split-128", None),
    ("images-varying", "split-32", None),
    ("unet", "unsplit-rounding", None),
    ("t5-small", "round-8", None),
    ("gpt2-bf16", "round-list", None),
    ("resnet50", "large-segments", None),
)
#: Less memory than the job wants: retries, and ends.
CAPPED: Tuple[Tuple[str, str, float], ...] = (
    ("images-varying", "default", 2.4),
    ("images-varying", "expandable", 1.85),
    ("images-varying", "collect-0.8", 3.4),
    ("images-varying", "round-8", 2.6),
    ("densenet121", "default", 4.2),
    ("gpt2-varying-lengths-bf16", "collect-0.6", 9.0),
    ("resnet50", "default", 2.0),
    ("bert", "expandable", 3.0),
)
#: The same with other settings, of which only the figures are kept: would it have fitted?
WOULD_IT_FIT: Tuple[Tuple[str, str, float], ...] = tuple(
    (job, setting, cap)
    for job, cap, settings in (
        ("densenet121", 4.2, ("expandable", "split-128", "split-32", "collect-0.8", "round-8")),
        ("densenet121", 4.4, ("default", "expandable", "collect-0.8", "round-8")),
        ("images-varying", 2.4, ("expandable", "split-128", "collect-0.8", "round-8")),
        ("images-varying", 1.9, ("default", "expandable", "split-128")),
        ("unet", 3.0, ("default", "expandable", "split-128", "round-8", "unsplit-rounding")),
        ("vgg16", 4.7, ("default", "expandable", "round-8", "split-128")),
        ("resnet50", 3.0, ("default", "expandable", "large-segments", "round-8")),
        ("t5-small", 3.1, ("default", "expandable", "split-32")),
    )
    for setting in settings
)
COLLECTING = {
    "collect-0.8": "garbage_collection_threshold:0.8",
    "collect-0.6": "garbage_collection_threshold:0.6",
}
#: Scripts of `scripts.py`, with the settings of each and a cap.
SCRIPTS: Tuple[Tuple[str, Tuple[str, ...], Optional[float]], ...] = (
    ("two-streams", ("default", "expandable"), None),
    ("memory-pools", ("default",), None),
    ("captured-graph", ("default",), None),
    ("emptied-cache", ("default", "expandable"), None),
    ("caught-out-of-memory", ("default", "split-128", "expandable"), 3.0),
)


def recordings() -> List[Recording]:
    found: Dict[str, Recording] = {}

    def add(recording: Recording) -> None:
        present = found.get(recording.name)
        if present is None or recording.with_history:
            found[recording.name] = recording

    for job in JOBS:
        for setting in USUAL:
            add(
                Recording(
                    job,
                    setting,
                    with_history=setting == "default",
                    with_stacks=setting == "default" and job in ("unet", "bert"),
                )
            )
    for job, setting, cap in (*WITH_HISTORY, *CAPPED):
        add(Recording(job, setting, cap, with_history=True))
    for job, setting, cap in WOULD_IT_FIT:
        add(Recording(job, setting, cap))
    for job, settings, cap in SCRIPTS:
        for setting in settings:
            add(Recording(job, setting, cap, with_history=True))
    return list(found.values())


def settings_text(setting: str) -> str:
    return {**SETTINGS, **COLLECTING}[setting]
