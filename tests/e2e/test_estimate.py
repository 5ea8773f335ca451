"""`ghostgpu estimate`: models by name, rehearsed like any script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PYTHONS, Ask, Rehearse

pytestmark = pytest.mark.reference

FIGURES = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_device_bytes", "allocations")

# What a user would write for the same job by hand.
BY_HAND = {
    "bert": (
        ("bert-base", "--layers", "2", "--batch", "16", "--seq", "64", "--dtype", "bf16"),
        """
import torch
from transformers import BertConfig, BertForMaskedLM
model = BertForMaskedLM(BertConfig(num_hidden_layers=2)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    tokens = torch.ones(16, 64, dtype=torch.long).to("cuda")
    labels = torch.zeros(16, 64, dtype=torch.long).to("cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=tokens, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    ),
    "resnet": (
        ("torchvision:resnet18", "--batch", "8", "--image", "96", "--optimizer", "sgd-momentum"),
        """
import torch, torchvision
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for _ in range(3):
    images, labels = torch.zeros(8, 3, 96, 96).cuda(), torch.zeros(8, dtype=torch.long).cuda()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    ),
    "gpt2": (
        (
            *("gpt2", "--layers", "3", "--batch", "4", "--seq", "128", "--dtype", "fp16"),
            *("--checkpointing", "--accumulate", "2", "--optimizer", "adamw-fused"),
        ),
        """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(n_layer=3))
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.config.use_cache = False
model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
scaler = torch.amp.GradScaler("cuda")
for _ in range(3):
    for _ in range(2):
        tokens = torch.ones(4, 128, dtype=torch.long).cuda()
        labels = torch.zeros(4, 128, dtype=torch.long).cuda()
        with torch.autocast("cuda", torch.float16):
            loss = model(input_ids=tokens, labels=labels).loss / 2
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
""",
    ),
}


@pytest.mark.parametrize(
    "model", [pytest.param("bert", marks=pytest.mark.at_length), "resnet", "gpt2"]
)
def test_an_estimate_equals_a_script_written_by_hand_to_the_byte(
    ask: Ask, rehearse_reference: Rehearse, model: str
) -> None:
    words, script = BY_HAND[model]
    estimated = ask("estimate", *words, "--gpu", "h200", "--no-retry").expect(0)
    by_hand = rehearse_reference(script).expect(0)
    assert [estimated[name] for name in FIGURES] == [by_hand[name] for name in FIGURES]
    assert estimated["step_peaks"] == by_hand["step_peaks"]


def test_a_configuration_in_a_file_is_built_for_the_task_that_is_asked_for(
    ask: Ask, tmp_path: Path
) -> None:
    config = {
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "torch_dtype": "bfloat16",
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    words = (".", "--batch", "2", "--seq", "32", "--gpu", "t4", "--classes", "3")
    done = ask("estimate", *words, "--task", "seq-classification", "--lora", "4").expect(0)
    assert done["fits"] is True
    assert "Qwen2ForSequenceClassification" in done.stdout
    assert any("adapters of rank 4 on q_proj and v_proj" in s for s in done["assumptions"])
    # It is trained in the requested precision, whatever it was saved in.
    parameters = int(done.stdout.split("Classification, ")[1].split()[0].replace(",", ""))
    assert done["peak_allocated_bytes"] > 4 * parameters


@pytest.mark.at_length
def test_growth_is_told_for_batch_and_sequence(ask: Ask) -> None:
    words = ("bert-base", "--layers", "1", "--batch", "16", "--seq", "64", "--gpu", "a100")
    done = ask("estimate", *words, "--grow").expect(0)
    grown = done.stdout[done.stdout.index("by batch") :]
    assert "each sample takes" in grown
    assert "each token takes" in grown
    growth = done["grows_with"]
    assert [each["size"] for each in growth["batch"]["rehearsed"]] == [4, 8, 16, 24, 32]
    assert growth["sequence"]["growth"]["bytes_each"] > 0


def test_an_estimate_can_be_recorded_and_shown_like_a_run(ask: Ask, tmp_path: Path) -> None:
    words = ("bert-base", "--layers", "1", "--batch", "2", "--seq", "32", "--gpu", "t4")
    done = ask("estimate", *words, "--record", "a.ghost", "--report", "a.html").expect(0)
    assert done["breakdown"]["cards"][0]["at_peak"]["parts"]["parameter"] > 0
    assert (tmp_path / "a.ghost").stat().st_size > 1000
    assert "<!doctype html>" in (tmp_path / "a.html").read_text()[:100].lower()
    without = ask("estimate", *words, "--no-breakdown", "--no-retry").expect(0)
    assert without["breakdown"] is None
    assert ask("estimate", *words, "--max-batch", "--record", "b.ghost").code == 2


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (("bert-bse",), "unknown model `bert-bse`", "did you mean `bert-base`"),
        (("torchvision:resnet5",), "torchvision has no model `resnet5`", "`resnet50`"),
        (("missing.json",), "the configuration `missing.json` cannot be read", ""),
        (("gpt2", "--seq", "4096"), "4096 tokens are more than the 1024 positions", "--seq 1024"),
        (("vit-base", "--task", "causal-lm"), "cannot do causal-lm", "image-classification"),
    ],
)
def test_what_cannot_be_estimated_is_said_in_a_sentence(
    ask: Ask, words: tuple[str, ...], sentence: str, hint: str
) -> None:
    done = ask("estimate", *words, "--gpu", "t4").expect(2)
    assert sentence in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.answer is None


def test_a_library_that_is_not_installed_is_named(ask: Ask) -> None:
    done = ask("estimate", "timm:resnet50", "--gpu", "t4")
    if done.code == 0:
        pytest.skip("does not apply: timm is installed in this environment")
    assert done.code == 2
    assert "this needs timm, which is not installed" in done.stderr
    assert "pip install timm" in done.stderr


def test_built_in_names_can_be_listed(ask: Ask) -> None:
    names = ask("estimate", "--list").expect(0).stdout.split()
    assert {"bert-base", "gpt2-xl", "t5-large", "llama-3-8b", "vit-base"} <= set(names)
    assert len(names) == len(set(names))


def test_every_built_in_configuration_is_known_to_transformers(tmp_path: Path) -> None:
    """Each becomes a configuration object, and its task is found."""
    package = Path(__file__).resolve().parents[2] / "python" / "ghostgpu"
    program = f"""
import sys
sys.path.insert(0, {str(package)!r})
import estimate.configurations as c
from estimate.language import _usual_task
import transformers
for name, known in c.CONFIGURATIONS.items():
    config = transformers.AutoConfig.for_model(known.model_type, **known.fields)
    config.architectures = [known.architecture]
    assert hasattr(transformers, known.architecture), known.architecture
    for field in known.fields:
        assert hasattr(config, field), (name, field)
    _usual_task(transformers, config)
    assert c.find_known("some-org/" + name) == name, name
print(len(c.CONFIGURATIONS))
"""
    python = PYTHONS[0] or sys.executable
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 60
