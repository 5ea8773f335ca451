"""Calls PyTorch's operations that rest on cuFFT, cuSOLVER and cuSPARSE, with many shapes.

    ghostgpu calibrate -o dense.tsv -- python ground_truth/tables/operations.py dense [--seconds 40]

The parts are `dense`, `spectral` and `sparse`. The questions are the ones PyTorch itself asks.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import Callable, Iterator

import torch

Work = Callable[[], object]
REAL = (torch.float32, torch.float64)
ALL = (*REAL, torch.complex64, torch.complex128)


def positive(batch: tuple[int, ...], n: int, dtype: torch.dtype) -> torch.Tensor:
    matrix = torch.randn(*batch, n, n, dtype=dtype, device="cuda")
    return matrix @ matrix.mH + n * torch.eye(n, dtype=dtype, device="cuda")


def dense() -> Iterator[tuple[str, Work]]:
    sizes = (256, 64, 512, 16, 32, 128, 3, 100, 1024, 300, 1, 2, 4, 8, 33, 48, 200, 768, 2048)
    batches: tuple[tuple[int, ...], ...] = ((), (2,), (64,))
    for n, batch, dtype in itertools.product(sizes, batches, ALL):
        if n > 512 and (batch or dtype != torch.float32):
            continue
        a = positive(batch, n, dtype)
        b = torch.randn(*batch, n, 8, dtype=dtype, device="cuda")
        tall = torch.randn(*batch, 2 * n, n, dtype=dtype, device="cuda")
        label = f"{dtype} {batch} {n}"
        yield f"cholesky {label}", lambda a=a: torch.linalg.cholesky(a)
        yield f"inv {label}", lambda a=a: torch.linalg.inv(a)
        yield f"solve {label}", lambda a=a, b=b: torch.linalg.solve(a, b)
        yield f"det {label}", lambda a=a: torch.linalg.slogdet(a)
        yield f"lu {label}", lambda t=tall: torch.linalg.lu(t)
        yield f"qr {label}", lambda a=a, t=tall: (torch.linalg.qr(a), torch.linalg.qr(t))
        yield f"qr complete {label}", lambda t=tall: torch.linalg.qr(t, mode="complete")
        yield f"eigh {label}", lambda a=a: (torch.linalg.eigh(a), torch.linalg.eigvalsh(a))
        yield f"cholesky solve {label}", lambda a=a, b=b: torch.cholesky_solve(b, a)
        yield f"cholesky inverse {label}", lambda a=a: torch.cholesky_inverse(a)
        yield f"ldl {label}", lambda a=a, b=b: solve_ldl(a, b)
        yield f"lstsq {label}", lambda t=tall: torch.linalg.lstsq(t, t[..., :4])
        if n <= 512:
            yield f"svd {label}", lambda a=a, t=tall: (torch.linalg.svd(a), torch.linalg.svd(t))
            yield f"svd reduced {label}", lambda t=tall: torch.linalg.svd(t, full_matrices=False)
            yield f"svd wide {label}", lambda t=tall: torch.linalg.svd(t.mH, full_matrices=False)
            yield f"singular values {label}", lambda t=tall: torch.linalg.svdvals(t)
            yield f"pinv {label}", lambda t=tall: torch.linalg.pinv(t)
            for driver in ("gesvd", "gesvda", "gesvdj"):
                yield (
                    f"svd {driver} {label}",
                    lambda t=tall, d=driver: torch.linalg.svd(t, driver=d),
                )
        if n <= 256 and len(batch) == 0:
            yield f"eig {label}", lambda a=a: (torch.linalg.eig(a), torch.linalg.eigvals(a))
        yield f"matrix_exp {label}", lambda a=a: torch.linalg.matrix_exp(a / 100)


def solve_ldl(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    factors, pivots = torch.linalg.ldl_factor(a)
    return torch.linalg.ldl_solve(factors, pivots, b)


def spectral() -> Iterator[tuple[str, Work]]:
    f = torch.fft
    shapes = (
        *((64, 4096), (16, 10007), (8, 256, 256), (4, 3, 224, 224), (2, 64, 64, 64), (32, 16000)),
        *((8, 28, 28), (1, 1024, 1024), (16, 1000), (2, 480, 640), (5, 77), (3, 31, 17), (7, 4, 6)),
        *((1, 3, 512, 512), (128, 64, 14, 14), (32, 197, 768), (8, 128, 1024), (2, 8, 16, 32)),
        *((256, 1), (1, 65536), (4, 12, 100, 100), (2, 1, 96, 96, 96), (8, 7, 5, 3), (6, 129, 251)),
    )
    for shape, dtype in itertools.product(shapes, REAL):
        x = torch.randn(*shape, dtype=dtype, device="cuda")
        z = torch.complex(x, x)
        label = f"{dtype} {shape}"
        yield f"fft {label}", lambda z=z, x=x: (f.fft(z), f.ifft(z), f.fft(x))
        yield f"rfft {label}", lambda x=x: f.irfft(f.rfft(x), n=x.shape[-1])
        yield f"hfft {label}", lambda z=z: (f.hfft(z), f.ihfft(z.real))
        for dim in range(len(shape)):
            yield f"fft along {dim} {label}", lambda z=z, d=dim: f.fft(z, dim=d)
            yield f"rfft along {dim} {label}", lambda x=x, d=dim: f.irfft(f.rfft(x, dim=d), dim=d)
        yield f"fft2 {label}", lambda z=z: (f.fft2(z), f.ifft2(z))
        yield f"rfft2 {label}", lambda x=x: f.irfft2(f.rfft2(x))
        yield f"fftn {label}", lambda z=z: (f.fftn(z), f.ifftn(z))
        yield f"rfftn {label}", lambda x=x: f.irfftn(f.rfftn(x))
        yield f"rfft2 of the middle {label}", lambda x=x: f.rfft2(x, dim=(0, 1))
        yield f"fft2 of the middle {label}", lambda z=z: f.fft2(z, dim=(0, 1))
    for length, window, hop in itertools.product(
        (16000, 48000, 22050, 160000), (400, 512, 1024, 2048), (160, 256)
    ):
        for batch in (1, 8, 32):
            yield f"stft {batch} {length} {window}", lambda a=(batch, length, window, hop): stft(*a)


def stft(batch: int, length: int, window: int, hop: int) -> torch.Tensor:
    sound = torch.randn(batch, length, device="cuda")
    shape = torch.hann_window(window, device="cuda")
    spectrum = torch.stft(sound, window, hop, window=shape, return_complex=True)
    return torch.istft(spectrum, window, hop, window=shape)


def sparse() -> Iterator[tuple[str, Work]]:
    yield from sparse_products()
    yield from sparse_others()


def sparse_matrices(
    sizes: tuple[int, ...],
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """The same matrix in coordinates and in compressed rows, with 1 to 40 elements in a row."""
    for n, density, dtype in itertools.product(sizes, (1, 7, 40), ALL):
        per_row = min(density, n)
        columns = (torch.arange(n * per_row, device="cuda") * 7919) % n
        rows = torch.arange(n, device="cuda").repeat_interleave(per_row)
        values = torch.ones(n * per_row, dtype=dtype, device="cuda")
        coo = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (n, n)).coalesce()
        yield f"{dtype} {n} {density}", coo, coo.to_sparse_csr()


def sparse_products() -> Iterator[tuple[str, Work]]:
    for label, coo, csr in sparse_matrices((1024, 100, 4096, 16, 512, 33, 65536, 10000, 2, 300000)):
        n = coo.shape[0]
        v = torch.ones(n, dtype=coo.dtype, device="cuda")
        yield f"mv {label}", lambda c=csr, o=coo, v=v: (c @ v, torch.mv(o, v))
        for width in (1, 8, 64, 100, 512):
            d = torch.ones(n, width, dtype=coo.dtype, device="cuda")
            t = torch.ones(width, n, dtype=coo.dtype, device="cuda")
            yield f"csr mm {label} {width}", lambda c=csr, d=d: (c @ d, c.t() @ d)
            yield f"csr mm transposed {label} {width}", lambda c=csr, t=t: (c @ t.t(), t @ c)
            yield f"coo mm {label} {width}", lambda o=coo, d=d: torch.sparse.mm(o, d)
            yield f"addmm {label} {width}", lambda c=csr, d=d: torch.addmm(d, c, d)


def sparse_others() -> Iterator[tuple[str, Work]]:
    """After the products: an operation that goes wrong on the card would cost all that follow."""
    for label, coo, csr in sparse_matrices((1024, 100, 4096, 16, 512)):
        n = coo.shape[0]
        for width in (1, 8, 64):
            d = torch.ones(n, width, dtype=coo.dtype, device="cuda")
            t = torch.ones(width, n, dtype=coo.dtype, device="cuda")
            yield (
                f"sampled {label} {width}",
                lambda c=csr, d=d, t=t: torch.sparse.sampled_addmm(c, d, t),
            )
            yield (
                f"triangular {label} {width}",
                lambda c=csr, d=d: torch.triangular_solve(d, c, upper=False),
            )
        yield f"coalesce {label}", lambda o=coo: (o + o.t()).coalesce()
        yield f"csr add {label}", lambda c=csr: c + c
        yield f"csr product {label}", lambda c=csr: c @ c


PARTS = {"dense": dense, "spectral": spectral, "sparse": sparse}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=sorted(PARTS))
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    done, failures = 0, []
    for label, work in PARTS[options.part]():
        if time.monotonic() > deadline:
            print(f"{options.part}: the time is over before {label}", file=sys.stderr)
            break
        try:
            work()
            done += 1
        except Exception as error:  # One operation must not cost the others.
            failures.append(f"{label}: {str(error).splitlines()[0][:150]}")
    torch.cuda.synchronize()
    print(f"{options.part}: {done} done, {len(failures)} failed", file=sys.stderr)
    for failure in failures[:40]:
        print(f"  {failure}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
