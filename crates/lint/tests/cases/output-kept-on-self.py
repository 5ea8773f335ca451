# case: never read
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        out = self.a(x)
        self.last = out  # <- found
        return out

net = Net()
for x in batches:
    net(x).sum().backward()

# case: read in the same pass only
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        self.hidden = torch.relu(self.a(x))  # <- found
        return self.b(self.hidden)

net = Net()
for x in batches:
    net(x).sum().backward()

# case: attention weights
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.k = nn.Linear(4, 4)

    def forward(self, x):
        weights = F.softmax(self.q(x) @ self.k(x).transpose(1, 2), dim=-1)
        self.weights_of_last = weights  # <- found
        return weights @ x

def train(loader, optimizer):
    net = Attention()
    for x in loader:
        loss = net(x).mean()
        loss.backward()
        optimizer.step()

# case: a part of the network
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        self.out = self.conv(x)  # <- found
        return self.out

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)

net = Net()
for x in batches:
    net(x).sum().backward()

# case: two of them
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 4)

    def forward(self, x):
        out, state = self.rnn(x)
        self.out_of_rnn = out  # <- found
        self.state_of_rnn = state  # <- found
        return out

net = Net()
for x in batches:
    net(x).sum().backward()

# case: annotated
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        self.last: torch.Tensor = self.a(x)  # <- found
        return x

net = Net()
for x in batches:
    net(x).sum().backward()

# case: detached
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        out = self.a(x)
        self.last = out.detach()
        return out

net = Net()
for x in batches:
    net(x).sum().backward()

# case: read by the loss
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        self.hidden = self.a(x)
        return torch.relu(self.hidden)

net = Net()
for x in batches:
    loss = net(x).sum() + net.hidden.pow(2).mean()
    loss.backward()

# case: a state of the last pass
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.state = None

    def forward(self, x):
        new = self.cell(x, self.state)
        self.state = new
        return new

net = Net()
for x in batches:
    net(x).sum().backward()

# case: trained elsewhere
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        self.last = self.a(x)
        return self.last

# case: a number
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        self.calls = 1
        self.size = x.shape
        return self.a(x)

net = Net()
for x in batches:
    net(x).sum().backward()

# case: another method reads it
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        self.last = self.a(x)
        return self.last

    def penalty(self):
        return self.last.pow(2).sum()

net = Net()
for x in batches:
    (net(x).sum() + net.penalty()).backward()

# case: read by its name
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        hidden = self.body(x)
        self.hidden = hidden
        return self.head(hidden)

def train(loader, optimizer, criterion, names):
    net = Net()
    for x, y in loader:
        loss = criterion(net(x), y)
        for name in names:
            loss = loss + getattr(net, name).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: put away without its graph
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.body(x)
        self.statistics = hidden.detach().mean(0)
        return hidden

def train(loader, optimizer, criterion):
    net = Net()
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: another module reads it
import torch
from torch import nn

class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.attention = self.layer(x)
        return self.attention.relu()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Body()

    def forward(self, x):
        out = self.body(x)
        return out, self.body.attention

def train(loader, optimizer, criterion):
    net = Net()
    for x, y in loader:
        out, attention = net(x)
        loss = criterion(out, y) + attention.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
