"""Large CPU weights are not initialised, and cost no memory; small ones are as always."""

from __future__ import annotations

from conftest import Rehearse, needs_torch

pytestmark = needs_torch

# 64 Mi elements a layer: 256 MiB in fp32.
LARGE_MODEL = """
import copy, resource, torch
layers = torch.nn.ModuleList(torch.nn.Linear(8192, 8192, bias=False) for _ in range(8))
def resident_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before = resident_mib()
"""


def test_a_small_model_gets_its_usual_random_numbers(rehearse: Rehearse) -> None:
    script = """
        import torch
        torch.manual_seed(1)
        layer = torch.nn.Linear(2048, 2048)
        print(layer.weight.double().sum().item(), torch.rand(1).item())
    """
    usual = rehearse(script, full_initialisation=True)
    skipping = rehearse(script)
    assert skipping.stdout == usual.stdout
    assert skipping.reports[-1]["assumptions"] == []


def test_large_weights_stay_blank_through_conversion_and_copying(rehearse: Rehearse) -> None:
    done = rehearse(
        LARGE_MODEL
        + """
layers.to(torch.bfloat16)
copied = copy.deepcopy(layers)
cloned = [layer.weight.detach().clone() for layer in layers]
back = [layer.weight.detach().float() for layer in layers]
print(resident_mib() - before)
print(layers[0].weight.dtype, float(cloned[3][5, 7]), copied[1].weight.shape == (8192, 8192))
"""
    )
    grown, values = done.stdout.splitlines()
    assert int(grown) < 200, "blank tensors of 4 GiB took memory"
    assert values == "torch.bfloat16 0.0 True"
    (sentence,) = done.report["assumptions"]
    assert sentence.startswith("8 large CPU tensors were not initialised (2.00 GiB): ")


def test_values_written_into_a_blank_tensor_survive_conversion(rehearse: Rehearse) -> None:
    done = rehearse(
        LARGE_MODEL
        + """
with torch.no_grad():
    layers[0].weight[17].fill_(3.0)          # one row: the tensor stays blank elsewhere
    layers[1].weight.data.fill_(2.0)         # everything, behind the version counter's back
layers.to(torch.bfloat16)
first, second = layers[0].weight.detach(), layers[1].weight.detach()
print(float(first[17].float().mean()), float(first[16].float().sum()), float(first[18].sum()))
print(float(second[0, 0]), float(second[8191, 8191]), float(second[4000].float().mean()))
"""
    )
    assert done.stdout.splitlines() == ["3.0 0.0 0.0", "2.0 2.0 2.0"], done.stderr


def test_numbers_wrapped_as_tensors_still_convert(rehearse: Rehearse) -> None:
    done = rehearse(
        LARGE_MODEL
        + """
small = torch.arange(4, dtype=torch.float32)
print((small / 2).tolist(), (2.0 ** small).tolist(), small.to(torch.int64).tolist())
print(torch.tensor([True]).to(torch.float16).tolist(), small.clone().tolist())
print(torch.tensor([1, 2]).add(1.5).tolist())
"""
    )
    assert done.stdout.splitlines() == [
        "[0.0, 0.5, 1.0, 1.5] [1.0, 2.0, 4.0, 8.0] [0, 1, 2, 3]",
        "[1.0] [0.0, 1.0, 2.0, 3.0]",
        "[2.5, 3.5]",
    ], done.stderr


def test_other_initialisers_of_large_tensors_are_skipped_whole(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import time, torch
        from torch import nn
        with torch.no_grad():
            real = nn.init.normal_(torch.empty(32 << 20))
            start = time.perf_counter()
            for initialise in (nn.init.orthogonal_, nn.init.trunc_normal_, nn.init.zeros_):
                print(float(initialise(torch.empty(8192, 8192)).abs().max()))
            print(time.perf_counter() - start < 5)
            print(float(real.std()) > 0.9)
        """
    )
    assert done.stdout.split() == ["0.0", "0.0", "0.0", "True", "True"], done.stderr


def test_full_initialisation_skips_nothing(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        torch.nn.init.normal_(torch.empty(32 << 20))
        print(float(torch.nn.init.normal_(torch.empty(2 << 20)).std()) > 0.9)
        """,
        full_initialisation=True,
    )
    assert done.stdout.strip() == "True"
    assert done.report["assumptions"] == []


def test_fake_and_meta_tensors_are_left_to_torch(rehearse: Rehearse) -> None:
    done = rehearse(
        LARGE_MODEL
        + """
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    fake = torch.nn.Linear(8192, 8192, dtype=torch.float16)
with torch.device("meta"):
    meta = torch.nn.Linear(8192, 8192).to(torch.float16)
print(type(fake.weight.data).__name__, fake.weight.dtype, meta.weight.device)
"""
    )
    assert done.stdout.split() == ["FakeTensor", "torch.float16", "meta"], done.stderr
    assert not any("initialisation" in note for note in done.report["notes"])
