"""Language models of the transformers library, built from configurations: nothing is downloaded."""

from __future__ import annotations

from typing import Any, Callable

import torch

from case import Job, case
from context import Context
from data import tokens, varying

TINY_BERT = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
TINY_T5 = dict(vocab_size=100, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)


def own_loss(net: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return net(**batch).loss


def bert(batch: int = 32, length: int = 128, masked: bool = False) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        from transformers import BertConfig, BertForMaskedLM

        config = BertConfig(**(TINY_BERT if context.tiny else {}))
        size, words = context.batch(batch), context.pick(length, 16)

        def make(step: int) -> dict[str, torch.Tensor]:
            ids = tokens(context, size, words, config.vocab_size)
            out = {"input_ids": ids, "labels": ids}
            if masked:
                out["attention_mask"] = (torch.arange(words) < words - 3).expand(size, words).long()
            return out

        return Job(BertForMaskedLM(config), make, own_loss)

    return build


def gpt2(
    batch: int = 8, length: int = 512, prepare: Callable[[Any], None] = lambda model: None
) -> Callable[[Context], Job]:
    def build(context: Context) -> Job:
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config()
        if context.tiny:
            config = GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=2, n_head=2)
        model = GPT2LMHeadModel(config)
        prepare(model)
        size, words = context.batch(batch), context.pick(length, 16)

        def make(step: int) -> dict[str, torch.Tensor]:
            ids = tokens(context, size, words, config.vocab_size)
            return {"input_ids": ids, "labels": ids}

        return Job(model, make, own_loss)

    return build


def varying_gpt2(context: Context) -> Job:
    """Every step another length, as with dynamic padding."""
    job = gpt2()(context)
    size, vocabulary = context.batch(4), context.pick(50257, 100)

    def make(step: int) -> dict[str, torch.Tensor]:
        words = varying(step, context.pick(64, 8), context.pick(768, 32))
        ids = tokens(context, size, words, vocabulary)
        return {"input_ids": ids, "labels": ids}

    return Job(job.model, make, job.loss)


def varying_bert(context: Context) -> Job:
    job = bert()(context)
    size, vocabulary = context.batch(16), context.pick(30522, 100)

    def make(step: int) -> dict[str, torch.Tensor]:
        words = varying(step, context.pick(24, 8), context.pick(384, 32))
        ids = tokens(context, size, words, vocabulary).cpu()
        mask = torch.ones_like(ids)
        mask[0, words // 2 :] = 0
        return {"input_ids": ids, "labels": ids, "attention_mask": mask}

    return Job(job.model, make, job.loss)


def checkpointing(reentrant: bool) -> Callable[[Any], None]:
    def prepare(model: Any) -> None:
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": reentrant}
        )

    return prepare


case("bert", bert(), alone=True)
case("bert-fp16", bert(), precision="fp16", alone=True)
case("bert-bf16", bert(), precision="bf16")
case("bert-pure-bf16", bert(), precision="pure-bf16")
case("bert-padding-mask", bert(masked=True))
case("bert-padding-mask-bf16", bert(masked=True), precision="bf16")
case("bert-long-sequences", bert(batch=8, length=512))
case(
    "bert-clipped-accumulated-fp16",
    bert(batch=16),
    precision="fp16",
    accumulate=2,
    clip_gradients=True,
)
case("bert-varying-lengths", varying_bert, steps=20, rough_seconds=12)
case("bert-varying-lengths-fp16", varying_bert, steps=20, precision="fp16", rough_seconds=12)

case("gpt2", gpt2(), rough_gib=10, alone=True)
case("gpt2-fp16", gpt2(), precision="fp16", rough_gib=10)
case("gpt2-bf16", gpt2(), precision="bf16", rough_gib=10, alone=True)
case("gpt2-pure-bf16", gpt2(), precision="pure-bf16")
case("gpt2-accumulate-4", gpt2(batch=2), accumulate=4, rough_gib=10)
case("gpt2-clipped", gpt2(batch=4), clip_gradients=True)
case("gpt2-adafactor", gpt2(batch=4), optimizer="adafactor")
case("gpt2-transformers-adafactor", gpt2(batch=4), optimizer="transformers-adafactor")
case("gpt2-checkpointing", gpt2(prepare=checkpointing(False)), rough_gib=10)
case("gpt2-checkpointing-reentrant", gpt2(prepare=checkpointing(True)), rough_gib=10)
case("gpt2-checkpointing-bf16", gpt2(prepare=checkpointing(False)), precision="bf16")
case("gpt2-varying-lengths", varying_gpt2, steps=20, rough_gib=10, rough_seconds=12)
case("gpt2-varying-lengths-bf16", varying_gpt2, steps=20, precision="bf16", rough_seconds=12)


def t5(context: Context) -> Job:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(decoder_start_token_id=0, **(TINY_T5 if context.tiny else {}))
    size = context.batch(16)

    def make(step: int) -> dict[str, torch.Tensor]:
        return {
            "input_ids": tokens(context, size, context.pick(256, 16), config.vocab_size),
            "labels": tokens(context, size, context.pick(64, 8), config.vocab_size),
        }

    return Job(T5ForConditionalGeneration(config), make, own_loss)


case("t5-small", t5)
case("t5-small-bf16", t5, precision="bf16")
case("t5-small-adafactor", t5, optimizer="transformers-adafactor")


def _decoder(
    kind: str,
    batch: int,
    length: int,
    prepare: Callable[[Any], None] = lambda m: None,
    **extra: Any,
) -> Callable[[Context], Job]:
    """A decoder-only model of about 150 million parameters with the named architecture."""

    def build(context: Context) -> Job:
        import transformers

        sizes: dict[str, Any] = {
            "vocab_size": context.pick(32000, 100),
            "hidden_size": context.pick(1024, 32),
            "intermediate_size": context.pick(2816, 64),
            "num_hidden_layers": context.pick(8, 2),
            "num_attention_heads": context.pick(16, 4),
            "num_key_value_heads": context.pick(8, 2),
            "max_position_embeddings": 2048,
            "use_cache": False,
        }
        if kind == "Qwen3":
            sizes["head_dim"] = context.pick(64, 8)
        sizes.update(extra)
        model = getattr(transformers, f"{kind}ForCausalLM")(
            getattr(transformers, f"{kind}Config")(**sizes)
        )
        prepare(model)
        size, words = context.batch(batch), context.pick(length, 16)

        def make(step: int) -> dict[str, torch.Tensor]:
            ids = tokens(context, size, words, sizes["vocab_size"])
            return {"input_ids": ids, "labels": ids}

        return Job(model, make, own_loss)

    return build


llama = _decoder("Llama", 4, 1024)
case("llama", llama, rough_gib=14, alone=True)
case("llama-bf16", llama, precision="bf16", rough_gib=12)
case("llama-fp16", llama, precision="fp16", rough_gib=12)
case("llama-pure-bf16", llama, precision="pure-bf16")
case("llama-pure-bf16-fused-adamw", llama, precision="pure-bf16", optimizer="adamw-fused")
case(
    "llama-pure-bf16-checkpointing",
    _decoder("Llama", 8, 1024, checkpointing(False)),
    precision="pure-bf16",
)
case(
    "llama-bf16-checkpointing-reentrant",
    _decoder("Llama", 8, 1024, checkpointing(True)),
    precision="bf16",
    rough_gib=12,
)
case("llama-sgd-long-context", _decoder("Llama", 1, 2048), optimizer="sgd", precision="bf16")
case("qwen2", _decoder("Qwen2", 4, 512))
case("qwen2-bf16", _decoder("Qwen2", 4, 1024), precision="bf16", rough_gib=12)
case("qwen3-pure-bf16", _decoder("Qwen3", 4, 1024), precision="pure-bf16")
case("qwen3-bf16-adafactor", _decoder("Qwen3", 4, 512), precision="bf16", optimizer="adafactor")
case("mistral-pure-bf16", _decoder("Mistral", 4, 1024, sliding_window=512), precision="pure-bf16")
case(
    "mixtral",
    _decoder(
        "Mixtral",
        4,
        256,
        num_hidden_layers=4,
        intermediate_size=1024,
        num_local_experts=4,
        num_experts_per_tok=2,
    ),
    is_data_dependent=True,
)
case(
    "mixtral-pure-bf16",
    _decoder(
        "Mixtral",
        8,
        512,
        num_hidden_layers=4,
        intermediate_size=1024,
        num_local_experts=8,
        num_experts_per_tok=2,
    ),
    precision="pure-bf16",
    is_data_dependent=True,
)


def distilbert(context: Context) -> Job:
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    small = {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    config = DistilBertConfig(**(small if context.tiny else {}))
    size, words = context.batch(32), context.pick(256, 16)

    def make(step: int) -> dict[str, torch.Tensor]:
        ids = tokens(context, size, words, config.vocab_size)
        mask = torch.ones(size, words, dtype=torch.long)
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "labels": torch.zeros(size, dtype=torch.long),
        }

    return Job(DistilBertForSequenceClassification(config), make, own_loss)


case("distilbert-classifier", distilbert)
case("distilbert-classifier-fp16", distilbert, precision="fp16")
