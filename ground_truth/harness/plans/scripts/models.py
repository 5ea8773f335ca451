"""The models of `train.py`: each on the host, with a sample, a loss and an optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import Dataset

Batch = dict[str, torch.Tensor]


class OneSample(Dataset[Batch]):
    """The same sample again and again, so that loading takes no time."""

    def __init__(self, sample: Batch, length: int) -> None:
        self.sample = sample
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Batch:
        return self.sample


def _own_loss(model: Any, batch: Batch) -> Any:
    return model(**batch).loss


def _class_loss(model: Any, batch: Batch) -> Any:
    return F.cross_entropy(model(batch["x"]), batch["y"])


def _noise_loss(model: Any, batch: Batch) -> Any:
    return F.mse_loss(model(batch["x"]), batch["y"])


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


@dataclass
class Job:
    model: nn.Module
    sample: Batch
    loss: Callable[[Any, Batch], Any]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = _adamw
    #: Whether the loop uses bfloat16 autocast.
    is_mixed: bool = False


def _tokens(length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(5, vocabulary, (length,))


def _image_and_class(size: int, classes: int = 1000) -> Batch:
    return {"x": torch.randn(3, size, size), "y": torch.randint(0, classes, ())}


def bert() -> Job:
    from transformers import BertConfig, BertForSequenceClassification

    sample = {"input_ids": _tokens(256, 30000), "labels": torch.tensor(1)}
    return Job(BertForSequenceClassification(BertConfig()), sample, _own_loss)


def gpt2() -> Job:
    from transformers import GPT2Config, GPT2LMHeadModel

    tokens = _tokens(1024, 50000)
    sample = {"input_ids": tokens, "labels": tokens}
    return Job(GPT2LMHeadModel(GPT2Config()), sample, _own_loss, is_mixed=True)


def llama() -> Job:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12}
    config = LlamaConfig(vocab_size=32000, num_attention_heads=12, **shape)
    tokens = _tokens(1024, 32000)
    sample = {"input_ids": tokens, "labels": tokens}
    return Job(LlamaForCausalLM(config), sample, _own_loss, is_mixed=True)


def t5() -> Job:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(decoder_start_token_id=0)
    sample = {"input_ids": _tokens(512, 32000), "labels": _tokens(128, 32000)}
    return Job(T5ForConditionalGeneration(config), sample, _own_loss)


def resnet50() -> Job:
    import torchvision

    return Job(torchvision.models.resnet50(), _image_and_class(224), _class_loss, _sgd)


def vit() -> Job:
    import torchvision

    return Job(torchvision.models.vit_b_16(), _image_and_class(224), _class_loss)


def convnext() -> Job:
    import torchvision

    return Job(torchvision.models.convnext_tiny(), _image_and_class(224), _class_loss)


def efficientnet() -> Job:
    import torchvision

    model = torchvision.models.efficientnet_b0()
    return Job(model, _image_and_class(224), _class_loss, _sgd)


class _Twice(nn.Sequential):
    """Two convolutions with normalisation, the building block of a U-Net."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        )


class _UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 256)) -> None:
        super().__init__()
        befores = (3, *widths)
        self.down = nn.ModuleList(
            _Twice(befores[depth], width) for depth, width in enumerate(widths)
        )
        pairs = list(zip(widths[:0:-1], widths[-2::-1]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(low, high, 2, 2) for low, high in pairs)
        self.join = nn.ModuleList(_Twice(2 * high, high) for _, high in pairs)
        self.head = nn.Conv2d(widths[0], 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for depth, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if depth else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.head(x)


def unet() -> Job:
    sample = {"x": torch.randn(3, 256, 256), "y": torch.randint(0, 8, (256, 256))}
    return Job(_UNet(), sample, _class_loss)


class _Residual(nn.Module):
    """Normalisation, convolution and attention over pixels, as in diffusion models."""

    def __init__(self, width: int, has_attention: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(2))
        self.convolutions = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.attention = (
            nn.MultiheadAttention(width, 4, batch_first=True) if has_attention else None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for norm, convolution in zip(self.norms, self.convolutions):
            y = convolution(F.silu(norm(y)))
        x = x + y
        if self.attention is None:
            return x
        pixels = x.flatten(2).transpose(1, 2)
        seen, _ = self.attention(pixels, pixels, pixels, need_weights=False)
        return x + seen.transpose(1, 2).reshape(x.shape)


class _Denoiser(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (64, 128, 256)) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down = nn.ModuleList(_Residual(width, width > 64) for width in widths)
        pairs = list(zip(widths, widths[1:]))
        self.shrink = nn.ModuleList(nn.Conv2d(low, high, 3, 2, 1) for low, high in pairs)
        self.middle = _Residual(widths[-1], True)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(high, low, 2, 2) for low, high in pairs[::-1])
        self.up = nn.ModuleList(_Residual(width, width > 64) for width in widths[-2::-1])
        self.leave = nn.Conv2d(widths[0], 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        kept = []
        for depth, block in enumerate(self.down):
            x = block(x)
            if depth < len(self.shrink):
                kept.append(x)
                x = self.shrink[depth](x)
        x = self.middle(x)
        for grow, block in zip(self.grow, self.up):
            x = block(grow(x) + kept.pop())
        return self.leave(x)


def diffusion() -> Job:
    sample = {"x": torch.randn(3, 64, 64), "y": torch.randn(3, 64, 64)}
    return Job(_Denoiser(), sample, _noise_loss)


class _WordModel(nn.Module):
    def __init__(self, words: int = 20000, width: int = 768) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, words)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(words))
        return self.head(states).transpose(1, 2)


def lstm() -> Job:
    words = _tokens(256, 20000)
    return Job(_WordModel(), {"x": words, "y": words}, _class_loss)


class _Encoder(nn.Module):
    """PyTorch's own transformer layers over the frames of speech."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.enter = nn.Linear(80, width)
        layer = nn.TransformerEncoderLayer(width, 8, 2048, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(width, 500)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.enter(frames))).transpose(1, 2)


def speech() -> Job:
    sample = {"x": torch.randn(800, 80), "y": torch.randint(0, 500, (800,))}
    return Job(_Encoder(), sample, _class_loss)


MODELS: dict[str, Callable[[], Job]] = {
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "t5": t5,
    "resnet50": resnet50,
    "vit": vit,
    "convnext": convnext,
    "efficientnet": efficientnet,
    "unet": unet,
    "diffusion": diffusion,
    "lstm": lstm,
    "speech": speech,
}
