"""When ranks that wait are told that they wait in vain, and in which words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ghostgpu.agent.ranks import rank_processes
from ghostgpu.agent.ranks.rank_processes import RankProcess, RankProcesses
from ghostgpu.agent.ranks.stuck_ranks import (
    DEADLOCK_SECONDS,
    PATIENCE_SECONDS,
    STILL_SECONDS,
    find_trouble,
    port_of_store,
)
from ghostgpu.agent.ranks.stuck_ranks import rank_and_size as said_by

LONG = DEADLOCK_SECONDS + 1
INIT = "init_process_group at train.py:6"


class MadeUp(RankProcess):
    """A process that nobody has started."""

    is_alive = True


def process(
    rank: int | None,
    size: int | None = 2,
    *,
    waits_in: str | None = INIT,
    is_alive: bool = True,
    was_ended: bool = False,
    port: int = 29500,
) -> MadeUp:
    made = MadeUp(pid=100 + (rank or 0), began=1, rank=rank)
    made.port = port
    made.world_size, made.was_ended = size, was_ended
    made.blocked_in = waits_in if is_alive and size is not None else None
    made.is_alive = is_alive
    return made


def sentence(
    *peers: MadeUp,
    expected: int | None = 2,
    waited: float = LONG,
    elsewhere: frozenset[int] = frozenset(),
) -> str | None:
    trouble = find_trouble(peers[0], list(peers), expected, waited, elsewhere)
    return trouble.sentence if trouble is not None else None


def test_a_rank_that_ended_before_it_came_is_named_soon() -> None:
    ended = process(1, None, is_alive=False)
    told = sentence(process(0), ended, waited=5)
    assert told == (
        f"rank 0 waits in {INIT} for rank 1, which has ended before it joined the job: "
        "a real job would hang there"
    )
    # `mp.spawn` does not say which rank a process will be.
    spawned = process(None, None, is_alive=False)
    assert sentence(process(0), spawned) == told
    several = [process(rank, None, is_alive=False) for rank in (1, 2)]
    assert "for ranks 1 and 2, which have ended before they joined the job" in str(
        sentence(process(0, 3), *several, expected=3)
    )


def test_a_rank_that_is_on_its_way_is_waited_for() -> None:
    assert sentence(process(0), process(1, None), waited=10_000) is None
    assert sentence(process(0), expected=2, waited=PATIENCE_SECONDS - 1) is None
    assert sentence(process(0), process(1, waits_in=None), waited=10_000) is None
    by_the_rehearsal = process(1, is_alive=False, was_ended=True)
    assert sentence(process(0, waits_in=None), by_the_rehearsal) is None


@pytest.mark.parametrize("size", [None, 2])
def test_a_rank_that_does_nothing_is_named_with_its_line(size: int | None) -> None:
    idle = process(1, size, waits_in=None)
    idle.still_seconds, idle.stands_at = STILL_SECONDS - 1, "train.py:20"
    assert sentence(process(0), idle, waited=10_000) is None
    idle.still_seconds = STILL_SECONDS + 1
    told = f"rank 0 waits in {INIT} for rank 1, which has done nothing for 50 s"
    assert sentence(process(0), idle) == f"{told} at train.py:20"
    idle.stands_at = None
    assert sentence(process(0), idle) == told


def test_a_rank_that_does_nothing_is_waited_for_while_another_works() -> None:
    idle, busy = process(1, 3, waits_in=None), process(2, 3, waits_in=None)
    idle.still_seconds = STILL_SECONDS + 1
    assert sentence(process(0, 3), idle, busy, expected=3, waited=10_000) is None


def test_what_a_rank_has_started_works_for_it() -> None:
    own = RankProcess(os.getpid(), 1)
    before = own.ticks
    busy = "while sum(__import__('os').times()[:2]) < 0.5: pass\nprint(flush=True)\ninput()"
    command = [sys.executable, "-c", busy]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert own.ticks >= before + 40
        other.kill()


def test_a_process_says_where_it_stands_until_it_goes_on(tmp_path: Path) -> None:
    processes = RankProcesses(str(tmp_path))
    processes.note_spawned([os.getpid()])
    processes.note_standing("train.py:20")
    assert [peer.stands_at for peer in processes.peers()[0]] == ["train.py:20"]
    processes.note_going_on()
    assert [peer.stands_at for peer in processes.peers()[0]] == [None]


def test_ranks_that_were_never_started_are_told_with_how_many_were() -> None:
    told = sentence(process(0, 4), process(1, 4))
    assert told == (
        f"rank 0 waits in {INIT} for ranks 2 and 3: of the 4 ranks that the script expects, "
        "2 were started"
    )
    unknown = sentence(process(0), expected=None, waited=PATIENCE_SECONDS + 1)
    assert unknown == f"rank 0 waits in {INIT} for rank 1, which did not come within 301 s"


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (process(0), "two processes take part as rank 0"),
        (process(1, 3), f"rank 0 expects 2 ranks, and rank 1 expects 3 ({INIT})"),
        (
            process(1, port=1),
            f"rank 0 looks for the others at port 29500, and rank 1 at port 1 ({INIT}): "
            "a real job would hang there",
        ),
    ],
)
def test_ranks_that_were_told_different_things_are_told_which_without_delay(
    second: MadeUp, expected: str
) -> None:
    assert sentence(process(0), second, waited=5) == expected
    second.blocked_in = None
    assert sentence(process(0), second, waited=5) is None


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (
            process(1, waits_in="new_group at train.py:9"),
            f"rank 0 waits in {INIT}, rank 1 waits in new_group at train.py:9: "
            "a real job would hang there",
        ),
        (
            process(1, is_alive=False),
            f"rank 0 waits in {INIT} for rank 1, which has ended: a real job would hang there",
        ),
    ],
)
def test_ranks_that_all_wait_are_told_why(second: MadeUp, expected: str) -> None:
    assert sentence(process(0), second) == expected
    assert sentence(process(0), second, waited=DEADLOCK_SECONDS - 1) is None


def test_ranks_of_other_machines_may_still_let_them_go_on() -> None:
    elsewhere = frozenset({2, 3})
    assert sentence(process(0, 4), process(1, 4), waited=10_000, elsewhere=elsewhere) is None
    ended = process(1, None, is_alive=False)
    assert "for rank 1, which has ended" in str(sentence(process(0, 4), ended, elsewhere=elsewhere))


@pytest.mark.parametrize(
    ("arguments", "options", "rank_and_size"),
    [
        (("nccl", None, None, 4, 1), {}, (1, 4)),
        (("nccl",), {"rank": 0, "world_size": 2}, (0, 2)),
        ((), {"init_method": "tcp://127.0.0.1:29500?rank=3&world_size=8"}, (3, 8)),
        (("nccl",), {}, (5, 6)),
        (("nccl",), {"world_size": -1, "rank": -1}, (5, 6)),
    ],
)
def test_a_rank_is_said_by_arguments_or_by_variables(
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    rank_and_size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "6")
    assert said_by(arguments, options) == rank_and_size


@pytest.mark.parametrize(
    ("arguments", "options", "port"),
    [
        (("nccl",), {}, 29500),
        (("nccl", "env://"), {"rank": 0}, 29500),
        (("nccl", "tcp://127.0.0.1:1234"), {}, 1234),
        (("nccl",), {"init_method": "file:///tmp/meeting"}, None),
        (("nccl",), {"store": object()}, None),
    ],
)
def test_the_port_of_the_store_is_said_by_the_address_or_a_variable(
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    port: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert port_of_store(arguments, options) == port


def test_a_rank_that_dies_of_a_signal_leaves_its_line_and_what_it_has_started_does_not(
    tmp_path: Path,
) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import ctypes, os, sys\n"
        "from ghostgpu.agent.ranks.fatal_signals import note_fatal_signals\n"
        "note_fatal_signals(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    ctypes.string_at(0)\n"
        "os.wait()\n"
        "size = os.path.getsize(f'{sys.argv[1]}/fault-{os.getpid()}')\n"
        "print(os.getpid(), size, flush=True)\n"
        "ctypes.string_at(0)\n"
    )
    folder = str(Path(rank_processes.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "ranks")],
        env={**os.environ, "PYTHONPATH": folder},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGSEGV
    pid, size = done.stdout.split()
    assert size == "0"
    fault = (tmp_path / "ranks" / f"fault-{pid}").read_text()
    assert fault.startswith("Fatal Python error: Segmentation fault")
    assert 'train.py", line 9 in <module>' in fault


def test_processes_find_each_other_in_the_folder_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GHOSTGPU_SESSION", str(tmp_path / "session.json"))
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    rank_processes.note_started()
    other = (
        "import os; from ghostgpu.agent.ranks import rank_processes as it; it.note_started();"
        "print(os.getpid())"
    )
    folder = str(Path(rank_processes.__file__).parents[3])
    environment = {**os.environ, "RANK": "1", "PYTHONPATH": folder}
    done = subprocess.run(
        [sys.executable, "-c", other], env=environment, capture_output=True, text=True, check=True
    )
    # What a rank starts itself is no rank, though it has the same variables.
    worker = {**environment, "RANK": "0"}
    subprocess.run([sys.executable, "-c", other], env=worker, capture_output=True, check=True)
    processes = RankProcesses(str(tmp_path))
    processes.note_arrived(0, 2)
    processes.note_blocked(INIT)
    peers, expected = processes.peers()
    known = {peer.rank: (peer.pid, peer.is_alive, peer.blocked_in) for peer in peers}
    assert known == {0: (os.getpid(), True, INIT), 1: (int(done.stdout), False, None)}
    assert expected == 2
    processes.note_going_on()
    own = next(peer for peer in processes.peers()[0] if peer.rank == 0)
    assert own.blocked_in is None


def test_spawned_processes_are_known_before_any_of_them_comes(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        processes = RankProcesses(str(tmp_path))
        processes.note_spawned([os.getpid(), other.pid])
        peers, expected = processes.peers()
        assert [(peer.pid, peer.is_alive) for peer in peers] == [
            (os.getpid(), True),
            (other.pid, True),
        ]
        assert expected == 2
        other.kill()
        other.wait()
        assert [peer.is_alive for peer in processes.peers()[0]] == [True, False]
