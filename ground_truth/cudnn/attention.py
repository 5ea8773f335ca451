"""cuDNN attention, as PyTorch calls it: what it allocates forward and backward."""

from __future__ import annotations

from typing import Any, Dict, List

Point = Dict[str, Any]
BASE: Point = {
    "batch": 4,
    "heads": 8,
    "kv_heads": 8,
    "q": 512,
    "kv": 512,
    "dim": 64,
    "v_dim": 64,
    "causal": 0,
    "dropout": 0.0,
    "bias": "none",
    "grad": 1,
    "dtype": "bfloat16",
    "layout": "bshd",
}


def points() -> List[Point]:
    result: List[Point] = []

    def add(**changes: Any) -> None:
        point = {**BASE, **changes}
        if "kv_heads" not in changes:
            point["kv_heads"] = point["heads"]
        if "v_dim" not in changes:
            point["v_dim"] = point["dim"]
        if point not in result:
            result.append(point)

    for length in (
        1,
        16,
        64,
        100,
        127,
        128,
        129,
        197,
        200,
        256,
        300,
        384,
        512,
        577,
        1000,
        1024,
        1500,
        2048,
        4096,
    ):
        for causal in (0, 1):
            add(q=length, kv=length, causal=causal)
    for batch in (1, 2, 3, 8, 16, 32, 64):
        add(batch=batch)
        add(batch=batch, causal=1, q=256, kv=256)
    for heads in (1, 2, 3, 6, 12, 16, 32):
        add(heads=heads)
        add(heads=heads, batch=1, q=300, kv=300, causal=1)
    for dim in (8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 104, 112, 120, 128, 160, 192, 256):
        for causal in (0, 1):
            add(dim=dim, causal=causal)
    for q, kv in (
        (1, 128),
        (1, 1024),
        (64, 512),
        (128, 77),
        (1024, 77),
        (4096, 77),
        (512, 1024),
        (300, 500),
        (500, 300),
        (256, 2048),
    ):
        add(q=q, kv=kv)
        add(q=q, kv=kv, grad=0)
    for dropout in (0.1,):
        for causal in (0, 1):
            for length in (128, 197, 512, 1024):
                add(dropout=dropout, causal=causal, q=length, kv=length)
        add(dropout=dropout, heads=12, batch=8, dtype="float16")
    for bias in ("full", "batch", "head", "row", "bool"):
        for length in (128, 200, 512):
            add(bias=bias, q=length, kv=length)
            add(bias=bias, q=length, kv=length, grad=0)
        add(bias=bias, dim=128)
    for heads, kv_heads in ((8, 1), (8, 2), (16, 4), (32, 8), (12, 4)):
        for causal in (0, 1):
            add(heads=heads, kv_heads=kv_heads, causal=causal)
            add(heads=heads, kv_heads=kv_heads, causal=causal, dim=128, q=1024, kv=1024)
    for layout in ("bhsd", "packed"):
        for length in (128, 200, 512, 1024):
            for causal in (0, 1):
                add(layout=layout, q=length, kv=length, causal=causal)
    for length in (128, 200, 512, 2048):
        for dim in (64, 128):
            add(dtype="float16", q=length, kv=length, dim=dim)
            add(dtype="float16", q=length, kv=length, dim=dim, causal=1, grad=0)
            add(q=length, kv=length, dim=dim, grad=0)
    for batch, heads, length, dim in (
        (32, 12, 128, 64),
        (8, 12, 512, 64),
        (4, 32, 1024, 128),
        (2, 16, 2048, 128),
        (16, 6, 197, 64),
        (64, 3, 49, 32),
        (1, 32, 4096, 128),
        (8, 16, 384, 64),
        (2, 40, 1024, 128),
    ):
        for causal in (0, 1):
            add(batch=batch, heads=heads, q=length, kv=length, dim=dim, causal=causal)
    add(dim=128, v_dim=64)
    add(dim=64, v_dim=128)
    add(dim=192, v_dim=128)
    return result


def ask(point: Point) -> Dict[str, Any]:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    dtype = getattr(torch, point["dtype"])
    make: Dict[str, Any] = {"device": "cuda", "dtype": dtype}

    def tensor(heads: int, length: int, dim: int) -> Any:
        shape = (point["batch"], heads, length, dim)
        if point["layout"] == "bhsd":
            value = torch.zeros(shape, **make)
        else:
            value = torch.zeros((shape[0], shape[2], shape[1], shape[3]), **make).transpose(1, 2)
        return value.requires_grad_(bool(point["grad"]))

    if point["layout"] == "packed":
        whole = torch.zeros((point["batch"], point["q"], 3 * point["heads"] * point["dim"]), **make)
        whole.requires_grad_(bool(point["grad"]))
        q, k, v = (
            part.view(point["batch"], point["q"], point["heads"], point["dim"]).transpose(1, 2)
            for part in whole.split(point["heads"] * point["dim"], dim=2)
        )
    else:
        q = tensor(point["heads"], point["q"], point["dim"])
        k = tensor(point["kv_heads"], point["kv"], point["dim"])
        v = tensor(point["kv_heads"], point["kv"], point["v_dim"])
    bias_shapes = {
        "full": (point["batch"], point["heads"]),
        "batch": (point["batch"], 1),
        "head": (1, point["heads"]),
        "bool": (point["batch"], 1),
        "row": (1, 1),
    }
    bias = None
    if point["bias"] != "none":
        shape = (*bias_shapes[point["bias"]], point["q"], point["kv"])
        bias = (
            torch.ones(shape, device="cuda", dtype=torch.bool)
            if point["bias"] == "bool"
            else torch.zeros(shape, **make)
        )
    answer: Dict[str, Any] = {}
    memory = torch.cuda.memory

    def events() -> List[Any]:
        trace = memory._snapshot()["device_traces"][0]
        return [
            [event["action"], event["size"], event["addr"]]
            for event in trace
            if event["action"] in ("alloc", "free_requested", "free_completed")
        ]

    # Everything that is done once per process (handles, seeds, autograd) is done before recording.
    torch.cuda.synchronize()
    try:
        for attempt in ("first", "second"):
            memory._record_memory_history(enabled=None)
            memory._record_memory_history(enabled="all", context=None)
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                out = torch.nn.functional.scaled_dot_product_attention(
                    q,
                    k,
                    v,
                    attn_mask=bias,
                    dropout_p=point["dropout"],
                    is_causal=bool(point["causal"]),
                    enable_gqa=point["heads"] != point["kv_heads"],
                )
            answer[f"forward_{attempt}"] = _compact(events())
            if point["grad"]:
                grad = torch.zeros_like(out)
                memory._record_memory_history(enabled=None)
                memory._record_memory_history(enabled="all", context=None)
                inputs = [whole] if point["layout"] == "packed" else [q, k, v]
                result = torch.autograd.grad(out, inputs, grad)
                answer[f"backward_{attempt}"] = _compact(events())
                del result, grad
            del out
    except Exception as error:  # a refusal is an answer, too
        answer["error"] = str(error).splitlines()[0][:300]
    finally:
        memory._record_memory_history(enabled=None)
    return answer


def _compact(events: List[Any]) -> List[Any]:
    """Allocations in order, each with whether it was freed before the recording ended."""
    rows: List[List[Any]] = []
    live: Dict[int, int] = {}
    for action, size, address in events:
        if action == "alloc":
            live[address] = len(rows)
            rows.append([size, 0])
        elif action == "free_requested" and address in live:
            rows[live.pop(address)][1] = 1
    return rows
