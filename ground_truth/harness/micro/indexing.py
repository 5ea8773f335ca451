"""Reading and writing by index, joining and cutting, embeddings and their gradients."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .operation import add

add(
    "index rows",
    lambda m: (m.real(10_000, 256), m.whole(10_000, 4096)),
    lambda x, i: x[i],
    backward=True,
)
add(
    "index two dimensions",
    lambda m: (m.real(512, 512), m.whole(512, 4096), m.whole(512, 4096)),
    lambda x, i, j: x[i, j],
    backward=True,
)
add(
    "index_put accumulate",
    lambda m: (m.real(10_000, 64), m.whole(10_000, 50_000), m.real(50_000, 64)),
    lambda x, i, v: x.index_put((i,), v if len(i) == len(v) else v[: len(i)], accumulate=True),
)
add(
    "index_put",
    lambda m: (m.real(10_000, 64), m.whole(10_000, 4096), m.real(4096, 64)),
    lambda x, i, v: x.index_put((i,), v),
)
add(
    "boolean index",
    lambda m: (m.real(1000, 1000), m.mask(1000, 1000)),
    lambda x, k: x[k],
    is_data_dependent=True,
)
add(
    "boolean index assignment",
    lambda m: (m.real(1000, 1000), m.mask(1000, 1000)),
    lambda x, k: x.__setitem__(k, 0.0),
)
add(
    "masked_select",
    lambda m: (m.real(1000, 1000), m.mask(1000, 1000)),
    torch.masked_select,
    is_data_dependent=True,
)
add(
    "masked_fill",
    lambda m: (m.real(1000, 1000), m.mask(1000, 1000)),
    lambda x, k: x.masked_fill(k, -1.0),
    backward=True,
)
add(
    "masked_scatter",
    lambda m: (m.real(1000, 1000), m.mask(1000, 1000), m.real(1000, 1000)),
    lambda x, k, v: x.masked_scatter(k, v),
)
add(
    "gather",
    lambda m: (m.real(1024, 1024), m.whole(1024, 1024, 64)),
    lambda x, i: x.gather(1, i),
    backward=True,
)
add(
    "scatter",
    lambda m: (m.real(1024, 1024), m.whole(1024, 1024, 64), m.real(1024, 64)),
    lambda x, i, v: x.scatter(1, i, v),
)
add(
    "scatter_add",
    lambda m: (m.real(1024, 1024), m.whole(1024, 1024, 64), m.real(1024, 64)),
    lambda x, i, v: x.scatter_add(1, i, v),
)
add(
    "scatter_reduce amax",
    lambda m: (m.real(1024, 1024), m.whole(1024, 1024, 64), m.real(1024, 64)),
    lambda x, i, v: x.scatter_reduce(1, i, v, "amax"),
)
add(
    "index_select",
    lambda m: (m.real(10_000, 256), m.whole(10_000, 4096)),
    lambda x, i: x.index_select(0, i),
    backward=True,
)
add(
    "index_add",
    lambda m: (m.real(10_000, 256), m.whole(10_000, 4096), m.real(4096, 256)),
    lambda x, i, v: x.index_add(0, i, v),
)
add(
    "take_along_dim",
    lambda m: (m.real(512, 512), m.whole(512, 512, 16)),
    lambda x, i: torch.take_along_dim(x, i, 1),
    backward=True,
)
add("one_hot", lambda m: (m.whole(1000, 4096),), lambda i: F.one_hot(i, 1000))
add(
    "cat two",
    lambda m: (m.real(1000, 1000), m.real(1000, 1000)),
    lambda a, b: torch.cat([a, b], 1),
    backward=True,
)
add("stack four", lambda m: (m.real(512, 512),), lambda a: torch.stack([a, a, a, a]), backward=True)
add(
    "split and cat",
    lambda m: (m.real(1024, 3072),),
    lambda a: torch.cat(a.chunk(3, dim=1)[::-1], 1),
    backward=True,
)
add(
    "repeat_interleave",
    lambda m: (m.real(1000, 64),),
    lambda a: a.repeat_interleave(4, dim=0),
    backward=True,
)
add(
    "repeat_interleave by tensor",
    lambda m: (m.real(1000, 64), m.whole(5, 1000)),
    lambda a, n: a.repeat_interleave(n, dim=0),
    is_data_dependent=True,
)
add("flip and roll", lambda m: (m.real(512, 512),), lambda a: a.flip(0).roll(3, 1), backward=True)
add("tril", lambda m: (m.real(2048, 2048),), torch.tril, backward=True)
add("triu_indices", lambda m: (m.device,), lambda d: torch.triu_indices(512, 512, device=d))
add(
    "meshgrid", lambda m: (m.real(256),), lambda a: torch.stack(torch.meshgrid(a, a, indexing="ij"))
)
add("tensor to cpu", lambda m: (m.real(1000, 1000),), lambda a: a.cpu())
add("item", lambda m: (m.real(1000),), lambda a: a.sum().item())
add(
    "pad_sequence",
    lambda m: (m.real(64, 32),),
    lambda a: torch.nn.utils.rnn.pad_sequence([a, a[:10], a[:5]]),
)

for name, rows, width, tokens in (
    ("small", 1000, 64, 1024),
    ("bert", 30522, 768, 4096),
    ("gpt2", 50257, 768, 8192),
):
    add(
        f"embedding {name}",
        lambda m, r=rows, w=width, t=tokens: (m.real(r, w), m.whole(r, t)),
        lambda weight, i: F.embedding(i, weight),
        backward=True,
    )
add(
    "embedding padding_idx",
    lambda m: (m.real(30522, 768), m.whole(30522, 32, 128)),
    lambda weight, i: F.embedding(i, weight, padding_idx=0),
    backward=True,
)
add(
    "embedding bf16",
    lambda m: (m.brain(30522, 768), m.whole(30522, 4096)),
    lambda weight, i: F.embedding(i, weight),
    backward=True,
)
add(
    "embedding scale_grad_by_freq",
    lambda m: (m.real(1000, 64), m.whole(1000, 4096)),
    lambda weight, i: F.embedding(i, weight, scale_grad_by_freq=True),
    backward=True,
)
for mode in ("sum", "mean", "max"):
    add(
        f"embedding_bag {mode}",
        lambda m: (m.real(10_000, 64), m.whole(10_000, 256, 20)),
        lambda weight, i, mode=mode: F.embedding_bag(i, weight, mode=mode),
        backward=True,
    )
