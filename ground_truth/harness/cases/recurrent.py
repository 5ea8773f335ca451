"""LSTM and GRU: layers, directions, dropout, projections, packed sequences, half precision."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from case import Job, case
from context import Context
from data import tokens, varying


class LanguageModel(nn.Module):
    """Embedding, recurrent layers, projection to the vocabulary."""

    def __init__(self, kind: str, vocabulary: int, width: int, hidden: int, **options: Any) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.recurrent = getattr(nn, kind)(width, hidden, batch_first=True, **options)
        size = options.get("proj_size") or hidden
        self.head = nn.Linear(size * (2 if options.get("bidirectional") else 1), vocabulary)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        x = self.embed(ids)
        if lengths is not None:
            x = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        x, _ = self.recurrent(x)
        if lengths is not None:
            x, _ = pad_packed_sequence(x, batch_first=True)
        return self.head(x)


def language_model(
    kind: str,
    *,
    packed: bool = False,
    changing: bool = False,
    batch: int = 64,
    length: int = 128,
    **options: Any,
) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        vocabulary = context.pick(10_000, 50)
        if "proj_size" in options and context.tiny:
            options["proj_size"] = 8
        model = LanguageModel(
            kind, vocabulary, context.pick(512, 16), context.pick(1024, 16), **options
        )
        size, words = context.batch(batch), context.pick(length, 12)

        def make(step: int) -> tuple[torch.Tensor, Any]:
            count = varying(step, words // 3, words) if changing else words
            ids = tokens(context, size, count, vocabulary)
            if not packed:
                return ids, None
            # Lengths stay on the CPU, where `pack_padded_sequence` wants them.
            return ids, [count - (row % max(count // 2, 1)) for row in range(size)]

        def loss(net: nn.Module, b: tuple[torch.Tensor, Any]) -> torch.Tensor:
            ids, counts = b
            scores = net(ids, torch.tensor(counts) if counts is not None else None)
            return nn.functional.cross_entropy(scores.flatten(0, 1), ids.flatten())

        return Job(model, make, loss)

    return build


case("lstm", language_model("LSTM"), alone=True)
case("lstm-2-layers-dropout", language_model("LSTM", num_layers=2, dropout=0.1))
case("lstm-bidirectional", language_model("LSTM", bidirectional=True))
case(
    "lstm-3-layers-bidirectional-dropout",
    language_model("LSTM", num_layers=3, bidirectional=True, dropout=0.2),
)
case("lstm-packed", language_model("LSTM", packed=True))
case(
    "lstm-2-layers-packed-bidirectional",
    language_model("LSTM", packed=True, num_layers=2, bidirectional=True, dropout=0.1),
)
case("lstm-projected", language_model("LSTM", proj_size=256))
case("lstm-fp16", language_model("LSTM", num_layers=2), precision="fp16")
case("lstm-bf16", language_model("LSTM", num_layers=2, dropout=0.1), precision="bf16")
case("lstm-small-batch", language_model("LSTM", batch=4, length=64))
case("lstm-packed-varying-lengths", language_model("LSTM", packed=True, changing=True), steps=20)
case("gru", language_model("GRU"))
case("gru-2-layers-dropout", language_model("GRU", num_layers=2, dropout=0.1))
case("gru-bidirectional-packed", language_model("GRU", bidirectional=True, packed=True))
case("gru-fp16", language_model("GRU", num_layers=2), precision="fp16")
case("gru-4-layers", language_model("GRU", num_layers=4))
case("rnn-tanh", language_model("RNN"))


class SpeechModel(nn.Module):
    """Convolution over time, a bidirectional GRU, and symbols for CTC."""

    def __init__(self, features: int, hidden: int, symbols: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(features, hidden, 5, stride=2, padding=2)
        self.recurrent = nn.GRU(hidden, hidden, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, symbols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.convolution(x).relu().transpose(1, 2)
        return self.head(self.recurrent(x)[0]).log_softmax(-1).transpose(0, 1)


def speech(context: Context) -> Job:
    size, frames, symbols = context.batch(16), context.pick(800, 64), 32
    model = SpeechModel(80, context.pick(512, 16), symbols)
    target = context.pick(60, 8)

    def make(step: int) -> dict[str, Any]:
        return {
            "x": torch.zeros(size, 80, frames),
            "y": torch.ones(size, target, dtype=torch.long),
            "frames": [frames // 2] * size,
            "symbols": [target] * size,
        }

    def loss(net: nn.Module, b: dict[str, Any]) -> torch.Tensor:
        scores = net(b["x"])
        return nn.functional.ctc_loss(
            scores.float(), b["y"], torch.tensor(b["frames"]), torch.tensor(b["symbols"])
        )

    return Job(model, make, loss)


case("speech-ctc", speech)
case("speech-ctc-bf16", speech, precision="bf16")
