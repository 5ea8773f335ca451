"""A script that is rehearsed with other batches than its own."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

from conftest import Rehearsal, Rehearse, needs_torch

from ghostgpu.agent.shared_numbers import USAGE_BYTES, USAGE_FILE, USAGE_MAGIC

pytestmark = needs_torch

SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
data = TensorDataset(torch.randn(512, 1024), torch.randint(0, 16, (512,)))
checks = DataLoader(data, batch_size=7)
loader = DataLoader(data, batch_size=BATCH, shuffle=True)
model = torch.nn.Sequential(
    torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 16)
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
with torch.no_grad():
    for inputs, _ in checks:
        model(inputs.cuda())
        break
for inputs, labels in loader:
    print("batch", len(inputs))
    loss = torch.nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


class CommandLine:
    """Stands for the command line: waits for the script and tells it which batch comes next."""

    def __init__(self, folder: Path, batches: list[int]) -> None:
        self.path = folder / "forks.socket"
        self.folder = folder
        self.batches = batches
        self.greeting: dict[str, Any] = {}
        self.endings: list[dict[str, Any]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(1)
        self._listener.settimeout(120)
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def run_dir(self, batch: int) -> Path:
        return self.folder / f"fork-{batch}"

    def report(self, batch: int) -> dict[str, Any]:
        (path,) = self.run_dir(batch).glob("agent-*.json")
        report = json.loads(path.read_text())
        assert isinstance(report, dict)
        return report

    def device_peak(self, batch: int) -> int:
        return int.from_bytes((self.run_dir(batch) / USAGE_FILE).read_bytes()[72:80], "little")

    def _work(self) -> None:
        line, _ = self._listener.accept()
        with line, line.makefile("rw") as file:
            self.greeting = json.loads(file.readline())
            for batch in self.batches:
                run_dir = self.run_dir(batch)
                run_dir.mkdir()
                usage = USAGE_MAGIC.to_bytes(8, "little") + (1).to_bytes(8, "little")
                (run_dir / USAGE_FILE).write_bytes(usage.ljust(USAGE_BYTES, b"\0"))
                file.write(json.dumps({"batch": batch, "run_dir": str(run_dir)}) + "\n")
                file.flush()
                self.endings.append(json.loads(file.readline()))

    def close(self) -> None:
        self._thread.join(60)
        self._listener.close()


def peaks(report: dict[str, Any]) -> Any:
    return report["peaks"], report["step_peaks"], report["assumptions"]


def device_peak_of(done: Rehearsal) -> int:
    return int.from_bytes((done.run_dir / USAGE_FILE).read_bytes()[72:80], "little")


def test_a_fork_has_the_figures_of_a_plain_run_to_the_byte(
    rehearse_on_card: Rehearse, tmp_path: Path
) -> None:
    batches = [64, 8, 200]
    command_line = CommandLine(tmp_path, batches)
    request = {"place": "training-loader", "batch": None, "socket": str(command_line.path)}
    done = rehearse_on_card(SCRIPT.replace("BATCH", "32"), size_point=request)
    command_line.close()
    assert (done.code, done.stderr) == (0, "")
    greeting = command_line.greeting
    assert greeting["place"] == "the DataLoader iterated at script.py:16"
    assert (greeting["batch"], greeting["samples"], greeting["unforkable"]) == (32, 512, None)
    assert [ending["status"] for ending in command_line.endings] == [0, 0, 0]
    assert "batch 64" in done.stdout and "batch 200" in done.stdout
    for batch in batches:
        for old in done.run_dir.glob("agent-*.json"):
            old.unlink()
        plain = rehearse_on_card(SCRIPT.replace("BATCH", str(batch)), size_point=None)
        report = command_line.report(batch)
        assert peaks(report) == peaks(plain.report), batch
        assert command_line.device_peak(batch) == device_peak_of(plain), batch
        assert (report["steps"], report["stopped_by_step_limit"]) == (3, True)
