"""Several cards, hidden cards, and the allocators that PyTorch can be told to use."""

from __future__ import annotations

import pytest
from conftest import GIB, MIB, Rehearse

# torch 2.9 renamed the variable and warns about the old name; older ones know only the old one.
ALLOCATOR_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def allocator(setting: str) -> dict[str, str]:
    return dict.fromkeys(ALLOCATOR_VARIABLES, setting)


def test_a_hidden_card_is_not_seen_and_not_used(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
print("cards", torch.cuda.device_count())
torch.zeros(1 << 20, device="cuda:0")
""",
        "--count",
        "2",
        environment={"CUDA_VISIBLE_DEVICES": "1"},
    ).expect(0)
    assert "cards 1" in done.stdout
    hidden, used = done["devices"]
    assert hidden["peak_device_bytes"] == 0
    assert used["peak_device_bytes"] > 400 * MIB


def test_each_of_two_cards_has_a_peak_of_its_own(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
small = torch.zeros(1 << 28, dtype=torch.uint8, device="cuda:0")
large = torch.zeros(1 << 30, dtype=torch.uint8, device="cuda:1")
copy = small.to("cuda:1")
print("cards", torch.cuda.device_count(), copy.device)
""",
        "--count",
        "2",
    ).expect(0)
    assert "cards 2 cuda:1" in done.stdout
    reserved = {each["device"]: each["peak_reserved_bytes"] for each in done["allocator_peaks"]}
    assert reserved == {0: 256 * MIB, 1: 1 * GIB + 256 * MIB}


def test_one_process_can_share_a_batch_among_two_cards(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        model = torch.nn.DataParallel(torch.nn.Linear(1024, 1024)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            model(torch.randn(64, 1024, device="cuda")).sum().backward()
            optimizer.step()
        """,
        "--count",
        "2",
    ).expect(0)
    assert done["steps"] == 2
    assert all(device["peak_device_bytes"] > 4 * MIB for device in done["devices"])


@pytest.mark.every_torch
def test_an_expandable_segment_grows_with_what_is_in_it(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
kept = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in range(30, 40)]
print(sorted({s["is_expandable"] for s in torch.cuda.memory_snapshot()}))
""",
        environment=allocator("expandable_segments:True"),
    ).expect(0)
    assert "[True]" in done.stdout
    # PyTorch maps large segments in pieces of 20 MiB; 18 of them hold the 345 MiB of all tensors.
    assert done["peak_allocated_bytes"] == sum(range(30, 40)) * MIB
    assert done["peak_reserved_bytes"] == 18 * 20 * MIB


def test_the_drivers_own_allocator_can_be_used(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
print(torch.cuda.get_allocator_backend())
model = torch.nn.Linear(4096, 4096).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.randn(16, 4096, device="cuda")).mean().backward()
    optimizer.step()
""",
        environment=allocator("backend:cudaMallocAsync"),
    ).expect(0)
    assert "cudaMallocAsync" in done.stdout
    assert done["steps"] == 3
    # Weights, gradients and two moments of 64 MiB each; the driver's pool grows by 32 MiB.
    assert done["peak_allocated_bytes"] > 256 * MIB
    assert done["peak_reserved_bytes"] % (32 * MIB) == 0


def test_a_real_card_of_this_machine_stays_out_of_sight(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
print(torch.cuda.device_count(), torch.cuda.get_device_name(), torch.cuda.get_device_capability())
print(torch.cuda.mem_get_info()[1])
""",
        "--gpu",
        "3060",
    ).expect(6)
    assert "1 " in done.stdout
    assert "RTX 3060" in done.stdout
    assert "(8, 6)" in done.stdout
    assert str(done["gpu"]["total_bytes"]) in done.stdout
    # The name is marked, so that no log of a rehearsal can be mistaken for one of a real card.
    assert "NVIDIA GeForce RTX 3060 (" in done.stdout


def test_nvml_counts_what_the_driver_keeps_as_on_a_real_card(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
card = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(card))
memory = (ctypes.c_uint64 * 3)()
nvml.nvmlDeviceGetMemoryInfo(card, memory)
print("v1", *memory)
memory = (ctypes.c_uint64 * 5)(0x02000028)
nvml.nvmlDeviceGetMemoryInfo_v2(card, memory)
print("v2", *memory[1:])
""",
        "--gpu",
        "h200",
    ).expect(6)
    # Total, free, used; then total, reserved, free, used: as read on an idle H200.
    assert "v1 150754820096 150109880320 644939776\n" in done.stdout
    assert "v2 150754820096 644939776 150109880320 0\n" in done.stdout
