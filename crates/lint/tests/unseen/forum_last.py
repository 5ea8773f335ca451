# case: a regression script prints a mean over tensors with graphs
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(13, 64), nn.Tanh(), nn.Linear(64, 1)).to("cuda")
opt = torch.optim.Adam(net.parameters())
mse = nn.MSELoss()
epoch_loss = []
for epoch in range(100):
    for features, price in train_dl:
        loss = mse(net(features.to("cuda")).squeeze(), price.to("cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_loss.append(loss)  # <- found: collected-losses
    print(epoch, sum(epoch_loss) / len(epoch_loss))

# case: a regression script empties its list in every epoch and keeps numbers
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(13, 64), nn.Tanh(), nn.Linear(64, 1)).to("cuda")
opt = torch.optim.Adam(net.parameters())
mse = nn.MSELoss()
for epoch in range(100):
    epoch_loss = []
    for features, price in train_dl:
        loss = mse(net(features.to("cuda")).squeeze(), price.to("cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_loss.append(loss.detach().cpu().numpy())
    print(epoch, sum(epoch_loss) / len(epoch_loss))

# case: a retrieval index is built with gradients on
import torch
import faiss

encoder = build_encoder().cuda()
encoder.eval()
vectors = []
for batch in corpus_loader:
    v = encoder(batch["ids"].cuda(), batch["mask"].cuda())  # <- found: evaluation-with-gradients
    vectors.append(v)  # <- found: collected-outputs
index = faiss.IndexFlatIP(768)
index.add(torch.cat(vectors).detach().cpu().numpy())

# case: a retrieval index is built batch by batch
import torch
import faiss

encoder = build_encoder().cuda()
encoder.eval()
index = faiss.IndexFlatIP(768)
with torch.no_grad():
    for batch in corpus_loader:
        v = encoder(batch["ids"].cuda(), batch["mask"].cuda())
        index.add(v.cpu().numpy())

# case: a loss of a super-resolution network is kept in a log object
import torch


def train_sr(net, loader, optimizer, l1, perceptual):
    log = {"l1": [], "perceptual": []}
    for low, high in loader:
        low, high = low.cuda(), high.cuda()
        out = net(low)
        a = l1(out, high)
        b = perceptual(out, high)
        total = a + 0.1 * b
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        log["l1"].append(a.item())
        log["perceptual"].append(b)  # <- found: collected-losses
    return log

# case: a loss of a super-resolution network is logged as numbers
import torch


def train_sr(net, loader, optimizer, l1, perceptual):
    log = {"l1": [], "perceptual": []}
    for low, high in loader:
        low, high = low.cuda(), high.cuda()
        out = net(low)
        a = l1(out, high)
        b = perceptual(out, high)
        total = a + 0.1 * b
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        log["l1"].append(a.item())
        log["perceptual"].append(b.item())
    return log

# case: an LSTM that writes text carries its state from batch to batch
import torch
from torch import nn


class CharModel(nn.Module):
    def __init__(self, vocabulary, hidden=256):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocabulary)

    def forward(self, x, state=None):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


model = CharModel(80).cuda()
optimizer = torch.optim.Adam(model.parameters())
state = None
for x, y in loader:
    logits, state = model(x.cuda(), state)  # <- found: recurrent-state
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.cuda().flatten())
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()

# case: an LSTM that writes text begins every batch anew
import torch
from torch import nn


class CharModel(nn.Module):
    def __init__(self, vocabulary, hidden=256):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocabulary)

    def forward(self, x, state=None):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


model = CharModel(80).cuda()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    logits, _ = model(x.cuda())
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.cuda().flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a knowledge distillation with a teacher attribute
import torch
import torch.nn.functional as F


class Distiller:
    def __init__(self, teacher, student, lr=1e-3):
        self.teacher = teacher.cuda().eval()
        self.student = student.cuda()
        self.optimizer = torch.optim.AdamW(self.student.parameters(), lr=lr)

    def step(self, x, y):
        t = self.teacher(x)  # <- found: frozen-model-with-gradients
        s = self.student(x)
        loss = F.cross_entropy(s, y) + F.mse_loss(s, t)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

# case: a knowledge distillation with a teacher under no_grad
import torch
import torch.nn.functional as F


class Distiller:
    def __init__(self, teacher, student, lr=1e-3):
        self.teacher = teacher.cuda().eval()
        self.student = student.cuda()
        self.optimizer = torch.optim.AdamW(self.student.parameters(), lr=lr)

    def step(self, x, y):
        with torch.no_grad():
            t = self.teacher(x)
        s = self.student(x)
        loss = F.cross_entropy(s, y) + F.mse_loss(s, t)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

# case: detection results of a video are kept frame by frame
import cv2
import torch

detector = torch.hub.load("ultralytics/yolov5", "yolov5s").cuda().eval()
results = []
with torch.no_grad():
    for frame in frames:
        tensor = torch.from_numpy(frame).permute(2, 0, 1).float().unsqueeze(0).cuda()
        results.append(detector(tensor))  # <- found: collected-outputs

# case: detection results of a video are counted
import cv2
import torch

detector = torch.hub.load("ultralytics/yolov5", "yolov5s").cuda().eval()
count = 0
with torch.no_grad():
    for frame in frames:
        tensor = torch.from_numpy(frame).permute(2, 0, 1).float().unsqueeze(0).cuda()
        count += len(detector(tensor))

# case: a running loss over iterations of an endless loader
import itertools
import torch

running = torch.zeros(1, device="cuda")
for step, (x, y) in zip(range(100_000), itertools.cycle(loader)):
    optimizer.zero_grad()
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    running = running + loss  # <- found: summed-loss
    if step % 1000 == 999:
        print(running.item() / (step + 1))

# case: a running loss over iterations of an endless loader, detached
import itertools
import torch

running = torch.zeros(1, device="cuda")
for step, (x, y) in zip(range(100_000), itertools.cycle(loader)):
    optimizer.zero_grad()
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    running = running + loss.detach()
    if step % 1000 == 999:
        print(running.item() / (step + 1))
