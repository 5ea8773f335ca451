"""Llama 3 8B on many cards: FSDP2 × tensor parallel × pipeline, as a user would write it.

    torchrun --nnodes 128 --nproc-per-node 8 train_llama_8b.py --pipeline 4 --tensor 8

Every rank makes the layers of its stage on the meta device, splits them in width over `--tensor`
ranks and in shards over those that are left, and only then gives them memory.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional

VOCABULARY = 128_256
WIDTH = 4096
HIDDEN = 14_336
LAYERS = 32
HEADS = 32
KEY_HEADS = 8
HEAD_WIDTH = WIDTH // HEADS


class Attention(nn.Module):
    """Grouped queries, with rotated queries and keys."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * HEAD_WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, KEY_HEADS * HEAD_WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, KEY_HEADS * HEAD_WIDTH, bias=False)
        self.output = nn.Linear(HEADS * HEAD_WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Attend to what came before."""
        heads = [
            part(x).unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        ]
        query, key = (rotated(each, cosine, sine) for each in heads[:2])
        attended = functional.scaled_dot_product_attention(
            query, key, heads[2], is_causal=True, enable_gqa=True
        )
        result: Tensor = self.output(attended.transpose(1, 2).flatten(2))
        return result


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Each pair of numbers, turned by the angle of its position."""
    left, right = x.chunk(2, -1)
    return x * cosine + torch.cat((-right, left), -1) * sine


class FeedForward(nn.Module):
    """A gated hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Through the hidden layer and back."""
        result: Tensor = self.down(functional.silu(self.gate(x)) * self.up(x))
        return result


class Layer(nn.Module):
    """Attention and a hidden layer, each added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH)
        self.attention = Attention()
        self.feed_forward_norm = nn.RMSNorm(WIDTH)
        self.feed_forward = FeedForward()

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """One layer."""
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        result: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return result


class Stage(nn.Module):
    """The layers of one stage; the first has the embedding, the last the output."""

    def __init__(self, stage: int, stages: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH) if stage == 0 else None
        count = LAYERS // stages
        self.layers = nn.ModuleList(Layer() for _ in range(count))
        is_last = stage == stages - 1
        self.norm = nn.RMSNorm(WIDTH) if is_last else None
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False) if is_last else None
        self.angles: tuple[Tensor, Tensor] | None = None

    def prepare(self, sequence: int, device: torch.device) -> None:
        """Make the angles of all positions, which are no parameters."""
        exponents = torch.arange(0, HEAD_WIDTH, 2, device=device) / HEAD_WIDTH
        positions = torch.arange(sequence, device=device)
        angles = torch.outer(positions, 500_000.0**-exponents).repeat(1, 2)
        self.angles = (angles.cos().bfloat16(), angles.sin().bfloat16())

    def forward(self, x: Tensor) -> Tensor:
        """Tokens or what the stage before has made of them, to that of this stage or logits."""
        assert self.angles is not None
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.layers:
            x = layer(x, *self.angles)
        if self.norm is not None and self.output is not None:
            x = self.output(self.norm(x))
        return x


def split_in_width(stage: Stage, mesh: DeviceMesh) -> None:
    """Products over the ranks of a node; between them, each has a part of the sequence."""
    whole: dict[str, Any] = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    parallelize_module(
        stage, mesh, {name: how for name, how in whole.items() if getattr(stage, name) is not None}
    )
    for layer in stage.layers:
        gather = PrepareModuleInput(
            input_layouts=(Shard(1), None, None), desired_input_layouts=(Replicate(), None, None)
        )
        columns, rows = ColwiseParallel, RowwiseParallel
        plan: dict[str, Any] = {
            "attention_norm": SequenceParallel(),
            "attention": gather,
            "attention.query": columns(),
            "attention.key": columns(),
            "attention.value": columns(),
            "attention.output": rows(output_layouts=Shard(1)),
            "feed_forward_norm": SequenceParallel(),
            "feed_forward": PrepareModuleInput(
                input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)
            ),
            "feed_forward.gate": columns(),
            "feed_forward.up": columns(),
            "feed_forward.down": rows(output_layouts=Shard(1)),
        }
        assert isinstance(layer, nn.Module)
        parallelize_module(layer, mesh, plan)


def split_in_shards(stage: Stage, mesh: DeviceMesh) -> None:
    """Every layer for itself; kept as a whole between micro-batches, as a pipeline wants it."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in stage.layers:
        assert isinstance(layer, nn.Module)
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(stage, mesh=mesh, mp_policy=policy, reshard_after_forward=False)


def loss_of(logits: Tensor, tokens: Tensor) -> Tensor:
    """How unexpected the tokens are."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipeline", type=int, default=4, help="stages")
    parser.add_argument("--tensor", type=int, default=8, help="ranks that share a layer's products")
    parser.add_argument("--batch", type=int, default=8, help="micro-batches of one sequence each")
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=2)
    wanted = parser.parse_args()
    card = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(card)
    dist.init_process_group("nccl")
    shards = dist.get_world_size() // (wanted.pipeline * wanted.tensor)
    mesh = init_device_mesh(
        "cuda",
        (wanted.pipeline, shards, wanted.tensor),
        mesh_dim_names=("pipeline", "shards", "tensor"),
    )
    place = mesh["pipeline"].get_local_rank()
    with torch.device("meta"):
        model = Stage(place, wanted.pipeline)
    split_in_width(model, mesh["tensor"])
    split_in_shards(model, mesh["shards"])
    model.to_empty(device=card)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
    model.prepare(wanted.sequence, card)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    group = mesh["pipeline"].get_group()
    stage = PipelineStage(model, place, wanted.pipeline, card, group=group)
    schedule = Schedule1F1B(stage, n_microbatches=wanted.batch, loss_fn=loss_of)
    for _ in range(wanted.steps):
        tokens = torch.randint(0, VOCABULARY, (wanted.batch, wanted.sequence), device=card)
        if place == 0:
            schedule.step(tokens)
        elif place == wanted.pipeline - 1:
            schedule.step(target=tokens)
        else:
            schedule.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
