# case: predictions are collected with their graphs
import torch


def predict(model, loader):
    model.eval()
    preds = []
    for x, _ in loader:
        preds.append(model(x.cuda()))  # <- found: collected-outputs, evaluation-with-gradients
    return torch.cat(preds)

# case: predictions are collected on the host
import torch


def predict(model, loader):
    model.eval()
    preds = []
    with torch.no_grad():
        for x, _ in loader:
            preds.append(model(x.cuda()).cpu())
    return torch.cat(preds)

# case: predictions are moved to the host only at the end
import torch


@torch.no_grad()
def predict(model, loader, device="cuda"):
    model.eval()
    logits = []
    for x in loader:
        logits.append(model(x.to(device)))  # <- found: collected-outputs
    return torch.cat(logits).cpu().numpy()

# case: predictions go to the host after the loop, one by one
import torch


def extract(backbone, loader):
    backbone.cuda().eval()
    feats = []
    with torch.no_grad():
        for images, _ in loader:
            feats.append(backbone(images.cuda()))  # <- found: collected-outputs
    feats = [f.cpu() for f in feats]
    return torch.cat(feats)

# case: outputs and targets in a dict of lists
from collections import defaultdict

import torch


def collect(model, loader):
    store = defaultdict(list)
    model.eval()
    with torch.no_grad():
        for batch in loader:
            out = model(batch["x"].cuda())
            store["out"].append(out)  # <- found: collected-outputs
            store["id"].append(batch["id"])
    return {k: torch.cat(v).cpu() for k, v in store.items()}

# case: outputs in a dict by name
import torch


@torch.no_grad()
def embed(model, loader):
    table = {}
    for name, image in loader:
        table[name] = model(image.cuda())  # <- found: collected-outputs
    torch.save(table, "table.pt")

# case: outputs in a dict by name on the host
import torch


@torch.no_grad()
def embed(model, loader):
    table = {}
    for name, image in loader:
        table[name] = model(image.cuda()).cpu()
    torch.save(table, "table.pt")

# case: outputs are joined to one tensor
import torch


def test(model, loader, device):
    model.eval()
    scores = torch.empty(0, 10)
    for x, y in loader:
        out = model(x.to(device))  # <- found: evaluation-with-gradients
        scores = torch.cat((scores, out.cpu()), dim=0)  # <- found: collected-outputs
    return scores

# case: outputs are joined on the card
import torch


@torch.no_grad()
def test(model, loader):
    model.eval()
    scores = torch.tensor([]).cuda()
    for x, y in loader:
        out = model(x.cuda())
        scores = torch.cat([scores, out], dim=0)  # <- found: collected-outputs
    return scores.cpu()

# case: small reductions are joined
import torch


@torch.no_grad()
def test(model, loader):
    model.eval()
    hits = []
    for x, y in loader:
        out = model(x.cuda())
        hits.append((out.argmax(1) == y.cuda()).float().mean())
    return torch.stack(hits).mean().item()

# case: hidden states in a list of tuples
import torch


def features(encoder, loader):
    encoder.to("cuda")
    encoder.eval()
    rows = []
    with torch.no_grad():
        for ids, mask, label in loader:
            hidden = encoder(ids.to("cuda"), mask.to("cuda"))
            rows.append((label, hidden))  # <- found: collected-outputs
    return [(label, hidden.cpu()) for label, hidden in rows]

# case: training outputs for a report at the end of the epoch
import torch


def train(model, loader, criterion, optimizer):
    y_pred, y_true = [], []
    for x, y in loader:
        out = model(x.cuda())
        loss = criterion(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        y_pred.append(out)  # <- found: collected-outputs
        y_true.append(y)
    return torch.cat(y_pred), torch.cat(y_true)

# case: training outputs for a report, on the host
import torch


def train(model, loader, criterion, optimizer):
    y_pred, y_true = [], []
    for x, y in loader:
        out = model(x.cuda())
        loss = criterion(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        y_pred.append(out.detach().cpu())
        y_true.append(y)
    return torch.cat(y_pred), torch.cat(y_true)

# case: labels as numbers
import torch


@torch.no_grad()
def test(model, loader):
    y_pred = []
    for x, y in loader:
        y_pred.extend(model(x.cuda()).argmax(dim=1).tolist())
    return y_pred

# case: generated images with their graphs
import torch


def sample(generator, n_batches, z_dim):
    generator.eval()
    images = []
    for _ in range(n_batches):
        z = torch.randn(64, z_dim, device="cuda")
        images.append(generator(z))  # <- found: collected-outputs, evaluation-with-gradients
    return torch.cat(images)

# case: outputs of one batch for a pyramid of scales
import torch


@torch.no_grad()
def multi_scale(model, image):
    outs = []
    for scale in (0.5, 1.0, 1.5):
        outs.append(model(torch.nn.functional.interpolate(image.cuda(), scale_factor=scale)))
    return torch.stack([o.mean() for o in outs])

# case: feature maps of the layers of one forward pass
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        outs = []
        for block in self.blocks:
            x = block(x)
            outs.append(x)
        return torch.cat(outs, 1)

# case: outputs of some batches for a picture
import torch


@torch.no_grad()
def show(model, loader):
    shown = []
    for i, (x, _) in enumerate(loader):
        if i >= 4:
            break
        shown.append(model(x.cuda()).cpu())
    return torch.cat(shown)

# case: attention maps of every batch stay on the object
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.maps = []

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).transpose(-1, -2)).softmax(-1)
        self.maps.append(weights)  # <- found: output-kept-on-self
        return weights @ x

# case: attention maps of every batch are emptied by a method
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.maps = []

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).transpose(-1, -2)).softmax(-1)
        self.maps.append(weights)
        return weights @ x

    def pop_maps(self):
        maps, self.maps = self.maps, []
        return maps

# case: a list comprehension over a loader
import torch


def encode(model, loader):
    model.eval()
    return torch.cat([model(x.cuda()) for x, _ in loader])  # <- found: evaluation-with-gradients

# case: a list comprehension over a loader under inference_mode
import torch


@torch.inference_mode()
def encode(model, loader):
    model.eval()
    return torch.cat([model(x.cuda()).cpu() for x, _ in loader])

# case: memory bank of a contrastive method without detach
import torch
import torch.nn.functional as F


def train(encoder, loader, optimizer, queue_size):
    bank = []
    for view_a, view_b in loader:
        q = encoder(view_a.cuda())
        k = encoder(view_b.cuda())
        logits = q @ torch.cat([k.detach()] + [b.detach() for b in bank]).t()
        loss = F.cross_entropy(logits, torch.arange(len(q)).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.append(k)  # <- found: collected-outputs

# case: memory bank of a contrastive method
import torch
import torch.nn.functional as F


def train(encoder, loader, optimizer, queue_size):
    bank = []
    for view_a, view_b in loader:
        q = encoder(view_a.cuda())
        k = encoder(view_b.cuda())
        logits = q @ torch.cat([k.detach()] + bank).t()
        loss = F.cross_entropy(logits, torch.arange(len(q)).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.append(k.detach())
        bank = bank[-queue_size:]

# case: evaluation of a wrapper class with gradients
import torch


class Evaluator:
    def __init__(self, model, loader, device):
        self.model, self.loader, self.device = model, loader, device

    def run(self):
        self.model.eval()
        correct = 0
        for x, y in self.loader:
            out = self.model(x.to(self.device))  # <- found: evaluation-with-gradients
            correct += (out.argmax(1).cpu() == y).sum().item()
        return correct / len(self.loader.dataset)


if __name__ == "__main__":
    Evaluator(torch.load("model.pt", map_location="cpu"), make_loader(), "cuda").run()

# case: evaluation of a wrapper class without gradients
import torch


class Evaluator:
    def __init__(self, model, loader, device):
        self.model, self.loader, self.device = model, loader, device

    @torch.no_grad()
    def run(self):
        self.model.eval()
        correct = 0
        for x, y in self.loader:
            out = self.model(x.to(self.device))
            correct += (out.argmax(1).cpu() == y).sum().item()
        return correct / len(self.loader.dataset)


if __name__ == "__main__":
    Evaluator(torch.load("model.pt", map_location="cpu"), make_loader(), "cuda").run()

# case: a validation loss is collected without backward
import torch


def evaluate(model, loader, criterion):
    model.eval()
    losses = []
    for x, y in loader:
        losses.append(criterion(model(x.cuda()), y.cuda()))  # <- found: collected-losses, evaluation-with-gradients
    return torch.stack(losses).mean()

# case: a validation loss is collected under no_grad
import torch


def evaluate(model, loader, criterion):
    model.eval()
    losses = []
    with torch.no_grad():
        for x, y in loader:
            losses.append(criterion(model(x.cuda()), y.cuda()))
    return torch.stack(losses).mean()

# case: outputs under autocast only
import torch


def infer(model, loader):
    model.eval()
    results = []
    with torch.autocast("cuda"):
        for x in loader:
            y = model(x.cuda())  # <- found: evaluation-with-gradients
            results.append(y.sigmoid())  # <- found: collected-outputs
    return results

# case: outputs of a model that only runs in inference_mode
import torch


def infer(model, loader):
    model.eval()
    results = []
    with torch.inference_mode(), torch.autocast("cuda"):
        for x in loader:
            y = model(x.cuda())
            results.append(y.sigmoid().cpu())
    return results
