"""Sorting, scanning, selecting, random numbers: operations with CUB scratch space."""

from __future__ import annotations

import torch

from .operation import add

for length in (1_000, 100_000, 1_000_000, 20_000_000):
    add(f"sort 1-D {length}", lambda m, n=length: (m.real(n),), lambda x: x.sort())
    add(f"cumsum 1-D {length}", lambda m, n=length: (m.real(n),), lambda x: x.cumsum(0))
    add(
        f"randperm {length}",
        lambda m, n=length: (m.size(n), m.device),
        lambda n, device: torch.randperm(n, device=device),
    )

add("sort int64 1M", lambda m: (m.whole(1000, 1_000_000),), lambda x: x.sort())
add("sort bf16 1M", lambda m: (m.brain(1_000_000),), lambda x: x.sort())
add("sort rows 1000x1000", lambda m: (m.real(1000, 1000),), lambda x: x.sort(dim=1))
add("sort rows 64x5000", lambda m: (m.real(64, 5000),), lambda x: x.sort(dim=1))
add("sort rows 8x200000", lambda m: (m.real(8, 200_000),), lambda x: x.sort(dim=1))
add("sort columns 5000x64", lambda m: (m.real(5000, 64),), lambda x: x.sort(dim=0))
add("sort stable 1M", lambda m: (m.real(1_000_000),), lambda x: x.sort(stable=True))
add("argsort 4096x128", lambda m: (m.real(4096, 128),), lambda x: x.argsort(dim=-1))
add("sort backward", lambda m: (m.real(512, 2048),), lambda x: x.sort()[0], backward=True)
add("topk 10 of 1M", lambda m: (m.real(1_000_000),), lambda x: x.topk(10))
add("topk 50 of 64x50257", lambda m: (m.real(64, 50257),), lambda x: x.topk(50))
add("topk 2 of 8192x8", lambda m: (m.real(8192, 8),), lambda x: x.topk(2), backward=False)
add("kthvalue 1000x1000", lambda m: (m.real(1000, 1000),), lambda x: x.kthvalue(5))
add("median 1000x1000", lambda m: (m.real(1000, 1000),), lambda x: x.median(dim=1))
add("mode 256x256", lambda m: (m.whole(10, 256, 256),), lambda x: x.mode())
add("cumsum rows 1000x1000", lambda m: (m.real(1000, 1000),), lambda x: x.cumsum(1))
add("cumsum columns 1000x1000", lambda m: (m.real(1000, 1000),), lambda x: x.cumsum(0))
add("cumsum int64 4096x128", lambda m: (m.whole(2, 4096, 128),), lambda x: x.cumsum(1))
add("cumprod rows", lambda m: (m.real(512, 512),), lambda x: x.cumprod(1), backward=True)
add("cummax rows", lambda m: (m.real(512, 512),), lambda x: x.cummax(1))
add("logcumsumexp", lambda m: (m.real(512, 512),), lambda x: x.logcumsumexp(1))
add(
    "unique 1M", lambda m: (m.whole(1000, 1_000_000),), lambda x: x.unique(), is_data_dependent=True
)
add(
    "unique with inverse 100k",
    lambda m: (m.whole(1000, 100_000),),
    lambda x: x.unique(return_inverse=True, return_counts=True),
    is_data_dependent=True,
)
add(
    "unique rows",
    lambda m: (m.whole(3, 1000, 4),),
    lambda x: x.unique(dim=0),
    is_data_dependent=True,
)
add(
    "unique_consecutive 100k",
    lambda m: (m.whole(10, 100_000),),
    lambda x: x.unique_consecutive(),
    is_data_dependent=True,
)
add("nonzero 1M", lambda m: (m.mask(1_000_000),), lambda x: x.nonzero(), is_data_dependent=True)
add(
    "nonzero 1000x1000",
    lambda m: (m.mask(1000, 1000),),
    lambda x: x.nonzero(),
    is_data_dependent=True,
)
add(
    "where with one argument",
    lambda m: (m.mask(10_000),),
    lambda x: torch.where(x),
    is_data_dependent=True,
)
add("histc", lambda m: (m.real(100_000),), lambda x: x.histc(100))
add("bincount", lambda m: (m.whole(100, 100_000),), lambda x: x.bincount(), is_data_dependent=True)
add(
    "bincount with minlength",
    lambda m: (m.whole(100, 100_000),),
    lambda x: x.bincount(minlength=4096),
    is_data_dependent=True,
)
add(
    "searchsorted",
    lambda m: (m.real(10_000), m.real(10_000)),
    lambda a, b: torch.searchsorted(a, b),
)
add("bucketize", lambda m: (m.real(10_000), m.real(100)), lambda a, b: torch.bucketize(a, b))
add("multinomial 1", lambda m: (m.real(64, 50257).softmax(-1),), lambda p: p.multinomial(1))
add("multinomial 10", lambda m: (m.real(64, 1000).softmax(-1),), lambda p: p.multinomial(10))
add(
    "multinomial with replacement",
    lambda m: (m.real(64, 1000).softmax(-1),),
    lambda p: p.multinomial(100, replacement=True),
)
add("bernoulli", lambda m: (m.real(1000, 1000).sigmoid(),), lambda p: p.bernoulli())
add("randn", lambda m: (m.device,), lambda d: torch.randn(1000, 1000, device=d))
add("randint", lambda m: (m.device,), lambda d: torch.randint(0, 9, (1000, 1000), device=d))
add("normal_", lambda m: (m.real(1000, 1000),), lambda x: x.normal_())
add("exponential_", lambda m: (m.real(1000, 1000),), lambda x: x.exponential_())
add("trunc_normal_", lambda m: (m.real(1000, 1000),), lambda x: torch.nn.init.trunc_normal_(x))
add(
    "gumbel_softmax",
    lambda m: (m.real(512, 1000),),
    torch.nn.functional.gumbel_softmax,
    backward=True,
)
add(
    "gumbel_softmax hard",
    lambda m: (m.real(512, 1000),),
    lambda x: torch.nn.functional.gumbel_softmax(x, hard=True),
    backward=True,
)
