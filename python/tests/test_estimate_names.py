"""Names of models, as people write them."""

from __future__ import annotations

import pytest

from ghostgpu.estimate.configurations import CONFIGURATIONS, find_known
from ghostgpu.estimate.names import nearest
from ghostgpu.estimate.options import parse


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("bert-base", "bert-base"),
        ("BERT_base", "bert-base"),
        ("google-bert/bert-base-uncased", "bert-base"),
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("google/flan-t5-base", "flan-t5-base"),
    ],
)
def test_a_configuration_is_found_by_what_people_call_it(written: str, key: str) -> None:
    assert find_known(written) == key


@pytest.mark.parametrize("written", ["bert", "resnet50", "bert-base-japanese", "", "-"])
def test_another_name_is_not_taken_for_one_that_is_known(written: str) -> None:
    assert find_known(written) is None


def test_no_two_configurations_answer_to_one_name() -> None:
    names = [each for key, known in CONFIGURATIONS.items() for each in (key, *known.aliases)]
    assert len(names) == len(set(names))


def test_the_nearest_names_are_offered() -> None:
    assert "`bert-base`" in nearest("bert-bse", CONFIGURATIONS)
    assert "--list" in nearest("??", CONFIGURATIONS)


def test_a_job_has_the_defaults_of_the_command_line() -> None:
    job = parse(["--batch", "4", "--lora", "16", "--", "gpt2"])
    assert (job.name, job.batch, job.lora, job.optimizer, job.dtype) == (
        *("gpt2", 4, 16),
        *("adamw", "fp32"),
    )
