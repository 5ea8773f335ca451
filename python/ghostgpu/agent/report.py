"""The report of this process, and the file it is written to.

The format is `ProcessReport` in `crates/session/src/report.rs`.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict, dataclass, field
from typing import Any

from .shared_numbers import AGENT_REPORT_PREFIX
from .stacks import Frame

FAULT = "GhostGPU's agent "
"""How every sentence about a fault of the agent begins. The tests' helpers look for it."""


@dataclass
class DevicePeaks:
    """The highest values of PyTorch's allocator statistics on one device."""

    device: int
    peak_allocated_bytes: int = 0
    peak_reserved_bytes: int = 0
    retries: int = 0
    allocations: int = 0


@dataclass
class MemoryLimit:
    """How much of a device PyTorch may use, according to a memory fraction."""

    device: int
    limit_bytes: int
    total_bytes: int


@dataclass
class StepPeaks:
    """The peaks since the start of the script, as of the end of an optimizer step."""

    step: int
    devices: list[DevicePeaks]


@dataclass
class Oom:
    """An out-of-memory error raised by PyTorch's allocator."""

    device: int
    requested_bytes: int
    message: str
    step: int
    stage: str
    stack: list[Frame]
    is_fatal: bool = False
    moment: str | None = None
    """The part of the training it happened in (a `TrainingPart`), if that is known."""


@dataclass
class RefusedCall:
    """A call that the stand-in library refused, and where the script made it."""

    function: str
    stack: list[Frame]


@dataclass
class SizePointReport:
    """What was found at the size point."""

    is_found: bool = False
    place: str = ""
    batch: int | None = None
    samples: int | None = None
    seq: int | None = None
    longest_seq: int | None = None
    seq_place: str = ""
    no_sequence_because: str | None = None
    drops_last: bool = False
    problem: str | None = None
    unforkable: str | None = None
    has_other_loader: bool = False
    batch_options: list[str] = field(default_factory=list)
    similar_options: list[str] = field(default_factory=list)


@dataclass
class TrainingData:
    """What the script trains with."""

    samples: int
    """Samples of one pass."""
    batch: int | None
    """How many samples the loader puts into one batch."""


@dataclass
class GroupFamily:
    """Groups of ranks along one dimension of a job: disjoint, and of equal size."""

    groups: list[list[int]]
    has_messages: bool
    """Whether members send point-to-point messages, as the stages of a pipeline do."""


@dataclass
class ChangeReport:
    """What a requested change to the script's behaviour did."""

    name: str
    did: str | None = None
    """What was done, in words; None if the change did not apply anywhere."""
    line: str | None = None
    """The line that has the same effect when written in the script."""
    other_results: str | None = None
    """Why the change alters this script's results, although it usually does not."""


@dataclass
class TrickRefusal:
    """Why a trick ended the script: it would be wrong for it."""

    reason: str
    alternative: str


@dataclass
class Declined:
    """What a script says that declines, and what the user may do."""

    sentence: str
    hint: str | None


@dataclass
class Covered:
    """A part of a training that was rehearsed, as `TrainingPart` names it."""

    part: str
    detail: str


@dataclass
class NotReached:
    """A part of a training that was not rehearsed, and why."""

    part: str
    because: str


@dataclass
class CoverageReport:
    """Which parts of a training were rehearsed, and which were not reached."""

    covered: list[Covered]
    not_reached: list[NotReached]
    is_shortened: bool
    """Batches were left out of passes over data."""
    is_training_shortened: bool
    """Batches were left out of passes over training data, so a real run makes more steps."""
    left_out_steps: int | None
    """How many more, if the script ran to its end and their number is known."""
    later_passes_are_alike: bool
    """Later epochs, begun after nothing new had come for a while, showed nothing new either."""
    do_batches_vary: bool
    """Training batches differ in size, apart from the last one of a pass."""
    growth_cut_short: str | None
    """Memory grew with every rehearsed training batch, all of one size, and further batches were
    left out: a sentence that says by how much."""


@dataclass
class ChildExit:
    """How a process ended, as the one that started it says."""

    pid: int
    exit_code: int
    """Negative: the signal that ended it."""


@dataclass
class ProcessReport:
    """The contents of `agent-<pid>.json`."""

    pid: int = 0
    script: str | None = None
    """The name of the script, without its folder."""
    torch: str | None = None
    torch_cuda: str | None = None
    cudnn: str | None = None
    code_architectures: list[str] = field(default_factory=list)
    steps: int = 0
    stopped_by_step_limit: bool = False
    peaks: list[DevicePeaks] = field(default_factory=list)
    memory_limits: list[MemoryLimit] = field(default_factory=list)
    step_peaks: list[StepPeaks] = field(default_factory=list)
    ooms: list[Oom] = field(default_factory=list)
    workspace_retries: int = 0
    """How often PyTorch ran out of memory for a workspace and went on with a smaller one."""
    assumptions: list[str] = field(default_factory=list)
    refused: list[RefusedCall] = field(default_factory=list)
    exception: str | None = None
    exception_at: str | None = None
    """The user's line that raised it."""
    terminated_at: str | None = None
    """The user's line at which SIGTERM found it."""
    child_exits: list[ChildExit] = field(default_factory=list)
    """Of a launcher: how the processes ended that made it give up."""
    notes: list[str] = field(default_factory=list)
    unrecorded: str | None = None
    """Why attribution was requested but not recorded."""
    visible_devices: str | None = None
    """`CUDA_VISIBLE_DEVICES` at the end: the script itself may have set it."""
    size_point: SizePointReport | None = None
    changes: list[ChangeReport] = field(default_factory=list)
    coverage: CoverageReport | None = None
    training_data: TrainingData | None = None
    total_allocated_bytes: int = 0
    """All bytes ever allocated, freed or not: equal only in runs that do the same."""
    assumed_sizes: int = 0
    """How many lines made something whose size depends on unknown values."""
    rank: int | None = None
    """The rank of this process in its job, if it created a process group."""
    world_size: int | None = None
    families: list[GroupFamily] = field(default_factory=list)
    """The groups that the job made, if not all of its ranks are run."""
    shards: list[int] = field(default_factory=list)
    """For every rank of the job, the first rank whose parameter shards have the same size."""
    waits_at: str | None = None
    """The line of a loop that waits for a value, if the script was ended there."""
    refused_trick: TrickRefusal | None = None
    """Why a trick refused this script and ended it, if one did."""
    declined: Declined | None = None
    """Why the script declines what it was asked to do, if it does (`estimate/failures.py`)."""


class Record:
    """This process's report while it is being filled in. Its methods are thread-safe."""

    MAX_SENTENCES = 200
    """A script may branch on values at thousands of lines; nobody reads more than this."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.report = ProcessReport(pid=os.getpid())

    def forget_parent(self) -> None:
        """Start again in a forked child: the parent reports what it saw itself."""
        versions = self.report
        self._lock = threading.RLock()
        self.report = ProcessReport(
            pid=os.getpid(),
            torch=versions.torch,
            torch_cuda=versions.torch_cuda,
            code_architectures=versions.code_architectures,
        )

    def assume(self, sentence: str) -> None:
        """Add an assumption on which the answer rests, once."""
        self._add(self.report.assumptions, sentence)

    def fault(self, words: str) -> None:
        """Add a fault of the agent, before all assumptions."""
        sentence = FAULT + words
        with self._lock:
            if sentence not in self.report.assumptions:
                self.report.assumptions.insert(0, sentence)

    def note(self, sentence: str) -> None:
        """Add a remark on which the answer does not rest, once."""
        self._add(self.report.notes, sentence)

    def _add(self, sentences: list[str], sentence: str) -> None:
        with self._lock:
            if sentence not in sentences and len(sentences) < self.MAX_SENTENCES:
                sentences.append(sentence)

    def write(self, run_dir: str) -> None:
        """Write the report atomically, so that no reader sees half of it."""
        with self._lock:
            self.report.visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES")
            fields: dict[str, Any] = asdict(self.report)
        path = os.path.join(run_dir, f"{AGENT_REPORT_PREFIX}{self.report.pid}.json")
        # The thread is part of the name: several threads may write the report as the script ends.
        unfinished = f"{path}.{threading.get_ident()}.unfinished"
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(fields, file)
        os.replace(unfinished, path)


RECORD = Record()
"""This process's record."""
