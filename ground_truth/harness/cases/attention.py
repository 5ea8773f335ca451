"""Attention by itself: head widths, masks, causality, dropout, PyTorch's own transformer layers."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

from case import Job, case
from context import Context


class Block(nn.Module):
    """A pre-norm transformer block around `scaled_dot_product_attention`."""

    def __init__(self, heads: int, head_width: int, causal: bool, dropout: float) -> None:
        super().__init__()
        width = heads * head_width
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        )
        y = F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=self.causal,
        )
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Stack(nn.Module):
    def __init__(
        self, layers: int, heads: int, head_width: int, causal: bool, dropout: float
    ) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(heads, head_width, causal, dropout) for _ in range(layers)
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        for block in self.blocks:
            x = block(x, mask)
        return x


def stack(
    head_width: int,
    *,
    length: int = 512,
    causal: bool = False,
    dropout: float = 0.0,
    mask: str = "",
    batch: int = 8,
) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        heads, words, size = context.pick(12, 2), context.pick(length, 16), context.batch(batch)
        model = Stack(context.pick(4, 1), heads, head_width, causal, dropout)

        def make(step: int) -> dict[str, Any]:
            out: dict[str, Any] = {"x": torch.zeros(size, words, heads * head_width)}
            if mask == "boolean":
                out["mask"] = torch.ones(size, 1, 1, words, dtype=torch.bool)
            elif mask == "additive":
                out["mask"] = torch.zeros(size, heads, words, words)
            return out

        return Job(model, make, lambda net, b: net(b["x"], b.get("mask")).float().square().mean())

    return build


case("attention-64", stack(64))
case("attention-64-fp16", stack(64), precision="fp16")
case("attention-64-bf16", stack(64), precision="bf16")
case("attention-64-bf16-causal", stack(64, causal=True), precision="bf16", alone=True)
case("attention-64-fp16-causal-odd-length", stack(64, causal=True, length=333), precision="fp16")
case("attention-64-bf16-dropout", stack(64, dropout=0.1), precision="bf16")
case("attention-64-dropout", stack(64, dropout=0.1))
case("attention-64-boolean-mask", stack(64, mask="boolean"))
case("attention-64-boolean-mask-bf16", stack(64, mask="boolean"), precision="bf16")
case("attention-64-additive-mask-bf16", stack(64, mask="additive", length=256), precision="bf16")
case("attention-40-fp16", stack(40), precision="fp16")
case("attention-72-bf16", stack(72), precision="bf16")
case("attention-80", stack(80))
case("attention-128-bf16-long", stack(128, length=2048, causal=True, batch=2), precision="bf16")
case("attention-256-pure-bf16", stack(256, length=256), precision="pure-bf16")


def encoder(context: Context) -> Job:
    width = context.pick(512, 32)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, context.pick(6, 1))
    size, words = context.batch(32), context.pick(256, 16)
    return Job(
        model,
        lambda step: torch.zeros(size, words, width),
        lambda net, x: net(x).float().square().mean(),
    )


case("transformer-encoder", encoder)
case("transformer-encoder-fp16", encoder, precision="fp16")


class Translator(nn.Module):
    """`nn.Transformer` with embeddings: encoder, decoder, cross attention, causal mask."""

    def __init__(self, width: int, layers: int, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.body = nn.Transformer(width, 8, layers, layers, 4 * width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        y = self.body(self.embed(source), self.embed(target), tgt_mask=mask, tgt_is_causal=True)
        return self.head(y)


def translator(context: Context) -> Job:
    vocabulary, size, words = context.pick(8000, 50), context.batch(32), context.pick(128, 12)
    model = Translator(context.pick(512, 32), context.pick(4, 1), vocabulary)

    def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
        ids = torch.zeros(size, words, dtype=torch.long)
        return ids, ids

    def loss(net: nn.Module, b: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return F.cross_entropy(net(*b).flatten(0, 1), b[1].flatten())

    return Job(model, make, loss)


case("translator", translator)
case("translator-bf16", translator, precision="bf16")
