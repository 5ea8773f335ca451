# case: a function that nothing in the file calls sums the loss
import torch


def train_one_epoch(net, batches, loss_fn, opt, device):
    net.train()
    running = 0.0
    for images, labels in batches:
        images, labels = images.to(device), labels.to(device)
        opt.zero_grad()
        out = net(images)
        loss = loss_fn(out, labels)
        loss.backward()
        opt.step()
        running += loss  # <- found: summed-loss
    return running / len(batches)

# case: the same function with a number
import torch


def train_one_epoch(net, batches, loss_fn, opt, device):
    net.train()
    running = 0.0
    for images, labels in batches:
        images, labels = images.to(device), labels.to(device)
        opt.zero_grad()
        out = net(images)
        loss = loss_fn(out, labels)
        loss.backward()
        opt.step()
        running += loss.item()
    return running / len(batches)

# case: validation that nothing calls sums the loss with its graph
import torch.nn.functional as F


def validate(model, val_loader, device):
    model.eval()
    val_loss = 0
    for x, y in val_loader:
        x, y = x.to(device), y.to(device)
        val_loss += F.cross_entropy(model(x), y)  # <- found: summed-loss, evaluation-with-gradients
    return val_loss / len(val_loader)

# case: validation under no_grad sums a tensor
import torch
import torch.nn.functional as F


def validate(model, val_loader, device):
    model.eval()
    val_loss = 0
    with torch.no_grad():
        for x, y in val_loader:
            x, y = x.to(device), y.to(device)
            val_loss += F.cross_entropy(model(x), y)
    return val_loss / len(val_loader)

# case: a decorated validation sums a tensor
import torch
import torch.nn.functional as F


@torch.inference_mode()
def validate(model, val_loader, device):
    model.eval()
    val_loss = 0
    for x, y in val_loader:
        val_loss += F.cross_entropy(model(x.to(device)), y.to(device))
    return val_loss / len(val_loader)

# case: an exponential average of the loss
import torch
from torch import nn

net = nn.Linear(8, 8).cuda()
opt = torch.optim.Adam(net.parameters())
avg = 0
for step in range(10000):
    x = torch.randn(64, 8, device="cuda")
    loss = (net(x) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg = 0.9 * avg + 0.1 * loss  # <- found: summed-loss

# case: an exponential average of the loss as a number
import torch
from torch import nn

net = nn.Linear(8, 8).cuda()
opt = torch.optim.Adam(net.parameters())
avg = 0
for step in range(10000):
    x = torch.randn(64, 8, device="cuda")
    loss = (net(x) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg = 0.9 * avg + 0.1 * loss.item()

# case: an average that starts with None
def fit(model, loader, criterion, optimizer):
    smooth = None
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth = loss if smooth is None else smooth * 0.98 + loss * 0.02  # <- found: summed-loss
        if step % 50 == 0:
            print(step, float(smooth))

# case: an average of detached losses
def fit(model, loader, criterion, optimizer):
    smooth = None
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.detach()
        smooth = value if smooth is None else smooth * 0.98 + value * 0.02
        if step % 50 == 0:
            print(step, float(smooth))

# case: the total grows by a method
import torch


def train(model, loader, criterion, optimizer, device):
    total = torch.zeros(1, device=device)
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total.add(loss)  # <- found: summed-loss
    return total.item()

# case: the total grows in place
import torch


def train(model, loader, criterion, optimizer, device):
    total = torch.zeros((), device=device)
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total.add_(loss)  # <- found: summed-loss
    return total.item()

# case: the total grows in place by detached losses
import torch


def train(model, loader, criterion, optimizer, device):
    total = torch.zeros((), device=device)
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total.add_(loss.detach())
    return total.item()

# case: the total grows by torch.add
import torch

def train(model, loader, criterion, optimizer):
    total = torch.tensor(0.0).cuda()
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = torch.add(total, loss)  # <- found: summed-loss
    print(total)

# case: losses in a dict of sums
def train(model, loader, criterion, optimizer):
    stats = {"loss": 0.0, "count": 0}
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        stats["loss"] += loss * x.size(0)  # <- found: summed-loss
        stats["count"] += x.size(0)
    return stats

# case: numbers in a dict of sums
def train(model, loader, criterion, optimizer):
    stats = {"loss": 0.0, "count": 0}
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        stats["loss"] += loss.item() * x.size(0)
        stats["count"] += x.size(0)
    return stats

# case: losses by name in a defaultdict
from collections import defaultdict

import torch
import torch.nn.functional as F


def run_epoch(model, loader, optimizer):
    sums = defaultdict(float)
    for batch in loader:
        logits, boxes = model(batch["image"].cuda())
        losses = {
            "cls": F.cross_entropy(logits, batch["label"].cuda()),
            "box": F.smooth_l1_loss(boxes, batch["box"].cuda()),
        }
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in losses.items():
            sums[name] += value  # <- found: summed-loss
    return {name: value / len(loader) for name, value in sums.items()}

# case: numbers by name in a defaultdict
from collections import defaultdict

import torch
import torch.nn.functional as F


def run_epoch(model, loader, optimizer):
    sums = defaultdict(float)
    for batch in loader:
        logits, boxes = model(batch["image"].cuda())
        losses = {
            "cls": F.cross_entropy(logits, batch["label"].cuda()),
            "box": F.smooth_l1_loss(boxes, batch["box"].cuda()),
        }
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for name, value in losses.items():
            sums[name] += value.item()
    return {name: value / len(loader) for name, value in sums.items()}

# case: the terms of one loss are summed and backpropagated
import torch.nn.functional as F


def run_epoch(model, loader, optimizer):
    for batch in loader:
        outputs = model(batch["image"].cuda())
        total = 0
        for output, weight in zip(outputs, (1.0, 0.4)):
            total += weight * F.cross_entropy(output, batch["label"].cuda())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

# case: losses in a list of tuples
history = []


def train(model, loader, criterion, optimizer):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((step, loss))  # <- found: collected-losses

# case: numbers in a list of tuples
history = []


def train(model, loader, criterion, optimizer):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append((step, float(loss)))

# case: losses of a history in dicts
def train(model, loader, criterion, optimizer):
    history = {"train": [], "val": []}
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        history["train"].append(loss)  # <- found: collected-losses
    return history

# case: losses in a deque without a length
from collections import deque

recent = deque()


def step(model, x, y, criterion, optimizer):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss)  # <- found: collected-losses

# case: losses in a deque with a length
from collections import deque

recent = deque(maxlen=50)


def step(model, x, y, criterion, optimizer):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss)

# case: a field of a dataclass
from dataclasses import dataclass, field

import torch


@dataclass
class State:
    step: int = 0
    losses: list = field(default_factory=list)


def train(model, loader, criterion, optimizer):
    state = State()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state.step += 1
        state.losses.append(loss)  # <- found: collected-losses
    return state

# case: a field of a dataclass with numbers
from dataclasses import dataclass, field

import torch


@dataclass
class State:
    step: int = 0
    losses: list = field(default_factory=list)


def train(model, loader, criterion, optimizer):
    state = State()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state.step += 1
        state.losses.append(loss.item())
    return state

# case: a total on the object of a training class
import torch


class Runner:
    def __init__(self, model, loader, optimizer, criterion):
        self.model = model
        self.loader = loader
        self.optimizer = optimizer
        self.criterion = criterion
        self.total_loss = 0.0

    def run_epoch(self):
        for x, y in self.loader:
            loss = self.criterion(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.total_loss += loss  # <- found: summed-loss

# case: a method that does one step keeps its loss
import torch


class Agent:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.Adam(net.parameters(), lr=1e-3)
        self.losses = []

    def update(self, states, targets):
        loss = torch.nn.functional.mse_loss(self.net(states), targets)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        self.losses.append(loss)  # <- found: collected-losses

# case: a method that does one step keeps a number
import torch


class Agent:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.Adam(net.parameters(), lr=1e-3)
        self.losses = []

    def update(self, states, targets):
        loss = torch.nn.functional.mse_loss(self.net(states), targets)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        self.losses.append(loss.item())

# case: a method that does one step keeps an average
import torch


class Agent:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.Adam(net.parameters(), lr=1e-3)
        self.average = 0.0

    def update(self, states, targets):
        loss = torch.nn.functional.mse_loss(self.net(states), targets)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        self.average = 0.99 * self.average + 0.01 * loss  # <- found: summed-loss

# case: a list that is written to a log and emptied
def train(model, loader, criterion, optimizer, writer):
    window = []
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        window.append(loss)
        if step % 20 == 19:
            writer.add_scalar("loss", sum(window).item() / 20, step)
            window = []

# case: losses of tasks that are backpropagated together
import torch


def outer_step(learner, tasks, optimizer):
    losses = []
    for support, query in tasks:
        adapted = learner.clone()
        adapted.adapt(support)
        losses.append(adapted.loss(query))
    optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    optimizer.step()

# case: losses that were read into text
def train(model, loader, criterion, optimizer):
    lines = []
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lines.append(f"{step}: {loss:.4f}")
    return lines

# case: the best loss is kept as a tensor
def train(model, loader, criterion, optimizer):
    best = None
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if best is None or loss < best:
            best = loss
    return best

# case: a step function that returns the loss, and its caller collects it
def train_step(model, optimizer, criterion, x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def train(model, loader, criterion, optimizer):
    losses = []
    for x, y in loader:
        losses.append(train_step(model, optimizer, criterion, x, y))  # <- found: collected-losses
    return losses

# case: a step function that returns a number
def train_step(model, optimizer, criterion, x, y):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, loader, criterion, optimizer):
    losses = []
    for x, y in loader:
        losses.append(train_step(model, optimizer, criterion, x, y))
    return losses

# case: the loss of a language model over epochs
from transformers import AutoModelForCausalLM
import torch

model = AutoModelForCausalLM.from_pretrained("gpt2").to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)


def train(train_dataloader):
    epoch_loss = 0
    for batch in train_dataloader:
        batch = {k: v.to("cuda") for k, v in batch.items()}
        outputs = model(**batch)
        outputs.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        epoch_loss += outputs.loss  # <- found: summed-loss
    return epoch_loss

# case: the loss of a language model with Accelerate, as its examples do
import torch
from accelerate import Accelerator
from transformers import AutoModelForCausalLM


def main(train_dataloader):
    accelerator = Accelerator()
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model, optimizer, train_dataloader = accelerator.prepare(model, optimizer, train_dataloader)
    total_loss = 0
    for batch in train_dataloader:
        outputs = model(**batch)
        loss = outputs.loss
        total_loss += loss.detach().float()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

# case: losses are collected with a mixed-precision scaler
import torch
from torch.cuda.amp import GradScaler, autocast


def train(model, loader, criterion, optimizer):
    scaler = GradScaler()
    all_losses = []
    for x, y in loader:
        with autocast():
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        all_losses += [loss]  # <- found: collected-losses

# case: averages of two losses in one assignment
def train(G, D, loader, g_opt, d_opt, g_criterion, d_criterion):
    g_avg, d_avg = 0.0, 0.0
    for real in loader:
        d_loss = d_criterion(D(real))
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        g_loss = g_criterion(G(real))
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        g_avg, d_avg = g_avg + g_loss, d_avg + d_loss  # <- found: summed-loss
    print(g_avg, d_avg)

# case: a metric is kept in an array
import numpy as np


def train(model, loader, criterion, optimizer):
    losses = np.zeros(len(loader))
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss
    return losses.mean()

# case: losses are written into a tensor that was made before
import torch


def train(model, loader, criterion, optimizer):
    losses = torch.zeros(len(loader), device="cuda")
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss  # <- found: collected-losses
    return losses.mean().item()

# case: losses are written into a tensor without their graphs
import torch


def train(model, loader, criterion, optimizer):
    losses = torch.zeros(len(loader), device="cuda")
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
    return losses.mean().item()

# case: losses are joined to a tensor
import torch


def train(model, loader, criterion, optimizer):
    curve = torch.empty(0, device="cuda")
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve = torch.cat([curve, loss.view(1)])  # <- found: collected-losses
    return curve

# case: the validation loss of a caller under no_grad
import torch


def compute(model, loader, criterion):
    total = 0
    for x, y in loader:
        total += criterion(model(x), y)
    return total


def fit(model, train_loader, val_loader, criterion, optimizer):
    for x, y in train_loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(compute(model, val_loader, criterion))
