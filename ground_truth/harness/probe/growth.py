"""Memory on the card that PyTorch's allocator does not own, operation by operation.

Kernels are loaded and libraries take memory when they are first used. `probe_in_order` walks
through all stages in one process; `probe_alone` runs a single one, so that both together say
whether the parts add up whatever the order.
"""

from __future__ import annotations

import os
from typing import Any, Callable

from . import cuda_calls as cuda

STAGES: dict[str, Callable[[], None]] = {}


def stage(function: Callable[[], None]) -> Callable[[], None]:
    STAGES[function.__name__.strip("_")] = function
    return function


def outside_allocator() -> dict[str, Any]:
    import torch

    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    reserved = torch.cuda.memory_reserved()
    reading = {"outside_bytes": total - free - reserved, "reserved_bytes": reserved}
    try:
        rows = cuda.nvml_processes(cuda.nvml_device())
        reading["nvml_process_bytes"] = [row["used_bytes"] for row in rows]
    except Exception as failure:  # noqa: BLE001
        reading["nvml_failed"] = str(failure)
    return reading


def probe_in_order(names: list[str]) -> list[list[Any]]:
    import torch

    torch.cuda.init()
    rows: list[list[Any]] = [["start", outside_allocator()]]
    for name in names:
        try:
            STAGES[name]()
            rows.append([name, outside_allocator()])
        except Exception as failure:  # noqa: BLE001
            rows.append([name, {"failed": f"{type(failure).__name__}: {failure}"}])
        try:
            # A second time: what grows again is not a first-use cost.
            STAGES[name]()
            rows.append([name + " again", outside_allocator()])
        except Exception as failure:  # noqa: BLE001
            rows.append([name + " again", {"failed": f"{type(failure).__name__}: {failure}"}])
    return rows


def probe_alone(name: str) -> list[list[Any]]:
    return probe_in_order([name])


@stage
def _first_tensor() -> None:
    import torch

    torch.empty(128, device="cuda")


@stage
def _fill_kernel() -> None:
    import torch

    torch.zeros(1000, device="cuda")


@stage
def _elementwise() -> None:
    import torch

    x = torch.ones(100_000, device="cuda")
    (x * 2 + x.exp()).relu_()


@stage
def _random_numbers() -> None:
    import torch

    torch.randn(100_000, device="cuda")


@stage
def _reduction() -> None:
    import torch

    torch.ones(1000, 1000, device="cuda").sum(0).mean()


@stage
def _gemm_fp32() -> None:
    import torch

    x = torch.ones(1024, 1024, device="cuda")
    torch.mm(x, x)


@stage
def _gemm_bf16() -> None:
    import torch

    x = torch.ones(1024, 1024, device="cuda", dtype=torch.bfloat16)
    torch.mm(x, x)


@stage
def _gemm_fp16() -> None:
    import torch

    x = torch.ones(1024, 1024, device="cuda", dtype=torch.float16)
    torch.mm(x, x)


@stage
def _gemm_tf32() -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    x = torch.ones(1024, 1024, device="cuda")
    torch.mm(x, x)
    torch.backends.cuda.matmul.allow_tf32 = False


@stage
def _batched_gemm() -> None:
    import torch

    x = torch.ones(16, 256, 256, device="cuda")
    torch.bmm(x, x)


@stage
def _lt_linear_with_bias() -> None:
    import torch

    layer = torch.nn.Linear(1024, 1024, device="cuda")
    layer(torch.ones(512, 1024, device="cuda"))


@stage
def _lt_linear_bf16() -> None:
    import torch

    layer = torch.nn.Linear(1024, 1024, device="cuda", dtype=torch.bfloat16)
    layer(torch.ones(512, 1024, device="cuda", dtype=torch.bfloat16))


@stage
def _lt_addmm_gelu() -> None:
    import torch

    x = torch.ones(512, 1024, device="cuda", dtype=torch.bfloat16)
    w = torch.ones(1024, 1024, device="cuda", dtype=torch.bfloat16)
    b = torch.ones(1024, device="cuda", dtype=torch.bfloat16)
    torch._addmm_activation(b, x, w, use_gelu=True)


@stage
def _layer_norm_backward() -> None:
    import torch

    layer = torch.nn.LayerNorm(768, device="cuda")
    layer(torch.ones(512, 768, device="cuda", requires_grad=True)).sum().backward()


@stage
def _softmax_cross_entropy() -> None:
    import torch

    x = torch.ones(64, 1000, device="cuda", requires_grad=True)
    torch.nn.functional.cross_entropy(
        x, torch.zeros(64, dtype=torch.long, device="cuda")
    ).backward()


@stage
def _embedding_backward() -> None:
    import torch

    layer = torch.nn.Embedding(30000, 128, device="cuda")
    layer(torch.zeros(64, 64, dtype=torch.long, device="cuda")).sum().backward()


@stage
def _adamw_foreach_step() -> None:
    import torch

    layer = torch.nn.Linear(64, 64, device="cuda")
    layer(torch.ones(8, 64, device="cuda")).sum().backward()
    torch.optim.AdamW(layer.parameters()).step()


@stage
def _adamw_fused_step() -> None:
    import torch

    layer = torch.nn.Linear(64, 64, device="cuda")
    layer(torch.ones(8, 64, device="cuda")).sum().backward()
    torch.optim.AdamW(layer.parameters(), fused=True).step()


@stage
def _conv_forward() -> None:
    import torch

    with torch.no_grad():
        torch.nn.Conv2d(64, 64, 3, padding=1, device="cuda")(
            torch.ones(8, 64, 56, 56, device="cuda")
        )


@stage
def _conv_backward() -> None:
    import torch

    layer = torch.nn.Conv2d(64, 64, 3, padding=1, device="cuda")
    layer(torch.ones(8, 64, 56, 56, device="cuda", requires_grad=True)).sum().backward()


@stage
def _conv_bf16_channels_last() -> None:
    import torch

    layer = torch.nn.Conv2d(64, 64, 3, padding=1, device="cuda", dtype=torch.bfloat16)
    layer = layer.to(memory_format=torch.channels_last)
    x = torch.ones(8, 64, 56, 56, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    layer(x.to(memory_format=torch.channels_last)).sum().backward()


@stage
def _conv_transpose() -> None:
    import torch

    layer = torch.nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, device="cuda")
    layer(torch.ones(8, 64, 28, 28, device="cuda", requires_grad=True)).sum().backward()


@stage
def _batch_norm() -> None:
    import torch

    layer = torch.nn.BatchNorm2d(64, device="cuda")
    layer(torch.ones(8, 64, 56, 56, device="cuda", requires_grad=True)).sum().backward()


def _attention(backend_name: str, dtype_name: str) -> None:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    dtype = getattr(torch, dtype_name)
    q = torch.ones(4, 8, 256, 64, device="cuda", dtype=dtype, requires_grad=True)
    with sdpa_kernel(getattr(SDPBackend, backend_name)):
        torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


@stage
def _attention_flash() -> None:
    _attention("FLASH_ATTENTION", "bfloat16")


@stage
def _attention_memory_efficient() -> None:
    _attention("EFFICIENT_ATTENTION", "float32")


@stage
def _attention_cudnn() -> None:
    _attention("CUDNN_ATTENTION", "bfloat16")


@stage
def _attention_math() -> None:
    _attention("MATH", "float32")


@stage
def _lstm() -> None:
    import torch

    layer = torch.nn.LSTM(128, 256, 2, batch_first=True, dropout=0.1).cuda()
    layer(torch.ones(16, 32, 128, device="cuda"))[0].sum().backward()


@stage
def _gru() -> None:
    import torch

    layer = torch.nn.GRU(128, 256, batch_first=True).cuda()
    layer(torch.ones(16, 32, 128, device="cuda"))[0].sum().backward()


@stage
def _cusolver() -> None:
    import torch

    x = torch.eye(128, device="cuda") * 2
    torch.linalg.solve(x, x)
    torch.linalg.cholesky(x)


@stage
def _cufft() -> None:
    import torch

    torch.fft.fft2(torch.ones(4, 256, 256, device="cuda"))


@stage
def _cusparse() -> None:
    import torch

    x = torch.eye(256, device="cuda").to_sparse_csr()
    torch.mv(x, torch.ones(256, device="cuda"))
    x @ torch.ones(256, 64, device="cuda")


@stage
def _sort() -> None:
    import torch

    torch.arange(1_000_000, device="cuda").flip(0).sort()


@stage
def _topk_cumsum_unique() -> None:
    import torch

    x = torch.arange(100_000, device="cuda")
    x.topk(10)
    x.cumsum(0)
    x.unique()


@stage
def _second_stream() -> None:
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(1024, 1024, device="cuda")
        torch.mm(x, x)
    stream.synchronize()


@stage
def _graph_capture() -> None:
    import torch

    x = torch.ones(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x * 2
    graph.replay()


@stage
def _nccl_single_rank() -> None:
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", RANK="0", WORLD_SIZE="1")
        dist.init_process_group("nccl", rank=0, world_size=1)
    dist.all_reduce(torch.ones(1024, device="cuda"))
