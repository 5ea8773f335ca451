"""One of the trainings that others measured on their cards, rebuilt from its description.

    ghostgpu run --gpu 3060 --full -- python published_training.py \\
        --model resnet101 --batch 351 --optimizer SGD

Prints one line of JSON: the memory on the card after the context was made, what PyTorch reserved
and allocated at most, and what was on the card beside that at the end.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, Callable

import torch

PIXELS = 86


def _causal(config: Callable[[Any], Any]) -> Callable[[], torch.nn.Module]:
    def build() -> torch.nn.Module:
        import transformers

        return transformers.AutoModelForCausalLM.from_config(config(transformers))

    return build


def _t5_small() -> torch.nn.Module:
    import transformers

    config = transformers.T5Config(decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config)


#: Configurations as published with the weights, which are not needed here.
LANGUAGE_MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "gpt2": _causal(lambda library: library.GPT2Config()),
    "distilgpt2": _causal(lambda library: library.GPT2Config(n_layer=6)),
    "Cerebras-GPT-111M": _causal(
        lambda library: library.GPT2Config(
            n_layer=10,
            n_inner=3072,
            n_positions=2048,
            activation_function="gelu",
            attn_pdrop=0.0,
            embd_pdrop=0.0,
            resid_pdrop=0.0,
        )
    ),
    "gpt-neo-125M": _causal(
        lambda library: library.GPTNeoConfig(
            hidden_size=768,
            num_layers=12,
            num_heads=12,
            attention_types=[[["global", "local"], 6]],
        )
    ),
    "opt-350m": _causal(
        lambda library: library.OPTConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            ffn_dim=4096,
            num_attention_heads=16,
            word_embed_proj_dim=512,
            do_layer_norm_before=False,
        )
    ),
    "t5-small": _t5_small,
}


def image_model(name: str) -> torch.nn.Module:
    """A torchvision model by its name; `mobilenet_v3_small:10` has ten classes."""
    import torchvision

    name, _, classes = name.partition(":")
    arguments = {"num_classes": int(classes)} if classes else {}
    model: torch.nn.Module = getattr(torchvision.models, name)(weights=None, **arguments)
    return model


def text_batch(size: int, tokens: int) -> dict[str, torch.Tensor]:
    """Lines of text as a collator pads them to the longest: most of them are shorter."""
    numbers = torch.zeros(size, tokens, dtype=torch.long)
    mask = torch.ones_like(numbers)
    mask[1:, tokens // 2 :] = 0
    labels = numbers.masked_fill(mask == 0, -100)
    return {"input_ids": numbers, "attention_mask": mask, "labels": labels}


def train(options: argparse.Namespace, device: torch.device) -> None:
    """The loop of the measured program: gradients are cleared when an iteration begins, and what
    the model returned is kept until it returns the next."""
    is_language_model = options.model in LANGUAGE_MODELS
    model = LANGUAGE_MODELS[options.model]() if is_language_model else image_model(options.model)
    model.to(device).train()
    optimizer = getattr(torch.optim, options.optimizer)(model.parameters(), lr=1e-3)
    criterion = torch.nn.CrossEntropyLoss()
    batch = options.batch
    for _ in range(options.steps):
        optimizer.zero_grad()
        if is_language_model:
            texts = text_batch(batch, options.tokens)
            texts = {name: part.to(device) for name, part in texts.items()}
            outputs = model(**texts)
            loss = outputs.loss
        else:
            # The loader's next batch takes the name of the last one, whose copy is freed by that.
            images = torch.zeros(batch, 3, PIXELS, PIXELS)
            labels = torch.zeros(batch, dtype=torch.long)
            images, labels = images.to(device), labels.to(device)
            outputs = model(images)
            loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()


def on_card() -> int:
    free, total = torch.cuda.mem_get_info()
    return total - free


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--optimizer", required=True)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    torch.cuda.init()
    context = on_card()
    train(options, torch.device("cuda"))
    figures = {
        "context": context,
        "outside": on_card() - torch.cuda.memory_reserved(),
        "reserved": torch.cuda.max_memory_reserved(),
        "allocated": torch.cuda.max_memory_allocated(),
    }
    print("figures", json.dumps(figures))


if __name__ == "__main__":
    main()
