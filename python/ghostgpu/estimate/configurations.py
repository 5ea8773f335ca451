"""Well-known configurations, so that their names work without a download.

Only what decides how much memory a model takes is listed: sizes, ties, and dropout, because a
dropped activation leaves a mask. `tests/e2e/published_parameters.tsv` has the published number of
parameters of each. Everything else is the default of the model's own configuration class in
transformers, or does not affect memory (bases of rotary embeddings, epsilons, token ids).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .names import simplified


@dataclass(frozen=True)
class Known:
    """A configuration by its name."""

    model_type: str
    architecture: str
    fields: dict[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


def _bert(width: int, layers: int, vocab: int = 30522, aliases: tuple[str, ...] = ()) -> Known:
    fields = {**_encoder(width, layers), "vocab_size": vocab}
    return Known("bert", "BertForMaskedLM", fields, aliases)


def _encoder(width: int, layers: int) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // 64,
        "intermediate_size": 4 * width,
    }


def _roberta(model_type: str, kind: str, width: int, layers: int, vocab: int) -> Known:
    fields = {
        **_encoder(width, layers),
        "vocab_size": vocab,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
    }
    return Known(model_type, f"{kind}ForMaskedLM", fields)


def _deberta(width: int, layers: int, aliases: tuple[str, ...] = ()) -> Known:
    fields = {
        **_encoder(width, layers),
        "vocab_size": 128100,
        "type_vocab_size": 0,
        "relative_attention": True,
        "position_buckets": 256,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "max_relative_positions": -1,
    }
    return Known("deberta-v2", "DebertaV2ForMaskedLM", fields, aliases)


def _gpt2(width: int, layers: int, heads: int, aliases: tuple[str, ...] = ()) -> Known:
    fields = {"n_embd": width, "n_layer": layers, "n_head": heads}
    return Known("gpt2", "GPT2LMHeadModel", fields, aliases)


def _opt(width: int, layers: int, heads: int) -> Known:
    fields = {
        "hidden_size": width,
        "word_embed_proj_dim": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "ffn_dim": 4 * width,
        "vocab_size": 50272,
    }
    return Known("opt", "OPTForCausalLM", fields)


def _pythia(width: int, layers: int, heads: int, vocab: int = 50304) -> Known:
    fields = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "vocab_size": vocab,
    }
    return Known("gpt_neox", "GPTNeoXForCausalLM", fields)


def _t5(width: int, inner: int, layers: int, heads: int, **more: Any) -> Known:
    fields = {
        "d_model": width,
        "d_ff": inner,
        "num_layers": layers,
        "num_decoder_layers": layers,
        "num_heads": heads,
        **more,
    }
    return Known("t5", "T5ForConditionalGeneration", fields)


_BART_DROPS = {"attention_dropout": 0.1, "activation_dropout": 0.1}

_FLAN = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}


def _decoder(
    model_type: str,
    kind: str,
    width: int,
    inner: int,
    layers: int,
    heads: tuple[int, int],
    vocab: int,
    positions: int,
    tied: bool = False,
    aliases: tuple[str, ...] = (),
    **more: Any,
) -> Known:
    """A decoder of Llama's family; `heads` are those of queries, then of keys and values."""
    fields = {
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1],
        "vocab_size": vocab,
        "max_position_embeddings": positions,
        "tie_word_embeddings": tied,
        **more,
    }
    return Known(model_type, f"{kind}ForCausalLM", fields, aliases)


def _llama(*sizes: Any, **more: Any) -> Known:
    return _decoder("llama", "Llama", *sizes, **more)


def _qwen2(
    width: int,
    inner: int,
    layers: int,
    heads: tuple[int, int],
    vocab: int,
    positions: int = 131072,
    tied: bool = False,
) -> Known:
    return _decoder("qwen2", "Qwen2", width, inner, layers, heads, vocab, positions, tied)


def _qwen3(
    width: int, inner: int, layers: int, heads: tuple[int, int], tied: bool = False
) -> Known:
    sizes = (width, inner, layers, heads, 151936, 40960, tied)
    return _decoder("qwen3", "Qwen3", *sizes, head_dim=128)


def _vit(width: int, layers: int, patch: int, aliases: tuple[str, ...] = ()) -> Known:
    fields = {**_encoder(width, layers), "patch_size": patch}
    return Known("vit", "ViTForImageClassification", fields, aliases)


CONFIGURATIONS: dict[str, Known] = {
    "bert-base": _bert(768, 12, aliases=("bert-base-uncased",)),
    "bert-base-cased": _bert(768, 12, vocab=28996),
    "bert-base-multilingual-cased": _bert(768, 12, vocab=119547),
    "bert-large": _bert(1024, 24, aliases=("bert-large-uncased",)),
    "bert-large-cased": _bert(1024, 24, vocab=28996),
    "distilbert": Known("distilbert", "DistilBertForMaskedLM", {}, ("distilbert-base-uncased",)),
    "roberta-base": _roberta("roberta", "Roberta", 768, 12, 50265),
    "roberta-large": _roberta("roberta", "Roberta", 1024, 24, 50265),
    "xlm-roberta-base": _roberta("xlm-roberta", "XLMRoberta", 768, 12, 250002),
    "xlm-roberta-large": _roberta("xlm-roberta", "XLMRoberta", 1024, 24, 250002),
    "albert-base": Known(
        "albert",
        "AlbertForMaskedLM",
        {**_encoder(768, 12), "embedding_size": 128, "vocab_size": 30000},
        ("albert-base-v2",),
    ),
    "deberta-v3-base": _deberta(768, 12),
    "deberta-v3-large": _deberta(1024, 24),
    "modernbert-base": Known("modernbert", "ModernBertForMaskedLM"),
    "modernbert-large": Known(
        "modernbert",
        "ModernBertForMaskedLM",
        {
            "hidden_size": 1024,
            "intermediate_size": 2624,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
        },
    ),
    "gpt2": _gpt2(768, 12, 12, aliases=("gpt2-small",)),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "gpt2-xl": _gpt2(1600, 48, 25),
    "distilgpt2": _gpt2(768, 6, 12),
    "opt-125m": _opt(768, 12, 12),
    "opt-1.3b": _opt(2048, 24, 32),
    "opt-2.7b": _opt(2560, 32, 32),
    "opt-6.7b": _opt(4096, 32, 32),
    "pythia-160m": _pythia(768, 12, 12),
    "pythia-410m": _pythia(1024, 24, 16),
    "pythia-1.4b": _pythia(2048, 24, 16),
    "pythia-2.8b": _pythia(2560, 32, 32),
    "pythia-6.9b": _pythia(4096, 32, 32, vocab=50432),
    "t5-small": _t5(512, 2048, 6, 8),
    "t5-base": _t5(768, 3072, 12, 12),
    "t5-large": _t5(1024, 4096, 24, 16),
    "t5-3b": _t5(1024, 16384, 24, 32, d_kv=128),
    "flan-t5-small": _t5(512, 1024, 8, 6, **_FLAN),
    "flan-t5-base": _t5(768, 2048, 12, 12, **_FLAN),
    "flan-t5-large": _t5(1024, 2816, 24, 16, **_FLAN),
    "flan-t5-xl": _t5(2048, 5120, 24, 32, **_FLAN),
    "bart-base": Known(
        "bart",
        "BartForConditionalGeneration",
        {
            "d_model": 768,
            "encoder_layers": 6,
            "decoder_layers": 6,
            "encoder_attention_heads": 12,
            "decoder_attention_heads": 12,
            "encoder_ffn_dim": 3072,
            "decoder_ffn_dim": 3072,
            **_BART_DROPS,
        },
    ),
    "bart-large": Known("bart", "BartForConditionalGeneration", _BART_DROPS),
    "llama-2-7b": _llama(4096, 11008, 32, (32, 32), 32000, 4096, aliases=("llama-7b",)),
    "llama-2-13b": _llama(5120, 13824, 40, (40, 40), 32000, 4096),
    "llama-2-70b": _llama(8192, 28672, 80, (64, 8), 32000, 4096),
    "llama-3-8b": _llama(4096, 14336, 32, (32, 8), 128256, 8192, aliases=("meta-llama-3-8b",)),
    "llama-3-70b": _llama(8192, 28672, 80, (64, 8), 128256, 8192, aliases=("meta-llama-3-70b",)),
    "llama-3.1-8b": _llama(4096, 14336, 32, (32, 8), 128256, 131072),
    "llama-3.2-1b": _llama(2048, 8192, 16, (32, 8), 128256, 131072, tied=True, head_dim=64),
    "llama-3.2-3b": _llama(3072, 8192, 28, (24, 8), 128256, 131072, tied=True, head_dim=128),
    "tinyllama-1.1b": _llama(2048, 5632, 22, (32, 4), 32000, 2048),
    "smollm2-135m": _llama(576, 1536, 30, (9, 3), 49152, 8192, tied=True),
    "smollm2-360m": _llama(960, 2560, 32, (15, 5), 49152, 8192, tied=True),
    "smollm2-1.7b": _llama(2048, 8192, 24, (32, 32), 49152, 8192, tied=True),
    "mistral-7b": _decoder(
        "mistral",
        "Mistral",
        4096,
        14336,
        32,
        (32, 8),
        32000,
        32768,
        sliding_window=4096,
        aliases=("mistral-7b-v0.1",),
    ),
    "mixtral-8x7b": _decoder(
        "mixtral",
        "Mixtral",
        4096,
        14336,
        32,
        (32, 8),
        32000,
        32768,
        num_local_experts=8,
        num_experts_per_tok=2,
        aliases=("mixtral-8x7b-v0.1",),
    ),
    "qwen2.5-0.5b": _qwen2(896, 4864, 24, (14, 2), 151936, 32768, tied=True),
    "qwen2.5-1.5b": _qwen2(1536, 8960, 28, (12, 2), 151936, tied=True),
    "qwen2.5-3b": _qwen2(2048, 11008, 36, (16, 2), 151936, 32768, tied=True),
    "qwen2.5-7b": _qwen2(3584, 18944, 28, (28, 4), 152064),
    "qwen2.5-14b": _qwen2(5120, 13824, 48, (40, 8), 152064),
    "qwen2.5-32b": _qwen2(5120, 27648, 64, (40, 8), 152064),
    "qwen3-0.6b": _qwen3(1024, 3072, 28, (16, 8), tied=True),
    "qwen3-1.7b": _qwen3(2048, 6144, 28, (16, 8), tied=True),
    "qwen3-4b": _qwen3(2560, 9728, 36, (32, 8), tied=True),
    "qwen3-8b": _qwen3(4096, 12288, 36, (32, 8)),
    "phi-2": _decoder(
        "phi",
        "Phi",
        2560,
        10240,
        32,
        (32, 32),
        51200,
        2048,
        partial_rotary_factor=0.4,
        hidden_act="gelu_new",
        resid_pdrop=0.1,
    ),
    "phi-3-mini": _decoder(
        "phi3",
        "Phi3",
        3072,
        8192,
        32,
        (32, 32),
        32064,
        4096,
        aliases=("phi-3-mini-4k-instruct",),
        pad_token_id=32000,
        sliding_window=2047,
    ),
    "gemma-2b": _decoder(
        "gemma", "Gemma", 2048, 16384, 18, (8, 1), 256000, 8192, tied=True, head_dim=256
    ),
    "gemma-7b": _decoder(
        "gemma", "Gemma", 3072, 24576, 28, (16, 16), 256000, 8192, tied=True, head_dim=256
    ),
    "gemma-2-2b": _decoder(
        "gemma2", "Gemma2", 2304, 9216, 26, (8, 4), 256000, 8192, tied=True, head_dim=256
    ),
    "gemma-2-9b": _decoder(
        "gemma2", "Gemma2", 3584, 14336, 42, (16, 8), 256000, 8192, tied=True, head_dim=256
    ),
    "vit-base": _vit(768, 12, 16, aliases=("vit-base-patch16-224",)),
    "vit-large": _vit(1024, 24, 16, aliases=("vit-large-patch16-224",)),
    "vit-huge": Known(
        "vit",
        "ViTForImageClassification",
        {
            "hidden_size": 1280,
            "num_hidden_layers": 32,
            "num_attention_heads": 16,
            "intermediate_size": 5120,
            "patch_size": 14,
        },
        ("vit-huge-patch14-224-in21k",),
    ),
}

_ENDINGS = ("-hf", "-base", "-instruct", "-chat-hf", "-chat", "-it")
"""Suffixes that hubs add to a name without changing the model's sizes."""


def find_known(name: str) -> str | None:
    """The key of a built-in configuration, by its name, an alias, or the name on a hub."""
    by_simple: dict[str, str] = {}
    for key, known in CONFIGURATIONS.items():
        for each in (key, *known.aliases):
            by_simple[simplified(each)] = key
    wanted = name.rpartition("/")[2]
    for ending in ("", *_ENDINGS):
        if wanted.lower().endswith(ending):
            key_found = by_simple.get(simplified(wanted[: len(wanted) - len(ending)]))
            if key_found is not None:
                return key_found
    return None
