"""Which class implements which trick. A module is imported only when its trick is requested."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .trick import Trick

PLACES: dict[str, tuple[str, str]] = {
    "accumulation": ("accumulation", "Accumulation"),
    "adafactor": ("adafactor", "Adafactor"),
    "allocator": ("allocator", "Allocator"),
    "autocast": ("autocast", "Autocast"),
    "bfloat16-weights": ("bfloat16_weights", "Bfloat16Weights"),
    "channels-last": ("channels_last", "ChannelsLast"),
    "checkpointing": ("checkpointing", "Checkpointing"),
    "chunking": ("chunking", "Chunking"),
    "drop-gradients": ("drop_gradients", "DropGradients"),
    "drop-last": ("drop_last", "DropLast"),
    "early-zero-grad": ("early_zero_grad", "EarlyZeroGrad"),
    "eight-bit-optimizer": ("eight_bit_optimizer", "EightBitOptimizer"),
    "empty-cache": ("empty_cache", "EmptyCache"),
    "evaluation-chunks": ("chunking_evaluation", "EvaluationChunks"),
    "inplace-activations": ("inplace_activations", "InplaceActivations"),
    "leave-room": ("memory_fraction", "LeaveRoom"),
    "lora": ("lora", "Lora"),
    "loss-head": ("loss_head", "LossHead"),
    "no-cudnn-benchmark": ("no_cudnn_benchmark", "NoCudnnBenchmark"),
    "no-grad-evaluation": ("no_grad_evaluation", "NoGradEvaluation"),
    "no-limit": ("memory_fraction", "NoLimit"),
    "offload-activations": ("offload_activations", "OffloadActivations"),
    "offload-optimizer": ("offload_optimizer", "OffloadOptimizer"),
    "optimizer-form": ("optimizer_form", "OptimizerForm"),
    "optimizer-in-backward": ("optimizer_in_backward", "OptimizerInBackward"),
    "sharding": ("sharding", "Sharding"),
    "shorter-sequences": ("shorter_sequences", "ShorterSequences"),
    "small-evaluation-batch": ("small_evaluation_batch", "SmallEvaluationBatch"),
    "smaller-batch": ("smaller_batch", "SmallerBatch"),
    "surviving-oom": ("surviving_oom", "SurvivingOom"),
}
"""Module and class of each trick, by its name in the catalogue."""


def load(name: str) -> type[Trick]:
    """The class of a trick, which must be in `PLACES`."""
    from importlib import import_module

    module, kind = PLACES[name]
    found: type[Trick] = getattr(import_module(f"{__package__}.{module}"), kind)
    return found
