# case: a meter dict of numbers
import torch
def train_one_epoch(model, data_loader, optimizer, device, args):
    stats = dict(loss=0.0, n=0)
    for samples, _ in data_loader:
        loss, _, _ = model(samples.to(device), mask_ratio=args.mask_ratio)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        stats["loss"] = stats["loss"] + loss.item()
        stats["n"] += 1
    return stats

# case: a function that runs is guarded by its caller
import torch
def run(model, loader, device):
    correct = 0
    for data in loader:
        out = model(data.x.to(device))
        correct += int((out.argmax(dim=1) == data.y.to(device)).sum())
    return correct
def test(model, loader, device):
    model.eval()
    with torch.no_grad():
        return run(model, loader, device)

# case: a helper is called by training and by a guarded evaluation
import torch
def compute_loss(model, batch):
    return torch.nn.functional.cross_entropy(model(batch[0].cuda()), batch[1].cuda())
def train(model, loader, opt):
    model.train()
    for b in loader:
        loss = compute_loss(model, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return sum(compute_loss(model, b).item() for b in loader) / len(loader)

# case: gradients of an evaluated model are wanted for a saliency map through a helper
import torch
def score(model, x):
    return model(x).max()
def saliency(model, x):
    model.eval()
    x = x.cuda().requires_grad_()
    score(model, x).backward()
    return x.grad.abs()

# case: adversarial evaluation through a helper
import torch
def ce(model, x, y):
    return torch.nn.functional.cross_entropy(model(x), y)
def attack(model, loader, eps):
    model.eval()
    hits = 0
    for x, y in loader:
        x, y = x.cuda().requires_grad_(), y.cuda()
        loss = ce(model, x, y)
        g, = torch.autograd.grad(loss, x)
        with torch.no_grad():
            hits += (model(x + eps * g.sign()).argmax(1) == y).sum().item()
    return hits

# case: two losses of one graph go back one after the other
import torch
for x, y in loader:
    h = backbone(x.cuda())
    a, b = head1(h).mean(), head2(h).mean()
    opt.zero_grad()
    a.backward(retain_graph=True)
    torch.nn.utils.clip_grad_norm_(head1.parameters(), 1)
    b.backward()
    opt.step()

# case: a recurrent agent of another file keeps a state, so the graph is needed
import torch
from agents import RecurrentAgent
agent = RecurrentAgent().cuda()
opt = torch.optim.Adam(agent.parameters())
for obs, target in stream:
    loss = (agent(obs.cuda()) - target.cuda()).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()

# case: a spiking net is reset after some steps
import torch
from models import build
net = build("vgg").cuda()
for x, y in loader:
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    if step % 10 == 0:
        net.reset_state()

# case: features computed once are backpropagated in each inner step
import torch
def inner(feats, head, opt, y, steps):
    for _ in range(steps):
        loss = torch.nn.functional.cross_entropy(head(feats), y)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()

# case: a small window of losses
import torch
from collections import deque
recent = deque(maxlen=100)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    recent.append(loss.item())

# case: a replay memory of states
import torch
from collections import deque
memory = deque(maxlen=50000)
for t in range(100000):
    with torch.no_grad():
        a = q(torch.as_tensor(s, device="cuda").float()).argmax().item()
    s2, r, d, _ = env.step(a)
    memory.append((s, a, r, s2, d))
    s = s2

# case: an lbfgs closure counts its calls
import torch
calls = []
def closure():
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    calls.append(loss.item())
    return loss
for _ in range(20):
    opt.step(closure)

# case: multitask sums are numbers
import torch
def train(model, loader, opt, weights):
    sums = {t: 0.0 for t in weights}
    for x, y in loader:
        total = 0
        for t in weights:
            l = torch.nn.functional.mse_loss(model(x.cuda())[t], y[t].cuda())
            total = total + weights[t] * l
            sums[t] += l.detach().item()
        opt.zero_grad()
        total.backward()
        opt.step()
    return sums

# case: a weighed total begins anew in each batch
import torch
for x, y in loader:
    total = 0.0
    for w, o in zip(weights, net(x.cuda())):
        total += w * torch.nn.functional.cross_entropy(o, y.cuda())
    opt.zero_grad()
    total.backward()
    opt.step()

# case: a penalty is accumulated over modules
import torch
for x, y in loader:
    reg = 0
    for m in net.modules():
        if hasattr(m, "weight"):
            reg += args.wd * m.weight.pow(2).sum()
    loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda()) + reg
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: an evaluated encoder feeds a head that learns
import torch
def encode(encoder, x):
    return encoder(x.cuda())
encoder.eval()
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(head(encode(encoder, x)), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: batch norm is frozen while everything learns through a helper
import torch
def step_loss(model, b):
    return model(b["x"].cuda(), b["y"].cuda())["loss"]
def train(model, loader, opt):
    model.train()
    model.bn.eval()
    for b in loader:
        loss = step_loss(model, b)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: outputs of a guarded helper go to the host
import torch
class Index:
    def __init__(self, encoder):
        self.encoder = encoder.cuda().eval()
        self.vectors = []
    @torch.no_grad()
    def encode(self, x):
        return self.encoder(x.cuda()).cpu()
    def add_all(self, loader):
        for ids, x in loader:
            self.vectors.append(self.encode(x))

# case: a warm-up forward pass through a helper
import torch
def forward(model, x):
    return model(x)
model.eval()
_ = forward(model, torch.randn(1, 3, 224, 224, device="cuda"))

# case: a model that is traced for export
import torch
def wrapped(model, x):
    return model(x.cuda())
def export(model, x):
    model.eval()
    y = wrapped(model, x)
    torch.onnx.export(model, x, "m.onnx")
    return y.shape
