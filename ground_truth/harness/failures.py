"""Makes a real card run out of memory for known reasons and keeps the log.

Each situation is a small script of its own process; its whole output goes to `NAME.log`, and
`failures.json` says what the situation really was. `ghostgpu explain` is tested on these texts.

    python ground_truth/harness/failures.py --out DIR [--names a,b]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from run_case import environment_facts

PRELUDE = """
import torch, torch.nn as nn
import torch.nn.functional as F
GiB = 1 << 30
def cap(gib):
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(gib * GiB / total)
class Net(nn.Module):
    def __init__(self, width=2048, depth=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))
        return x
def train(model, batch, steps=3, width=2048):
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(steps):
        x = torch.randn(batch, width, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step} loss {loss.item():.4f}", flush=True)
"""

# name: (what it really is, the script, the environment)
SITUATIONS: dict[str, tuple[str, str, dict[str, str]]] = {
    "one-large-request": (
        "large-request",
        "x = torch.empty(200 * GiB, dtype=torch.uint8, device='cuda')",
        {},
    ),
    "request-far-too-large": (
        "shape-bug",
        "a = torch.randn(4_000_000, 16, device='cuda')\ndistances = torch.cdist(a, a)",
        {},
    ),
    "attention-scores": (
        "shape-bug",
        "q = torch.randn(8, 16, 262144, 64, device='cuda', dtype=torch.bfloat16)\n"
        "scores = (q @ q.transpose(-1, -2)).softmax(-1)",
        {},
    ),
    "model-does-not-fit": ("model-does-not-fit", "cap(1)\nmodel = Net(8192, 12).cuda()", {}),
    "activations-of-the-batch": ("batch", "cap(4)\ntrain(Net().cuda(), 65536)", {}),
    "backward": ("batch", "cap(6)\ntrain(Net(2048, 16).cuda(), 36864)", {}),
    "optimizer-step": ("optimizer", "cap(1.4)\ntrain(Net(4096, 5).cuda(), 16, width=4096)", {}),
    "evaluation": (
        "evaluation",
        """
        cap(4)
        model = Net().cuda()
        train(model, 4096)
        def evaluate(model):
            model.eval()
            outputs = []
            for _ in range(200):
                outputs.append(model(torch.randn(4096, 2048, device="cuda")))
            return torch.cat(outputs)
        evaluate(model)
        """,
        {},
    ),
    "growth-over-steps": (
        "growth",
        """
        cap(3)
        model = Net(1024, 4).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        kept = []
        for step in range(2000):
            out = model(torch.randn(8192, 1024, device="cuda"))
            loss = out.square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            kept.append(out)
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        """,
        {},
    ),
    "fragmentation": (
        "fragmentation",
        """
        cap(8)
        blocks = [torch.empty(9 << 20, dtype=torch.uint8, device="cuda") for _ in range(800)]
        del blocks[::2]
        big = torch.empty(2 * GiB, dtype=torch.uint8, device="cuda")
        """,
        {},
    ),
    "expandable-segments": (
        "batch",
        "cap(4)\ntrain(Net().cuda(), 65536)",
        {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    ),
    "cuda-malloc-async": (
        "large-request",
        "x = torch.empty(200 * GiB, dtype=torch.uint8, device='cuda')",
        {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    ),
    "other-process": (
        "other-process",
        """
        import subprocess, sys, time
        free = torch.cuda.mem_get_info()[0]
        other = subprocess.Popen([sys.executable, "-c", f'''
        import torch, time
        x = torch.empty({free} - (3 << 30), dtype=torch.uint8, device="cuda")
        print("ready", flush=True)
        time.sleep(60)
        '''.replace("\\n        ", "\\n")], stdout=subprocess.PIPE, text=True)
        other.stdout.readline()
        try:
            train(Net().cuda(), 65536)
        finally:
            other.kill()
        """,
        {},
    ),
    "library-handle": (
        "library-disguise",
        """
        torch.empty(1, device="cuda")
        free = torch.cuda.mem_get_info()[0]
        hold = []
        while True:
            try:
                size = 1 << 21 if free < GiB else free - (64 << 20)
                hold.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
                free = torch.cuda.mem_get_info()[0]
            except torch.OutOfMemoryError:
                break
        print("free", torch.cuda.mem_get_info()[0], flush=True)
        a = hold[-1][:1024].view(torch.float32).view(16, 16)
        print((a @ a).sum())
        """,
        {},
    ),
    "convolution-library": (
        "library-disguise",
        """
        torch.empty(1, device="cuda")
        conv = nn.Conv2d(8, 8, 3).cuda()
        x = torch.randn(1, 8, 16, 16, device="cuda")
        hold = []
        size = torch.cuda.mem_get_info()[0]
        while size >= 1 << 21:
            try:
                hold.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                size //= 2
        print("free", torch.cuda.mem_get_info()[0], flush=True)
        print(conv(x).sum())
        """,
        {},
    ),
    "context": (
        "other-process",
        """
        import subprocess, sys
        size = torch.cuda.mem_get_info()[0]
        hold = []
        while size >= 1 << 21:
            try:
                hold.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            except torch.OutOfMemoryError:
                size //= 2
        subprocess.run([sys.executable, "-c", "import torch; torch.zeros(1, device='cuda')"])
        """,
        {},
    ),
    "pinned-memory": ("host", "x = torch.empty(900 * GiB, dtype=torch.uint8, pin_memory=True)", {}),
    "host-allocator": ("host", "x = torch.empty(1 << 50, dtype=torch.uint8)", {}),
    "host-killed": (
        "host",
        """
        import subprocess, sys
        code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
        subprocess.run(["bash", "-c", f"{sys.executable} -c '{code}'; echo exit code $?"])
        """,
        {},
    ),
    "data-loader-shared-memory": (
        "host",
        """
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 64
            def __getitem__(self, i): return torch.zeros(1 << 40)
        next(iter(torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2)))
        """,
        {},
    ),
    "two-ranks": (
        "batch",
        """
        import os
        import torch.distributed as dist
        rank = int(os.environ["RANK"])
        torch.cuda.set_device(0)
        cap(4 - rank)
        train(Net().cuda(), 65536)
        """,
        {"GG_RANKS": "2"},
    ),
}


def script_of(code: str) -> str:
    return textwrap.dedent(PRELUDE) + textwrap.dedent(code)


def run(name: str, out: Path) -> dict[str, object]:
    kind, code, environment = SITUATIONS[name]
    script = out / "scripts" / f"{name.replace('-', '_')}.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(script_of(code))
    settings = {key: value for key, value in environment.items() if value and key != "GG_RANKS"}
    command = [sys.executable, script.name]
    if "GG_RANKS" in environment:
        ranks = environment["GG_RANKS"]
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            f"--nproc-per-node={ranks}",
            script.name,
        ]
    done = subprocess.run(
        command,
        cwd=script.parent,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    # Where the interpreter lives says nothing about the failure.
    text = done.stdout.replace(str(script.parent), "/home/me").replace(sys.prefix, "/usr")
    (out / f"{name}.log").write_text(text)
    return {"name": name, "situation": kind, "exit": done.returncode, "settings": settings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--names", default=",".join(SITUATIONS))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    results = []
    for name in arguments.names.split(","):
        try:
            results.append(run(name, arguments.out))
        except subprocess.TimeoutExpired:
            results.append({"name": name, "exit": "timeout"})
        print(results[-1], flush=True)
    facts = {
        "command": "python ground_truth/harness/failures.py --out DIR",
        "environment": environment_facts(True),
        "failures": results,
    }
    (arguments.out / "failures.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
