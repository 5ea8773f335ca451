# case: tabular kaggle: fold loop with oof predictions on the card
import numpy as np
import torch
from sklearn.model_selection import KFold

def predict(net, loader):
    net.eval()
    preds = []
    for (xb,) in loader:
        p = net(xb.cuda()).sigmoid()  # <- found: evaluation-with-gradients
        preds.append(p)  # <- found: collected-outputs
    return torch.cat(preds).detach().cpu().numpy()

oof = np.zeros(len(X))
for fold, (tr, va) in enumerate(KFold(5).split(X)):
    net = MLP(X.shape[1]).cuda()
    train_fold(net, X[tr], y[tr])
    oof[va] = predict(net, make_loader(X[va]))[:, 0]

# case: trainer base class logs through self.log_scalar
import torch

class Base:
    def __init__(self):
        self.scalars = {}

    def log_scalar(self, name, value):
        self.scalars.setdefault(name, []).append(value)

    def run(self, loader):
        for batch in loader:
            self.step(batch)

class ImageTrainer(Base):
    def __init__(self, net, opt):
        super().__init__()
        self.net, self.opt = net.cuda(), opt

    def step(self, batch):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x.cuda()), y.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.log_scalar("loss", loss)  # <- found: logged-loss

# case: triplet mining keeps hard negatives in a list across epochs
import torch
import torch.nn.functional as F

hard = []
for epoch in range(20):
    for anchor, pos, neg in triplet_loader:
        a, p, n = embed_net(anchor.cuda()), embed_net(pos.cuda()), embed_net(neg.cuda())
        loss = F.triplet_margin_loss(a, p, n)
        optim.zero_grad()
        loss.backward()
        optim.step()
        d = (a - n).norm(dim=1)
        hard.append(n[d < 0.5])  # <- found: collected-outputs

# case: speech synthesis: dict comprehension accumulates sums
import torch

totals = {"mel": 0.0, "stop": 0.0}
for text, mel, stop in loader:
    mel_out, stop_out = tacotron_model(text.cuda(), mel.cuda())
    parts = {"mel": torch.nn.functional.mse_loss(mel_out, mel.cuda()),
             "stop": torch.nn.functional.binary_cross_entropy_with_logits(stop_out, stop.cuda())}
    loss = parts["mel"] + parts["stop"]
    opt.zero_grad()
    loss.backward()
    opt.step()
    totals = {k: totals[k] + parts[k] for k in totals}  # <- found: summed-loss # missed at first

# case: validation in a context where eval is called through self
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(10, 2)

    def forward(self, x):
        return self.body(x)

    def evaluate(self, loader):
        self.eval()
        n = 0
        for x, y in loader:
            n += (self(x.cuda()).argmax(1) == y.cuda()).sum().item()  # <- found: evaluation-with-gradients
        return n

net = Net().cuda()
print(net.evaluate(test_loader))

# case: reinforcement: values list in agent never cleared
import torch

class Agent:
    def __init__(self, net):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.value_log = []

    def train_step(self, s, r, s2):
        v = self.net(s.cuda())
        with torch.no_grad():
            target = r.cuda() + 0.99 * self.net(s2.cuda())
        loss = (v - target).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.value_log.append(v)  # <- found: collected-outputs

# case: transformer lm: perplexity accumulates in eval function
import math
import torch

def evaluate(model, val_data, criterion, ntokens):
    model.eval()
    losses = 0.
    for i in range(0, val_data.size(0) - 1, 35):
        data, targets = get_batch(val_data, i)
        out = model(data.cuda())  # <- found: evaluation-with-gradients
        losses += criterion(out.view(-1, ntokens), targets.cuda())  # <- found: summed-loss
    return math.exp(losses / (len(val_data) - 1))

# case: style transfer: history of images with graph
import torch

img = content.clone().cuda().requires_grad_(True)
opt = torch.optim.Adam([img], lr=0.02)
history = []
for i in range(500):
    feats = vgg_model(img)
    loss = sum((f - t).pow(2).mean() for f, t in zip(feats, targets))
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss)  # <- found: collected-losses

# case: whole loader to a list on the card
import torch
data = torch.load("train.pt")
xs = data["x"].to("cuda")  # <- found: dataset-on-card # missed at first
ys = data["y"].to("cuda")  # <- found: dataset-on-card # missed at first
for epoch in range(10):
    for i in range(0, len(xs), 256):
        loss = torch.nn.functional.cross_entropy(model(xs[i:i + 256]), ys[i:i + 256])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: barlow twins: running stats of embeddings through ema without no_grad
import torch

mean = torch.zeros(128, device="cuda")
for (a, b), _ in loader:
    za, zb = encoder(a.cuda()), encoder(b.cuda())
    c = za.T @ zb / len(za)
    loss = (c - torch.eye(128, device="cuda")).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    mean = 0.99 * mean + 0.01 * za.mean(0)  # <- found: summed-loss

# case: metric learning: predictions per class in defaultdict
from collections import defaultdict
import torch

per_class = defaultdict(list)
model.eval()
for images, labels in val_loader:
    emb = model(images.cuda())  # <- found: evaluation-with-gradients
    for e, l in zip(emb, labels):
        per_class[l.item()].append(e)  # <- found: collected-outputs
protos = {k: torch.stack(v).mean(0).detach() for k, v in per_class.items()}

# case: accelerate: losses gathered with graph
from accelerate import Accelerator
accelerator = Accelerator()
model, opt, dl = accelerator.prepare(model, opt, dl)
losses = []
for batch in dl:
    out = model(**batch)
    accelerator.backward(out.loss)
    opt.step()
    opt.zero_grad()
    losses.append(out.loss)  # <- found: collected-losses

# case: hooks class with closure over self list
import torch.nn as nn

class FeatureGrabber:
    def __init__(self, model, layer):
        self.feats = []
        layer.register_forward_hook(self._hook)
        self.model = model

    def _hook(self, m, inp, out):
        self.feats.append(out)  # <- found: activations-kept-by-hook

    def run(self, loader):
        for x, _ in loader:
            self.model(x.cuda())
        return len(self.feats)

# case: two losses, one logged via f-string list
import torch

lines = []
for it, (x, y) in enumerate(loader):
    pred = net(x.cuda())
    rec, reg = crit(pred, y.cuda()), pred.abs().mean()
    (rec + 0.1 * reg).backward()
    opt.step()
    opt.zero_grad()
    lines.append((it, rec, reg))  # <- found: collected-losses

# case: teacher is loaded, set to eval, used in training_step
import lightning as L
import torch
import torch.nn.functional as F

class KD(L.LightningModule):
    def __init__(self, student, teacher):
        super().__init__()
        self.student = student
        self.teacher = teacher.eval()

    def training_step(self, batch, idx):
        x, y = batch
        t = self.teacher(x)  # <- found: frozen-model-with-gradients
        s = self.student(x)
        return F.cross_entropy(s, y) + F.mse_loss(s, t)

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters())

# case: fed by generator expression sum
import torch

def mean_loss(model, loader, crit):
    model.eval()
    return sum(crit(model(x.cuda()), y.cuda()) for x, y in loader) / len(loader)  # <- found: evaluation-with-gradients

# case: global best weights list in a loop
import copy
import torch
net = net.cuda()
snapshots = []
for epoch in range(50):
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
        opt.step()
    snapshots.append(copy.deepcopy(net.state_dict()))  # <- found: state-dict-copied-on-card

# case: segmentation inference of big image by tiles
import torch

def tile_predict(model, image, size=512):
    model.eval()
    out = []
    for top in range(0, image.shape[1], size):
        for left in range(0, image.shape[2], size):
            tile = image[:, top:top + size, left:left + size].unsqueeze(0).cuda()
            out.append(model(tile))  # <- found: collected-outputs, evaluation-with-gradients
    return stitch([o.detach().cpu() for o in out])

# case: accumulate without dividing
import torch
accum = 4
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()  # <- found: accumulated-loss-not-divided
    if (i + 1) % accum == 0 or (i + 1) == len(loader):
        optimizer.step()
        optimizer.zero_grad()

# case: loss stored on the batch object list
import torch

class Result:
    def __init__(self, idx, loss):
        self.idx = idx
        self.loss = loss

results = []
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    results.append(Result(i, loss))  # <- found: collected-losses # missed at first
