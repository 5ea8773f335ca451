"""Image classifiers of torchvision and timm."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from .built import Built
from .failures import CannotEstimate, need_package
from .names import nearest
from .options import Job

DEFAULT_IMAGE = 224


def build_torchvision(torch: Any, job: Job, name: str) -> Built:
    """A classifier of torchvision, with random weights."""
    need_package("torchvision")
    models: Any = importlib.import_module("torchvision.models")
    if name not in models.list_models():
        raise CannotEstimate(
            f"torchvision has no model `{name}`", nearest(name, list(models.list_models()))
        )
    _refuse_text_options(job)
    options: dict[str, Any] = {"num_classes": job.classes} if job.classes else {}
    if name.startswith("vit_") and job.image:
        options["image_size"] = job.image
    image = job.image or _torchvision_image(models, name)
    with _kind(torch, job):
        model = models.get_model(name, weights=None, **options)
    if not hasattr(models, name) or model.__module__.split(".")[2] in _NOT_CLASSIFIERS:
        raise CannotEstimate(
            f"`{name}` is not an image classifier",
            "rehearse a script of your own with `ghostgpu run`",
        )
    return _classifier(torch, job, model, image, "torchvision's own configuration")


_NOT_CLASSIFIERS = frozenset({"detection", "segmentation", "optical_flow", "video"})


def _torchvision_image(models: Any, name: str) -> int:
    """The image size of torchvision's weights for this model."""
    try:
        weights = models.get_model_weights(name).DEFAULT
        size = weights.transforms().crop_size
        return int(size[0])
    except (AttributeError, ValueError, TypeError, IndexError):
        return DEFAULT_IMAGE


def build_timm(torch: Any, job: Job, name: str) -> Built:
    """A classifier of timm, with random weights."""
    need_package("timm")
    timm: Any = importlib.import_module("timm")
    known = timm.list_models()
    if name.partition(".")[0] not in known:
        raise CannotEstimate(f"timm has no model `{name}`", nearest(name, known))
    _refuse_text_options(job)
    options: dict[str, Any] = {"num_classes": job.classes} if job.classes else {}
    with _kind(torch, job):
        model = timm.create_model(name, pretrained=False, **options)
        own = int(model.default_cfg.get("input_size", (3, DEFAULT_IMAGE))[-1])
        if job.image and job.image != own:
            # Transformers have positions for one size only, unless they are told another.
            with contextlib.suppress(TypeError):
                model = timm.create_model(name, pretrained=False, img_size=job.image, **options)
    built = _classifier(torch, job, model, job.image or own, "timm's own configuration")
    if hasattr(model, "set_grad_checkpointing"):
        built.enable_checkpointing = model.set_grad_checkpointing
    return built


def _kind(torch: Any, job: Job) -> Any:
    from .precision import default_precision

    return default_precision(torch, job)


def _refuse_text_options(job: Job) -> None:
    if job.task not in (None, "image-classification"):
        raise CannotEstimate(
            f"`{job.name}` classifies images and cannot do {job.task}", "remove `--task`"
        )
    for option, value in (("--seq", job.seq), ("--vocab", job.vocab), ("--layers", job.layers)):
        if value is not None:
            raise CannotEstimate(
                f"`{job.name}` takes images, to which {option} does not apply",
                "`--image` sets their size",
            )


def _classifier(torch: Any, job: Job, model: Any, image: int, source: str) -> Built:
    def inputs(batch: int, seq: int | None) -> dict[str, Any]:
        return {
            "images": torch.zeros(batch, 3, image, image),
            "labels": torch.zeros(batch, dtype=torch.long),
        }

    def loss(trained: Any, batch: dict[str, Any]) -> Any:
        outputs = trained(batch["images"])
        cross_entropy = torch.nn.functional.cross_entropy
        if isinstance(outputs, torch.Tensor):
            return cross_entropy(outputs, batch["labels"])
        # Inception and GoogLeNet have a second and third classifier while they are trained.
        losses = [cross_entropy(each, batch["labels"]) for each in outputs if each is not None]
        return losses[0] + 0.4 * sum(losses[1:])

    return Built(
        model=model,
        kind=type(model).__name__,
        source=source,
        task="image-classification",
        inputs=inputs,
        loss=loss,
        outputs=lambda used, batch: used(batch["images"]),
        sample=f"an image of {image} × {image}",
        seq=None,
    )
