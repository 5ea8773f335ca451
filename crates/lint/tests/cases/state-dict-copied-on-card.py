# case: the best weights of a training function
import copy
import torch

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

def train(model, loader, criterion, optimizer, epochs):
    best = copy.deepcopy(model.state_dict())  # <- found
    best_loss = 1e10
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
        if loss.item() < best_loss:
            best_loss = loss.item()
            best = copy.deepcopy(model.state_dict())  # <- found
    model.load_state_dict(best)
    return model

# case: imported by name
from copy import deepcopy
from torch import nn

model = nn.Linear(4, 4).cuda()
start = deepcopy(model.state_dict())  # <- found
train(model)
model.load_state_dict(start)

# case: clones
from torch import nn

net = nn.Linear(4, 4).to("cuda")
start = {k: v.clone() for k, v in net.state_dict().items()}  # <- found
train(net)
net.load_state_dict(start)

# case: an attribute that is saved later
import copy
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 4).cuda()

    def keep(self):
        self.best = copy.deepcopy(self.model.state_dict())  # <- found

    def save(self, path):
        torch.save(self.best, path)

# case: returned
import copy
from torch import nn

def run(loader):
    model = nn.Linear(4, 4).cuda()
    for x, y in loader:
        model(x).sum().backward()
    weights = copy.deepcopy(model.state_dict())  # <- found
    return weights

# case: detached clones
from torch import nn

net = nn.Linear(4, 4).cuda()
start = {k: v.detach().clone() for k, v in net.state_dict().items()}  # <- found
net.load_state_dict(start)

# case: copied to the CPU
import copy
from torch import nn

net = nn.Linear(4, 4).cuda()
start = {k: v.cpu().clone() for k, v in net.state_dict().items()}
other = {k: v.detach().to("cpu", copy=True) for k, v in net.state_dict().items()}
net.load_state_dict(start)

# case: a model on the CPU
import copy
from torch import nn

net = nn.Linear(4, 4).cpu()
start = copy.deepcopy(net.state_dict())
net.load_state_dict(start)

# case: it is not known where the model is
import copy

def snapshot(model):
    weights = copy.deepcopy(model.state_dict())
    return weights

# case: a moving average on the card
import copy
from torch import nn

net = nn.Linear(4, 4).cuda()
average = copy.deepcopy(net.state_dict())
for x in data:
    for name, value in net.state_dict().items():
        average[name].mul_(0.9).add_(value, alpha=0.1)

# case: a copy of a config
import copy
from torch import nn

net = nn.Linear(4, 4).cuda()
settings = copy.deepcopy(config)

# case: loaded into another model at once
import copy
from torch import nn

net = nn.Linear(4, 4).cuda()
other = nn.Linear(4, 4).cuda()
other.load_state_dict(copy.deepcopy(net.state_dict()))

# case: averaged on the card afterwards
import copy
import torch
from torch import nn

def rounds(clients, average):
    model = nn.Linear(4, 4).cuda()
    for _ in range(10):
        states = []
        for client in clients:
            client.train(model)
            state = copy.deepcopy(model.state_dict())
            states.append(state)
        model.load_state_dict(average(states))

# case: a model that stays on the host
import copy
import torch
from torch import nn

model = nn.Linear(4, 4)
best = copy.deepcopy(model.state_dict())
torch.save(best, "best.pt")

# case: the weights to go back to in every iteration
import copy
import torch
from torch import nn

def meta_train(tasks, optimizer, criterion):
    model = nn.Linear(4, 4).cuda()
    for parts in tasks:
        before = copy.deepcopy(model.state_dict())
        for x, y in parts:
            loss = criterion(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.load_state_dict(before)

# case: known to be wrong: the model of another file is so small that a copy does not matter
import copy
import torch
from models import SRCNN

model = SRCNN().cuda()
optimizer = torch.optim.Adam(model.parameters())
best_weights = copy.deepcopy(model.state_dict())  # <- found
best = 0.0
for epoch in range(400):
    for x, y in torch.utils.data.DataLoader(data):
        loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if psnr(model) > best:
        best_weights = copy.deepcopy(model.state_dict())  # <- found
torch.save(best_weights, "best.pth")
