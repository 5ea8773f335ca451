"""The measured cases, one module per family. Importing a family needs torch and nothing else:
model libraries are imported when a case is built."""

from . import (
    allocator_settings,
    attention,
    compiled,
    evaluation,
    frameworks,
    memory_caps,
    operations,
    optimizers,
    recurrent,
    transformers_models,
    vision,
)

FAMILIES = (
    vision,
    transformers_models,
    recurrent,
    attention,
    operations,
    optimizers,
    evaluation,
    allocator_settings,
    memory_caps,
    frameworks,
    compiled,
)

__all__ = ["FAMILIES"]
