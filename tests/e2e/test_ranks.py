"""Jobs of several ranks over NCCL, each on its own card."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAM, REPOSITORY, Answered, Rehearse

TRAIN = REPOSITORY / "ground_truth/harness/ranks/train.py"
"""Trainings by the name of their strategy; the same run on a real card."""

BEGIN = """
import os, torch, torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
"""


AT_THE_END = "dist.destroy_process_group()\n"


def torchrun(rehearse: Rehearse, script: str, *options: str, ranks: int = 2) -> Answered:
    command = ("torchrun", "--standalone", "--nproc-per-node", str(ranks), "train.py")
    return rehearse(script, "--count", str(ranks), *options, command=command)


def test_ranks_train_together_and_tell_each_other_numbers(rehearse: Rehearse) -> None:
    done = torchrun(
        rehearse,
        BEGIN
        + """
model = torch.nn.Linear(512, 512 * (4 + rank % 1)).cuda()
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())
if rank == 1:
    ballast = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
for step in range(2):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
objects, count = [None, None], torch.tensor([rank + 1, 10], device="cuda")
# Pickles of different lengths: the shorter one is sent in a tensor that grows.
dist.all_gather_object(objects, {"rank": rank, "more": "x" * rank})
dist.all_reduce(count)
sent = [f"from {rank}"]
dist.broadcast_object_list(sent, 1)
received, sizes = torch.empty(2, dtype=torch.int64, device="cuda"), [rank, 5]
dist.all_to_all_single(received, torch.tensor(sizes, device="cuda"))
message = torch.tensor([7 * rank], device="cuda")
if rank == 1:
    dist.send(message, 0)
else:
    dist.recv(message, 1)
dist.barrier()
told = ("told", rank, objects, count.tolist(), sent, received.tolist(), message.item())
# In one piece, so that lines of two ranks do not mix.
os.write(1, (" ".join(map(str, told)) + os.linesep).encode())
dist.destroy_process_group()
""",
        "--steps",
        "0",
    ).expect(0)
    told = sorted(line for line in done.stdout.splitlines() if line.startswith("told"))
    objects = [{"rank": 0, "more": ""}, {"rank": 1, "more": "x"}]
    assert told == [
        f"told 0 {objects} [3, 20] ['from 1'] [0, 1] 7",
        f"told 1 {objects} [3, 20] ['from 1'] [5, 5] 7",
    ]
    first, second = done["ranks"]
    assert (first["rank"], first["device"], second["rank"], second["device"]) == (0, 0, 1, 1)
    assert second["peak_allocated_bytes"] - first["peak_allocated_bytes"] == 64 << 20
    assert first["peak_device_bytes"] == done["devices"][0]["peak_device_bytes"]
    made_of = [{it["category"]: it["bytes"] for it in rank["made_of"]} for rank in done["ranks"]]
    assert made_of[0]["communication"] > 0, "the buckets of DistributedDataParallel"
    assert made_of[1]["nccl"] == 560 << 20, "of the group, and of the messages between two"
    assert made_of[1]["kept"] - made_of[0].get("kept", 0) == 64 << 20
    assert "rank 1 has 64.00 MiB more kept by the script than rank 0" in done.stdout


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            "x = torch.ones(8 + rank, device='cuda'); dist.all_reduce(x); x.sum().item()",
            "rank 0 called all_reduce (sum) of 8 × float32 at train.py:6 where rank 1 called "
            "all_reduce (sum) of 9 × float32 at train.py:6",
        ),
        pytest.param(
            "dist.all_reduce(torch.ones(1, device='cuda:0'))",
            "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000",
            marks=pytest.mark.at_length,
        ),
        pytest.param(
            "x = torch.ones(8, device='cuda'); dist.barrier() if rank else dist.all_reduce(x)\n"
            "x.sum().item()",
            "where rank 1 called all_reduce (sum) of 1 × float32 at train.py:6 (barrier)",
            marks=pytest.mark.at_length,
        ),
        pytest.param(
            "x = torch.ones(1, device='cuda'); dist.recv(x, 1 - rank); x.item()",
            "rank 0 waits in recv of 1 × float32 from rank 1 at train.py:6 for rank 1",
            marks=pytest.mark.at_length,
        ),
    ],
)
def test_ranks_that_cannot_go_on_together_are_told_why(
    rehearse_reference: Rehearse, script: str, sentence: str
) -> None:
    begin = BEGIN.replace("set_device(rank)", "set_device(0)") if "cuda:0" in script else BEGIN
    done = torchrun(rehearse_reference, begin + script).expect(2)
    assert sentence in done["reason"]


@pytest.mark.at_length
@pytest.mark.parametrize(("ending", "code", "words"), [
    (
        "raise ValueError('no such file')",
        1,
        "rank 1 failed at train.py:10: ValueError: no such file",
    ),
    ("x = torch.empty(200 << 30, dtype=torch.uint8, device='cuda')", 3, "runs out of memory"),
])  # fmt: skip
def test_the_rank_that_fails_is_named_and_the_others_end(
    rehearse_reference: Rehearse, ending: str, code: int, words: str
) -> None:
    together = "x = torch.ones(1, device='cuda')\ndist.all_reduce(x)"
    script = f"{BEGIN}\n{together}\nif rank == 1:\n    {ending}\ndist.barrier()\n"
    done = torchrun(rehearse_reference, script).expect(code)
    assert words in done["reason"]
    assert [rank["ran_out"] for rank in done["ranks"]] == [False, code == 3]
    # It ends by its exception, and not by a signal because NCCL's watchdog outlived torch.
    assert "exitcode  : 1 (" in done.stderr and "exitcode  : -6" not in done.stderr


@pytest.mark.at_length
@pytest.mark.parametrize(("ending", "words"), [
    ("os.kill(os.getpid(), 9)", "rank 1 was killed by SIGKILL: the system does that when"),
    ("import ctypes; ctypes.string_at(0)", "rank 1 died of a segmentation fault (SIGSEGV) at "),
    ("raise SystemExit(0)", "for rank 1, which has ended"),
    ("dist.destroy_process_group()\n    raise SystemExit(0)", "all_reduce (sum) of 1 × float32 at"),
])  # fmt: skip
def test_a_rank_that_leaves_without_a_reason_is_named(
    rehearse_reference: Rehearse, ending: str, words: str
) -> None:
    together = "x = torch.ones(1, device='cuda')\ndist.all_reduce(x)"
    script = f"{BEGIN}\n{together}\nif rank == 1:\n    {ending}\ndist.all_reduce(x)\n{AT_THE_END}"
    done = torchrun(rehearse_reference, script).expect(2)
    assert words in done["reason"]


EARLY = """
import os, sys
rank = int(os.environ["RANK"])
if rank == 1:
    ENDING
import torch, torch.distributed as dist
torch.cuda.set_device(rank)
dist.init_process_group("nccl", DEVICE)
dist.all_reduce(torch.ones(1, device="cuda"))
dist.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("ending", "device", "place"),
    [
        ("sys.exit()", "device_id=torch.device('cuda', rank)", "init_process_group at train.py:8"),
        pytest.param("sys.exit()", "", "all_reduce at train.py:9", marks=pytest.mark.at_length),
    ],
)
def test_a_rank_that_leaves_before_it_meets_the_others_is_named(
    rehearse_reference: Rehearse, ending: str, device: str, place: str
) -> None:
    script = EARLY.replace("ENDING", ending).replace("DEVICE", device)
    done = torchrun(rehearse_reference, script).expect(2)
    waits = f"rank 0 waits in {place} for rank 1, which has ended before it joined the job"
    assert waits in done["reason"]


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("ending", "words", "code"),
    [
        (
            "raise ValueError('no such file')",
            "rank 1 failed at train.py:5: ValueError: no such file",
            1,
        ),
        ("import torch; os.kill(os.getpid(), 9)", "rank 1 was killed by SIGKILL", 2),
    ],
)
def test_a_rank_that_fails_before_it_meets_the_others_is_named(
    rehearse_reference: Rehearse, ending: str, words: str, code: int
) -> None:
    script = "import torch" + EARLY.replace("ENDING", ending).replace("DEVICE", "")
    assert words in torchrun(rehearse_reference, script).expect(code)["reason"]


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            EARLY.replace("import os, sys", "import os, time, torch").replace("DEVICE", ""),
            "waits in all_reduce at train.py:9 for rank 1, which has done nothing for 50 s at "
            "train.py:5",
        ),
        (
            BEGIN + "import time\nx = torch.ones(1, device='cuda')\ndist.all_reduce(x)\n"
            "if rank == 1:\n    ENDING\ndist.all_reduce(x)\nx.item()\n",
            "waits in all_reduce (sum) of 1 × float32 at train.py:11 for rank 1, which has done "
            "nothing for 45 s at train.py:10",
        ),
    ],
)
def test_a_rank_that_does_nothing_is_named_with_its_line(
    rehearse_reference: Rehearse, script: str, words: str
) -> None:
    done = torchrun(rehearse_reference, script.replace("ENDING", "time.sleep(10_000)")).expect(2)
    assert words in done["reason"]


@pytest.mark.at_length
def test_objects_of_any_size_reach_the_other_ranks(rehearse_reference: Rehearse) -> None:
    torchrun(
        rehearse_reference,
        BEGIN
        + """
from torch.distributed.optim import ZeroRedundancyOptimizer
objects = [None, None]
dist.all_gather_object(objects, "x" * (6_000_000 + rank))
assert [len(each) for each in objects] == [6_000_000, 6_000_001]
weights = [torch.ones(20_000_000) if rank == 0 else None]
dist.broadcast_object_list(weights, src=0)
assert weights[0].shape == (20_000_000,) and weights[0][-1] == 1
model = torch.nn.Linear(1000, 3000).cuda()
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)
for step in range(2):
    model(torch.randn(8, 1000, device="cuda")).sum().backward()
    optimizer.step()
optimizer.consolidate_state_dict(to=0)
assert rank or len(optimizer.state_dict()["state"]) == 2
"""
        + AT_THE_END,
    ).expect(0)


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [("", 0, ""), ("if rank == 0:\n    model.state_dict()\n", 2, "for rank 1, which has ended")],
)
def test_a_script_may_end_with_its_process_group(
    rehearse_reference: Rehearse, ending: str, code: int, words: str
) -> None:
    # Its watchdog aborted the process, as it still had what FSDP1 had called last.
    sharded = """
from torch.distributed.fsdp import FullyShardedDataParallel
model = FullyShardedDataParallel(torch.nn.Linear(512, 512), device_id=rank)
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    model(torch.randn(4, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    done = torchrun(rehearse_reference, BEGIN + sharded + ending).expect(code)
    assert words in (done["reason"] or "")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            BEGIN.replace('dist.init_process_group("nccl")\n', ""),
            "ranks 0 and 1 were started together and none of them called init_process_group",
        ),
        pytest.param(
            BEGIN.replace("dist.init", "if rank == 0:\n    dist.init"),
            "rank 1 ended without joining the job of 2 ranks that rank 0 began",
            marks=pytest.mark.at_length,
        ),
    ],
)
def test_ranks_that_never_meet_are_no_job_although_all_of_them_end_well(
    rehearse_reference: Rehearse, script: str, words: str
) -> None:
    train = """
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(8, 64, device="cuda")).sum().backward()
optimizer.step()
"""
    assert words in torchrun(rehearse_reference, script + train).expect(2)["reason"]


EXCHANGE = (
    BEGIN
    + """
x = torch.ones(8 << 20, device="cuda")
y = torch.empty_like(x)
for step in range(3):
    ORDER
    dist.all_reduce(x)
    x.sum().item()
"""
)
SENDS_FIRST = "dist.send(x, 1 - rank); dist.recv(y, 1 - rank)"
TAKES_TURNS = "(dist.send, dist.recv)[rank](x, 1 - rank); (dist.recv, dist.send)[rank](y, 1 - rank)"
TOGETHER = (
    "for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank), "
    "dist.P2POp(dist.irecv, y, 1 - rank)]): work.wait()"
)


@pytest.mark.parametrize(
    ("order", "code"),
    [
        (SENDS_FIRST, 2),
        pytest.param(TAKES_TURNS, 0, marks=pytest.mark.at_length),
        pytest.param(TOGETHER, 0, marks=pytest.mark.at_length),
    ],
)
def test_ranks_that_both_send_before_they_receive_are_told_so(
    rehearse_reference: Rehearse, order: str, code: int
) -> None:
    done = torchrun(rehearse_reference, EXCHANGE.replace("ORDER", order) + AT_THE_END).expect(code)
    words = "rank 0 waits in send of 8388608 × float32 to rank 1 at train.py:10 for rank 1"
    assert (words in (done["reason"] or "")) == (code == 2)


@pytest.mark.at_length
def test_ranks_whose_time_is_up_are_told_with_where_they_are(rehearse_reference: Rehearse) -> None:
    script = f"{BEGIN}\nwhile rank == 1:\n    pass\ndist.barrier()\n"
    done = torchrun(rehearse_reference, script, "--timeout", "15s").expect(2)
    assert "rank 0 waits in " in done["reason"]
    assert "rank 1 is at train.py:" in done["reason"]


SPAWNED = """
import torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, port):
    if rank == LEAVES:
        return
    torch.cuda.set_device(rank)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("nccl", init_method=address, rank=rank, world_size=SIZE)
    dist.all_reduce(torch.ones(1, device="cuda"))
    dist.destroy_process_group()

if __name__ == "__main__":
    import socket
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (port,), nprocs=2)
"""


@pytest.mark.at_length
@pytest.mark.parametrize(
    ("leaves", "size", "words"),
    [
        ("0", "2", "rank 1 waits in init_process_group at train.py:9 for rank 0, which has ended"),
        ("1", "2", "for rank 1, which has ended before it joined the job"),
        ("9", "3", "for rank 2: of the 3 ranks that the script expects, 2 were started"),
    ],
)
def test_spawned_ranks_that_miss_one_are_told_which(
    rehearse_reference: Rehearse, leaves: str, size: str, words: str
) -> None:
    script = SPAWNED.replace("LEAVES", leaves).replace("SIZE", size)
    done = rehearse_reference(script, "--count", "2").expect(2)
    assert words in done["reason"]


@pytest.mark.at_length
@pytest.mark.parametrize(
    # `ground_truth/test_ranks.py` has a hundred of them, without `torchrun`.
    "strategy",
    ["ddp", "sync-batch-norm", "zero", "fsdp1", "fsdp2", "hsdp", "tensor", "pipeline", "experts"],
)
def test_strategies_of_pytorch_run_unmodified(rehearse_reference: Rehearse, strategy: str) -> None:
    ranks = 4 if strategy == "hsdp" else 2
    command = ("torchrun", "--standalone", "--nproc-per-node", str(ranks))
    done = rehearse_reference(
        "",
        *("--count", str(ranks), "--steps", "0"),
        command=(*command, str(TRAIN), strategy),
    ).expect(0)
    assert [rank["rank"] for rank in done["ranks"]] == list(range(ranks))
    assert all(rank["steps"] == 4 for rank in done["ranks"])
    if strategy.startswith("fsdp2"):
        figures = {(it["peak_allocated_bytes"], it["peak_reserved_bytes"]) for it in done["ranks"]}
        assert len(figures) == 1, "every rank of it has the same"


@pytest.mark.at_length
def test_ranks_that_are_not_run_are_silent_and_nobody_waits_for_them(
    rehearse_reference: Rehearse,
) -> None:
    launcher = ("torchrun", "--nnodes", "4", "--nproc-per-node", "2", "train.py")
    done = rehearse_reference(
        """
        import os, torch, torch.distributed as dist
        rank = int(os.environ["RANK"])
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl")
        assert dist.get_world_size() == 8
        # Neither of those who are run is the first of this one.
        middle = dist.new_group([2, 5, 6])
        for device in ("cuda", "cpu"):
            count = torch.tensor([rank + 1], device=device)
            dist.all_reduce(count)
            assert count.item() == 5 * 1 + 3 * 6, count
        names = [None] * 8
        dist.all_gather_object(names, f"rank {rank}")
        assert names == ["rank 0"] * 5 + ["rank 5"] * 3, names
        told = ["from the first" if rank == 0 else None]
        dist.broadcast_object_list(told, src=0)
        assert told == ["from the first"]
        if rank == 5:
            dist.all_reduce(torch.ones(4, device="cuda"), group=middle)
        received = torch.zeros(4, device="cuda")
        if rank == 5:
            dist.recv(received, src=3)
        torch.cuda.synchronize()
        dist.barrier()
        dist.destroy_process_group()
        """,
        *("--count", "2", "--nodes", "4", "--ranks", "0,5", "--steps", "0"),
        command=launcher,
    ).expect(0)
    assert [(it["rank"], it["world_size"]) for it in done["ranks"]] == [(0, 8), (5, 8)]
    assert "2 of 8 ranks were run" in done["assumptions"][0]


@pytest.mark.at_length
@pytest.mark.parametrize("strategy", ["ddp", "fsdp2", "hsdp", "tensor", "zero", "pipeline"])
def test_distinct_ranks_have_what_all_of_them_have(
    rehearse_reference: Rehearse, strategy: str
) -> None:
    command = ("torchrun", "--standalone", "--nproc-per-node", "4", str(TRAIN), strategy)
    figures = [
        {
            (rank["peak_allocated_bytes"], rank["peak_reserved_bytes"])
            for rank in rehearse_reference(
                "", *("--count", "4", "--steps", "0", "--ranks", ranks), command=command
            ).expect(0)["ranks"]
        }
        for ranks in ("all", "distinct")
    ]
    assert figures[0] == figures[1]


@pytest.mark.at_length
def test_the_files_of_several_machines_give_one_answer(
    rehearse_reference: Rehearse, tmp_path: Path
) -> None:
    """Each machine rehearses its own ranks, alone and without a network to the other."""
    # What it imports lies beside it; its own name is that of every script here.
    shutil.copytree(TRAIN.parent, tmp_path, dirs_exist_ok=True)
    (tmp_path / TRAIN.name).rename(tmp_path / "strategies.py")
    launcher = ("torchrun", "--nnodes", "2", "--nproc-per-node", "2", "strategies.py", "fsdp2")
    topology = ("--count", "2", "--nodes", "2", "--steps", "0")
    whole = rehearse_reference("", *topology, command=launcher).expect(0)
    for machine, ranks in (("0", "0,1"), ("1", "2,3")):
        file = str(tmp_path / f"run-{machine}.ghost")
        chosen = (*topology, "--ranks", ranks, "--record", file)
        rehearse_reference("", *chosen, command=launcher).expect(0)
    files = [str(tmp_path / f"run-{machine}.ghost") for machine in "01"]
    document = tmp_path / "both.json"

    def report(words: list[str], code: int = 0) -> str:
        command = [str(PROGRAM), "report", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stderr

    report([*files, "--json", "-o", str(document)])
    both = json.loads(document.read_text())
    assert [card["rank"] for card in both["cards"]] == [0, 1, 2, 3]

    def figures(answer: Any) -> list[tuple[int, int]]:
        ranks = answer["ranks"]
        return [(rank["peak_allocated_bytes"], rank["peak_reserved_bytes"]) for rank in ranks]

    assert figures(both["answer"]) == figures(whole)
    assert not any("ranks were run" in it for it in both["answer"]["assumptions"])
    twice = report([files[0], files[0]], code=2)
    assert "rank 0 is in" in twice


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--ranks", "0,9"), "rank 9 is to be run of a job with ranks 0 to 1"),
        (("--nodes", "2"), "the job is started on 1 node, and --nodes says 2: use --nodes 1"),
    ],
)
def test_ranks_and_nodes_that_do_not_match_the_job_are_told(
    rehearse_reference: Rehearse, options: tuple[str, ...], sentence: str
) -> None:
    done = torchrun(rehearse_reference, "import torch", *options).expect(2)
    assert sentence in done.stderr


def test_a_port_that_is_taken_is_told_with_its_number(rehearse_reference: Rehearse) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        launcher = ("torchrun", "--master-port", port, "--nproc-per-node", "2", "train.py")
        done = rehearse_reference(BEGIN, "--count", "2", command=launcher).expect(2)
    assert f"listens on port {port}; choose another" in done["reason"]


@pytest.mark.at_length
def test_more_ranks_than_cards_are_told(rehearse_reference: Rehearse) -> None:
    launcher = ("torchrun", "--standalone", "--nproc-per-node", "2", "train.py")
    done = rehearse_reference(BEGIN, "--count", "1", command=launcher).expect(2)
    assert "the job has 2 ranks and the machine 1 card; use --count 2" in done["reason"]


@pytest.mark.at_length
def test_spawned_ranks_meet_without_a_launcher(rehearse_reference: Rehearse) -> None:
    done = rehearse_reference(
        """
        import torch, torch.distributed as dist, torch.multiprocessing as mp

        def work(rank, port, job):
            torch.cuda.set_device(rank)
            dist.init_process_group(
                "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
            )
            count = torch.tensor([rank + job], device="cuda")
            dist.all_reduce(count)
            assert count.item() == 1 + 2 * job
            objects = [None, None]
            dist.all_gather_object(objects, "x" * 1000 * (job + rank))
            assert [len(each) for each in objects] == [1000 * job, 1000 * (job + 1)]
            dist.destroy_process_group()

        if __name__ == "__main__":
            import socket
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            # The groups of the second job have the names that those of the first had.
            for job in (1, 2):
                mp.spawn(work, (port, job), nprocs=2)
        """,
        *("--count", "2", "--steps", "0"),
    ).expect(0)
    assert {rank["device"] for rank in done["ranks"]} == {0, 1}


@pytest.mark.at_length
def test_the_exception_of_a_spawned_rank_is_told_and_raised_by_its_parent(
    rehearse_reference: Rehearse,
) -> None:
    script = SPAWNED.replace("LEAVES", "9").replace("SIZE", "2")
    script = script.replace("dist.destroy", "assert rank == 0, 'no such file'\n    dist.destroy")
    done = rehearse_reference(script, "--count", "2").expect(1)
    assert "rank 1 failed at train.py:11: AssertionError: no such file" in done["reason"]
    assert "ProcessRaisedException" in done.stderr


EXPERTS = """
import os, torch, torch.distributed as dist
from torch.distributed.nn.functional import all_to_all_single
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
gate = torch.nn.Linear(64, 2).cuda()
expert = torch.nn.Linear(64, 64).cuda()
x = torch.randn(100, 64, device="cuda")
choice = gate(x).argmax(-1)
counts = COUNTS
received = torch.empty_like(counts)
dist.all_to_all_single(received, counts)
send, receive = counts.long().tolist(), received.long().tolist()
assert sum(send) == 100, send
arrived = torch.empty(sum(receive), 64, device="cuda")
arrived = all_to_all_single(arrived, x[choice.argsort()].contiguous(), receive, send)
back = all_to_all_single(torch.empty_like(x), expert(arrived), send, receive)
back.sum().backward()
dist.destroy_process_group()
"""


@pytest.mark.at_length
@pytest.mark.parametrize(
    "counts",
    ["torch.bincount(choice, minlength=2)", "torch.histc(choice.float(), bins=2, min=0, max=2)"],
)
def test_tokens_that_a_router_counts_add_up(rehearse_reference: Rehearse, counts: str) -> None:
    torchrun(rehearse_reference, EXPERTS.replace("COUNTS", counts)).expect(0)


FRAMEWORKS = {
    "accelerate": """
        import torch
        from accelerate import Accelerator
        accelerator = Accelerator()
        model = torch.nn.Linear(64, 64)
        optimizer = torch.optim.AdamW(model.parameters())
        data = torch.utils.data.TensorDataset(torch.randn(48, 64))
        loader = torch.utils.data.DataLoader(data, batch_size=4)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for (batch,) in loader:
            accelerator.backward(model(batch).square().mean())
            optimizer.step()
            optimizer.zero_grad()
        numbers = accelerator.gather_for_metrics(torch.arange(4, device=accelerator.device))
        assert numbers.tolist() == [0, 1, 2, 3] * 2, numbers
    """,
    "trainer": """
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
        ids = torch.arange(64)
        data = [{"input_ids": ids, "labels": ids}] * 64
        config = GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000)
        options = dict(eval_strategy="epoch", save_strategy="no", report_to=[], logging_steps=2)
        arguments = TrainingArguments("out", per_device_train_batch_size=4, **options)
        Trainer(GPT2LMHeadModel(config), arguments, train_dataset=data, eval_dataset=data).train()
    """,
    "lightning": """
        import torch, lightning
        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(64, 64)
            def training_step(self, batch, index):
                loss = self.layer(batch[0]).square().mean()
                self.log("loss", loss, sync_dist=True)
                return loss
            def configure_optimizers(self):
                return torch.optim.AdamW(self.parameters())
        data = torch.utils.data.TensorDataset(torch.randn(64, 64))
        loader = torch.utils.data.DataLoader(data, batch_size=4)
        quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
        trainer = lightning.Trainer(devices=2, strategy="ddp", max_epochs=1, **quiet)
        trainer.fit(Module(), loader)
    """,
}


@pytest.mark.at_length
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_frameworks_train_on_several_cards(rehearse_reference: Rehearse, framework: str) -> None:
    launcher = ("torchrun", "--standalone", "--nproc-per-node", "2", "train.py")
    done = rehearse_reference(
        FRAMEWORKS[framework],
        *("--count", "2", "--steps", "0"),
        # Lightning starts its ranks itself.
        command=() if framework == "lightning" else launcher,
    ).expect(0)
    assert [rank["device"] for rank in done["ranks"]] == [0, 1]
    # No rank has a context on the card of another.
    assert [card["peak_device_bytes"] for card in done["devices"]] == [
        rank["peak_device_bytes"] for rank in done["ranks"]
    ]
