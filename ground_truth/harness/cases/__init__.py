"""The measured cases, one module per family. Importing a family needs torch and nothing else:
model libraries are imported when a case is built."""

from . import (
    allocator_settings,
    attention,
    compiled,
    evaluation,
    frameworks,
    further_models,
    memory_caps,
    met_later,
    operations,
    optimizers,
    own_models,
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
    further_models,
    own_models,
    met_later,
    compiled,
)

__all__ = ["FAMILIES"]
