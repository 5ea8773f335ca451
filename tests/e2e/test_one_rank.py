"""Scripts for many cards, rehearsed with one: a process group of a single rank over NCCL."""

from __future__ import annotations

import re

import pytest
from conftest import Rehearse

BEGIN = """
import os, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
"""


@pytest.mark.every_torch
def test_data_parallel_training_agrees_with_itself(rehearse: Rehearse) -> None:
    done = rehearse(
        BEGIN
        + """
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0], bucket_cap_mb=2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):  # the buckets are made anew after the first
    optimizer.zero_grad()
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
dist.destroy_process_group()
""",
        "--steps",
        "0",
    ).expect(0)
    assert done["steps"] == 4
    # Weights and their gradients; the buckets hold the gradients a second time.
    weights_bytes = 8 * (512 * 512 + 512) * 4
    assert done["peak_allocated_bytes"] > 3 * weights_bytes


def test_what_ranks_tell_each_other_arrives(rehearse: Rehearse) -> None:
    done = rehearse(
        BEGIN
        + """
for number in range(2):
    gathered, scattered, sent = [None], [None], [number]
    dist.all_gather_object(gathered, {"number": number})
    dist.scatter_object_list(scattered, ["part"])
    dist.broadcast_object_list(sent, 0)
    sizes = torch.tensor([3, 4], device="cuda")
    others = [torch.zeros_like(sizes)]
    dist.all_gather(others, sizes)
    together = torch.zeros(2, dtype=torch.int64, device="cuda")
    dist.all_gather_into_tensor(together, sizes)
    print(gathered, scattered, sent, others[0].tolist(), together.cpu().tolist())
dist.destroy_process_group()
"""
    ).expect(0)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[{")]
    assert lines == [
        f"[{{'number': {number}}}] ['part'] [{number}] [3, 4] [3, 4]" for number in range(2)
    ]


def test_a_value_is_not_read_from_before_it_was_written_on_the_card(rehearse: Rehearse) -> None:
    done = rehearse(
        """
        import torch
        sent = torch.tensor([1.5, 2.5])
        on_card = sent.cuda()
        print("sent", on_card.tolist())
        on_card.mul_(2)
        print("computed", on_card.tolist())
        on_card.mul_(torch.nn.Parameter(sent).cuda().detach())
        print("not known", on_card.tolist())
        """
    ).expect(0)
    assert "sent [1.5, 2.5]" in done.stdout
    assert "computed [3.0, 5.0]" in done.stdout
    read = re.search(r"not known \[(\S+), (\S+)\]", done.stdout)
    assert read is not None
    assert all(0.25 <= float(number) <= 0.75 for number in read.groups())
