"""`torchrun --nnodes` between several hosts: each a network namespace of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PROGRAM, PYTHONS, TIMEOUT_S

SCRIPT = """
import os, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl")
# What is known arrives at the other host, over NCCL and over Gloo.
told = [f"from {rank}"]
dist.broadcast_object_list(told, src=0)
assert told == ["from 0"], told
ranks = [None] * 4
dist.all_gather_object(ranks, rank)
assert ranks == [0, 1, 2, 3], ranks
for device in ("cuda", "cpu"):
    count = torch.tensor([rank + 1], device=device)
    dist.all_reduce(count)
    assert count.item() == 10, count
if rank == 3:
    dist.send(torch.tensor([33], device="cuda"), 0)
if rank == 0:
    message = torch.zeros(1, dtype=torch.long, device="cuda")
    dist.recv(message, 3)
    assert message.item() == 33, message
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
if rank == 2:
    ballast = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Host:
    """A network namespace with one interface, connected to the other host."""

    name: str
    interface: str
    address: str

    def run(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *words]


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts that reach each other and nothing else."""
    number = os.getpid()
    # Addresses reserved for documentation, which no real host has.
    pair = (
        Host(f"ghostgpu-{number}-a", f"gga{number}", "192.0.2.1"),
        Host(f"ghostgpu-{number}-b", f"ggb{number}", "192.0.2.2"),
    )
    with ExitStack() as stack:
        for host in pair:
            made = _ip("netns", "add", host.name)
            if made is not None:
                pytest.skip(f"network namespaces cannot be made here: {made}")
            stack.callback(_ip, "netns", "delete", host.name)
        first, second = pair
        peer = ("type", "veth", "peer", "name", second.interface, "netns", second.name)
        problem = _ip("link", "add", first.interface, "netns", first.name, *peer)
        if problem is not None:
            pytest.skip(f"network namespaces cannot be connected here: {problem}")
        for host in pair:
            assert _ip("-n", host.name, "link", "set", "lo", "up") is None
            assert _ip("-n", host.name, "link", "set", host.interface, "up") is None
            address = f"{host.address}/24"
            assert _ip("-n", host.name, "address", "add", address, "dev", host.interface) is None
        yield pair


def _ip(*words: str) -> str | None:
    """Run `ip`; returns its message if it fails."""
    if shutil.which("ip") is None:
        return "there is no `ip` (iproute2)"
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


@pytest.mark.at_length
def test_each_host_gives_its_ranks_and_the_report_puts_them_together(
    hosts: tuple[Host, Host], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    running = []
    for number, host in enumerate(hosts):
        rehearsal = [str(PROGRAM), "run", "--python", PYTHONS[0], "--gpu", "h200", "--count", "2"]
        rehearsal += ["--steps", "0", "--no-retry", "--record", f"run-{number}.ghost"]
        rehearsal += ["--json", f"answer-{number}.json", "--"]
        nodes = ["--nnodes", "2", "--nproc-per-node", "2", "--node-rank", str(number)]
        nodes += ["--master-addr", hosts[0].address, "--master-port", "29500", "train.py"]
        running.append(
            subprocess.Popen(
                host.run(*rehearsal, "torchrun", *nodes),
                cwd=tmp_path,
                env={**os.environ, "GLOO_SOCKET_IFNAME": host.interface},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    for number, process in enumerate(running):
        output, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, output
        answer = json.loads((tmp_path / f"answer-{number}.json").read_text())
        assert [rank["rank"] for rank in answer["ranks"]] == [2 * number, 2 * number + 1]
        assert "the others run on other machines" in answer["assumptions"][0]
    files = ["run-0.ghost", "run-1.ghost"]
    together = [str(PROGRAM), "report", *files, "--json", "-o", "both.json"]
    subprocess.run(together, cwd=tmp_path, check=True, timeout=TIMEOUT_S)
    both = json.loads((tmp_path / "both.json").read_text())["answer"]
    peaks = [rank["peak_allocated_bytes"] for rank in both["ranks"]]
    assert [rank["rank"] for rank in both["ranks"]] == [0, 1, 2, 3]
    assert peaks[2] - peaks[3] == 64 << 20
    assert not any("other machines" in sentence for sentence in both["assumptions"])
