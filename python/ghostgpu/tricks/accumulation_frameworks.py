"""Accumulation in trainers that have it themselves: they are asked to, and their weights corrected.

The Trainer of transformers, Lightning's, and Accelerate where a script uses its accumulation count
steps, schedules and logs by windows, and exchange gradients once for each. What they get wrong is
the weight of a batch: a mean of means where batches have different numbers of tokens or samples,
and in the last, short window of an epoch a sum that is divided by the length of a full one. So they
keep their windows, their division is undone, and gradients are weighted like those of any loop.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

from .accumulation_weights import MEAN, SUM, UNKNOWN, Reduction
from .hooks import Hooks
from .import_watch import ImportWatch


class Trainer:
    """Whose windows they are, while a trainer trains."""

    def __init__(self, divisor: Callable[[], float] = lambda: 1) -> None:
        self.divisor = divisor
        """What the trainer has divided a loss by."""

    def is_exact(self, reduction: Reduction) -> bool:
        """Whether a batch has the right weight without us."""
        return False


class _OfTransformers(Trainer):
    """Divides by the number of labels in the window if the model lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_count = False
        """Whether the model was told the number of labels in the window."""
        self.was_mean = False
        """Whether the last loss was a mean all the same, or without it."""

    def is_exact(self, reduction: Reduction) -> bool:
        # Models that take the count and ignore it return a mean.
        is_exact = self.has_count and reduction.kind in (SUM, UNKNOWN)
        self.was_mean = not is_exact and reduction.kind in (MEAN, UNKNOWN)
        return is_exact


class Frameworks:
    """Has trainers accumulate as soon as they have been imported."""

    def __init__(
        self,
        hooks: Hooks,
        steps: int,
        manage: Callable[[Trainer | None], Any],
        watch: Callable[[Any, Any], Any],
    ) -> None:
        """`manage` sets whose the windows are, and returns whose they were; `watch` gets a loader
        and its batches, and returns the batches."""
        self._watch = watch
        self._hooks = hooks
        self._steps = steps
        self._manage = manage
        self._install = {
            "transformers.trainer": self._ask_transformers,
            "lightning.pytorch.trainer.trainer": self._ask_lightning,
            "pytorch_lightning.trainer.trainer": self._ask_lightning,
            "accelerate.accelerator": self._ask_accelerate,
            "accelerate.data_loader": self._watch_loaders_of_accelerate,
        }

    def install(self) -> None:
        watch = ImportWatch(self._install, lambda module: self._install[module.__name__](module))
        watch.install()
        watch.catch_up()

    def _during(self, trainer: Trainer, make: Callable[[], Any]) -> Any:
        before = self._manage(trainer)
        try:
            return make()
        finally:
            self._manage(before)

    # transformers

    def _ask_transformers(self, module: Any) -> None:
        kind = module.Trainer
        if "self.current_gradient_accumulation_steps" not in inspect.getsource(kind):
            return  # an old one: its steps are left out like those of any loop
        initialise, train, step = kind.__init__, kind.train, kind.training_step
        state = _OfTransformers()

        @functools.wraps(initialise)
        def initialised(trainer: Any, *arguments: Any, **options: Any) -> None:
            initialise(trainer, *arguments, **options)
            if not getattr(trainer.args, "_has_windows_of_ghostgpu", False):
                object.__setattr__(trainer.args, "_has_windows_of_ghostgpu", True)
                trainer.args.gradient_accumulation_steps *= self._steps

        @functools.wraps(train)
        def trained(trainer: Any, *arguments: Any, **options: Any) -> Any:
            return self._during(state, lambda: train(trainer, *arguments, **options))

        @functools.wraps(step)
        def stepped(trainer: Any, model: Any, inputs: Any, *rest: Any, **options: Any) -> Any:
            count = options.get("num_items_in_batch", rest[0] if rest else None)
            state.has_count = count is not None
            loss = step(trainer, model, inputs, *rest, **options)
            # The trainer adds up the losses of a window, and logs that.
            return loss / vars(trainer).get(_BATCHES, 1) if state.was_mean else loss

        kind.__init__, kind.train, kind.training_step = initialised, trained, stepped
        # Losses are divided by this: by one, then.
        kind.current_gradient_accumulation_steps = property(
            lambda trainer: 1, lambda trainer, batches: vars(trainer).update({_BATCHES: batches})
        )

    # Lightning

    def _ask_lightning(self, module: Any) -> None:
        kind = module.Trainer
        fit = kind.fit
        asked: set[int] = set()

        @functools.wraps(fit)
        def fitted(trainer: Any, model: Any, *arguments: Any, **options: Any) -> Any:
            # A script that steps its optimizers itself is a loop like any other.
            if not getattr(model, "automatic_optimization", True):
                return fit(trainer, model, *arguments, **options)
            for callback in trainer.callbacks:
                if type(callback).__name__ == "GradientAccumulationScheduler":
                    raise self._hooks.refusal(
                        "the script's GradientAccumulationScheduler decides how many batches "
                        "make a step",
                        "leave --accumulate out, and change the schedule",
                    )
            if id(trainer) not in asked:
                asked.add(id(trainer))
                trainer.accumulate_grad_batches *= self._steps
            manager = Trainer(lambda: trainer.accumulate_grad_batches)
            return self._during(manager, lambda: fit(trainer, model, *arguments, **options))

        kind.fit = fitted

    # Accelerate

    def _ask_accelerate(self, module: Any) -> None:
        kind = module.Accelerator
        initialise = kind.__init__

        @functools.wraps(initialise)
        def initialised(accelerator: Any, *arguments: Any, **options: Any) -> None:
            initialise(accelerator, *arguments, **options)
            # Where the script does not accumulate, its steps are left out like those of any loop.
            if accelerator.gradient_accumulation_steps > 1:
                accelerator.gradient_accumulation_steps *= self._steps
                self._manage(Trainer(lambda: accelerator.gradient_accumulation_steps))

        kind.__init__ = initialised

    def _watch_loaders_of_accelerate(self, module: Any) -> None:
        """They take a batch from PyTorch's loader before they hand out the one before."""
        for name in ("DataLoaderShard", "DataLoaderDispatcher"):
            kind = getattr(module, name)
            kind.__iter__ = self._watched(kind.__iter__)

    def _watched(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def iterate(loader: Any) -> Any:
            return self._watch(loader, original(loader))

        return iterate


_BATCHES = "_batches_in_window_of_ghostgpu"
