"""PyTorch's out-of-memory messages, in each situation that changes them."""

from __future__ import annotations

from typing import Any, Callable

from .cuda_calls import GIB, MIB

SITUATIONS: dict[str, Callable[[], None]] = {}


def situation(function: Callable[[], None]) -> Callable[[], None]:
    SITUATIONS[function.__name__.strip("_")] = function
    return function


def required_settings(name: str) -> str:
    """The allocator settings a situation needs; PyTorch reads them when it is imported."""
    first_word = name.split("_", maxsplit=1)[0]
    return {
        "expandable": "expandable_segments:True",
        "async": "backend:cudaMallocAsync",
        "split": "max_split_size_mb:128",
    }.get(first_word, "")


def probe(name: str) -> dict[str, Any]:
    """Runs one situation in this process, which must not have used CUDA yet."""
    import torch

    kind, text = None, None
    try:
        SITUATIONS[name]()
    except Exception as failure:  # noqa: BLE001
        kind, text = type(failure).__name__, str(failure)
    free, total = torch.cuda.mem_get_info()
    statistics = torch.cuda.memory_stats()
    return {
        "exception": kind,
        "text": text,
        "free": free,
        "total": total,
        "reserved": torch.cuda.memory_reserved(),
        "allocated": torch.cuda.memory_allocated(),
        "retries": statistics.get("num_alloc_retries"),
        "ooms": statistics.get("num_ooms"),
    }


def _take(size: int) -> Any:
    import torch

    return torch.empty(size, dtype=torch.uint8, device="cuda")


def _cap(size: int) -> None:
    """A memory fraction that allows about `size` bytes."""
    import torch

    torch.cuda.set_per_process_memory_fraction(
        size / torch.cuda.get_device_properties(0).total_memory
    )


@situation
def _more_than_the_card() -> None:
    _take(150 * GIB)


@situation
def _more_than_the_card_after_some() -> None:
    kept = [_take(10 * GIB), _take(3 * MIB), _take(100)]
    _take(150 * GIB)
    del kept


@situation
def _under_a_cap() -> None:
    _cap(8 * GIB)
    kept = _take(5 * GIB)
    _take(4 * GIB)
    del kept


@situation
def _under_a_cap_with_cached_blocks() -> None:
    """The cache is freed first, so one retry precedes the error."""
    _cap(8 * GIB)
    kept = [_take(1 * GIB) for _ in range(6)]
    del kept[::2]
    _take(6 * GIB)


@situation
def _under_a_cap_with_a_split_block() -> None:
    _cap(8 * GIB)
    whole = _take(4 * GIB)
    del whole
    kept = _take(1 * GIB)
    _take(5 * GIB)
    del kept


@situation
def _cap_below_a_small_pool() -> None:
    _cap(8 * MIB)
    kept = [_take(512 * 1024) for _ in range(64)]
    del kept


@situation
def _fill_in_gibibytes() -> None:
    kept = []
    while True:
        kept.append(_take(GIB))


@situation
def _fill_in_small_pieces() -> None:
    kept = [_take(GIB) for _ in range(137)]
    while True:
        kept.append(_take(7 * MIB))


@situation
def _expandable_more_than_the_card() -> None:
    kept = _take(3 * GIB)
    _take(150 * GIB)
    del kept


@situation
def _expandable_fill() -> None:
    kept = []
    while True:
        kept.append(_take(GIB + 5 * MIB))


@situation
def _expandable_under_a_cap() -> None:
    _cap(8 * GIB)
    kept = [_take(1 * GIB) for _ in range(5)]
    _take(4 * GIB)
    del kept


@situation
def _split_limit_under_a_cap() -> None:
    _cap(8 * GIB)
    kept = [_take(1 * GIB) for _ in range(5)]
    del kept[0]
    _take(4 * GIB)


@situation
def _async_more_than_the_card() -> None:
    kept = _take(3 * GIB)
    _take(150 * GIB)
    del kept


@situation
def _async_under_a_cap() -> None:
    _cap(8 * GIB)
    kept = [_take(1 * GIB) for _ in range(5)]
    _take(4 * GIB)
    del kept


@situation
def _inside_an_operator() -> None:
    import torch

    _cap(4 * GIB)
    x = torch.ones(20_000, 20_000, device="cuda")
    (x @ x) @ (x + 1)


@situation
def _inside_a_convolution() -> None:
    """PyTorch swallows a workspace that does not fit and takes a leaner algorithm instead."""
    import torch

    _cap(3 * GIB)
    layer = torch.nn.Conv2d(128, 128, 3, padding=1, device="cuda")
    with torch.no_grad():
        x = torch.ones(128, 128, 112, 112, device="cuda")
        filler = _take(2 * GIB - 900 * MIB)
        layer(x)
    del filler


@situation
def _module_to_cuda() -> None:
    import torch

    _cap(1 * GIB)
    torch.nn.Linear(20_000, 20_000).to("cuda")
