# case: meters keep numbers
import torch

class Meters:
    def __init__(self):
        self.all = {}

    def push(self, name, value):
        self.all.setdefault(name, []).append(float(value))

meters = Meters()
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meters.push("loss", loss)

# case: per sample losses are numbers
import torch
import torch.nn.functional as F

sample_losses = {}
for idx, x, y in loader:
    l = F.cross_entropy(net(x.cuda()), y.cuda(), reduction="none")
    optimizer.zero_grad()
    l.mean().backward()
    optimizer.step()
    for i, v in zip(idx.tolist(), l.tolist()):
        sample_losses[i] = v

# case: targets are averaged without graph
import torch

targets = {}
for idx, x, y in loader:
    p = torch.softmax(net(x.cuda()), 1)
    q = p.detach()
    for j, i in enumerate(idx.tolist()):
        targets[i] = 0.7 * targets.get(i, 0) + 0.3 * q[j]
    loss = -(torch.log(p) * y.cuda()).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: tuples of numbers from a step
import torch

def step(x, y):
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item(), len(x)

results = []
for x, y in loader:
    results.append(step(x, y))

# case: records of one batch are backpropagated
from dataclasses import dataclass
import torch

@dataclass
class Term:
    value: torch.Tensor
    weight: float

for x, y in loader:
    terms = []
    for head in heads:
        terms.append(Term(crit(head(x.cuda()), y.cuda()), 1.0))
    loss = sum(t.value * t.weight for t in terms)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: worker puts results on the host
import torch

def worker(model, in_q, results):
    model.eval()
    while True:
        item = in_q.get()
        if item is None:
            break
        with torch.no_grad():
            results.append(model(item.cuda()).cpu())

# case: preview of the first batch only
import torch

shown = []
with torch.no_grad():
    for i, (x, _) in enumerate(loader):
        out = net(x.cuda())
        if i == 0:
            shown.append(out)

# case: lossy names are no losses
import torch

kept = []
with torch.no_grad():
    for x in loader:
        kept.append(lossless_codec(net(x.cuda()).cpu()))

# case: validate computes a loss that its caller backpropagates
import torch

def validate(net, batches):
    total = 0
    for x, y in batches:
        total = total + torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    return total

for outer in range(10):
    loss = validate(net, sample())
    meta_opt.zero_grad()
    loss.backward()
    meta_opt.step()

# case: test step of ignite under no_grad returns outputs
import torch
from ignite.engine import Engine

def step(engine, batch):
    model.eval()
    with torch.no_grad():
        return model(batch[0].cuda()), batch[1]

Engine(step).run(loader)

# case: queue of the last states given as a parameter
import torch

def remember(history, out):
    history.append(out.detach().cpu())

for x in loader:
    out = net(x.cuda())
    loss = out.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    remember(past, out)

# case: rnn state in a dict is detached
import torch

state = {"h": None}
for x, y in stream_loader:
    out, h = rnn(x.cuda(), state["h"])
    state["h"] = h.detach()
    loss = crit(out, y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
