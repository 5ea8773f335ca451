"""Models of transformers: which class a task needs, and what its batches look like."""

from __future__ import annotations

import importlib
from typing import Any, Callable

from . import agent
from .built import Built
from .failures import CannotEstimate
from .options import Job
from .precision import own_precision

DEFAULT_SEQ = 512

AUTO_CLASSES = {
    "causal-lm": "AutoModelForCausalLM",
    "masked-lm": "AutoModelForMaskedLM",
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "seq-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "image-classification": "AutoModelForImageClassification",
}

_ENDINGS = {
    "ForMaskedLM": "masked-lm",
    "ForPreTraining": "masked-lm",
    "ForCausalLM": "causal-lm",
    "LMHeadModel": "causal-lm",
    "ForConditionalGeneration": "seq2seq-lm",
    "ForSequenceClassification": "seq-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForImageClassification": "image-classification",
}
"""Suffixes of model class names, and their tasks."""


def build_transformers(torch: Any, job: Job, config: Any, source: str) -> Built:
    """The model of a configuration for the job's task, with random weights."""
    _change(job, config)
    transformers: Any = importlib.import_module("transformers")
    task = job.task or _usual_task(transformers, config)
    auto = getattr(transformers, AUTO_CLASSES[task])
    if type(config) not in auto._model_mapping:
        possible = [
            each
            for each, name in AUTO_CLASSES.items()
            if type(config) in getattr(transformers, name)._model_mapping
        ]
        raise CannotEstimate(
            f"models of the type {config.model_type} cannot do {task}",
            f"they can do {', '.join(possible)}" if possible else "another `--task` may work",
        )
    options = {"attn_implementation": job.attention} if job.attention else {}
    precision = own_precision(torch, job)
    # The job decides the precision, not the one that the configuration was saved in.
    setattr(config, "dtype" if hasattr(config, "dtype") else "torch_dtype", precision)
    try:
        model = auto.from_config(config, **options)
    except (ValueError, ImportError, TypeError, AttributeError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise CannotEstimate(
            f"transformers cannot build this model: {first}",
            "it may not support the changed configuration (--layers, --vocab, --attention)",
        ) from error
    return _built(torch, job, config, source, task, model)


def _change(job: Job, config: Any) -> None:
    changes = {"vocab_size": job.vocab, "num_labels": job.classes}
    for name, value in changes.items():
        if value is not None:
            setattr(config, name, value)
    if job.layers is not None:
        layers = _first_name(config, ("num_hidden_layers", "n_layer", "num_layers"))
        if layers is None:
            raise CannotEstimate(f"a {config.model_type} has no number of layers to set")
        setattr(config, layers, job.layers)
        kinds = getattr(config, "layer_types", None)
        if isinstance(kinds, list):
            repeated = kinds * (job.layers // max(len(kinds), 1) + 1)
            config.layer_types = repeated[: job.layers]
    if job.image is not None and hasattr(config, "image_size"):
        config.image_size = job.image


def _first_name(config: Any, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if hasattr(config, name)), None)


def _usual_task(transformers: Any, config: Any) -> str:
    """The task of the configuration, else the first that such models support."""
    for architecture in getattr(config, "architectures", None) or []:
        for ending, task in _ENDINGS.items():
            auto = getattr(transformers, AUTO_CLASSES[task])
            if architecture.endswith(ending) and type(config) in auto._model_mapping:
                return task
    for task, name in AUTO_CLASSES.items():
        if type(config) in getattr(transformers, name)._model_mapping:
            return task
    raise CannotEstimate(
        f"models of the type {config.model_type} do none of {', '.join(AUTO_CLASSES)}",
        "rehearse a script of your own with `ghostgpu run`",
    )


def _built(torch: Any, job: Job, config: Any, source: str, task: str, model: Any) -> Built:
    if task == "image-classification":
        size = getattr(config, "image_size", None) or job.image or 224
        image = int(job.image or (size[0] if isinstance(size, (list, tuple)) else size))
        inputs, sample, seq = _images(torch, config, image), f"an image of {image} × {image}", None
        longest = None
    else:
        longest = _longest(config)
        seq = job.seq or min(DEFAULT_SEQ, longest or DEFAULT_SEQ)
        if longest is not None and seq > longest:
            raise CannotEstimate(
                f"{seq} tokens are more than the {longest} positions that `{job.name}` has",
                f"use at most `--seq {longest}`",
            )
        inputs, sample = _texts(torch, job, config, task), f"{seq} tokens"
        if not job.padding_mask:
            agent.assume(
                "sequences have full length: no padding mask is passed (--padding-mask adds one)"
            )
    if job.inference and task == "causal-lm":
        agent.assume("inference is one forward pass over the whole sequence, without generation")

    def loss(trained: Any, batch: dict[str, Any]) -> Any:
        return trained(**batch).loss

    def outputs(used: Any, batch: dict[str, Any]) -> Any:
        names = [n for n in batch if n == "labels" or n.endswith("_positions")]
        if task == "seq2seq-lm":
            names = []
        return used(**{name: value for name, value in batch.items() if name not in names})

    return Built(
        model=model,
        kind=type(model).__name__,
        source=source,
        task=task,
        inputs=inputs,
        loss=loss,
        outputs=outputs,
        sample=sample,
        seq=seq,
        longest_seq=longest,
        enable_checkpointing=_checkpointing(model),
    )


def _checkpointing(model: Any) -> Callable[[], None] | None:
    if not getattr(model, "supports_gradient_checkpointing", False):
        return None

    def enable() -> None:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.config.use_cache = False

    return enable


def _longest(config: Any) -> int | None:
    name = _first_name(config, ("max_position_embeddings", "n_positions"))
    longest = getattr(config, name) if name is not None else None
    if not isinstance(longest, int) or longest <= 0:
        return None
    # RoBERTa numbers its positions starting after the padding token's.
    is_roberta = "roberta" in config.model_type or config.model_type == "camembert"
    return longest - 2 if is_roberta else longest


def _images(torch: Any, config: Any, image: int) -> Callable[[int, int | None], dict[str, Any]]:
    channels = int(getattr(config, "num_channels", 3))

    def inputs(batch: int, seq: int | None) -> dict[str, Any]:
        return {
            "pixel_values": torch.zeros(batch, channels, image, image),
            "labels": torch.zeros(batch, dtype=torch.long),
        }

    return inputs


def _texts(
    torch: Any, job: Job, config: Any, task: str
) -> Callable[[int, int | None], dict[str, Any]]:
    if task == "seq-classification" and getattr(config, "pad_token_id", None) is None:
        # They look for the last token that is not padding, and fail without a padding token.
        config.pad_token_id = 0

    def inputs(batch: int, seq: int | None) -> dict[str, Any]:
        # Ones, not zeros: zero is the padding token of most models.
        tokens = torch.ones(batch, seq, dtype=torch.long)
        made = {"input_ids": tokens}
        if job.padding_mask:
            made["attention_mask"] = torch.ones(batch, seq, dtype=torch.long)
        if task == "seq-classification":
            made["labels"] = torch.zeros(batch, dtype=torch.long)
        elif task == "question-answering":
            made["start_positions"] = torch.zeros(batch, dtype=torch.long)
            made["end_positions"] = torch.zeros(batch, dtype=torch.long)
        else:
            made["labels"] = torch.zeros(batch, seq, dtype=torch.long)
        return made

    return inputs
