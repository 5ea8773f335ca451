"""Matrix products, cuBLASLt epilogues, solvers, transforms and sparse products."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .operation import add

add("mm fp32", lambda m: (m.real(1024, 2048), m.real(2048, 512)), torch.mm, backward=True)
add("mm bf16", lambda m: (m.brain(1024, 2048), m.brain(2048, 512)), torch.mm, backward=True)
add("mm fp16", lambda m: (m.half(1024, 2048), m.half(2048, 512)), torch.mm, backward=True)
add("mm fp64", lambda m: (m.real(256, 256, dtype=torch.float64),), lambda a: a @ a, backward=True)
add("mm transposed", lambda m: (m.real(512, 512),), lambda a: a.t() @ a, backward=True)
add(
    "matmul 4-D broadcast",
    lambda m: (m.real(8, 12, 128, 64), m.real(64, 32)),
    torch.matmul,
    backward=True,
)
add("bmm fp32", lambda m: (m.real(64, 128, 64), m.real(64, 64, 128)), torch.bmm, backward=True)
add("bmm bf16", lambda m: (m.brain(64, 128, 64), m.brain(64, 64, 128)), torch.bmm, backward=True)
add(
    "baddbmm",
    lambda m: (m.real(64, 128, 128), m.real(64, 128, 64), m.real(64, 64, 128)),
    lambda c, a, b: torch.baddbmm(c, a, b, alpha=0.125),
    backward=True,
)
add(
    "addmm",
    lambda m: (m.real(512), m.real(1024, 768), m.real(768, 512)),
    torch.addmm,
    backward=True,
)
add("addmv", lambda m: (m.real(512), m.real(512, 768), m.real(768)), torch.addmv, backward=True)
add("dot", lambda m: (m.real(100_000), m.real(100_000)), torch.dot, backward=True)
add("outer", lambda m: (m.real(1000), m.real(1000)), torch.outer, backward=True)
add(
    "einsum attention",
    lambda m: (m.real(8, 64, 12, 64),),
    lambda a: torch.einsum("bqhd,bkhd->bhqk", a, a),
    backward=True,
)
for precision in ("real", "brain", "half"):
    add(
        f"linear with bias 3-D {precision}",
        lambda m, p=precision: (
            getattr(m, p)(32, 128, 768),
            getattr(m, p)(3072, 768),
            getattr(m, p)(3072),
        ),
        F.linear,
        backward=True,
    )
    add(
        f"linear without bias {precision}",
        lambda m, p=precision: (getattr(m, p)(4096, 768), getattr(m, p)(768, 768)),
        F.linear,
        backward=True,
    )
add(
    "linear odd sizes",
    lambda m: (m.real(33, 129), m.real(65, 129), m.real(65)),
    F.linear,
    backward=True,
)
add(
    "addmm with gelu",
    lambda m: (m.brain(1024), m.brain(512, 768), m.brain(768, 1024)),
    lambda b, x, w: torch._addmm_activation(b, x, w, use_gelu=True),
)
add(
    "addmm with relu",
    lambda m: (m.real(1024), m.real(512, 768), m.real(768, 1024)),
    lambda b, x, w: torch._addmm_activation(b, x, w),
)
add(
    "bilinear",
    lambda m: (m.real(64, 32), m.real(64, 32), m.real(16, 32, 32)),
    F.bilinear,
    backward=True,
)


def _positive(m: object, n: int, batch: int = 0) -> tuple[torch.Tensor]:
    size = m.size(n)  # type: ignore[attr-defined]
    matrix = torch.eye(size, device=m.device) * 3 + 0.01  # type: ignore[attr-defined]
    return (matrix.expand(batch, size, size).contiguous() if batch else matrix,)


for size in (64, 512, 1024):
    add(f"linalg.inv {size}", lambda m, n=size: _positive(m, n), torch.linalg.inv, backward=True)
    add(
        f"linalg.cholesky {size}",
        lambda m, n=size: _positive(m, n),
        torch.linalg.cholesky,
        backward=True,
    )
    add(
        f"linalg.qr {size}",
        lambda m, n=size: _positive(m, n),
        lambda a: torch.linalg.qr(a)[0],
        backward=True,
    )
add("linalg.solve", lambda m: _positive(m, 256), lambda a: torch.linalg.solve(a, a), backward=True)
add(
    "linalg.solve batched",
    lambda m: _positive(m, 32, 64),
    lambda a: torch.linalg.solve(a, a),
    backward=True,
)
add("linalg.svd 256", lambda m: _positive(m, 256), torch.linalg.svdvals)
add("linalg.svd batched 16", lambda m: _positive(m, 16, 64), lambda a: torch.linalg.svd(a)[1])
add("linalg.eigh 128", lambda m: _positive(m, 128), torch.linalg.eigh)
add("linalg.det", lambda m: _positive(m, 128), torch.linalg.det, backward=True)
add(
    "linalg.lstsq",
    lambda m: (m.real(256, 64), m.real(256, 8)),
    lambda a, b: torch.linalg.lstsq(a, b)[0],
)
add("linalg.lu_factor", lambda m: _positive(m, 256), torch.linalg.lu_factor)
add(
    "linalg.matrix_norm",
    lambda m: (m.real(512, 512),),
    lambda a: torch.linalg.matrix_norm(a),
    backward=True,
)
add(
    "triangular solve",
    lambda m: _positive(m, 256),
    lambda a: torch.linalg.solve_triangular(a, a, upper=False),
    backward=True,
)

add("fft", lambda m: (m.real(64, 4096),), lambda a: torch.fft.fft(a))
add("rfft", lambda m: (m.real(64, 4096),), lambda a: torch.fft.rfft(a).abs(), backward=True)
add("fft odd length", lambda m: (m.real(16, 10007),), lambda a: torch.fft.rfft(a))
add(
    "fft2 and back",
    lambda m: (m.real(8, 256, 256),),
    lambda a: torch.fft.irfft2(torch.fft.rfft2(a)),
    backward=True,
)
add(
    "stft",
    lambda m: (torch.ones(8, 16000, device=m.device), m.device),
    lambda a, d: torch.stft(
        a, 400, 160, window=torch.hann_window(400, device=d), return_complex=True
    ),
)

add(
    "sparse mm csr",
    lambda m: (
        torch.eye(1024, device=m.device).to_sparse_csr(),
        m.real(1024, 64)[:1, :].repeat(1024, 1),
    ),
    lambda a, b: a @ b,
)
add(
    "sparse mm coo",
    lambda m: (
        torch.eye(1024, device=m.device).to_sparse_coo(),
        m.real(1024, 64)[:1, :].repeat(1024, 1),
    ),
    torch.sparse.mm,
)
add("to_sparse", lambda m: (m.real(256, 256),), lambda a: a.to_sparse(), is_data_dependent=True)
add("cdist", lambda m: (m.real(512, 64), m.real(512, 64)), torch.cdist, backward=True)
add(
    "cosine_similarity",
    lambda m: (m.real(512, 64), m.real(512, 64)),
    F.cosine_similarity,
    backward=True,
)
