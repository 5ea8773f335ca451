# case: a meter keeps the tensor it is updated with
import torch
from torch import nn


class AverageMeter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


def train_epoch(loader, net, optimizer, device):
    meter = AverageMeter()
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = criterion(net(images), labels)
        meter.update(loss, images.size(0))  # <- found: logged-loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return meter.sum / meter.count

# case: a meter is updated with a number
import torch
from torch import nn


class AverageMeter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


def train_epoch(loader, net, optimizer, device):
    meter = AverageMeter()
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        loss = criterion(net(images), labels)
        meter.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return meter.sum / meter.count

# case: a history dictionary of lists with setdefault
import torch
import torch.nn.functional as F

model = torch.nn.Linear(128, 10).cuda()
opt = torch.optim.Adam(model.parameters())
history = {}
for epoch in range(10):
    for x, y in loader:
        logits = model(x.cuda())
        loss = F.cross_entropy(logits, y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.setdefault(epoch, []).append(loss)  # <- found: collected-losses

# case: a history dictionary of floats
import torch
import torch.nn.functional as F

model = torch.nn.Linear(128, 10).cuda()
opt = torch.optim.Adam(model.parameters())
history = {}
for epoch in range(10):
    for x, y in loader:
        logits = model(x.cuda())
        loss = F.cross_entropy(logits, y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.setdefault(epoch, []).append(float(loss))

# case: several losses of a detector summed into a running total
import torch


def train_one_epoch(model, optimizer, data_loader, device):
    model.train()
    running = 0
    for images, targets in data_loader:
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        running += losses  # <- found: summed-loss
    print(running / len(data_loader))

# case: several losses of a detector, their total read as a number
import torch


def train_one_epoch(model, optimizer, data_loader, device):
    model.train()
    running = 0
    for images, targets in data_loader:
        images = [image.to(device) for image in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        running += losses.item()
    print(running / len(data_loader))

# case: validation loss summed with gradients on
import torch
from torch import nn


def validate(model, val_loader, criterion):
    model.eval()
    val_loss = 0.0
    for x, y in val_loader:
        x, y = x.cuda(), y.cuda()
        out = model(x)  # <- found: evaluation-with-gradients
        val_loss += criterion(out, y)  # <- found: summed-loss
    return val_loss / len(val_loader)

# case: validation loss under no_grad
import torch
from torch import nn


def validate(model, val_loader, criterion):
    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            x, y = x.cuda(), y.cuda()
            out = model(x)
            val_loss += criterion(out, y)
    return val_loss / len(val_loader)

# case: an exponential average of a loss in self
import torch
from torch import nn, optim


class Trainer:
    def __init__(self, model, loader):
        self.model = model.to("cuda")
        self.loader = loader
        self.ema_loss = None
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-3)
        self.loss_fn = nn.MSELoss()

    def fit(self):
        for x, y in self.loader:
            pred = self.model(x.to("cuda"))
            loss = self.loss_fn(pred, y.to("cuda"))
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if self.ema_loss is None:
                self.ema_loss = loss.item()
            else:
                self.ema_loss = 0.98 * self.ema_loss + 0.02 * loss  # <- found: summed-loss

# case: an exponential average of numbers in self
import torch
from torch import nn, optim


class Trainer:
    def __init__(self, model, loader):
        self.model = model.to("cuda")
        self.loader = loader
        self.ema_loss = None
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-3)
        self.loss_fn = nn.MSELoss()

    def fit(self):
        for x, y in self.loader:
            pred = self.model(x.to("cuda"))
            loss = self.loss_fn(pred, y.to("cuda"))
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            value = loss.item()
            if self.ema_loss is None:
                self.ema_loss = value
            else:
                self.ema_loss = 0.98 * self.ema_loss + 0.02 * value

# case: the best loss is kept as a tensor, but only one
import torch
from torch import nn

model = nn.Linear(10, 1).cuda()
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = float("inf")
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss < best:
        best = loss.item()

# case: losses concatenated onto a tensor
import torch
from torch import nn

net = nn.Sequential(nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 1)).cuda()
mse = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
all_losses = torch.zeros(0).cuda()
for x, y in loader:
    optimizer.zero_grad()
    loss = mse(net(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    all_losses = torch.cat([all_losses, loss.view(1)])  # <- found: collected-losses

# case: detached losses concatenated onto a tensor
import torch
from torch import nn

net = nn.Sequential(nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 1)).cuda()
mse = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
all_losses = torch.zeros(0).cuda()
for x, y in loader:
    optimizer.zero_grad()
    loss = mse(net(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    all_losses = torch.cat([all_losses, loss.detach().view(1)])

# case: accumulation of gradients written as a sum of losses
import torch
import torch.nn.functional as F


def train(model, loader, optimizer, accumulate=8):
    model.train()
    total = 0
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda()) / accumulate
        total = total + loss  # <- found: summed-loss
        if (i + 1) % accumulate == 0:
            total.backward()
            optimizer.step()
            optimizer.zero_grad()
            total = 0

# case: accumulation of gradients with a backward pass each
import torch
import torch.nn.functional as F


def train(model, loader, optimizer, accumulate=8):
    model.train()
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda()) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

# case: a step function returns the loss and the caller collects it
import torch
import torch.nn.functional as F


def train_step(model, batch, optimizer):
    x, y = batch
    loss = F.nll_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main(model, loader, optimizer):
    losses = []
    for batch in loader:
        losses.append(train_step(model, batch, optimizer))  # <- found: collected-losses
    return sum(losses) / len(losses)

# case: a step function returns a number and the caller collects it
import torch
import torch.nn.functional as F


def train_step(model, batch, optimizer):
    x, y = batch
    loss = F.nll_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main(model, loader, optimizer):
    losses = []
    for batch in loader:
        losses.append(train_step(model, batch, optimizer))
    return sum(losses) / len(losses)

# case: a deque without a bound keeps losses
import collections
import torch
from torch import nn

window = collections.deque()
model = nn.Transformer().cuda()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
for src, tgt, y in loader:
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(src, tgt).flatten(0, 1), y)
    loss.backward()
    optimizer.step()
    window.append(loss)  # <- found: collected-losses

# case: a deque of floats
import collections
import torch
from torch import nn

window = collections.deque(maxlen=100)
model = nn.Transformer().cuda()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
for src, tgt, y in loader:
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(src, tgt).flatten(0, 1), y)
    loss.backward()
    optimizer.step()
    window.append(loss.item())

# case: losses of tasks collected in one step and backpropagated together
import torch
import torch.nn.functional as F


def multi_task_step(model, batch, optimizer):
    losses = []
    for name, (x, y) in batch.items():
        losses.append(F.cross_entropy(model(x, task=name), y))
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

# case: a list of tuples of steps and losses
import torch
from torch import nn

net = nn.LSTM(32, 64).cuda()
head = nn.Linear(64, 2).cuda()
opt = torch.optim.RMSprop(list(net.parameters()) + list(head.parameters()))
log = []
for step, (x, y) in enumerate(loader):
    h, _ = net(x.cuda())
    loss = nn.functional.cross_entropy(head(h[-1]), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    log += [(step, loss)]  # <- found: collected-losses

# case: a list of tuples of steps and numbers
import torch
from torch import nn

net = nn.LSTM(32, 64).cuda()
head = nn.Linear(64, 2).cuda()
opt = torch.optim.RMSprop(list(net.parameters()) + list(head.parameters()))
log = []
for step, (x, y) in enumerate(loader):
    h, _ = net(x.cuda())
    loss = nn.functional.cross_entropy(head(h[-1]), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    log += [(step, loss.item())]
