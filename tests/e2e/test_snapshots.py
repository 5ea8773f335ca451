"""Snapshots through the command: real ones from a card, and files that are not snapshots."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAM, REPOSITORY, Rehearse

RECORDINGS = REPOSITORY / "ground_truth" / "allocator" / "h200"
UNET = RECORDINGS / "unet+default.pickle.gz"
FAILED = RECORDINGS / "densenet121+default-4.2GiB.pickle.gz"
COMMANDS = (("snapshot", "show"), ("snapshot", "top"), ("replay",))


def ghostgpu(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_one_screen_says_state_peak_holders_fragmentation_and_what_helps() -> None:
    done = ghostgpu("snapshot", "show", UNET)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    labels = [line[:15].strip() for line in lines if line[:15].strip()]
    assert labels[:4] == ["snapshot", "at the end", "peak", "held by"]
    assert "cases/vision.py:106 in forward" in done.stdout
    # The advice comes from a replay, and the real job reserved as much under this setting.
    real = json.loads((RECORDINGS / "unet+expandable.json").read_text())
    reserved = real["statistics"]["reserved_bytes.all.peak"][-1]
    advice = f"expandable_segments:True: a replay reserves {reserved / 2**30:.2f} GiB"
    assert advice in " ".join(done.stdout.split())


def test_a_failed_request_is_explained_by_every_cached_block() -> None:
    text = " ".join(ghostgpu("snapshot", "show", "--verbose", FAILED).stdout.split())
    assert "a request for 784.00 KiB failed" in text
    assert "a memory fraction (set_per_process_memory_fraction) allows PyTorch no more" in text
    assert "the pool for other sizes" in text
    assert "at most 768.00 KiB in one piece" in text
    assert "this is fragmentation" in text
    # Only one split limit is advised, with the result of its replay: the others do not help.
    assert "max_split_size_mb:128: in a replay of this history no request fails" in text
    assert text.count("max_split_size_mb") == 1
    assert "expandable_segments:True: in a replay of this history no request fails" in text


@pytest.mark.parametrize("by", ["line", "function", "stack", "category", "size"])
def test_holders_add_up_to_what_is_live(by: str) -> None:
    done = ghostgpu("snapshot", "top", UNET, "--by", by, "--json", "--top", "100000")
    answer = json.loads(done.stdout)
    assert answer["bytes"] == sum(holder["bytes"] for holder in answer["holders"])
    assert answer["count"] == sum(holder["count"] for holder in answer["holders"])
    # The same recording's figures, as PyTorch counted them.
    real = json.loads((RECORDINGS / "unet+default.json").read_text())
    assert answer["bytes"] == max(real["statistics"]["requested_bytes.all.peak"])


def test_a_gate_is_kept_or_not() -> None:
    for limit, code in (("--max-reserved=4GiB", 0), ("--max-reserved=3GiB", 3)):
        assert ghostgpu("snapshot", "check", UNET, limit).returncode == code
    assert ghostgpu("snapshot", "check", UNET, "--max-fragmentation", "10%").returncode == 3
    assert ghostgpu("snapshot", "check", UNET, "--max-fragmentation", "40%").returncode == 0
    assert ghostgpu("snapshot", "check", FAILED, "--no-oom").returncode == 3
    without = ghostgpu("snapshot", "check", UNET)
    assert without.returncode == 2
    assert "there is no limit" in without.stderr


def test_two_snapshots_are_compared_by_what_they_hold() -> None:
    other = RECORDINGS / "bert+default.pickle.gz"
    done = ghostgpu("snapshot", "diff", UNET, other, "--at", "peak")
    assert done.returncode == 0, done.stderr
    assert "0 changed" not in done.stdout
    assert "vision.py:106 in forward" in done.stdout
    same = ghostgpu("snapshot", "diff", UNET, UNET, "--at", "peak")
    assert " 0 changed" in same.stdout


def test_every_format_is_written_whole(tmp_path: Path) -> None:
    for name in ("pprof", "perfetto", "folded", "memory_viz"):
        path = tmp_path / name
        done = ghostgpu("snapshot", "export", UNET, "--to", name, "--out", path)
        assert done.returncode == 0, done.stderr
        assert path.stat().st_size > 1000
    again = pickle.loads((tmp_path / "memory_viz").read_bytes())
    original = pickle.loads(gzip.decompress(UNET.read_bytes()))
    assert len(again["device_traces"][0]) == len(original["device_traces"][0])


def test_a_setting_is_refused_with_pytorchs_own_words(rehearse_reference: Rehearse) -> None:
    setting = "max_split_size_mb:1"
    done = ghostgpu("replay", UNET, "--torch", "2.11", "--set", setting)
    assert done.returncode == 2
    script = f"""
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "{setting}"
import torch
try:
    torch.zeros(1, device="cuda")
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
"""
    said = rehearse_reference(script).stdout
    reason = done.stderr.split("`: ")[1].split(": ", 1)[1].strip()
    assert reason, done.stderr
    assert reason in said


def test_a_search_ranks_settings_and_says_which_run_to_the_end() -> None:
    done = ghostgpu("replay", FAILED, "--search", "--limit", "4.2GiB", "--json", "-")
    answer = json.loads(done.stdout)
    ranked = answer["ranked"]
    assert done.returncode == 0
    assert len(ranked) > 150
    fitting = [each for each in ranked if each["fits"]]
    assert ranked[: len(fitting)] == fitting
    peaks = [each["peak_reserved_bytes"] for each in fitting]
    assert peaks == sorted(peaks)
    assert any(each["settings"] == "expandable_segments:True" for each in fitting)


def write(path: Path, content: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


def hostile(folder: Path) -> dict[str, Path]:
    whole = gzip.decompress(UNET.read_bytes())
    files = {
        "empty": b"",
        "not a pickle": b"hello, this is text\n" * 20,
        "truncated": whole[: len(whole) // 2],
        "truncated gzip": UNET.read_bytes()[:4000],
        "zip": b"PK\x03\x04" + bytes(200),
        "zeros": bytes(5000),
    }
    paths = {}
    for name, content in files.items():
        paths[name] = folder / name
        paths[name].write_bytes(content)
    paths["something else"] = write(folder / "else.pickle", {"lr": 0.1, "layers": [1, 2, 3]})
    paths["an object"] = write(folder / "object.pickle", Path("/tmp"))
    paths["no devices"] = write(
        folder / "none.pickle", {"segments": [], "device_traces": [], "allocator_settings": {}}
    )
    paths["a folder"] = folder
    paths["missing"] = folder / "missing.pickle"
    return paths


def test_what_is_no_snapshot_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for name, path in hostile(tmp_path).items():
        for command in COMMANDS:
            done = ghostgpu(*command, path)
            assert done.returncode == 2, f"{name}: {done.stdout}{done.stderr}"
            first, *rest = done.stderr.strip().splitlines()
            assert first.startswith("ghostgpu: "), name
            assert all(not line or line.startswith("hint: ") for line in rest), done.stderr
            assert done.stdout == "", name


def test_nothing_is_written_when_the_snapshot_is_bad(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    bad = tmp_path / "bad.pickle"
    bad.write_bytes(b"\x80\x04}")
    for words in (
        ("snapshot", "export", bad, "--to", "folded", "--out", out),
        ("replay", bad, "--json", out),
    ):
        assert ghostgpu(*words).returncode == 2
        assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.pickle"]


@pytest.mark.every_torch
def test_a_snapshot_of_a_rehearsal_opens_like_one_of_a_card(rehearse: Rehearse) -> None:
    done = rehearse(
        """
import torch
torch.cuda.memory._record_memory_history()
model = torch.nn.Linear(4096, 4096).cuda()
optimizer = torch.optim.Adam(model.parameters())
model(torch.randn(256, 4096, device="cuda")).sum().backward()
optimizer.step()
torch.cuda.memory._dump_snapshot("mine.pickle")
"""
    ).expect(0)
    shown = ghostgpu("snapshot", "show", done.folder / "mine.pickle")
    assert shown.returncode == 0, shown.stderr
    assert "train.py:" in shown.stdout
    replayed = ghostgpu("replay", done.folder / "mine.pickle", "--json", "-")
    answer = json.loads(replayed.stdout)
    assert answer["reproduced"], answer["first_difference"]
