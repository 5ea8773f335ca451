"""Work on streams takes time, which scripts and PyTorch's allocator can observe."""

from __future__ import annotations

from conftest import MIB, Rehearse

EVENTS = """
import torch

torch.cuda.init()
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
assert end.query(), "an event that was never recorded is complete"
start.record()
torch.cuda._sleep(50_000_000)
end.record()
assert not end.query() and not torch.cuda.current_stream().query()
side = torch.cuda.Stream()
assert side.query(), "streams do not wait for each other"
side.wait_event(end)
with torch.cuda.stream(side):
    torch.ones(1, device="cuda")
assert not side.query()
end.synchronize()
assert end.query()
assert 10 < start.elapsed_time(end) < 100, start.elapsed_time(end)

again = torch.cuda.Event()
torch.cuda._sleep(50_000_000)
again.record()
polls = 0
while not again.query():
    polls += 1
assert 10 < polls < 1000, polls
"""


def test_events_are_pending_until_the_host_waits_or_has_polled_long_enough(
    rehearse_reference: Rehearse,
) -> None:
    rehearse_reference(EVENTS, "--full").expect(0)


PREFETCH = """
import torch

side = torch.cuda.Stream()
model = torch.nn.Linear(1024, 1024, device="cuda")

def load():
    with torch.cuda.stream(side):
        return torch.empty(16384, 1024, pin_memory=True).to("cuda", non_blocking=True)

batch = load()
for step in range(8):
    torch.cuda.current_stream().wait_stream(side)
    batch.record_stream(torch.cuda.current_stream())
    ahead = load()
    with torch.no_grad():
        for _ in range(20):
            model(batch[:64])
    batch = ahead
    if {waits}:
        torch.cuda.synchronize()
"""


def test_a_prefetching_loop_holds_more_while_the_host_is_ahead(
    rehearse_reference: Rehearse,
) -> None:
    def reserved(waits: bool) -> int:
        script = PREFETCH.replace("{waits}", str(waits))
        return int(rehearse_reference(script, "--full").expect(0)["peak_reserved_bytes"])

    waiting, ahead = reserved(True), reserved(False)
    assert ahead - waiting >= 64 * MIB, "blocks that are still in use were given out again"
    assert reserved(False) == ahead, "the clock is virtual: no run differs from another"


CAPTURE = """
import torch

x = torch.ones(4, device="cuda")
graph = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(graph):
        (x + 1).sum().item()
except RuntimeError as error:
    assert "captur" in str(error), error
else:
    raise AssertionError("a value was read during a capture")
"""


def test_a_value_cannot_be_read_while_a_graph_is_captured(rehearse_reference: Rehearse) -> None:
    rehearse_reference(CAPTURE, "--full").expect(0)


CHOSEN_LATE = """
import os
import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "1"
assert torch.cuda.device_count() == 1
torch.ones(1, device="cuda")
"""


def test_cards_may_be_chosen_after_torch_is_imported(rehearse_reference: Rehearse) -> None:
    rehearse_reference(CHOSEN_LATE, "--full", "--count", "3").expect(0)
