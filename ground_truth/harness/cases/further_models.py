"""Models of libraries that took no part in finding the rules.

Everything the virtual card knows was learned from the other families. These were recorded
afterwards, to see how it does with a model it has never met. They are as large as they are: none
has a small version for a CPU.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

from case import Job, case
from context import Context
from data import images, labels, tokens

from .transformers_models import own_loss
from .vision import classifier


def language_model(
    kind: str,
    *,
    batch: int,
    length: int,
    task: str = "CausalLM",
    **config: Any,
) -> Callable[[Context], Job]:
    """A language model of `transformers`, by the name of its classes."""

    def build(context: Context) -> Job:
        import transformers

        settings = getattr(transformers, f"{kind}Config")(**config)
        model = getattr(transformers, f"{kind}For{task}")(settings)
        size = context.batch(batch)

        def make(step: int) -> dict[str, torch.Tensor]:
            ids = tokens(context, size, length, settings.vocab_size)
            if task == "SequenceClassification":
                return {"input_ids": ids, "labels": labels(context, size, 2)}
            return {"input_ids": ids, "labels": ids}

        return Job(model, make, own_loss)

    return build


FOUR_LAYERS: dict[str, Any] = dict(num_hidden_layers=4)


def wide(hidden: int, heads: int, **more: Any) -> dict[str, Any]:
    """The sizes of a transformer under their usual names, four times as wide in the middle."""
    sizes = dict(hidden_size=hidden, intermediate_size=4 * hidden, num_attention_heads=heads)
    return {**sizes, **more}


case(
    "opt-125m",
    language_model("OPT", batch=8, length=512),
)
case(
    "opt-pure-bf16",
    language_model(
        "OPT",
        batch=4,
        length=1024,
        hidden_size=1024,
        ffn_dim=4096,
        num_attention_heads=16,
        word_embed_proj_dim=1024,
        **FOUR_LAYERS,
    ),
    precision="pure-bf16",
)
case(
    "gpt-neox-bf16",
    language_model("GPTNeoX", batch=4, length=1024, **wide(1024, 16, num_hidden_layers=4)),
    precision="bf16",
)
case(
    "bloom",
    language_model(
        "Bloom", batch=2, length=512, hidden_size=1024, n_layer=4, n_head=16, vocab_size=50000
    ),
    optimizer="adamw-fused",
)
case(
    "falcon-bf16",
    language_model(
        "Falcon", batch=2, length=1024, hidden_size=2048, num_attention_heads=32, **FOUR_LAYERS
    ),
    precision="bf16",
    optimizer="sgd-momentum",
)
case(
    "phi-pure-bf16",
    language_model("Phi", batch=4, length=1024, **FOUR_LAYERS),
    precision="pure-bf16",
    optimizer="adamw-fused",
)
case(
    "gemma-bf16",
    language_model(
        "Gemma",
        batch=2,
        length=512,
        vocab_size=64000,
        **wide(1024, 8, num_hidden_layers=4),
        num_key_value_heads=1,
        head_dim=128,
    ),
    precision="bf16",
)
case(
    "gemma2",
    language_model(
        "Gemma2",
        batch=2,
        length=512,
        vocab_size=64000,
        **wide(1024, 8, num_hidden_layers=4),
        num_key_value_heads=4,
        head_dim=128,
    ),
)
case("stablelm", language_model("StableLm", batch=2, length=512, num_hidden_layers=2))
case(
    "olmo2-fp16",
    language_model("Olmo2", batch=2, length=1024, **wide(1536, 12, num_hidden_layers=4)),
    precision="fp16",
)
case(
    "starcoder2-pure-bf16",
    language_model(
        "Starcoder2",
        batch=2,
        length=2048,
        **wide(1536, 12, num_hidden_layers=4),
        num_key_value_heads=2,
    ),
    precision="pure-bf16",
    optimizer="adafactor",
)
case(
    "gptj",
    language_model("GPTJ", batch=2, length=512, n_embd=1024, n_layer=4, n_head=16, rotary_dim=64),
)
case(
    "roberta-bf16",
    language_model("Roberta", batch=32, length=128, task="MaskedLM"),
    precision="bf16",
)
case(
    "roberta-classifier-fp16",
    language_model("Roberta", batch=32, length=256, task="SequenceClassification"),
    precision="fp16",
)
case(
    "albert",
    language_model("Albert", batch=32, length=128, task="MaskedLM", **wide(768, 12)),
)
case(
    "electra-classifier",
    language_model("Electra", batch=64, length=128, task="SequenceClassification"),
)
case(
    "deberta-v2",
    language_model(
        "DebertaV2",
        batch=8,
        length=256,
        task="MaskedLM",
        **wide(768, 12),
        vocab_size=30000,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        **FOUR_LAYERS,
    ),
)
case("mpnet-bf16", language_model("MPNet", batch=16, length=256, task="MaskedLM"), precision="bf16")
case(
    "modernbert-bf16",
    language_model("ModernBert", batch=8, length=512, task="MaskedLM"),
    precision="bf16",
)
case(
    "xlnet",
    language_model(
        "XLNet",
        batch=8,
        length=256,
        task="SequenceClassification",
        d_model=768,
        n_layer=4,
        n_head=12,
        d_inner=3072,
    ),
)
case(
    "bart-bf16",
    language_model(
        "Bart",
        batch=8,
        length=256,
        task="ConditionalGeneration",
        encoder_layers=3,
        decoder_layers=3,
    ),
    precision="bf16",
)


def image_model(kind: str, *, batch: int, **config: Any) -> Callable[[Context], Job]:
    """An image classifier of `transformers`."""

    def build(context: Context) -> Job:
        import transformers

        settings = getattr(transformers, f"{kind}Config")(**config)
        model = getattr(transformers, f"{kind}ForImageClassification")(settings)
        size = context.batch(batch)

        def make(step: int) -> dict[str, torch.Tensor]:
            return {
                "pixel_values": images(context, size, 3, 224, 224),
                "labels": labels(context, size, 2),
            }

        return Job(model, make, own_loss)

    return build


case("beit-bf16", image_model("Beit", batch=32), precision="bf16")
case(
    "dinov2-fp16",
    image_model("Dinov2", batch=16, image_size=224),
    precision="fp16",
)
case("convnextv2", image_model("ConvNextV2", batch=16), optimizer="adamw-fused")
case("segformer", image_model("Segformer", batch=32))
case("poolformer-bf16", image_model("PoolFormer", batch=32), precision="bf16")
case("levit", image_model("Levit", batch=32))


def clip(context: Context) -> Job:
    from transformers import CLIPConfig, CLIPModel

    model = CLIPModel(CLIPConfig(text_config={**FOUR_LAYERS}, vision_config={**FOUR_LAYERS}))
    size = context.batch(32)

    def make(step: int) -> dict[str, Any]:
        return {
            "input_ids": tokens(context, size, 77, 49000),
            "pixel_values": images(context, size, 3, 224, 224),
            "return_loss": True,
        }

    return Job(model, make, own_loss)


def whisper(context: Context) -> Job:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    model = WhisperForConditionalGeneration(WhisperConfig(encoder_layers=4, decoder_layers=4))
    size = context.batch(8)

    def make(step: int) -> dict[str, torch.Tensor]:
        return {
            "input_features": images(context, size, 80, 3000),
            "labels": tokens(context, size, 64, 50000),
        }

    return Job(model, make, own_loss)


case("clip-bf16", clip, precision="bf16")
case("whisper-tiny-fp16", whisper, precision="fp16")
case("whisper-tiny", whisper)

case("wide-resnet50", classifier("wide_resnet50_2", 32), optimizer="sgd-momentum")
case("resnet152-fp16", classifier("resnet152", 32), optimizer="sgd-momentum", precision="fp16")
case("resnet34-bf16-odd-size", classifier("resnet34", 48, 193), precision="bf16")
case(
    "resnet101-fp16-channels-last",
    classifier("resnet101", 24),
    optimizer="sgd-momentum",
    precision="fp16",
    channels_last=True,
)
case("efficientnet-v2-s-bf16", classifier("efficientnet_v2_s", 24), precision="bf16")
case("efficientnet-b3", classifier("efficientnet_b3", 16, 300), optimizer="rmsprop")
case("mobilenet-v2", classifier("mobilenet_v2", 64), optimizer="sgd-momentum")
case("mobilenet-v2-fp16", classifier("mobilenet_v2", 64), optimizer="adam", precision="fp16")
case("densenet201-bf16", classifier("densenet201", 16), precision="bf16")
case("vgg19-bn-fp16", classifier("vgg19_bn", 32), optimizer="sgd-momentum", precision="fp16")
case("regnet-x-3-2gf", classifier("regnet_x_3_2gf", 32), optimizer="sgd-momentum")
case("convnext-small-fp16", classifier("convnext_small", 24), precision="fp16")
case("maxvit-bf16", classifier("maxvit_t", 16), precision="bf16")
case("swin-v2-t", classifier("swin_v2_t", 16))
case("vit-l-16-bf16", classifier("vit_l_16", 16), precision="bf16", rough_seconds=12)
case("vit-b-32-pure-bf16", classifier("vit_b_32", 64), precision="pure-bf16")
case("resnext101-bf16", classifier("resnext101_32x8d", 16), precision="bf16")


def video(name: str, frames: int, side: int, batch: int) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        import torchvision

        model = torchvision.models.get_model(name, weights=None)
        size = context.batch(batch)
        shape = (3, frames, side, side)

        def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
            return images(context, size, *shape), labels(context, size, 400)

        return Job(model, make, lambda net, b: nn.functional.cross_entropy(net(b[0]), b[1]))

    return build


case("mc3-18-fp16", video("mc3_18", 8, 112, 8), precision="fp16", optimizer="sgd-momentum")
case("r2plus1d-18", video("r2plus1d_18", 8, 112, 4), optimizer="sgd-momentum")
case("swin3d-t-bf16", video("swin3d_t", 8, 112, 4), precision="bf16")


def segmentation(name: str, batch: int) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        import torchvision

        model = torchvision.models.get_model(
            name, weights=None, weights_backbone=None, num_classes=21
        )
        size, side = context.batch(batch), 256

        def make(step: int) -> tuple[torch.Tensor, torch.Tensor]:
            return images(context, size, 3, side, side), torch.zeros(size, side, side).long()

        return Job(model, make, lambda net, b: nn.functional.cross_entropy(net(b[0])["out"], b[1]))

    return build


case("deeplab-mobilenet", segmentation("deeplabv3_mobilenet_v3_large", 8), optimizer="sgd-momentum")
case("lraspp-fp16", segmentation("lraspp_mobilenet_v3_large", 8), precision="fp16")
