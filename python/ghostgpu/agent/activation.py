"""Starts the agent's parts when the modules they belong to have been imported."""

from __future__ import annotations

import os
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable

from ..tricks.dynamo_shield import shielded
from . import oom, preload, selective_checkpoints, session
from .attribution import MemoryRecorder
from .ending import Ending
from .files import checkpoints
from .guard import install, note_fault, quietly
from .initialisation import InitialisationSkipper
from .memory_fraction import UnlimitedFraction
from .oom import OomObserver
from .own_frames import OwnFrames
from .peaks import PeakTracker
from .ranks.absent_ranks import AbsentRanks
from .ranks.collectives import Collectives
from .ranks.rank_values import RankValues
from .ranks.rebuilt_buckets import RebuiltBuckets
from .ranks.this_rank import Ranks
from .report import RECORD, ChangeReport, RefusedCall, TrickRefusal
from .stacks import current_frames, describe, users_collective
from .steps import StepCounter
from .training_data import TrainingDataObserver
from .values.checks import ArgumentChecks
from .values.data_dependent import ShapeAssumptions
from .values.known_calls import KnownCalls
from .values.known_copies import KnownCopies
from .values.known_spreading import KnownSpreading
from .values.known_values import KnownValues
from .values.plausible import Plausible
from .values.readbacks import Readbacks
from .values.sequence_lengths import SequenceLengths
from .values.triton_kernels import TritonKernels
from .warning_places import install_warning_places

if TYPE_CHECKING:
    from .coverage import Coverage
    from .forks.size_points import SizeSetter

_after_import: list[Callable[[ModuleType], object]] = []
"""Called with each watched module that is imported after torch."""


def after_import(module: ModuleType) -> None:
    """Called by the import hook right after a watched module has been executed."""
    if module.__name__ == "torch":
        _start(module)
        return
    for see in _after_import:
        see(module)


def _start(torch: Any) -> None:
    try:
        current = session.load()
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"ghostgpu: the session file cannot be read: {error}\n")
        return
    install("versions", "the versions of torch and CUDA are not known", _note_versions, torch)
    peaks = PeakTracker(torch)
    ending = Ending(torch, current.run_dir, peaks)
    counter = StepCounter(current.steps, peaks)
    guard = checkpoints.CheckpointGuard(torch, current)
    _after_import.append(quietly(guard.after_import))

    # First, so that whatever fails below is still reported.
    install("ending", "how the script ended is not known", ending.install)
    if torch.version.cuda is None:
        return  # torch without CUDA: the command line sees this in the report and tells the user
    install("library", "the lines of refused calls are not known", _tell_library, torch)
    if current.ranks is not None:
        from .ranks.rank_launcher import RankLauncher

        launcher = RankLauncher(torch, current.ranks, current.run_dir)
        install("launcher", "all ranks of one node are run", launcher.install)
    ranks = Ranks(torch, current.run_dir)
    install("ranks", "ranks of several processes are not known as such", ranks.install)

    def leave() -> None:
        ranks.leave()
        if ranks.are_several:
            # NCCL's watchdog of a rank that did not come to `destroy_process_group` outlives what
            # it needs of torch, and aborts the process.
            ending.end_at_once()

    counter.before_end = leave
    # The same after an exception: torchrun would tell of a signal instead of the exit code.
    ending.end_at_once_if_failed(lambda: ranks.are_several)
    ending.add_last_act(ranks.note_mistakes)
    ending.add_farewell(ranks.let_work_finish)
    install("peaks", "peaks before a reset of PyTorch's statistics are not known", peaks.install)
    install("steps", "steps are not counted, and the script is not stopped", counter.install)
    own_frames = OwnFrames(torch)
    unknown = "snapshots that the script takes have frames of GhostGPU's agent"
    install("snapshots", unknown, own_frames.install)
    install("warnings", "warnings may name lines of GhostGPU's agent", install_warning_places)
    recorder = None
    if current.attribution:
        recorder = _install_recorder(torch, current, own_frames, counter, ending)
    on_oom = recorder.note_out_of_memory if recorder is not None else _nothing
    unknown = "the line that ran out of memory is not known"
    install("out of memory", unknown, lambda: OomObserver(torch, quietly(on_oom)).install())

    def lift_fraction() -> None:
        unknown = "a memory fraction that the script sets limits the run with unlimited memory"
        install("memory fraction", unknown, lambda: UnlimitedFraction(torch).install())

    if current.unlimited_memory:
        lift_fraction()
    install("checkpoints", "checkpoints of the script are not protected", guard.install)
    on_sent = recorder.note_sent if recorder is not None else _nothing
    unknown = "every value that is read from the card is zero"
    on_message = _install_families(torch, counter) if current.ranks is not None else _nothing
    watched = (ending, quietly(on_sent), quietly(on_message))
    install("values", unknown, _install_assumptions, torch, current, ranks, *watched)
    unknown = "old gradient buckets may be counted beside the new ones"
    install("rebuilt buckets", unknown, lambda: RebuiltBuckets(torch).install())
    if not current.full_initialisation:
        unknown = "weights are initialised in full"
        install("initialisation", unknown, _install_skipper, torch, ending)
    ending.add_last_act(guard.clean_up)

    def apply_tricks(wanted: session.Session) -> None:
        if wanted.tricks:
            unknown = "the tricks that were asked for were not applied"
            install("tricks", unknown, _install_tricks, torch, wanted, ending)

    unknown = "the time that selective checkpointing takes is not known"
    install("selective checkpointing", unknown, selective_checkpoints.count_operators)
    unknown = "how many samples there are is not known"
    install("training data", unknown, lambda: TrainingDataObserver(torch).install())
    sizes = None
    if current.size_point is not None:
        unknown = "other sizes than the script's own were not rehearsed"
        sizes = install(
            *("sizes", unknown, _install_size_points),
            *(torch, current.size_point, ending, counter),
        )

    coverage = None
    if current.coverage is not None:
        # The last part to wrap loaders, so that it sees the batch sizes that the others set.
        unknown = "passes over data are not shortened, and the script is not stopped"
        coverage = install("coverage", unknown, _install_coverage, torch, current, peaks)
        if coverage is not None:
            is_enough = quietly(coverage.is_enough)
            coverage.in_lockstep = lambda: ranks.are_several
            counter.is_covered = lambda: ranks.stop_together(is_enough() or False)
            guard.on_save = coverage.note_saved
            oom.moment = quietly(coverage.moment)
            ending.add_last_act(coverage.tell)
            if sizes is not None:
                sizes.in_copies.append(
                    lambda steps: coverage.switch_off() if steps else coverage.go_on_in_copy()
                )

    apply_tricks(current)

    def begin_in_copy(run_dir: str) -> None:
        """Called in a copy of the script that continues as another rehearsal, with its session."""
        wanted = session.load()
        RECORD.report.pid = os.getpid()
        ending.move_to(run_dir)
        ending.end_at_once()
        guard.paths.move_to(run_dir, wanted.started_at)
        counter.limit = wanted.steps
        if recorder is not None:
            recorder.move_to(run_dir if wanted.attribution else None)
        if wanted.unlimited_memory:
            lift_fraction()
        if coverage is not None:
            coverage.begin_in_copy(wanted.coverage)
        if not current.tricks:
            apply_tricks(wanted)

    if current.copy_socket is not None:
        from .forks.card_point import CardPoint

        point = CardPoint(torch, current.copy_socket, begin_in_copy)
        install("copies", "every rehearsal begins with the script's first line", point.install)

    def forget_parent() -> None:
        if _is_made_by_the_fork_server():
            return
        RECORD.forget_parent()
        peaks.forget_parent()
        counter.forget_parent()
        ending.forget_parent()
        guard.paths.forget_parent()
        if coverage is not None:
            coverage.forget_parent()
        if recorder is not None:
            recorder.forget_parent()

    os.register_at_fork(after_in_child=quietly(forget_parent))


def _nothing(*arguments: Any) -> None:
    """The default for callbacks that are not needed."""


def _install_recorder(
    torch: Any,
    current: session.Session,
    own_frames: OwnFrames,
    counter: StepCounter,
    ending: Ending,
) -> MemoryRecorder | None:
    recorder = install(
        *("recorder", "whose memory it is is not known", MemoryRecorder),
        *(torch, current.run_dir, own_frames, current.steps),
    )
    if recorder is None:
        RECORD.report.unrecorded = "a part of GhostGPU's agent could not be installed"
        return None
    recorder.install()
    counter.after_count = recorder.note_step
    ending.add_last_act(recorder.finish)
    return recorder


def _install_skipper(torch: Any, ending: Ending) -> None:
    skipper = InitialisationSkipper(torch)
    skipper.install()
    ending.add_last_act(skipper.tell)


def _install_families(torch: Any, counter: StepCounter) -> Callable[[Any], object]:
    from .ranks.group_families import GroupFamilies

    families = GroupFamilies(torch)
    install("groups", "which ranks are alike is not known", families.install)
    note_first, note_second = counter.after_count, quietly(families.note_optimizer)

    def after_count(optimizer: Any) -> None:
        note_first(optimizer)
        note_second(optimizer)

    counter.after_count = after_count
    return families.note_message


def _constructors() -> set[Any]:
    """The functions to which `torch.set_default_device` adds a device, as PyTorch keeps them."""
    from torch.utils import _device

    known: set[Any] = _device._device_constructors()
    return known


def _tell_default_device(constructors: set[Any]) -> None:
    """Let a default device hold for these functions and for those that now stand before them.

    C++ calls them by the first, Python code by the second.
    """
    from torch.utils import _device

    constructors |= _device._device_constructors.__wrapped__()


def _install_assumptions(
    torch: Any,
    current: session.Session,
    ranks: Ranks,
    ending: Ending,
    on_sent: Callable[[Any], object],
    on_message: Callable[[Any], object],
) -> None:
    constructors = _constructors()
    known = KnownValues(torch)
    share = 0.5 if current.halves_sizes else 1.0
    plausible = Plausible(torch, known, is_zero=current.values == "zero", share=share)
    readbacks = Readbacks(torch, preload.ReadbackAnswerer(), known, plausible)
    rank_values = RankValues(
        current.run_dir, preload.wait_for_ranks, lambda: ranks.job, lambda: ranks.store
    )
    copies = KnownCopies(torch, known, plausible, readbacks.remember_line, on_sent)
    absent = AbsentRanks(torch)
    waits = "ranks that are run may wait for those that are not"
    install("absent ranks", waits, absent.install)
    _after_import.append(quietly(absent.after_import))
    collectives = Collectives(torch, known, rank_values, absent)
    collectives.on_message = on_message
    _after_import.append(quietly(TritonKernels(torch, known).after_import))
    ending.add_last_act(readbacks.tell)
    ending.add_explanation(readbacks.explain)
    ending.add_exit_explanation(readbacks.explain_exit)
    values = "values that the script sends to the card are zeros"
    sizes = "results whose size depends on values are empty"
    for part, unknown, make in (
        ("reads of values", "lines that read values are not named", lambda: readbacks),
        ("known copies", values, lambda: copies),
        ("known calls", values, lambda: KnownCalls(torch, known, plausible, copies.bring_back)),
        ("spreading over cards", values, lambda: KnownSpreading(torch, known)),
        ("collectives", values, lambda: collectives),
        ("sequence lengths", sizes, lambda: SequenceLengths(torch, known)),
        ("sizes by value", sizes, lambda: ShapeAssumptions(torch, readbacks, known, plausible)),
        ("argument checks", "checks of arguments fail", lambda: ArgumentChecks(torch, readbacks)),
    ):
        install(part, unknown, lambda make=make: make().install())
    wrong = "a default device of the script's does not hold for every function"
    install("default device", wrong, _tell_default_device, constructors)


def _install_size_points(
    torch: Any, request: session.SizePointRequest, ending: Ending, counter: StepCounter
) -> SizeSetter:
    # Imported only here: most rehearsals do not need it.
    from .forks import size_points

    return size_points.start(torch, request, ending, counter)


def _install_coverage(torch: Any, current: session.Session, peaks: PeakTracker) -> Coverage:
    from .coverage import Coverage

    assert current.coverage is not None
    coverage = Coverage(torch, current.coverage, peaks)
    coverage.install()
    _after_import.append(quietly(coverage.after_import))
    return coverage


def _install_tricks(torch: Any, current: session.Session, ending: Ending) -> None:
    from .. import tricks
    from ..tricks.faults import tell_faults_to
    from ..tricks.refusal import ending_the_script

    def refuse(reason: str, alternative: str) -> BaseException:
        RECORD.report.refused_trick = TrickRefusal(reason, alternative)
        return ending_the_script(reason, alternative)

    tell_faults_to(note_fault)
    started = tricks.start(torch, current.tricks, refuse, is_rehearsed=True)

    def tell() -> None:
        accounts = started.accounts()
        # A launcher such as torchrun imports torch too but never uses a card.
        if not torch.cuda.is_initialized() and all(each.did is None for each in accounts):
            return
        for each in accounts:
            report = ChangeReport(each.name, each.did, each.line, each.other_results)
            RECORD.report.changes.append(report)
            RECORD.assume(
                f"the trick {each.name} was applied: {each.did}"
                if each.did
                else f"the trick {each.name} found no place: {each.nothing_because}"
            )

    ending.add_last_act(tell)


def _is_made_by_the_fork_server() -> bool:
    from .forks import fork_server

    return fork_server.is_forking()


def _note_versions(torch: Any) -> None:
    report = RECORD.report
    report.torch = str(torch.__version__)
    report.torch_cuda = torch.version.cuda


def _tell_library(torch: Any) -> None:
    preload.set_refusal_callback(shielded(torch, quietly(_note_refusal)))
    preload.set_line_callback(shielded(torch, quietly(users_collective)))
    # Asking for the architectures makes PyTorch believe that CUDA is in use, and then a forked
    # child may not use it. So this waits until the script starts CUDA itself.
    torch.cuda._lazy_call(quietly(lambda: _tell_architectures(torch)))


def _tell_architectures(torch: Any) -> None:
    flags = getattr(torch._C, "_cuda_getArchFlags", lambda: None)()
    RECORD.report.code_architectures = flags.split() if flags else []
    numbers = [
        int(found[1])
        for name in RECORD.report.code_architectures
        # `sm_90a` is code for 9.0 too; `compute_90` is an intermediate form, not machine code.
        if (found := re.fullmatch(r"sm_(\d+)[a-z]?", name))
    ]
    preload.set_code_architectures(numbers)


def _note_refusal(function: str) -> None:
    RECORD.report.refused.append(RefusedCall(function, describe(current_frames())))
