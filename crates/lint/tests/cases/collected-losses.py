# case: a list of losses beside training
import torch.nn.functional as F

def train(model, loader, optimizer):
    losses = []
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)  # <- found
    return sum(losses) / len(losses)

# case: a history by name
from collections import defaultdict

def train(net, batches, criterion, opt):
    history = defaultdict(list)
    for x, y in batches:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history["loss"].append(loss)  # <- found

# case: an entry of a dict literal
def train(net, batches, criterion, opt):
    log = []
    for step, (x, y) in enumerate(batches):
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append({"step": step, "loss": loss})  # <- found

# case: an attribute of a trainer
class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.losses = []

    def run(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.losses.append(loss)  # <- found

# case: added with a plus
def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += [loss]  # <- found

# case: by the number of the batch
def train(model, loader, optimizer, criterion):
    losses = {}
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[i] = loss  # <- found

# case: a helper returns the loss itself
import torch
from torch.utils.data import DataLoader

def train_step(model, x, y, optimizer, criterion):
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

def train(model, data, optimizer, criterion):
    losses = []
    for x, y in DataLoader(data):
        losses.append(train_step(model, x, y, optimizer, criterion))  # <- found
    print(losses)

# case: only the number is kept
def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        losses.append(float(loss))
        losses.append(loss.detach())
        losses.append(loss.data)

# case: the terms of one loss
import torch

def train(model, loader, optimizer, criterion):
    for x, ys in loader:
        losses = []
        for y in ys:
            losses.append(criterion(model(x), y))
        loss = torch.stack(losses).mean()
        loss.backward()
        optimizer.step()

# case: losses of several tasks that are backpropagated together
from torch import nn
from torch.utils.data import DataLoader

def train(model, data, optimizer):
    criterion = nn.CrossEntropyLoss()
    losses = []
    for x, y in DataLoader(data):
        losses.append(criterion(model(x), y))
        if len(losses) == 4:
            total = 0
            for each in losses:
                total = total + each
            total.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses = []

# case: emptied in every iteration
def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
        print(losses)
        losses.clear()

# case: returned losses that nothing has backpropagated yet
from torch import nn
from torch.utils.data import DataLoader

def task_losses(model, data):
    criterion = nn.CrossEntropyLoss()
    losses = []
    for x, y in DataLoader(data):
        losses.append(criterion(model(x), y))
    return losses

# case: a list of a fixed length
from collections import deque

def train(model, loader, optimizer, criterion):
    window = deque(maxlen=20)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        window.append(loss)

# case: without gradients
import torch

def evaluate(model, loader, criterion):
    losses = []
    with torch.no_grad():
        for x, y in loader:
            losses.append(criterion(model(x), y))
    return losses

# case: log-probabilities of an episode
def learn(policy, env, optimizer, episodes):
    for episode in range(episodes):
        state = env.reset()
        log_probs = []
        done = False
        while not done:
            action, log_prob = policy(state)
            state, reward, done = env.step(action)
            log_probs.append(log_prob)
        loss = -sum(log_probs)
        loss.backward()
        optimizer.step()

# case: something made of the loss, and the list is returned
def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss * len(x))  # <- found
    return losses

# case: a list that is made where it is missing
def train(model, loader, optimizer, criterion):
    history = {}
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        history.setdefault("loss", []).append(loss)  # <- found
    return history

# case: the loss of a helper that backpropagates, and the list is returned
from torch.utils.data import DataLoader

def train_step(model, x, y, optimizer, criterion):
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

def train(model, data, optimizer, criterion):
    losses = []
    for x, y in DataLoader(data):
        loss = train_step(model, x, y, optimizer, criterion)
        losses.append(loss)  # <- found
    return losses

# case: a list that is restarted when it is full
def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
        if len(losses) == 100:
            print(sum(losses) / 100)
            losses = []

# case: a window of the last losses, made elsewhere
from collections import deque

class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion
        self.recent = deque(maxlen=50)

    def train(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.recent.append(loss)

# case: a window of the last losses, bounded by position
from collections import deque

def train(model, loader, optimizer, criterion):
    recent = deque([], 50)
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss)

# case: a meter of another file, which may take the number out
from meters import LossMeter

def train(model, loader, optimizer, criterion):
    losses = LossMeter()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)

# case: what is collected goes backward in a helper
def update(losses, optimizer):
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()

def train(model, loader, optimizer, criterion):
    for epoch in range(3):
        losses = []
        for x, y in loader:
            losses.append(criterion(model(x), y))
        update(losses, optimizer)

# case: the losses of one batch's views
def train(model, loader, optimizer, criterion):
    for views, y in loader:
        losses = []
        for view in views:
            loss = criterion(model(view), y)
            loss.backward()
            losses.append(loss)
        optimizer.step()
        optimizer.zero_grad()
        print(sum(losses).item())

# case: a list that a closure sums up and takes back
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        losses = []

        def closure():
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            losses.append(loss)
            loss.backward()
            return loss

        optimizer.step(closure)

# case: numbers by another way
def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
        losses.append(loss.cpu().detach().numpy())
        losses.append(loss.tolist())

# case: what a model returns next to its loss may be an accuracy
def train(model, loader, optimizer):
    accuracies = []
    model.train()
    for x, y in loader:
        loss, accuracy = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracies.append(accuracy)

# case: a loss of the same name that is made without gradients by a function of unknown origin
import torch
from helpers import losses as F

def train(net, train_loader, valid_loader, optimizer):
    for x, y in train_loader:
        loss = 0.0
        loss += F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    val = []
    with torch.no_grad():
        for x, y in valid_loader:
            loss = F.cross_entropy(net(x), y)
            val.append(loss)
    print(sum(val) / len(val))

# case: PyTorch that comes with a star import
from fastai.vision.all import *

def validate(net, loader, optimizer):
    val = []
    with torch.no_grad():
        for x, y in loader:
            val.append(F.cross_entropy(net(x), y))
    print(sum(val) / len(val))
    for x, y in loader:
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

# case: the same without leaving gradients out
from fastai.vision.all import *

def train(net, loader, optimizer):
    losses = []
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)  # <- found

# case: a generator that trains yields its losses
def steps(model, loader, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss

def run(model, loader, optimizer):
    curve = []
    for epoch in range(3):
        curve += list(steps(model, loader, optimizer))  # <- found
    return curve

# case: a generator that trains yields numbers
def steps(model, loader, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()

def run(model, loader, optimizer):
    return list(steps(model, loader, optimizer))

# case: the terms of a literal are collected by their names
records = {}
for x, y in loader:
    out = model(x)
    first = criterion(out, y)
    second = out.pow(2).mean()
    loss = first + second
    loss.backward()
    optimizer.step()
    for name, value in {"first": first, "second": second, "all": loss}.items():
        records.setdefault(name, []).append(value)  # <- found
