"""Page-locked host memory: what it takes from the card, and how PyTorch rounds and keeps it."""

from __future__ import annotations

from typing import Any

from .cuda_calls import MIB


def probe() -> dict[str, Any]:
    import torch

    torch.cuda.init()
    rows: list[list[Any]] = []

    def note(action: str, size: int) -> None:
        free, _ = torch.cuda.mem_get_info()
        statistics = dict(torch.cuda.host_memory_stats())
        kept = {key: value for key, value in statistics.items() if isinstance(value, int) and value}
        rows.append([action, size, free, kept])

    note("start", 0)
    for size in (1, 1000, 4096, MIB, 3 * MIB, 20 * MIB, 100 * MIB + 1):
        tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        note("pinned", size)
        on_card = tensor.to("cuda", non_blocking=True)
        note("copied", size)
        del tensor, on_card
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        note("freed", size)
    return {"rows": rows}
