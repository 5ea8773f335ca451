"""Models as people write them themselves, recorded after the rules were settled, like those of
`further_models`: audio, points, graphs, restoration, reinforcement learning, adapters."""

from __future__ import annotations

import copy
from typing import Any, Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from case import Job, case
from context import Context
from data import images, labels, tokens

from .transformers_models import gpt2


def classified(
    build_model: Callable[[Context], nn.Module], batch: int, classes: int, *shape: int
) -> Callable[[Context], Job]:
    """A model that turns inputs of one shape into classes."""

    def build(context: Context) -> Job:
        size = context.batch(batch)

        def make(step: int) -> tuple[Tensor, Tensor]:
            return images(context, size, *shape), labels(context, size, classes)

        return Job(build_model(context), make, lambda net, b: F.cross_entropy(net(b[0]), b[1]))

    return build


def restored(
    build_model: Callable[[Context], nn.Module], batch: int, scale: int, *shape: int
) -> Callable[[Context], Job]:
    """A model whose output is compared with a target, `scale` times as wide and high."""

    def build(context: Context) -> Job:
        size = context.batch(batch)
        target = (shape[0], *(side * scale for side in shape[1:]))

        def make(step: int) -> tuple[Tensor, Tensor]:
            return images(context, size, *shape), images(context, size, *target)

        return Job(build_model(context), make, lambda net, b: F.mse_loss(net(b[0]), b[1]))

    return build


class DilatedStack(nn.Module):
    """One-dimensional gated convolutions, each looking twice as far as the one before."""

    def __init__(self, channels: int, layers: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, channels, 1)
        self.gates = nn.ModuleList(
            nn.Conv1d(channels, 2 * channels, 3, padding=2**i, dilation=2**i) for i in range(layers)
        )
        self.mixes = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(layers))
        self.last = nn.Conv1d(channels, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for gate, mix in zip(self.gates, self.mixes):
            left, right = gate(x).chunk(2, 1)
            x = x + mix(torch.tanh(left) * torch.sigmoid(right))
        return self.last(x)


def dilated(context: Context) -> nn.Module:
    return DilatedStack(context.pick(64, 8), context.pick(10, 2))


class Mixer(nn.Module):
    """Linear layers over patches and over channels in turn."""

    def __init__(self, patches: int, width: int, depth: int) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, 16, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.across = nn.ModuleList(
            nn.Sequential(nn.Linear(patches, 256), nn.GELU(), nn.Linear(256, patches))
            for _ in range(depth)
        )
        self.within = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        for i, (across, within) in enumerate(zip(self.across, self.within)):
            x = x + across(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + within(self.norms[2 * i + 1](x))
        return self.head(x.mean(1))


def mixer(context: Context) -> nn.Module:
    return Mixer(196, context.pick(512, 32), context.pick(8, 1))


class PointNet(nn.Module):
    """Layers on every point, then the largest value over all points."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (3, 64, 128, 1024)
        self.points = nn.Sequential(
            *(
                nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
                for a, b in zip(sizes, sizes[1:])
            )
        )
        self.head = nn.Sequential(
            nn.Linear(1024, 256),
            nn.BatchNorm1d(256),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(256, 40),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.points(x).amax(2))


def separable(context: Context) -> nn.Module:
    """Depthwise and pointwise convolutions in turn, as in small networks for phones."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 32, 3, 2, 1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU6(),
    ]
    width = 32
    for out, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers += [
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardswish(),
            nn.Conv2d(width, out, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.Hardswish(),
        ]
        width = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def super_resolution(context: Context) -> nn.Module:
    width = context.pick(64, 8)
    body: list[nn.Module] = []
    for _ in range(context.pick(8, 1)):
        body += [nn.Conv2d(width, width, 3, padding=1), nn.PReLU(width)]
    return nn.Sequential(
        nn.Conv2d(3, width, 5, padding=2),
        *body,
        nn.Conv2d(width, 48, 3, padding=1),
        nn.PixelShuffle(4),
    )


class AttentiveTranslator(nn.Module):
    """An encoder and a decoder of GRUs, with attention between them."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.encoder = nn.GRU(width, width, bidirectional=True, batch_first=True)
        self.decoder = nn.GRU(width, 2 * width, batch_first=True)
        self.out = nn.Linear(4 * width, words)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, _ = self.encoder(self.embed(source))
        states, _ = self.decoder(self.embed(target))
        weights = torch.softmax(states @ memory.transpose(1, 2) / 32, -1)
        return self.out(torch.cat([states, weights @ memory], -1))


def attentive_translator(context: Context) -> Job:
    words = context.pick(20000, 50)
    size, length = context.batch(64), context.pick(40, 6)

    def make(step: int) -> tuple[Tensor, Tensor]:
        return tokens(context, size, length, words), tokens(context, size, length, words)

    def loss(net: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(net(*batch).flatten(0, 1), batch[1].flatten())

    return Job(AttentiveTranslator(words, context.pick(256, 8)), make, loss)


class GraphNet(nn.Module):
    """Sums over the edges of a graph, three times."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(128, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, 40)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        x = self.first(nodes)
        for layer in self.layers:
            gathered = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
            x = F.dropout(F.relu(layer(gathered)) + x, 0.5, self.training)
        return self.head(x)


def graph(context: Context) -> Job:
    nodes, edges = context.pick(50_000, 50), context.pick(400_000, 200)

    def make(step: int) -> tuple[Tensor, Tensor, Tensor]:
        ends = tokens(context, 2, edges, nodes)
        return images(context, nodes, 128), ends, labels(context, nodes, 40)

    def loss(net: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(net(batch[0], batch[1]), batch[2])

    return Job(GraphNet(context.pick(256, 8)), make, loss)


class VectorQuantiser(nn.Module):
    """An autoencoder whose middle is the nearest entry of a book, with gradients passed through."""

    def __init__(self, width: int, entries: int) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 4, 2, 1)
        )
        self.book = nn.Embedding(entries, width)
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(width, width, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 4, 2, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        z = self.encode(x).permute(0, 2, 3, 1)
        distances = torch.cdist(z.flatten(0, 2), self.book.weight)
        nearest = self.book(distances.argmin(-1)).view_as(z)
        return self.decode((z + (nearest - z).detach()).permute(0, 3, 1, 2))


def quantiser(context: Context) -> nn.Module:
    return VectorQuantiser(context.pick(128, 8), context.pick(512, 16))


class LowRank(nn.Module):
    """A frozen linear layer (stored the other way round, as GPT-2 does) with a trained adapter."""

    def __init__(self, base: Any, rank: int) -> None:
        super().__init__()
        self.base = base
        inputs, outputs = base.weight.shape
        self.down = nn.Linear(inputs, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(F.dropout(x, 0.05, self.training)))


def add_adapters(model: Any) -> None:
    model.requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn = LowRank(block.attn.c_attn, 16)


def q_learning(context: Context) -> None:
    """A step of deep Q-learning: a second network gives the targets, and follows slowly."""
    context.start()
    net = nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(),
        nn.Linear(512, 18),
    ).to(context.device)  # fmt: skip
    target = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.Adam(net.parameters(), 1e-4)
    size = context.batch(256)
    for _ in range(context.steps):
        state, following = (torch.zeros(size, 4, 84, 84).to(context.device) for _ in range(2))
        actions = tokens(context, size, 1, 18)
        with torch.no_grad():
            wanted = 0.99 * target(following).max(1).values
        loss = F.smooth_l1_loss(net(state).gather(1, actions).squeeze(1), wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 100)
        optimizer.step()
        with torch.no_grad():
            for slow, quick in zip(target.parameters(), net.parameters()):
                slow.lerp_(quick, 0.005)
        context.step_done()


class Decoder(nn.Module):
    """A small language model written by hand, with its own attention."""

    def __init__(self, words: int, width: int, heads: int, depth: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.embed = nn.Embedding(words, width)
        self.places = nn.Embedding(1024, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.inputs = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.outputs = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        mask = torch.ones(q.shape[-2], q.shape[-2], device=q.device).tril()
        return torch.softmax(scores.masked_fill(mask == 0, float("-inf")), -1) @ v

    def forward(self, ids: Tensor) -> Tensor:
        batch, length = ids.shape
        x = self.embed(ids) + self.places(torch.arange(length, device=ids.device))
        for i in range(len(self.inputs)):
            parts = self.inputs[i](self.norms[2 * i](x)).chunk(3, -1)
            q, k, v = (p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts)
            x = x + self.outputs[i](self.attend(q, k, v).transpose(1, 2).reshape(batch, length, -1))
            x = x + self.narrow[i](F.gelu(self.wide[i](self.norms[2 * i + 1](x))))
        return self.head(x)


def decoder(fused: bool, batch: int = 8, length: int = 512) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        words = context.pick(32000, 64)
        size, n = context.batch(batch), context.pick(length, 8)
        model = Decoder(
            words, context.pick(768, 16), context.pick(12, 2), context.pick(6, 1), fused
        )

        def loss(net: nn.Module, ids: Tensor) -> Tensor:
            scores = net(ids[:, :-1])
            return F.cross_entropy(scores.reshape(-1, words), ids[:, 1:].reshape(-1))

        return Job(model, lambda step: tokens(context, size, n + 1, words), loss)

    return build


def coordinates(context: Context) -> nn.Module:
    """Points in space to colour and density, after frequencies of their coordinates."""

    class Field(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = [60, *[256] * 6, 4]
            self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
            self.register_buffer("frequencies", 2.0 ** torch.arange(10))

        def forward(self, x: Tensor) -> Tensor:
            angles = (x[..., None] * self.get_buffer("frequencies")).flatten(1)
            x = torch.cat([angles.sin(), angles.cos()], -1)
            for layer in self.layers[:-1]:
                x = F.relu(layer(x), inplace=True)
            return self.layers[-1](x)

    return Field()


def rays(context: Context) -> Job:
    size = context.batch(65536)

    def make(step: int) -> tuple[Tensor, Tensor]:
        return images(context, size, 6), images(context, size, 4)

    def loss(net: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.mse_loss(net(batch[0][:, :3]), batch[1])

    return Job(coordinates(context), make, loss)


case("dilated-convolutions-audio", restored(dilated, 8, 1, 1, 16000))
case("dilated-convolutions-audio-bf16", restored(dilated, 8, 1, 1, 16000), precision="bf16")
case("mixer", classified(mixer, 32, 100, 3, 224, 224))
case("mixer-bf16", classified(mixer, 64, 100, 3, 224, 224), precision="bf16")
case("pointnet", classified(lambda c: PointNet(), 32, 40, 3, 2048), optimizer="adam")
case("separable", classified(separable, 64, 10, 3, 160, 160), optimizer="sgd-momentum")
case(
    "separable-fp16-channels-last",
    classified(separable, 96, 10, 3, 160, 160),
    precision="fp16",
    channels_last=True,
)
case("super-resolution", restored(super_resolution, 16, 4, 3, 64, 64), optimizer="adam")
case(
    "super-resolution-bf16-channels-last",
    restored(super_resolution, 16, 4, 3, 64, 64),
    precision="bf16",
    channels_last=True,
)
case("attentive-translator", attentive_translator, optimizer="adam", clip_gradients=True)
case("attentive-translator-fp16", attentive_translator, precision="fp16", clip_gradients=True)
case("graph-network", graph, optimizer="adam")
case("vector-quantiser", restored(quantiser, 32, 1, 3, 128, 128), optimizer="adam")
case("vector-quantiser-fp16", restored(quantiser, 32, 1, 3, 128, 128), precision="fp16")
case("gpt2-low-rank-adapters-bf16", gpt2(prepare=add_adapters), precision="bf16")
case("gpt2-low-rank-adapters", gpt2(batch=4, prepare=add_adapters))
case("q-learning", script=q_learning, steps=6)
case("decoder-own-attention", decoder(False))
case("decoder-own-attention-bf16", decoder(False, batch=4, length=1000), precision="bf16")
case("decoder-fused-attention-bf16", decoder(True, batch=12), precision="bf16", accumulate=2)
case("decoder-fused-attention-fp16", decoder(True, batch=5, length=777), precision="fp16")
case("radiance-field", rays, optimizer="adam")
