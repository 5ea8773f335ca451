"""From a name to a model: built in, in a file, in the local cache, in torchvision or in timm."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from typing import Any

from .built import Built
from .configurations import CONFIGURATIONS, find_known
from .failures import CannotEstimate, need_package
from .names import nearest
from .options import Job


def find_and_build(torch: Any, job: Job) -> Built:
    """Build the job's model on the CPU; raises `CannotEstimate` if it cannot."""
    from .vision import build_timm, build_torchvision

    prefix, separator, rest = job.name.partition(":")
    if separator and prefix == "torchvision":
        return build_torchvision(torch, job, rest)
    if separator and prefix == "timm":
        return build_timm(torch, job, rest)
    name = rest if separator and prefix in ("hf", "transformers") else job.name
    if name == job.name and not _is_file(name) and find_known(name) is None and _is_vision(name):
        return build_torchvision(torch, job, name)
    need_package("transformers")
    config, source = _configuration(name)
    from .language import build_transformers

    return build_transformers(torch, job, config, source)


def _is_file(name: str) -> bool:
    return os.path.exists(name) or name.endswith(".json")


def _is_vision(name: str) -> bool:
    return name in _torchvision_names()


def _torchvision_names() -> list[str]:
    if importlib.util.find_spec("torchvision") is None:
        return []
    models: Any = importlib.import_module("torchvision.models")
    return list(models.list_models())


def _configuration(name: str) -> tuple[Any, str]:
    """A configuration of transformers, and where it came from."""
    auto: Any = importlib.import_module("transformers").AutoConfig
    if _is_file(name):
        return _from_file(auto, name)
    key = find_known(name)
    cached = _from_cache(auto, name) if key is None or "/" in name else None
    if cached is not None:
        return cached, "from the local cache"
    if key is None:
        raise CannotEstimate(
            f"unknown model `{name}`: it is neither built in nor in the local Hugging Face cache, "
            "and no file has that name",
            nearest(name, [*CONFIGURATIONS, *_torchvision_names()]),
        )
    known = CONFIGURATIONS[key]
    try:
        config = auto.for_model(known.model_type, **known.fields)
    except ValueError as error:
        version = importlib.import_module("transformers").__version__
        raise CannotEstimate(
            f"transformers {version} does not know models of the type {known.model_type}",
            "newer releases do; `--python PATH` names another python",
        ) from error
    config.architectures = [known.architecture]
    return config, "built-in configuration"


def _from_cache(auto: Any, name: str) -> Any:
    try:
        return auto.from_pretrained(name, local_files_only=True)
    except Exception:  # whatever is wrong with it there, it cannot be had
        return None


def _from_file(auto: Any, name: str) -> tuple[Any, str]:
    path = os.path.join(name, "config.json") if os.path.isdir(name) else name
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CannotEstimate(f"the configuration `{path}` cannot be read: {reason}") from error
    except ValueError as error:
        raise CannotEstimate(f"the configuration `{path}` is not JSON: {error}") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("model_type"), str):
        raise CannotEstimate(
            f"the configuration `{path}` names no model_type",
            "a config.json as transformers writes it has one, such as `llama`",
        )
    kind = fields.pop("model_type")
    try:
        config = auto.for_model(kind, **fields)
    except ValueError as error:
        version = importlib.import_module("transformers").__version__
        raise CannotEstimate(
            f"transformers {version} does not know models of the type `{kind}`",
            "a newer release may; models that bring their own code cannot be estimated, but a "
            "script of your own can be rehearsed with `ghostgpu run`",
        ) from error
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise CannotEstimate(f"transformers refuses the configuration `{path}`: {first}") from error
    return config, f"from {path}"
