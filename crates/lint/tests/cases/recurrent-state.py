# case: the state of a recurrent network
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4)

    def forward(self, x, h):
        return self.rnn(x, h)

def train(loader, criterion, optimizer):
    net = Net()
    h = torch.zeros(1, 8, 4)
    for x, y in loader:
        out, h = net(x, h)  # <- found
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

# case: both states of an LSTM
from torch import nn

lstm = nn.LSTM(4, 4)
for x, y in batches:
    out, (h, c) = lstm(x, (h, c))  # <- found
    loss = (out - y).pow(2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()

# case: a single value
def train(cell, loader, optimizer, criterion, state):
    cell.train()
    for x, y in loader:
        state = cell(x, state)  # <- found
        loss = criterion(state, y)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: by keyword
def train(model, loader, optimizer, criterion, memory=None):
    model.train()
    for x, y in loader:
        out, memory = model(x, memory=memory)  # <- found
        criterion(out, y).backward(retain_graph=True)
        optimizer.step()

# case: a state in an attribute of the trainer
class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.model.train()

    def run(self, loader):
        self.hidden = None
        for x, y in loader:
            out, self.hidden = self.model(x, self.hidden)  # <- found
            loss = self.criterion(out, y)
            loss.backward(retain_graph=True)
            self.optimizer.step()

# case: in a while loop
def train(model, stream, optimizer, criterion, state):
    model.train()
    while True:
        x, y = next(stream)
        out, state = model(x, state)  # <- found
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

# case: detached
def train(model, loader, optimizer, criterion, state):
    model.train()
    for x, y in loader:
        state = state.detach()
        out, state = model(x, state)
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: detached in place
def train(model, loader, optimizer, criterion, state):
    model.train()
    for x, y in loader:
        state.detach_()
        out, state = model(x, state)
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: repacked by a function
def repackage(h):
    return tuple(each.detach() for each in h)

def train(model, loader, optimizer, criterion, state):
    model.train()
    for x, y in loader:
        state = repackage(state)
        out, state = model(x, state)
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: backpropagation through time
def train(cell, sequences, optimizer, criterion):
    cell.train()
    for xs, y in sequences:
        state = None
        for x in xs:
            state = cell(x, state)
        loss = criterion(state, y)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: restarted for every batch
def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        state = model.initial()
        out, state = model(x, state)
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: without gradients
import torch

def evaluate(model, loader, state):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            out, state = model(x, state)
            print(out.argmax(1))

# case: a plain backward would fail at once, so something else detaches it
def train(model, loader, optimizer, criterion, state):
    model.train()
    for x, y in loader:
        out, state = model(x, state)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()

# case: each part of the state is detached in place
import torch
from torch import nn

def train(loader, optimizer, criterion):
    rnn = nn.LSTM(4, 4)
    hidden = None
    for x, y in loader:
        out, hidden = rnn(x, hidden)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        for part in hidden:
            part.detach_()

# case: a name that every batch rebinds
import torch
from torch import nn

def train(loader, optimizer, criterion):
    encoder = nn.Linear(4, 4)
    decoder = nn.Linear(4, 4)
    for x, y in loader:
        x = encoder(x)
        x = decoder(x)
        first = criterion(x, y)
        second = x.pow(2).mean()
        optimizer.zero_grad()
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()

# case: the state is recreated for every sequence
import torch
from torch import nn

def train(loader, optimizer, criterion):
    rnn = nn.GRU(4, 4)
    for xs, y in loader:
        hidden = torch.zeros(1, 2, 4)
        for x in xs:
            out, hidden = rnn(x, hidden)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
