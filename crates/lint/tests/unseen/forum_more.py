# case: accuracy and loss sums in a dictionary, the loss with its graph
import torch
import torch.nn as nn


def run_epoch(model, data_loader, opt, dev):
    stats = {"loss": 0.0, "right": 0}
    ce = nn.CrossEntropyLoss()
    for xb, yb in data_loader:
        xb, yb = xb.to(dev), yb.to(dev)
        out = model(xb)
        l = ce(out, yb)
        l.backward()
        opt.step()
        opt.zero_grad()
        stats["loss"] += l  # <- found: summed-loss
        stats["right"] += (out.argmax(1) == yb).sum().item()
    return stats

# case: accuracy and loss sums in a dictionary, both as numbers
import torch
import torch.nn as nn


def run_epoch(model, data_loader, opt, dev):
    stats = {"loss": 0.0, "right": 0}
    ce = nn.CrossEntropyLoss()
    for xb, yb in data_loader:
        xb, yb = xb.to(dev), yb.to(dev)
        out = model(xb)
        l = ce(out, yb)
        l.backward()
        opt.step()
        opt.zero_grad()
        stats["loss"] += l.item() * xb.size(0)
        stats["right"] += (out.argmax(1) == yb).sum().item()
    return stats

# case: a VAE keeps reconstruction and divergence apart
import torch
from torch.nn import functional as F

recon_hist, kl_hist = [], []
for epoch in range(20):
    for x, _ in train_loader:
        x = x.cuda()
        optimizer.zero_grad()
        recon, mu, logvar = vae(x)
        bce = F.binary_cross_entropy(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        (bce + kld).backward()
        optimizer.step()
        recon_hist.append(bce)  # <- found: collected-losses
        kl_hist.append(kld.item())

# case: a VAE keeps both as numbers
import torch
from torch.nn import functional as F

recon_hist, kl_hist = [], []
for epoch in range(20):
    for x, _ in train_loader:
        x = x.cuda()
        optimizer.zero_grad()
        recon, mu, logvar = vae(x)
        bce = F.binary_cross_entropy(recon, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        (bce + kld).backward()
        optimizer.step()
        recon_hist.append(bce.item())
        kl_hist.append(kld.item())

# case: a segmentation test keeps all masks on the card
import torch

seg_model.eval()
all_masks = []
with torch.no_grad():
    for i, batch in enumerate(test_loader):
        prediction = seg_model(batch["image"].cuda())["out"]
        all_masks.append(prediction.softmax(1))  # <- found: collected-outputs
torch.save(all_masks, "masks.pt")

# case: a segmentation test keeps masks as small integers on the host
import torch

seg_model.eval()
all_masks = []
with torch.no_grad():
    for i, batch in enumerate(test_loader):
        prediction = seg_model(batch["image"].cuda())["out"]
        all_masks.append(prediction.argmax(1).byte().cpu())
torch.save(all_masks, "masks.pt")

# case: a validation function of a trainer class without no_grad
import torch
from torch import nn


class Engine:
    def __init__(self, model, loaders, device="cuda"):
        self.model = model.to(device)
        self.loaders = loaders
        self.device = device
        self.criterion = nn.CrossEntropyLoss()

    def validate(self):
        self.model.eval()
        total, n = 0.0, 0
        for x, y in self.loaders["val"]:
            logits = self.model(x.to(self.device))  # <- found: evaluation-with-gradients
            total += self.criterion(logits, y.to(self.device)).item()
            n += 1
        return total / n

# case: a validation function of a trainer class with no_grad
import torch
from torch import nn


class Engine:
    def __init__(self, model, loaders, device="cuda"):
        self.model = model.to(device)
        self.loaders = loaders
        self.device = device
        self.criterion = nn.CrossEntropyLoss()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, n = 0.0, 0
        for x, y in self.loaders["val"]:
            logits = self.model(x.to(self.device))
            total += self.criterion(logits, y.to(self.device)).item()
            n += 1
        return total / n

# case: a memory bank for contrastive learning keeps graphs
import torch
import torch.nn.functional as F

bank = []
for images, _ in loader:
    z = F.normalize(encoder(images.cuda()), dim=1)
    if bank:
        negatives = torch.cat(bank[-16:]).detach()
        loss = F.cross_entropy(z @ negatives.t() / 0.07, torch.zeros(len(z), dtype=torch.long).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    bank.append(z)  # <- found: collected-outputs

# case: a memory bank for contrastive learning is detached and bounded
import torch
import torch.nn.functional as F

bank = []
for images, _ in loader:
    z = F.normalize(encoder(images.cuda()), dim=1)
    if bank:
        negatives = torch.cat(bank)
        loss = F.cross_entropy(z @ negatives.t() / 0.07, torch.zeros(len(z), dtype=torch.long).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    bank.append(z.detach())
    if len(bank) > 16:
        bank.pop(0)

# case: a style transfer keeps the graph for no reason
import torch
import torch.nn.functional as F

for step in range(500):
    optimizer.zero_grad()
    features = vgg(target)
    loss = F.mse_loss(features, content_features) * 1e4
    loss.backward(retain_graph=True)  # <- missed: retain-graph
    optimizer.step()

# case: a style transfer frees the graph
import torch
import torch.nn.functional as F

for step in range(500):
    optimizer.zero_grad()
    features = vgg(target)
    loss = F.mse_loss(features, content_features) * 1e4
    loss.backward()
    optimizer.step()

# case: a Lightning test collects outputs in test_step
import lightning as L
import torch


class Detector(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.predictions = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x), y)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.predictions.append(self.net(x))  # <- found: collected-outputs

    def on_test_epoch_end(self):
        torch.save(torch.cat(self.predictions), "predictions.pt")

# case: a Lightning test collects outputs on the host
import lightning as L
import torch


class Detector(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.predictions = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x), y)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.predictions.append(self.net(x).cpu())

    def on_test_epoch_end(self):
        torch.save(torch.cat(self.predictions), "predictions.pt")

# case: a WGAN's critic trains on fakes that carry the generator's graph
import torch

for real, _ in dataloader:
    real = real.to(device)
    for _ in range(5):
        z = torch.randn(real.size(0), 100, device=device)
        fake = generator(z)
        loss_D = -critic(real).mean() + critic(fake).mean()  # <- found: fake-not-detached
        optimizer_critic.zero_grad()
        loss_D.backward()
        optimizer_critic.step()
    loss_G = -critic(generator(z)).mean()
    optimizer_generator.zero_grad()
    loss_G.backward()
    optimizer_generator.step()

# case: a WGAN's critic trains on fakes made without gradients
import torch

for real, _ in dataloader:
    real = real.to(device)
    for _ in range(5):
        z = torch.randn(real.size(0), 100, device=device)
        with torch.no_grad():
            fake = generator(z)
        loss_D = -critic(real).mean() + critic(fake).mean()
        optimizer_critic.zero_grad()
        loss_D.backward()
        optimizer_critic.step()
    loss_G = -critic(generator(z)).mean()
    optimizer_generator.zero_grad()
    loss_G.backward()
    optimizer_generator.step()

# case: perplexity of a language model summed over a corpus
import math
import torch


def perplexity(lm, batches):
    lm.eval()
    nll, count = 0, 0
    for ids in batches:
        ids = ids.cuda()
        out = lm(ids, labels=ids)  # <- found: evaluation-with-gradients
        nll += out.loss * ids.numel()  # <- found: summed-loss
        count += ids.numel()
    return math.exp(nll / count)

# case: perplexity of a language model under inference mode
import math
import torch


def perplexity(lm, batches):
    lm.eval()
    nll, count = 0, 0
    with torch.inference_mode():
        for ids in batches:
            ids = ids.cuda()
            out = lm(ids, labels=ids)
            nll += out.loss.item() * ids.numel()
            count += ids.numel()
    return math.exp(nll / count)

# case: snapshots of the weights are collected on the card for averaging
import copy
import torch

model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
snapshots = []
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
    snapshots.append(copy.deepcopy(model.state_dict()))  # <- found: state-dict-copied-on-card

# case: snapshots of the weights are collected on the host
import torch

model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
snapshots = []
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
    snapshots.append({name: value.cpu() for name, value in model.state_dict().items()})

# case: an EMA teacher in self-supervised learning records its graph
import copy
import torch
import torch.nn.functional as F

student = Backbone().cuda()
teacher = copy.deepcopy(student)
opt = torch.optim.AdamW(student.parameters(), lr=1e-4)
for views, _ in loader:
    a, b = views[0].cuda(), views[1].cuda()
    target = teacher(a)  # <- found: copy-with-gradients
    loss = F.mse_loss(student(b), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(student.parameters(), teacher.parameters()):
            q.mul_(0.99).add_(p, alpha=0.01)

# case: an EMA teacher in self-supervised learning is frozen
import copy
import torch
import torch.nn.functional as F

student = Backbone().cuda()
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.AdamW(student.parameters(), lr=1e-4)
for views, _ in loader:
    a, b = views[0].cuda(), views[1].cuda()
    target = teacher(a)
    loss = F.mse_loss(student(b), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(student.parameters(), teacher.parameters()):
            q.mul_(0.99).add_(p, alpha=0.01)

# case: a progress bar holds the loss
import torch
from tqdm import tqdm

losses = []
bar = tqdm(train_loader)
for images, labels in bar:
    out = net(images.cuda())
    loss = loss_fn(out, labels.cuda())
    optim.zero_grad()
    loss.backward()
    optim.step()
    losses.append(loss)  # <- found: collected-losses
    bar.set_postfix(loss=sum(losses) / len(losses))

# case: a progress bar holds a number
import torch
from tqdm import tqdm

losses = []
bar = tqdm(train_loader)
for images, labels in bar:
    out = net(images.cuda())
    loss = loss_fn(out, labels.cuda())
    optim.zero_grad()
    loss.backward()
    optim.step()
    losses.append(loss.item())
    bar.set_postfix(loss=sum(losses) / len(losses))

# case: hooks keep gradients of every step
import torch

gradients = []


def keep(module, grad_in, grad_out):
    gradients.append(grad_out[0])  # <- found: activations-kept-by-hook


model.fc.register_full_backward_hook(keep)
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x.cuda()), y.cuda()).backward()
    optimizer.step()

# case: hooks keep norms of gradients
import torch

norms = []


def keep(module, grad_in, grad_out):
    norms.append(grad_out[0].norm().item())


model.fc.register_full_backward_hook(keep)
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x.cuda()), y.cuda()).backward()
    optimizer.step()

# case: an actor critic keeps values of every episode
import torch
import torch.nn.functional as F

all_values = []
for episode in range(5000):
    state = env.reset()
    log_probs, values, rewards = [], [], []
    done = False
    while not done:
        probs, value = policy(torch.as_tensor(state).cuda())
        m = torch.distributions.Categorical(probs)
        action = m.sample()
        state, reward, done, _ = env.step(action.item())
        log_probs.append(m.log_prob(action))
        values.append(value)
        rewards.append(reward)
    returns = torch.tensor(discount(rewards)).cuda()
    value = torch.cat(values)
    loss = -(torch.stack(log_probs) * (returns - value.detach())).sum() + F.mse_loss(value, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    all_values.append(value)  # <- found: collected-outputs

# case: an actor critic keeps means of every episode
import torch
import torch.nn.functional as F

all_values = []
for episode in range(5000):
    state = env.reset()
    log_probs, values, rewards = [], [], []
    done = False
    while not done:
        probs, value = policy(torch.as_tensor(state).cuda())
        m = torch.distributions.Categorical(probs)
        action = m.sample()
        state, reward, done, _ = env.step(action.item())
        log_probs.append(m.log_prob(action))
        values.append(value)
        rewards.append(reward)
    returns = torch.tensor(discount(rewards)).cuda()
    value = torch.cat(values)
    loss = -(torch.stack(log_probs) * (returns - value.detach())).sum() + F.mse_loss(value, returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    all_values.append(value.mean().item())
