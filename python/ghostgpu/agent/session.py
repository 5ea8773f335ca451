"""What the command line asks of the agent, read from the file named in the environment.

The format is `Session` in `crates/session/src/request.rs`; the agent reads only its own part.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from .shared_numbers import SESSION_VARIABLE


@dataclass(frozen=True)
class SizePointRequest:
    """Which sizes to rehearse the script with, and where they are set."""

    place: str
    """`training-loader`, `first-loader`, `option` or `own`."""
    option: str | None
    batch: int | None
    """The batch of this process."""
    seq: int | None
    """The number of tokens that batches are cut to in this process."""
    socket: str | None
    """Where to ask for sizes instead, forking for each."""


@dataclass(frozen=True)
class CoverageRequest:
    """How much of a training to rehearse."""

    budget_seconds: float
    """Time for the training, from its first batch or step."""
    shortens_passes: bool
    skips_later_passes: bool
    """Later epochs are known to show nothing new."""
    is_brief: bool
    """The beginning and the end of a pass, and one step after it, are enough."""


@dataclass(frozen=True)
class RanksRequest:
    """Which ranks of a job are run on this machine."""

    nodes: int
    cards_per_node: int
    shares_nodes: bool
    """The session has the cards of one node, followed by one card per rank that stands in for the
    node's card that the rank uses: there are more nodes than there can be cards for."""
    chosen: str | tuple[int, ...]
    """`all`, `ends` (the first and the last), or these ranks."""


@dataclass(frozen=True)
class Session:
    """The agent's part of a rehearsal's description."""

    run_dir: str
    started_at: float
    """When the rehearsal began, in seconds since the epoch; older files are the user's."""
    steps: int
    """Stop after this many optimizer steps; 0 runs the script to its end."""
    coverage: CoverageRequest | None
    """Stop when nothing new is seen, and shorten passes over data on the way."""
    keep_checkpoints: bool
    full_initialisation: bool
    attribution: bool
    """Record whose memory it is."""
    unlimited_memory: bool
    """No allocation may fail."""
    size_point: SizePointRequest | None
    copy_socket: str | None
    """The socket to which the copy connects that is made before the card is first used."""
    values: str
    """What unknown values read as: `plausible` or `zero`."""
    halves_sizes: bool
    """Sizes that depend on values are assumed to be half as large."""
    tricks: tuple[tuple[str, dict[str, str]], ...]
    """The tricks to apply, by name, with their options."""
    ranks: RanksRequest | None = None
    """Set if the job has several nodes or not all of its ranks are run."""


def load() -> Session:
    """Read the session; raises `OSError`, `ValueError` or `KeyError` if that fails."""
    with open(os.environ[SESSION_VARIABLE], encoding="utf-8") as file:
        fields = json.load(file)
        started_at = os.fstat(file.fileno()).st_mtime
    return Session(
        run_dir=str(fields["run_dir"]),
        started_at=started_at,
        steps=int(fields["steps"]),
        coverage=_coverage(fields.get("coverage")),
        keep_checkpoints=bool(fields.get("keep_checkpoints", False)),
        full_initialisation=bool(fields.get("full_initialisation", False)),
        attribution=bool(fields.get("attribution", False)),
        unlimited_memory=bool(fields.get("unlimited_memory", False)),
        size_point=_size_point(fields.get("size_point")),
        copy_socket=fields.get("copy_socket"),
        values=str(fields.get("values", "plausible")),
        halves_sizes=bool(fields.get("halves_sizes", False)),
        tricks=tuple(_trick(request) for request in fields.get("tricks", ())),
        ranks=_ranks(fields.get("ranks")),
    )


def _ranks(fields: dict[str, Any] | None) -> RanksRequest | None:
    if fields is None:
        return None
    chosen = fields["chosen"]
    return RanksRequest(
        nodes=int(fields["nodes"]),
        cards_per_node=int(fields["cards_per_node"]),
        shares_nodes=bool(fields["shares_nodes"]),
        chosen=tuple(chosen["listed"]) if isinstance(chosen, dict) else str(chosen),
    )


def _trick(request: dict[str, Any]) -> tuple[str, dict[str, str]]:
    options = request.get("options", {})
    return str(request["name"]), {str(name): str(value) for name, value in options.items()}


def _coverage(fields: dict[str, Any] | None) -> CoverageRequest | None:
    if fields is None:
        return None
    return CoverageRequest(
        budget_seconds=float(fields["budget_ms"]) / 1000,
        shortens_passes=bool(fields.get("shortens_passes", True)),
        skips_later_passes=bool(fields.get("skips_later_passes", False)),
        is_brief=bool(fields.get("is_brief", False)),
    )


def _size_point(fields: dict[str, Any] | None) -> SizePointRequest | None:
    if fields is None:
        return None
    place = fields["place"]
    # A place with a value is an object with one field.
    option = place.get("option") if isinstance(place, dict) else None
    return SizePointRequest(
        place="option" if option is not None else str(place),
        option=option,
        batch=fields.get("batch"),
        seq=fields.get("seq"),
        socket=fields.get("socket"),
    )
