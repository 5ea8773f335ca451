"""Scripts, the changes that are made to them, and the same changes written by hand."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A script, the edits that a user would make, and what the change says of itself."""

    change: str
    script: str
    edits: dict[str, str]
    did: str
    line: str = ""
    needs: str = "torch"
    options: dict[str, str] = field(default_factory=dict)

    @property
    def by_hand(self) -> str:
        text = self.script
        for old, new in self.edits.items():
            assert old in text, old
            text = text.replace(old, new)
        return text


BLOCKS = """
import torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mlp = nn.Sequential(up, nn.GELU(), down)

    def forward(self, x):
        return x + self.mlp(self.norm(x))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(256) for _ in range(6))
        self.head = nn.Linear(256, 1000)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)

model = Model()
model.cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
"""

TRAINING = """
for step in range(4):
    x = torch.randn(64, 128, 256).cuda()
    y = torch.zeros(64, 128, dtype=torch.long).cuda()
    out = model(x)
    loss = F.cross_entropy(out.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

EVALUATION = """
model.eval()
with torch.no_grad():
    for step in range(3):
        out = model(torch.randn(64, 128, 256).cuda())
        loss = F.cross_entropy(out.flatten(0, 1), torch.zeros(64 * 128).long().cuda())
model.train()
"""

VISION = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.backends.cudnn.benchmark = True

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.layer1 = nn.Sequential(Residual(64), Residual(64))
        self.layer2 = nn.Sequential(nn.Conv2d(64, 128, 2, 2), Residual(128), Residual(128))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        x = self.layer2(self.layer1(F.relu(self.stem(x))))
        return self.head(x.mean((2, 3)))

data = TensorDataset(torch.randn(80, 3, 64, 64), torch.zeros(80, dtype=torch.long))
loader = DataLoader(data, batch_size=32)
checks = DataLoader(data, batch_size=80)
model = Net().to("cuda")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    model.train()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    for x, y in checks:
        out = model(x.cuda())
        correct = (out.argmax(1) == y.cuda()).sum()
"""

CHECKPOINT = "torch.utils.checkpoint.checkpoint"

LAYERS = """
import torch
import torch.utils.checkpoint
from torch import nn
layers = [nn.Linear(512, 512)]
for _ in range(4):
    layers += [nn.Linear(512, 512), nn.GELU()]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    loss = model(torch.randn(4096, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

# Weights that are large beside activations: gradients matter during forward.
LATE_ZERO_GRAD = (
    LAYERS.replace("(4096, 512", "(256, 4096")
    .replace("Linear(512, 512", "Linear(4096, 4096")
    .replace("Adam(model.parameters())", "SGD(model.parameters(), lr=0.1)")
    .replace("    optimizer.zero_grad()\n", "")
    .replace("    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()")
)

TRANSFORMERS = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=5000))
# made
model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    ids = torch.zeros(8, 512, dtype=torch.long, device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
"""

AUTOCAST = 'torch.autocast("cuda", dtype=torch.bfloat16)'

CASES = {
    "autocast over a loop of functions": Case(
        "autocast",
        BLOCKS + TRAINING,
        {
            "    out = model(x)\n    loss =": (
                f"    with {AUTOCAST}:\n        out = model(x)\n        loss ="
            )
        },
        "Model and its loss ran in bfloat16 autocast",
    ),
    "autocast without gradients": Case(
        "autocast",
        BLOCKS + EVALUATION,
        {
            "        out = model": f"        with {AUTOCAST}:\n          out = model",
            "        loss =": "          loss =",
        },
        "Model and its loss ran in bfloat16 autocast",
    ),
    "autocast over convolutions, with evaluation": Case(
        "autocast",
        VISION,
        {
            "        loss = criterion": (f"        with {AUTOCAST}:\n            loss = criterion"),
            "        out = model(x.cuda())\n        correct": (
                f"        with {AUTOCAST}:\n            out = model(x.cuda())\n        correct"
            ),
        },
        "Net and its loss ran in bfloat16 autocast",
    ),
    "autocast over a model of transformers": Case(
        "autocast",
        TRANSFORMERS,
        {"    loss = model": f"    with {AUTOCAST}:\n        loss = model"},
        "GPT2LMHeadModel and its loss ran in bfloat16 autocast",
        needs="transformers",
    ),
    "checkpointing of the blocks in a list": Case(
        "checkpointing",
        BLOCKS + EVALUATION + TRAINING,
        {
            "            x = block(x)": (
                "            if not torch.is_grad_enabled():\n"
                "                x = block(x)\n"
                "                continue\n"
                f"            x = {CHECKPOINT}(block, x, use_reentrant=False)"
            ),
            "import torch\n": "import torch, torch.utils.checkpoint\n",
        },
        "6 Block modules checkpointed",
        "checkpoint(block, x, use_reentrant=False)",
    ),
    "checkpointing of every second block": Case(
        "checkpointing",
        BLOCKS + TRAINING,
        {
            "        for block in self.blocks:\n            x = block(x)": (
                "        for place, block in enumerate(self.blocks):\n"
                "            if place % 2:\n"
                "                x = block(x)\n"
                "            else:\n"
                f"                x = {CHECKPOINT}(block, x, use_reentrant=False)"
            ),
            "import torch\n": "import torch, torch.utils.checkpoint\n",
        },
        "3 Block modules checkpointed",
        options={"blocks": "3"},
    ),
    "the fused form of an optimizer": Case(
        "optimizer-form",
        BLOCKS + TRAINING,
        {"lr=1e-4)": "lr=1e-4, fused=True)"},
        "AdamW in its fused form",
        "fused=True",
    ),
    "gradients that go before the forward pass": Case(
        "early-zero-grad",
        LATE_ZERO_GRAD,
        {
            "    optimizer.zero_grad()\n": "",
            "    loss = model": "    optimizer.zero_grad()\n    loss = model",
        },
        "gradients set to None before forward, not at script.py:",
    ),
    "images and weights in channels_last order": Case(
        "channels-last",
        VISION,
        {
            'Net().to("cuda")': 'Net().to("cuda").to(memory_format=torch.channels_last)',
            "criterion(model(x), y)": (
                "criterion(model(x.contiguous(memory_format=torch.channels_last)), y)"
            ),
            # The script's own tensor lives as long as the model runs.
            "        out = model(x.cuda())": (
                "        x = x.cuda()\n"
                "        out = model(x.contiguous(memory_format=torch.channels_last))"
            ),
        },
        "10 convolutions of Net in channels_last order",
    ),
    "checkpointing of convolutions in rows": Case(
        "checkpointing",
        VISION,
        {
            "        x = self.layer2(self.layer1(F.relu(self.stem(x))))": (
                "        x = F.relu(self.stem(x))\n"
                "        for block in [*self.layer1, *self.layer2]:\n"
                "            if self.training and isinstance(block, Residual):\n"
                f"                x = {CHECKPOINT}(block, x, use_reentrant=False)\n"
                "            else:\n"
                "                x = block(x)"
            ),
            "import torch\n": "import torch, torch.utils.checkpoint\n",
        },
        "4 Residual modules checkpointed",
    ),
    "checkpointing of plain layers": Case(
        "checkpointing",
        LAYERS,
        {
            'model(torch.randn(4096, 512, device="cuda"))': (
                f"{CHECKPOINT}_sequential("
                'model, 3, torch.randn(4096, 512, device="cuda"), use_reentrant=False)'
            )
        },
        "1 Sequential row of layers run in pieces",
        "checkpoint_sequential(layers, 3, x, use_reentrant=False)",
    ),
    "checkpointing by transformers itself": Case(
        "checkpointing",
        TRANSFORMERS,
        {"# made": "model.gradient_checkpointing_enable(); model.config.use_cache = False"},
        "gradient_checkpointing_enable() of GPT2LMHeadModel",
        "model.gradient_checkpointing_enable()",
        needs="transformers",
    ),
    "weights in bfloat16": Case(
        "bfloat16-weights",
        BLOCKS + TRAINING,
        {"model.cuda()": "model.to(torch.bfloat16).cuda()", "model(x)": "model(x.bfloat16())"},
        "38 parameters of Model cast to bfloat16",
        "model.to(torch.bfloat16)",
    ),
    "weights in bfloat16 of a model of transformers": Case(
        "bfloat16-weights",
        TRANSFORMERS,
        {"# made": "model.to(torch.bfloat16)"},
        "parameters of GPT2LMHeadModel cast to bfloat16",
        needs="transformers",
    ),
    "weights in bfloat16 that are made on the card": Case(
        "bfloat16-weights",
        LAYERS.replace("nn.Linear(512, 512", 'nn.Linear(512, 512, device="cuda"').replace(
            "(*layers).cuda()", "(*layers)"
        ),
        {
            "optimizer = ": "model.to(torch.bfloat16)\noptimizer = ",
            'device="cuda"))': 'device="cuda").to(torch.bfloat16))',
        },
        "10 parameters of Sequential cast to bfloat16",
    ),
    "Adafactor instead of AdamW": Case(
        "adafactor",
        BLOCKS + TRAINING,
        {"AdamW": "Adafactor"},
        "AdamW replaced by Adafactor",
        "torch.optim.Adafactor(",
    ),
    "Adafactor instead of Adam in groups": Case(
        "adafactor",
        LAYERS.replace(
            "Adam(model.parameters())",
            "Adam([{'params': model[0].parameters(), 'betas': (0.5, 0.9), 'lr': 0.1}, "
            "{'params': model[1:].parameters()}], 1e-3, fused=True)",
        ),
        {"Adam(": "Adafactor(", "'betas': (0.5, 0.9), ": "", ", fused=True": ""},
        "Adam replaced by Adafactor",
    ),
    "no graph in evaluation": Case(
        "no-grad-evaluation",
        VISION,
        {
            "        out = model(x.cuda())\n": (
                "        with torch.no_grad():\n            out = model(x.cuda())\n"
            )
        },
        "Net in eval() called without a graph at script.py:47",
        "script.py:47: with torch.no_grad():",
    ),
    "one sample at a time in evaluation": Case(
        "small-evaluation-batch",
        VISION,
        {"batch_size=80": "batch_size=1"},
        "a batch of 1 at script.py:46 (instead of 80)",
    ),
    "gradients dropped before evaluation": Case(
        "drop-gradients",
        VISION,
        {"    model.eval()": "    optimizer.zero_grad(set_to_none=True)\n    model.eval()"},
        "gradients dropped before script.py:45",
        "before script.py:45: optimizer.zero_grad(set_to_none=True)",
    ),
    "the smaller last batch left out": Case(
        "drop-last",
        VISION.replace("DataLoader(data, batch_size=80)", "loader"),
        {"batch_size=32)": "batch_size=32, drop_last=True)"},
        "the smaller last batch at script.py:39 left out",
        "drop_last=True",
    ),
    "no search among convolutions": Case(
        "no-cudnn-benchmark",
        VISION,
        {"benchmark = True": "benchmark = False"},
        "the search that script.py:6 switches on left out",
        "script.py:6: torch.backends.cudnn.benchmark = False",
    ),
    "nine tenths of the card": Case(
        "leave-room",
        BLOCKS + TRAINING,
        {"model = Model()": "torch.cuda.set_per_process_memory_fraction(0.9)\nmodel = Model()"},
        "PyTorch may use nine tenths of the card",
        "torch.cuda.set_per_process_memory_fraction(0.9)",
    ),
    "no limit": Case(
        "no-limit",
        BLOCKS.replace("model = ", "torch.cuda.set_per_process_memory_fraction(0.5)\nmodel = ")
        + TRAINING,
        {"fraction(0.5)": "fraction(1.0)"},
        "the limit of script.py:27 left out",
    ),
}

NOTHING_TO_CHANGE = {
    "autocast": BLOCKS + TRAINING.replace("out = model(x)", f"out = {AUTOCAST}(model)(x)"),
    "checkpointing": "import torch\ntorch.nn.Linear(9, 9).cuda()(torch.ones(9).cuda())",
    "bfloat16-weights": "import torch\ntorch.ones(9, device='cuda')",
    "adafactor": VISION,
    "no-grad-evaluation": BLOCKS + EVALUATION + TRAINING,
    "small-evaluation-batch": BLOCKS + TRAINING,
    "drop-gradients": BLOCKS + EVALUATION + TRAINING,
    "drop-last": BLOCKS + TRAINING,
    "no-cudnn-benchmark": BLOCKS + TRAINING,
    "no-limit": BLOCKS + TRAINING,
}
