"""Models met later still: recorded when the virtual card was thought to be finished.

Architectures of other kinds than before (state spaces, time series, speech, video, depth, long
documents), and pictures and batches of odd sizes. None has a small version for a CPU.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from case import Job, case
from context import Context
from data import images, labels, tokens

from .further_models import FOUR_LAYERS, image_model, language_model, wide
from .transformers_models import own_loss
from .vision import classifier

#: Makes the inputs of one step.
Inputs = Callable[[Context], "dict[str, torch.Tensor]"]


def with_inputs(kind: str, task: str, inputs: Inputs, **config: Any) -> Callable[[Context], Job]:
    """A model of `transformers` that computes its own loss, with inputs of its own kind."""

    def build(context: Context) -> Job:
        import transformers

        settings = getattr(transformers, f"{kind}Config")(**config)
        model = getattr(transformers, f"{kind}{task}")(settings)
        return Job(model, lambda step: inputs(context), own_loss)

    return build


#: Language models: name, classes, batch, length, precision, optimizer, configuration.
LANGUAGE: tuple[tuple[str, str, int, int, str, str, dict[str, Any]], ...] = (
    (
        "codegen",
        "CodeGen",
        2,
        512,
        "fp32",
        "adamw",
        dict(n_embd=1024, n_layer=4, n_head=16, rotary_dim=32),
    ),
    (
        "gpt-neo-bf16",
        "GPTNeo",
        2,
        1024,
        "bf16",
        "adamw",
        dict(
            hidden_size=1024, num_layers=4, num_heads=16, attention_types=[[["global", "local"], 2]]
        ),
    ),
    (
        "gpt-bigcode-fp16",
        "GPTBigCode",
        4,
        768,
        "fp16",
        "adamw",
        dict(n_embd=1024, n_layer=4, n_head=16),
    ),
    (
        "cohere-pure-bf16",
        "Cohere",
        2,
        512,
        "pure-bf16",
        "adamw",
        dict(vocab_size=50000, **wide(1024, 16), **FOUR_LAYERS),
    ),
    ("granite-bf16", "Granite", 2, 768, "bf16", "adamw", dict(**wide(1280, 20), **FOUR_LAYERS)),
    (
        "nemotron",
        "Nemotron",
        2,
        512,
        "fp32",
        "sgd-momentum",
        dict(vocab_size=50000, num_key_value_heads=4, **wide(1024, 16), **FOUR_LAYERS),
    ),
    (
        "glm-bf16",
        "Glm",
        2,
        640,
        "bf16",
        "adamw",
        dict(
            vocab_size=50000,
            head_dim=64,
            pad_token_id=0,
            num_key_value_heads=2,
            **wide(1024, 16),
            **FOUR_LAYERS,
        ),
    ),
    (
        "phi3-pure-bf16",
        "Phi3",
        3,
        900,
        "pure-bf16",
        "adamw-fused",
        dict(**wide(1536, 16), **FOUR_LAYERS),
    ),
    (
        "smollm3-bf16",
        "SmolLM3",
        2,
        1000,
        "bf16",
        "adafactor",
        dict(
            vocab_size=49152, pad_token_id=0, num_key_value_heads=4, **wide(960, 16), **FOUR_LAYERS
        ),
    ),
    ("biogpt", "BioGpt", 5, 333, "fp32", "adamw", dict(**FOUR_LAYERS)),
    (
        "mamba",
        "Mamba",
        2,
        256,
        "fp32",
        "adamw",
        dict(hidden_size=512, vocab_size=32000, **FOUR_LAYERS),
    ),
    (
        "rwkv-bf16",
        "Rwkv",
        2,
        128,
        "bf16",
        "adamw",
        dict(hidden_size=512, vocab_size=32000, **FOUR_LAYERS),
    ),
)
for name, kind, batch, length, precision, optimizer, config in LANGUAGE:
    case(
        name,
        language_model(kind, batch=batch, length=length, **config),
        precision=precision,
        optimizer=optimizer,
    )

#: Encoders: name, classes, task, batch, length, precision, configuration.
ENCODERS: tuple[tuple[str, str, str, int, int, str, dict[str, Any]], ...] = (
    (
        "longformer",
        "Longformer",
        "MaskedLM",
        2,
        1024,
        "fp32",
        dict(attention_window=256, max_position_embeddings=1030, **FOUR_LAYERS),
    ),
    ("fnet", "FNet", "MaskedLM", 16, 256, "fp32", dict(**FOUR_LAYERS)),
    ("funnel-fp16", "Funnel", "MaskedLM", 8, 256, "fp16", dict(block_sizes=[2, 2, 2])),
    ("convbert", "ConvBert", "MaskedLM", 12, 200, "fp32", dict(**FOUR_LAYERS)),
    ("squeezebert-fp16", "SqueezeBert", "SequenceClassification", 40, 96, "fp16", {}),
    ("mobilebert-bf16", "MobileBert", "MaskedLM", 24, 128, "bf16", dict(num_hidden_layers=8)),
    ("roformer", "RoFormer", "MaskedLM", 10, 300, "fp32", dict(**FOUR_LAYERS)),
    ("nystromformer-bf16", "Nystromformer", "MaskedLM", 6, 510, "bf16", dict(**FOUR_LAYERS)),
    ("xlm-roberta-pure-bf16", "XLMRoberta", "SequenceClassification", 48, 160, "pure-bf16", {}),
)
for name, kind, task, batch, length, precision, config in ENCODERS:
    case(
        name,
        language_model(kind, batch=batch, length=length, task=task, **config),
        precision=precision,
    )

#: Encoders and decoders.
case(
    "pegasus-bf16",
    language_model(
        "Pegasus",
        batch=6,
        length=200,
        task="ConditionalGeneration",
        encoder_layers=3,
        decoder_layers=3,
    ),
    precision="bf16",
)
case(
    "mt5-adafactor",
    language_model(
        "MT5",
        batch=4,
        length=160,
        task="ConditionalGeneration",
        vocab_size=64000,
        num_layers=4,
        num_decoder_layers=4,
    ),
    optimizer="adafactor",
)
case(
    "mbart-fp16",
    language_model(
        "MBart",
        batch=4,
        length=200,
        task="ConditionalGeneration",
        vocab_size=64000,
        encoder_layers=2,
        decoder_layers=2,
    ),
    precision="fp16",
)

#: Pictures.
case("mobilevit", image_model("MobileViT", batch=24))
case("cvt-bf16", image_model("Cvt", batch=20), precision="bf16")
case("pvt-fp16", image_model("Pvt", batch=24), precision="fp16")
case("focalnet", image_model("FocalNet", batch=12), optimizer="sgd-momentum")
case("bit", image_model("Bit", batch=16), optimizer="sgd-momentum")
case("swinv2-bf16", image_model("Swinv2", batch=12), precision="bf16")
case("hiera-bf16", image_model("Hiera", batch=12), precision="bf16")
case("deit-pure-bf16", image_model("DeiT", batch=40), precision="pure-bf16")
case("efficientnet-b1-288", classifier("efficientnet_b1", 20, 288), optimizer="rmsprop")
case("resnet50-384-bf16", classifier("resnet50", 12, 384), precision="bf16")
case("resnet18-cifar", classifier("resnet18", 128, 32), optimizer="sgd-momentum")
case(
    "resnet50-320-fp16-channels-last",
    classifier("resnet50", 20, 320),
    precision="fp16",
    channels_last=True,
    optimizer="sgd-momentum",
)
case("regnet-y-1-6gf-176", classifier("regnet_y_1_6gf", 36, 176), optimizer="sgd-momentum")
case("convnext-base-bf16", classifier("convnext_base", 10), precision="bf16")


def speech(batch: int, samples: int, length: int) -> Inputs:
    def make(context: Context) -> dict[str, torch.Tensor]:
        sound = images(context, context.batch(batch), samples)
        return {"input_values": sound, "labels": tokens(context, batch, length, 30)}

    return make


def film(batch: int, frames: int, classes: int) -> Inputs:
    def make(context: Context) -> dict[str, torch.Tensor]:
        return {
            "pixel_values": images(context, batch, frames, 3, 224, 224),
            "labels": labels(context, batch, classes),
        }

    return make


def depth_map(batch: int, side: int) -> Inputs:
    def make(context: Context) -> dict[str, torch.Tensor]:
        return {
            "pixel_values": images(context, batch, 3, side, side),
            "labels": torch.zeros(batch, side, side, dtype=torch.long),
        }

    return make


def series(batch: int, length: int, channels: int, ahead: int) -> Inputs:
    def make(context: Context) -> dict[str, torch.Tensor]:
        return {
            "past_values": images(context, batch, length, channels),
            "future_values": images(context, batch, ahead, channels),
        }

    return make


case(
    "hubert",
    with_inputs("Hubert", "ForCTC", speech(4, 48000, 20), **FOUR_LAYERS, mask_time_prob=0.0),
)
case(
    "timesformer-bf16",
    with_inputs("Timesformer", "ForVideoClassification", film(2, 8, 2), **FOUR_LAYERS),
    precision="bf16",
)
case(
    "vivit-fp16",
    with_inputs("Vivit", "ForVideoClassification", film(1, 32, 2), **FOUR_LAYERS),
    precision="fp16",
)
case("upernet", with_inputs("UperNet", "ForSemanticSegmentation", depth_map(2, 256)))
case("segformer-512", with_inputs("Segformer", "ForSemanticSegmentation", depth_map(4, 512)))
case(
    "patchtst-bf16",
    with_inputs(
        "PatchTST",
        "ForPrediction",
        series(64, 512, 7, 96),
        context_length=512,
        prediction_length=96,
        num_input_channels=7,
        patch_length=16,
        patch_stride=8,
        d_model=256,
        ffn_dim=1024,
        num_attention_heads=16,
    ),
    precision="bf16",
)
