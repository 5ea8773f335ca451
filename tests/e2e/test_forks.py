"""Several processes on one card: a forked child's memory is its own and is freed when it ends."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from conftest import GIB, MIB, REPOSITORY, Answered, Rehearse

sys.path.insert(0, str(REPOSITORY / "tests" / "exports"))

from ghost_file import read_ghost

SAY = """
    import json, multiprocessing, os, time, torch

    def used():
        free, total = torch.cuda.mem_get_info()
        return total - free

    def say(**figures):
        print("FIGURES", json.dumps(figures), flush=True)
"""


def said(answered: Answered) -> dict[str, Any]:
    """What the script printed with `say`."""
    figures: dict[str, Any] = {}
    for line in answered.stdout.splitlines():
        if line.startswith("FIGURES "):
            figures |= json.loads(line.removeprefix("FIGURES "))
    return figures


# `device_count` asks NVML, which opens the virtual card without a context, so a child may use CUDA.
FORK = (
    SAY
    + """
    assert torch.cuda.device_count() == 1
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()
    child = os.fork()
    if child == 0:
        held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
        say(child=used())
        os.write(from_child, b"x")
        os.read(to_child, 1)
        os._exit(0)
    os.read(to_parent, 1)
    held = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    say(both=used())
    os.write(from_parent, b"x")
    os.waitpid(child, 0)
    say(parent=used())
    """
)


def test_what_a_forked_child_holds_is_released_when_it_ends(rehearse: Rehearse) -> None:
    answered = rehearse(FORK, "--steps", "0").expect(0)
    figures = said(answered)
    context = figures["child"] - GIB
    assert figures["parent"] == context + 2 * GIB
    # Each process has its own context.
    assert figures["both"] > figures["parent"] + GIB
    assert answered["peak_device_bytes"] == figures["both"]


FREE = (
    SAY
    + """
    held = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    before = used()
    import ctypes
    cuda = ctypes.CDLL(None)
    child = os.fork()
    if child == 0:
        # PyTorch refuses CUDA here, and so would the driver. Whoever tries all the same must
        # not change what the parent holds.
        mine = ctypes.c_void_p()
        cuda.cudaMalloc(ctypes.byref(mine), ctypes.c_size_t(1 << 30))
        cuda.cudaFree(ctypes.c_void_p(held.data_ptr()))
        cuda.cudaFree(mine)
        os._exit(0)
    os.waitpid(child, 0)
    say(before=before, after=used())
    """
)


def test_a_child_that_frees_memory_leaves_the_parents_alone(rehearse: Rehearse) -> None:
    figures = said(rehearse(FREE, "--steps", "0").expect(0))
    assert figures["after"] == figures["before"]


LOADER = (
    SAY
    + """
    class Samples(torch.utils.data.Dataset):
        def __init__(self, on_card):
            self.on_card = on_card

        def __len__(self):
            return 8

        def __getitem__(self, index):
            if self.on_card:
                held = torch.ones(64 << 20, dtype=torch.uint8, device="cuda")
            return torch.ones(16)

    def train(method, on_card):
        loader = torch.utils.data.DataLoader(
            Samples(on_card), batch_size=4, num_workers=2, multiprocessing_context=method
        )
        model = None
        for batch in loader:
            if model is None:
                model = torch.nn.Linear(16, 16).cuda()
                optimizer = torch.optim.SGD(model.parameters(), 0.1)
            model(batch.cuda()).sum().backward()
            optimizer.step()
        # The loader does not wait long for its workers.
        while multiprocessing.active_children():
            time.sleep(0.02)
        say(after=used())
    """
)


def loader(method: str, *, on_card: bool) -> str:
    return (
        LOADER
        + f"""
    if __name__ == "__main__":
        assert torch.cuda.device_count() == 1
        train({method!r}, {on_card})
    """
    )


@pytest.mark.parametrize(
    "method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.at_length)]
)
def test_workers_that_use_the_card_give_it_back(method: str, rehearse_reference: Rehearse) -> None:
    idle = rehearse_reference(loader(method, on_card=False), "--steps", "0").expect(0)
    busy = rehearse_reference(loader(method, on_card=True), "--steps", "0").expect(0)
    assert said(busy)["after"] == said(idle)["after"]
    # Each worker had a context and 64 MiB on the card.
    peaks = [each["peak_device_bytes"] for each in (idle, busy)]
    assert peaks[1] >= peaks[0] + 2 * 64 * MIB
    # Workers that do not use the card take no memory on it.
    assert peaks[0] == said(idle)["after"]


NEIGHBOUR = (
    SAY
    + """
    neighbours = {neighbours}
    if neighbours:
        to_parent, from_child = os.pipe()
        to_child, from_parent = os.pipe()
        child = os.fork()
        if child == 0:
            held = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
            os.write(from_child, b"x")
            os.read(to_child, 1)
            os._exit(0)
        os.read(to_parent, 1)
    model = torch.nn.Linear(8192, 8192).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.ones(64, 8192, device="cuda")).sum().backward()
    optimizer.step()
    say(both=used())
    if neighbours:
        os.write(from_parent, b"x")
        os.waitpid(child, 0)
    """
)


def test_memory_of_another_process_is_no_part_of_the_context(rehearse: Rehearse) -> None:
    options = ("--steps", "0", "--record", "run.ghost")
    alone = rehearse(NEIGHBOUR.format(neighbours=False), *options).expect(0)
    (card,) = read_ghost(alone.folder / "run.ghost").cards
    together = rehearse(NEIGHBOUR.format(neighbours=True), *options).expect(0)
    (shared_card,) = read_ghost(together.folder / "run.ghost").cards
    assert shared_card.outside == card.outside
    (device,) = together["devices"]
    assert device["peak_device_bytes"] == said(together)["both"]
    others = device["other_processes_bytes"]
    assert others > 128 * MIB and others == device["peak_device_bytes"] - alone["peak_device_bytes"]
    assert alone["devices"][0]["other_processes_bytes"] == 0
    assert "at the peak others had " in " ".join(together["assumptions"])
