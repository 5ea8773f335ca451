"""The need: the smallest memory with which a job completes, however much it reserves with more."""

from __future__ import annotations

from conftest import MIB, PAGE, Rehearse

MEASURES_NEED = True

#: Two tensors of each size, one size after the other: with plenty of memory the freed ones stay
#: cached, although 1,200 MiB would be enough.
SIZES = """
import torch

for mib in (300, 400, 500, 350, 600):
    tensors = [torch.empty(mib << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
    del tensors
"""
NEEDED = 1200 * MIB


def test_a_job_ends_with_what_it_needs_and_not_with_less(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(SIZES).expect(0)
    assert done["peak_reserved_bytes"] == 3600 * MIB
    assert done["needed_reserved_bytes"] == NEEDED
    assert done["needed_allocated_bytes"] == NEEDED
    outside = done["peak_device_bytes"] - done["peak_reserved_bytes"]
    assert done["needed_device_bytes"] == NEEDED + outside
    assert done["comfortable_device_bytes"] == done["peak_device_bytes"]

    def fits(memory: int) -> bool:
        options = ("--memory", f"{memory}B", "--no-retry", "--no-breakdown")
        again = rehearse_reference(SIZES, *options)
        return bool(again["fits"])

    assert fits(done["needed_device_bytes"])
    assert not fits(done["needed_device_bytes"] - PAGE)


def test_a_job_that_does_not_fit_and_one_without_a_breakdown_need_the_same(
    rehearse_reference: Rehearse,
) -> None:
    for options in (("--memory", "1500MiB"), ("--no-breakdown",)):
        done = rehearse_reference(SIZES, *options)
        assert done["needed_reserved_bytes"] == NEEDED, options


def test_the_need_under_an_allocator_without_a_history_is_found_by_rehearsals(
    rehearse_reference: Rehearse,
) -> None:
    environment = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    done = rehearse_reference(SIZES, environment=environment).expect(0)
    needed = done["needed_device_bytes"]
    assert NEEDED < needed <= done["peak_device_bytes"]


#: Forty lengths, in a different order in each epoch.
LENGTHS = """
import random
import torch
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
data = [torch.zeros(random.randrange(1_000, 9_000), 256) for _ in range(40)]
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for batch in DataLoader(data, batch_size=None, shuffle=True):
        model(batch.cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_what_varying_batches_need_is_true_of_the_whole_training(
    rehearse_reference: Rehearse,
) -> None:
    covered = rehearse_reference(LENGTHS, "--budget", "60s", "--no-breakdown").expect(0)
    whole = rehearse_reference(LENGTHS, "--full", "--no-breakdown").expect(0)
    assert covered["steps"] == whole["steps"] == 80
    assert covered["needed_reserved_bytes"] == whole["needed_reserved_bytes"]


def test_what_a_job_took_is_not_called_its_need(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(SIZES, "--no-retry").expect(0)
    assert done["needed_device_bytes"] is None
    assert done["needed_unknown_because"] == "it was not searched for (--no-retry)"
    assert done["comfortable_device_bytes"] == done["peak_device_bytes"]
    assert done["headroom_bytes"] == done["gpu"]["total_bytes"] - done["peak_device_bytes"]
    assert done.stdout.startswith("fits           took ")


def test_what_hangs_on_assumed_sizes_is_found_by_half_of_them(rehearse_reference: Rehearse) -> None:
    script = """
        import torch
        scores = torch.nn.Linear(64, 64).cuda()(torch.ones(1 << 16, 64, device="cuda")).detach()
        chosen = scores[scores > 0].double()
        """
    done = rehearse_reference(script).expect(0)
    sizes = done["assumed_sizes"]
    assert sizes["lines"] == 1
    assert sizes["allocated_bytes"] == done["peak_allocated_bytes"]
    assert sizes["half_allocated_bytes"] < sizes["allocated_bytes"] - 32 * MIB
    assert "allocated, assumed " in done["assumptions"][0]
    assert rehearse_reference(script, "--no-retry").expect(0)["assumed_sizes"] is None


def test_a_script_that_recovers_needs_no_more_than_the_card_on_which_it_ended(
    rehearse_reference: Rehearse,
) -> None:
    done = rehearse_reference(
        """
        import torch
        kept = torch.empty(500 << 20, dtype=torch.uint8, device="cuda")
        for mib in (8000, 4000, 200):
            try:
                tensor = torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
                break
            except torch.cuda.OutOfMemoryError:
                pass
        """,
        *("--memory", "3GiB"),
    ).expect(0)
    assert len(done["recovered_ooms"]) == 2
    assert 700 * MIB < done["needed_device_bytes"] <= 3 * 1024 * MIB
