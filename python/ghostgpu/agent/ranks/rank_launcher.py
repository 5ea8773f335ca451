"""Starts the ranks of a job that are to be run, in the place of PyTorch's launcher.

`torchrun --nnodes 16` waits for fifteen other machines. All that it does on them is to start
processes with the right variables, so that is done here, for the chosen ranks of all nodes. A node
has cards of its own: its ranks see those alone. Stands where `torchrun`, `accelerate launch` and
others come together, which have read their own arguments by then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from ..report import RECORD
from ..session import RanksRequest
from .absent_ranks import RUN_RANKS_VARIABLE

_POLL_SECONDS = 0.05
_TERMINATION_SECONDS = 10.0
"""A rank that has been asked to end is killed after this."""

EXIT_USAGE = 2


@dataclass(frozen=True)
class Place:
    """Where a rank runs."""

    rank: int
    node: int
    local_rank: int
    cards: tuple[int, ...]
    """Those that it sees, among the cards of the run."""


def places(request: RanksRequest, nodes: int, per_node: int) -> list[Place]:
    """The ranks that are run, each with its place; raises `ValueError` with a sentence."""
    if nodes != request.nodes:
        raise ValueError(
            f"the job is started on {_nodes(nodes)}, and --nodes says {request.nodes}: "
            f"use --nodes {nodes}"
        )
    if per_node > request.cards_per_node:
        raise ValueError(
            f"a node has {per_node} ranks and {request.cards_per_node} cards: "
            f"use --count {per_node}"
        )
    world = nodes * per_node
    if request.chosen == "all":
        ranks = list(range(world))
    elif request.chosen == "ends":
        ranks = sorted({0, world - 1})
    else:
        ranks = [int(rank) for rank in request.chosen]
    if ranks[-1] >= world:
        raise ValueError(f"rank {ranks[-1]} is to be run of a job with ranks 0 to {world - 1}")
    nodes_used = sorted({rank // per_node for rank in ranks})
    found = []
    for number, rank in enumerate(ranks):
        node, local_rank = divmod(rank, per_node)
        first = 0 if request.shares_nodes else nodes_used.index(node) * request.cards_per_node
        cards = list(range(first, first + request.cards_per_node))
        if request.shares_nodes:
            cards[local_rank] = request.cards_per_node + number
        found.append(Place(rank, node, local_rank, tuple(cards)))
    return found


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


class RankLauncher:
    """Takes the place of `elastic_launch`."""

    def __init__(self, torch: Any, request: RanksRequest, run_dir: str) -> None:
        self._torch = torch
        self._request = request
        self._run_dir = run_dir

    def install(self) -> None:
        """Only in the launcher itself: its ranks are started, and start none."""
        if RUN_RANKS_VARIABLE in os.environ or not self._torch.distributed.is_available():
            return
        from torch.distributed.launcher import api

        def launch(launcher: Any, *arguments: Any) -> dict[int, Any]:
            return self._launch(launcher._config, launcher._entrypoint, arguments)

        setattr(api.elastic_launch, "__call__", launch)  # noqa: B010

    def _launch(self, config: Any, entrypoint: Any, arguments: Any) -> dict[int, Any]:
        if not isinstance(entrypoint, str):
            self._refuse("functions as ranks are started by PyTorch's own launcher only")
        try:
            chosen = places(self._request, int(config.max_nodes), int(config.nproc_per_node))
        except ValueError as problem:
            self._refuse(str(problem))
        # Kept here for as long as any rank lives.
        store = self._torch.distributed.TCPStore(
            "127.0.0.1", 0, is_master=True, wait_for_workers=False
        )
        command = [entrypoint, *(str(argument) for argument in arguments)]
        ranks: dict[int, subprocess.Popen[bytes]] = {}
        previous = signal.signal(signal.SIGTERM, _end)
        try:
            for place in chosen:
                variables = self._variables(place, config, store.port, chosen)
                ranks[place.rank] = subprocess.Popen(command, env={**os.environ, **variables})
            failed = self._wait(ranks)
        finally:
            _end_all(ranks.values())
            signal.signal(signal.SIGTERM, previous)
        if failed is not None:
            self._tell_failure(config, command, failed, ranks[failed])
        return dict.fromkeys(ranks)

    def _refuse(self, problem: str) -> None:
        RECORD.note(problem)
        sys.stderr.write(f"ghostgpu: {problem}\n")
        raise SystemExit(EXIT_USAGE)

    def _variables(
        self, place: Place, config: Any, port: int, chosen: list[Place]
    ) -> dict[str, str]:
        per_node, nodes = int(config.nproc_per_node), int(config.max_nodes)
        return {
            "RANK": str(place.rank),
            "LOCAL_RANK": str(place.local_rank),
            "GROUP_RANK": str(place.node),
            "ROLE_RANK": str(place.rank),
            "ROLE_NAME": str(config.role),
            "WORLD_SIZE": str(nodes * per_node),
            "LOCAL_WORLD_SIZE": str(per_node),
            "GROUP_WORLD_SIZE": str(nodes),
            "ROLE_WORLD_SIZE": str(nodes * per_node),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
            "TORCHELASTIC_RUN_ID": str(config.run_id),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_ERROR_FILE": self._error_file(place.rank),
            "CUDA_VISIBLE_DEVICES": ",".join(str(card) for card in place.cards),
            # One id for each communicator, however large: not one for every 128 ranks.
            "TORCH_NCCL_RANKS_PER_ROOT": str(2**30),
            RUN_RANKS_VARIABLE: ",".join(str(each.rank) for each in chosen),
        }

    def _error_file(self, rank: int) -> str:
        return os.path.join(self._run_dir, f"error-of-rank-{rank}.json")

    def _wait(self, ranks: dict[int, subprocess.Popen[bytes]]) -> int | None:
        """The first rank that failed; None when all have ended well."""
        while True:
            codes = {rank: process.poll() for rank, process in ranks.items()}
            failed = [rank for rank, code in codes.items() if code]
            if failed:
                return failed[0]
            if all(code == 0 for code in codes.values()):
                return None
            time.sleep(_POLL_SECONDS)

    def _tell_failure(
        self, config: Any, command: list[str], rank: int, process: subprocess.Popen[bytes]
    ) -> None:
        """As `torchrun` tells it."""
        from torch.distributed.elastic.multiprocessing.errors import (
            ChildFailedError,
            ProcessFailure,
        )

        failure = ProcessFailure(
            local_rank=rank % int(config.nproc_per_node),
            pid=process.pid,
            exitcode=process.returncode,
            error_file=self._error_file(rank),
        )
        scripts = [word for word in command[1:] if not word.startswith("-")]
        raise ChildFailedError(name=next(iter(scripts), command[0]), failures={rank: failure})


def _end(*_: Any) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _end_all(processes: Any) -> None:
    alive = [process for process in processes if process.poll() is None]
    for process in alive:
        process.terminate()
    until = time.monotonic() + _TERMINATION_SECONDS
    for process in alive:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
