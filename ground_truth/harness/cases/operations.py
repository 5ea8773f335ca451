"""Models around less usual operations, and uses of streams, caches and graphs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from case import Job, case
from cases.optimizers import mlp
from context import Context


class Recommender(nn.Module):
    """Embedding bags for categories, an MLP for numbers, their products for the answer."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.dense = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        self.top = nn.Sequential(
            nn.Linear(width + (tables + 1) ** 2, 512), nn.ReLU(), nn.Linear(512, 1)
        )

    def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
        x = self.dense(numbers)
        rows = torch.stack([x, *(table(c) for table, c in zip(self.tables, categories))], dim=1)
        products = torch.bmm(rows, rows.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([x, products], dim=1))


def recommender(context: Context) -> Job:
    tables, size = context.pick(12, 3), context.batch(4096)
    model = Recommender(tables, context.pick(200_000, 50), 64)

    def make(step: int) -> dict[str, torch.Tensor]:
        return {
            "numbers": torch.zeros(size, 13),
            "categories": torch.arange(tables * size * 5).view(tables, size, 5) % 50,
            "y": torch.zeros(size, 1),
        }

    def loss(net: nn.Module, b: dict[str, torch.Tensor]) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(net(b["numbers"], b["categories"]), b["y"])

    return Job(model, make, loss)


case("recommender-embedding-bags", recommender, optimizer="sgd")
case("recommender-embedding-bags-adagrad", recommender, optimizer="adagrad")


class DiffusionBlock(nn.Module):
    """GroupNorm, SiLU, convolutions and spatial attention, as in diffusion U-Nets."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.GroupNorm(8, width) for _ in range(3))
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(64, width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        x = x + self.conv2(F.silu(self.norm2(y)))
        flat = self.norm3(x).flatten(2).transpose(1, 2)
        return x + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).view_as(
            x
        )


class Diffusion(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(DiffusionBlock(width) for _ in range(3))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x, time)
        return self.last(F.interpolate(x, scale_factor=2, mode="bilinear"))


def diffusion(context: Context) -> Job:
    size, side = context.batch(32), context.pick(64, 16)
    return Job(
        Diffusion(context.pick(128, 16)),
        lambda step: (torch.zeros(size, 3, side, side), torch.zeros(size, 64)),
        lambda net, b: F.mse_loss(net(*b).float(), b[0].float()),
    )


case("diffusion-group-norm", diffusion)
case("diffusion-group-norm-fp16", diffusion, precision="fp16")
case("diffusion-group-norm-bf16-channels-last", diffusion, precision="bf16", channels_last=True)


class Ranker(nn.Module):
    """Sorts, selects, scans and scatters what a linear layer says."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.score(x)
        ordered, order = scores.sort(dim=1, descending=True)
        best, place = scores.topk(16, dim=1)
        running = ordered.softmax(-1).cumsum(1)
        spread = torch.zeros_like(scores).scatter_add(1, order, running)
        picked = scores.gather(1, place) + best
        return spread.logsumexp(1).mean() + picked.mean()


def ranker(context: Context) -> Job:
    width, size = context.pick(8192, 64), context.batch(2048)
    return Job(Ranker(width), lambda step: torch.zeros(size, width), lambda net, x: net(x))


case("ranker-sort-topk-cumsum-scatter", ranker)


class VariationalAutoencoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 2 * 64))
        self.decode = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 784))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, log_variance = self.encode(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
        return F.binary_cross_entropy_with_logits(self.decode(z), x, reduction="sum") + divergence


def variational(context: Context) -> Job:
    size = context.batch(16384)
    return Job(
        VariationalAutoencoder(context.pick(4096, 32)),
        lambda step: torch.zeros(size, 784),
        lambda net, x: net(x),
    )


case("variational-autoencoder", variational, optimizer="adam")


def contrastive(context: Context) -> Job:
    """Two towers and all pairs between them, with a learned temperature."""
    import torchvision

    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image = torchvision.models.resnet18(weights=None, num_classes=256)
            self.text = nn.Sequential(nn.EmbeddingBag(1000, 256), nn.Linear(256, 256))
            self.temperature = nn.Parameter(torch.tensor(2.6))

        def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
            a, b = F.normalize(self.image(x), dim=1), F.normalize(self.text(ids), dim=1)
            scores = self.temperature.exp() * a @ b.t()
            y = torch.arange(len(a), device=a.device)
            return (F.cross_entropy(scores, y) + F.cross_entropy(scores.t(), y)) / 2

    size, side = context.batch(128), context.pick(128, 32)
    return Job(
        Towers(),
        lambda step: (torch.zeros(size, 3, side, side), torch.zeros(size, 16, dtype=torch.long)),
        lambda net, b: net(*b),
    )


case("contrastive-two-towers", contrastive)
case("contrastive-two-towers-bf16", contrastive, precision="bf16")


def matrix_functions(context: Context) -> Job:
    """Solvers and transforms inside a loss: cuSOLVER and cuFFT take part."""
    size, side = context.batch(64), context.pick(64, 8)

    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.eye(side))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            spectrum = torch.fft.rfft2(x).abs().mean()
            gram = x @ x.transpose(1, 2) + side * torch.eye(side, device=x.device) + self.weight
            factor = torch.linalg.cholesky(gram)
            return spectrum + torch.linalg.solve_triangular(factor, x, upper=False).square().mean()

    return Job(Mixer(), lambda step: torch.zeros(size, side, side), lambda net, x: net(x))


case("matrix-functions", matrix_functions, optimizer="sgd", rough_gib=2)


def _mlp_step(context: Context, model: nn.Module, job: Job, optimizer: Any, step: int) -> None:
    x, y = (value.to(context.device) for value in job.make_batch(step))
    job.loss(model, (x, y)).backward()
    optimizer.step()
    optimizer.zero_grad()


def train_emptying_cache(context: Context) -> None:
    job = mlp(context)
    context.start()
    model = job.model.to(context.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(context.steps):
        _mlp_step(context, model, job, optimizer, step)
        if context.device == "cuda":
            torch.cuda.empty_cache()
        context.step_done()


def train_with_side_stream(context: Context) -> None:
    """The next batch is copied on a second stream; both streams meet before it is used.

    No `record_stream`: when such a block comes back depends on how far the card has got, which
    is a question of time and not of the program.
    """
    job = mlp(context)
    context.start()
    model = job.model.to(context.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    on_card = context.device == "cuda"
    side = torch.cuda.Stream() if on_card else None
    for step in range(context.steps):
        with torch.cuda.stream(side):
            x, y = (value.to(context.device, non_blocking=True) for value in job.make_batch(step))
            scaled = x * 0.5 + 0.5
        if on_card:
            torch.cuda.current_stream().wait_stream(side)
        job.loss(model, (scaled, y)).backward()
        optimizer.step()
        optimizer.zero_grad()
        if on_card:
            torch.cuda.synchronize()
        del x, y, scaled
        context.step_done()


def train_in_a_graph(context: Context) -> None:
    """The whole step is captured once and replayed: its memory lives in a private pool."""
    job = mlp(context)
    context.start()
    model = job.model.to(context.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=context.device == "cuda")
    x, y = (value.to(context.device) for value in job.make_batch(0))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        job.loss(model, (x, y)).backward()
        optimizer.step()

    if context.device != "cuda":
        step()
        context.step_done()
        return
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    context.step_done()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(2):
        graph.replay()
        context.step_done()


def train_keeping_losses(context: Context) -> None:
    """The classic leak: losses are kept with their graphs instead of as numbers."""
    job = mlp(context)
    context.start()
    model = job.model.to(context.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    losses = []
    for step in range(context.steps):
        x, y = (value.to(context.device) for value in job.make_batch(step))
        loss = job.loss(model, (x, y))
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
        context.step_done()


case("mlp-empty-cache-every-step", script=train_emptying_cache, rough_gib=4)
case("mlp-side-stream", script=train_with_side_stream, rough_gib=4)
case("mlp-captured-graph", script=train_in_a_graph, rough_gib=6)
case("mlp-losses-kept", script=train_keeping_losses, steps=6, rough_gib=5)
