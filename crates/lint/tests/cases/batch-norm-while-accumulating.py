# case: a model of the file
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x)).mean((1, 2, 3))

def train(loader, optimizer, criterion, n):
    model = Net().cuda()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: a block of the file inside the model, handed to another function
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(4)])

def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

def main(loader, optimizer, criterion):
    train(Net(), loader, optimizer, criterion, 4)

# case: a model of torchvision
from torchvision import models

def train(loader, optimizer, criterion, n):
    model = models.resnet50()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: layer normalization does not mind
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)

def train(loader, optimizer, criterion, n):
    model = Net()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: no accumulation
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(8)

def train(loader, optimizer, criterion):
    model = Net()
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

# case: the normalization is frozen
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(8)

def train(loader, optimizer, criterion, n):
    model = Net()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a model of another file
from net import Net

def train(loader, optimizer, criterion, n):
    model = Net()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a transformer of torchvision
from torchvision import models

def train(loader, optimizer, criterion, n):
    model = models.vit_b_16()
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()
