"""What memory mistakes cost on a real card, each with and without its fix.

The figures stand behind the rules of `ghostgpu lint`: what a rule says a mistake costs was seen.

    python ground_truth/harness/mistakes.py --out DIR
"""

from __future__ import annotations

import textwrap

from short_scripts import measure_all

PRELUDE = """
import copy
import io
import json

import torch
import torch.nn.functional as F
from torch import nn


def net(width=1024, depth=6, act=nn.GELU):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def data(batch=4096, width=1024):
    inputs = torch.randn(batch, width, device="cuda")
    return inputs, torch.randint(0, 10, (batch,), device="cuda")


model = net().cuda()
optimizer = torch.optim.Adam(model.parameters())


def step(loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


"""

# rule: (with the mistake, without it)
MISTAKES: dict[str, tuple[str, str]] = {
    "summed-loss": (
        """
        total = 0
        for _ in range(50):
            x, y = data()
            loss = F.cross_entropy(model(x), y)
            step(loss)
            total += loss
        """,
        """
        total = 0
        for _ in range(50):
            x, y = data()
            loss = F.cross_entropy(model(x), y)
            step(loss)
            total += loss.detach()
        """,
    ),
    "summed-loss-without-backward": (
        """
        total = 0
        for _ in range(50):
            x, y = data()
            total += F.cross_entropy(model(x), y)
        """,
        """
        total = 0
        for _ in range(50):
            x, y = data()
            total += F.cross_entropy(model(x), y).detach()
        """,
    ),
    "collected-losses": (
        """
        losses = []
        for _ in range(50):
            x, y = data()
            loss = F.cross_entropy(model(x), y)
            step(loss)
            losses.append(loss)
        """,
        """
        losses = []
        for _ in range(50):
            x, y = data()
            loss = F.cross_entropy(model(x), y)
            step(loss)
            losses.append(loss.item())
        """,
    ),
    "collected-outputs": (
        """
        outs = []
        model.eval()
        for _ in range(50):
            x, y = data()
            outs.append(model(x))
        """,
        """
        outs = []
        model.eval()
        with torch.no_grad():
            for _ in range(50):
                x, y = data()
                outs.append(model(x).cpu())
        """,
    ),
    "evaluation-with-gradients": (
        """
        model.eval()
        for _ in range(5):
            x, y = data()
            out = model(x)
        """,
        """
        model.eval()
        with torch.no_grad():
            for _ in range(5):
                x, y = data()
                out = model(x)
        """,
    ),
    "activation-not-in-place": (
        """
        model = net(act=nn.ReLU).cuda()
        for _ in range(3):
            x, y = data(65536)
            F.cross_entropy(model(x), y).backward()
        """,
        """
        model = net(act=lambda: nn.ReLU(inplace=True)).cuda()
        for _ in range(3):
            x, y = data(65536)
            F.cross_entropy(model(x), y).backward()
        """,
    ),
    "activation-not-in-place-after-batch-norm": (
        """
        layers = []
        for _ in range(4):
            layers += [nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()]
        model = nn.Sequential(*layers).cuda()
        x = torch.randn(32, 32, 128, 128, device='cuda')
        for _ in range(3):
            model(x).mean().backward()
        """,
        """
        layers = []
        for _ in range(4):
            layers += [nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True)]
        model = nn.Sequential(*layers).cuda()
        x = torch.randn(32, 32, 128, 128, device='cuda')
        for _ in range(3):
            model(x).mean().backward()
        """,
    ),
    "foreach-where-fused": (
        """
        model = net(4096, 8).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            x, y = data(16, 4096)
            step(F.cross_entropy(model(x), y))
        """,
        """
        model = net(4096, 8).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for _ in range(3):
            x, y = data(16, 4096)
            step(F.cross_entropy(model(x), y))
        """,
    ),
    "zero-grad-keeps-memory": (
        """
        model = net(4096, 8).cuda()
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(3):
            optimizer.zero_grad(set_to_none=False)
            x, y = data(4096, 4096)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        """,
        """
        model = net(4096, 8).cuda()
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            x, y = data(4096, 4096)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        """,
    ),
    "intermediate-kept-by-name": (
        """
        for _ in range(4):
            x, y = data(65536)
            out = model[0](x)
            loss = out.mean()
            step(loss)
        """,
        """
        for _ in range(4):
            x, y = data(65536)
            out = model[0](x)
            loss = out.mean()
            step(loss)
            del out, loss, x, y
        """,
    ),
    "state-dict-copied-on-card": (
        """
        best = copy.deepcopy(model.state_dict())
        x, y = data()
        step(F.cross_entropy(model(x), y))
        """,
        """
        best = {k: v.cpu() for k, v in model.state_dict().items()}
        x, y = data()
        step(F.cross_entropy(model(x), y))
        """,
    ),
    "load-without-map-location": (
        """
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        state = torch.load(file)
        model.load_state_dict(state)
        x, y = data()
        step(F.cross_entropy(model(x), y))
        """,
        """
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        state = torch.load(file, map_location='cpu')
        model.load_state_dict(state)
        x, y = data()
        step(F.cross_entropy(model(x), y))
        """,
    ),
    "copy-with-gradients": (
        """
        teacher = copy.deepcopy(model)
        for _ in range(3):
            x, y = data()
            t = teacher(x)
            step(F.mse_loss(model(x), t))
        """,
        """
        teacher = copy.deepcopy(model).requires_grad_(False)
        for _ in range(3):
            x, y = data()
            with torch.no_grad():
                t = teacher(x)
            step(F.mse_loss(model(x), t))
        """,
    ),
    "retain-graph": (
        """
        for _ in range(3):
            x, y = data()
            loss = F.cross_entropy(model(x), y)
            loss.backward(retain_graph=True)
            optimizer.step()
            optimizer.zero_grad()
        """,
        """
        for _ in range(3):
            x, y = data()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        """,
    ),
    "full-precision-logits": (
        """
        h = torch.randn(8192, 512, device='cuda', dtype=torch.bfloat16, requires_grad=True)
        w = torch.randn(50257, 512, device='cuda', dtype=torch.bfloat16, requires_grad=True)
        F.cross_entropy(
            (h @ w.T).float(), torch.zeros(8192, dtype=torch.long, device='cuda')
        ).backward()
        """,
        """
        h = torch.randn(8192, 512, device='cuda', dtype=torch.bfloat16, requires_grad=True)
        w = torch.randn(50257, 512, device='cuda', dtype=torch.bfloat16, requires_grad=True)
        F.cross_entropy(
            h @ w.T, torch.zeros(8192, dtype=torch.long, device='cuda')
        ).backward()
        """,
    ),
    "recovery-inside-except": (
        """
        def big():
            x, y = data(200000)
            out = model(x)
            raise RuntimeError('CUDA out of memory')
        try:
            big()
        except RuntimeError as error:
            x, y = data()
            step(F.cross_entropy(model(x), y))
            held = torch.cuda.memory_allocated()
        print(json.dumps({'held': held}))
        """,
        """
        def big():
            x, y = data(200000)
            out = model(x)
            raise RuntimeError('CUDA out of memory')
        failed = False
        try:
            big()
        except RuntimeError as error:
            failed = True
        if failed:
            x, y = data()
            step(F.cross_entropy(model(x), y))
            held = torch.cuda.memory_allocated()
        print(json.dumps({'held': held}))
        """,
    ),
}


def main() -> None:
    scripts = {
        (name, how): PRELUDE + textwrap.dedent(code)
        for name, pair in MISTAKES.items()
        for how, code in zip(("with", "without"), pair)
    }
    measure_all("mistakes", __doc__, scripts)


if __name__ == "__main__":
    main()
