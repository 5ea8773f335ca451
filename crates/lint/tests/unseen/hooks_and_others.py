# case: a hook stores by name in a list that never ends
import torch
from torchvision.models import resnet18

acts = {}


def save(name):
    def hook(module, inp, out):
        acts.setdefault(name, []).append(out)  # <- found: activations-kept-by-hook
    return hook


net = resnet18().cuda()
for name, m in net.named_modules():
    m.register_forward_hook(save(name))
for x, y in loader:
    net(x.cuda())

# case: a hook overwrites one entry
import torch
from torchvision.models import resnet18

acts = {}


def save(name):
    def hook(module, inp, out):
        acts[name] = out.detach()
    return hook


net = resnet18().cuda()
for name, m in net.named_modules():
    m.register_forward_hook(save(name))
for x, y in loader:
    net(x.cuda())

# case: a class that hooks and never empties
import torch


class Recorder:
    def __init__(self, layer):
        self.outputs = []
        layer.register_forward_hook(self.hook)

    def hook(self, module, inputs, output):
        self.outputs.append(output)  # <- found: activations-kept-by-hook


def run(model, loader):
    recorder = Recorder(model.layer4)
    for x, y in loader:
        model(x.cuda())
    return recorder

# case: a class that hooks and is emptied in every step
import torch


class Recorder:
    def __init__(self, layer):
        self.outputs = []
        layer.register_forward_hook(self.hook)

    def hook(self, module, inputs, output):
        self.outputs.append(output)

    def reset(self):
        self.outputs = []


def run(model, loader):
    recorder = Recorder(model.layer4)
    for x, y in loader:
        recorder.reset()
        model(x.cuda())
    return recorder

# case: a hook for statistics keeps numbers
import torch


def run(model, loader):
    norms = []
    model.fc.register_forward_hook(lambda m, i, o: norms.append(o.norm().item()))
    for x, y in loader:
        model(x.cuda())
    return norms

# case: a lambda as a hook keeps the outputs
import torch


def run(model, loader):
    feats = []
    model.avgpool.register_forward_hook(lambda m, i, o: feats.append(o))  # <- found: activations-kept-by-hook
    model.cuda()
    for x, y in loader:
        model(x.cuda())
    return len(feats)

# case: a gradient hook collects gradients on the card
import torch


def watch(model, loader, criterion, optimizer):
    grads = []
    model.fc.weight.register_hook(lambda g: grads.append(g))  # <- found: activations-kept-by-hook
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x.cuda()), y.cuda()).backward()
        optimizer.step()

# case: a gradient hook collects norms
import torch


def watch(model, loader, criterion, optimizer):
    grads = []
    model.fc.weight.register_hook(lambda g: grads.append(g.norm().item()))
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x.cuda()), y.cuda()).backward()
        optimizer.step()

# case: retain_graph in a plain step function
import torch


def step(model, batch, criterion, optimizer):
    x, y = batch
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # <- missed: retain-graph
    optimizer.step()
    return loss.item()

# case: retain_graph for two losses of one graph
import torch


def step(model, batch, criterion, auxiliary, optimizer):
    x, y = batch
    out, side = model(x)
    loss, extra = criterion(out, y), auxiliary(side, y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    extra.backward()
    optimizer.step()
    return loss.item()

# case: retain_graph in a method of a trainer
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=0.1)
        self.loss = nn.CrossEntropyLoss()

    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            loss = self.loss(self.model(x.cuda()), y.cuda())
            loss.backward(retain_graph=True)  # <- found: retain-graph
            self.opt.step()

# case: the whole data set moves to the card
import numpy as np
import torch

features = torch.from_numpy(np.load("features.npy")).cuda()  # <- found: dataset-on-card
labels = torch.from_numpy(np.load("labels.npy")).cuda()  # <- found: dataset-on-card
model = torch.nn.Linear(features.shape[1], 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for i in range(0, len(features), 256):
        loss = torch.nn.functional.cross_entropy(model(features[i : i + 256]), labels[i : i + 256])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: the data set moves batch by batch
import numpy as np
import torch

features = torch.from_numpy(np.load("features.npy"))
labels = torch.from_numpy(np.load("labels.npy"))
model = torch.nn.Linear(features.shape[1], 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for i in range(0, len(features), 256):
        x, y = features[i : i + 256].cuda(), labels[i : i + 256].cuda()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: the best weights are copied on the card
import copy

import torch


def fit(model, loader, val_loader, criterion, optimizer, evaluate):
    model = model.cuda()
    best, best_weights = 0, None
    for epoch in range(20):
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = evaluate(model, val_loader)
        if score > best:
            best, best_weights = score, copy.deepcopy(model.state_dict())  # <- found: state-dict-copied-on-card
    model.load_state_dict(best_weights)

# case: a cache of embeddings in a module
import torch

_cache = {}


def embed(model, key, text):
    if key not in _cache:
        _cache[key] = model(text.cuda())  # <- found: cached-tensors
    return _cache[key]

# case: a cache of embeddings on the host
import torch

_cache = {}


def embed(model, key, text):
    if key not in _cache:
        with torch.no_grad():
            _cache[key] = model(text.cuda()).cpu()
    return _cache[key]

# case: a dataset's __getitem__ moves to the card
import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return load_image(self.paths[i]).to("cuda")  # <- found: card-in-dataset


loader = DataLoader(Images(paths), batch_size=8, num_workers=4)

# case: an evaluation function of a GAN that nothing calls
import torch


def fid_features(inception, loader, device):
    inception.eval()
    total = torch.zeros(2048, device=device)
    for x in loader:
        total += inception(x.to(device)).sum(0)  # <- found: summed-loss, evaluation-with-gradients
    return total

# case: a meter of this file keeps graphs in a method
import torch


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def train(loader, model, criterion, optimizer):
    losses = AverageMeter()
    for x, y in loader:
        loss = criterion(model(x), y)
        losses.update(loss, x.size(0))  # <- found: logged-loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a meter of this file gets numbers
import torch


class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def train(loader, model, criterion, optimizer):
    losses = AverageMeter()
    for x, y in loader:
        loss = criterion(model(x), y)
        losses.update(loss.item(), x.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: regularization terms are backpropagated
import torch


def train(model, loader, criterion, optimizer):
    for x, y in loader:
        penalty = 0
        for p in model.parameters():
            penalty = penalty + p.pow(2).sum()
        loss = criterion(model(x), y) + 1e-4 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: style transfer optimizes an image
import torch
from torchvision.models import vgg19


def transfer(content, style, steps=300):
    vgg = vgg19(weights="DEFAULT").features.cuda().eval()
    image = content.clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS([image])
    for step in range(steps):
        def closure():
            optimizer.zero_grad()
            loss = (vgg(image) - vgg(content)).pow(2).mean()
            loss.backward()
            return loss
        optimizer.step(closure)
    return image

# case: an adversarial attack in evaluation mode
import torch
import torch.nn.functional as F


def fgsm(model, loader, eps):
    model.eval()
    correct = 0
    for x, y in loader:
        x = x.cuda().requires_grad_(True)
        loss = F.cross_entropy(model(x), y.cuda())
        grad = torch.autograd.grad(loss, x)[0]
        with torch.no_grad():
            correct += (model(x + eps * grad.sign()).argmax(1).cpu() == y).sum().item()
    return correct

# case: time and counts are summed
import time


def train(model, loader, criterion, optimizer):
    seconds, seen = 0.0, 0
    for x, y in loader:
        start = time.time()
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds += time.time() - start
        seen += x.size(0)
    return seconds, seen

# case: correct predictions are summed as tensors
def train(model, loader, criterion, optimizer):
    correct = 0
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (out.argmax(1) == y).sum()
    return correct / len(loader.dataset)

# case: chunks of a long sequence in one backward pass
import torch


def train(model, loader, criterion, optimizer):
    for x, y in loader:
        losses = []
        for part, target in zip(x.chunk(4, 1), y.chunk(4, 1)):
            losses.append(criterion(model(part), target))
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: gradient norms are collected as numbers
import torch


def train(model, loader, criterion, optimizer):
    norms = []
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
        optimizer.step()
    return norms

# case: data of a physics simulation in numpy
import numpy as np


def integrate(model, steps):
    total = 0.0
    losses = []
    for i in range(steps):
        loss = model.energy(np.random.rand(10))
        total += loss
        losses.append(loss)
    return total, losses

# case: a scheduler keeps numbers of a plain function
def fit(step_fn, loader):
    losses = []
    for batch in loader:
        losses.append(step_fn(batch))
    return sum(losses) / len(losses)
