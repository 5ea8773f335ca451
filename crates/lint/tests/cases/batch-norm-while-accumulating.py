# case: a model of the file
from torch import nn
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x)).mean((1, 2, 3))

def train(data, optimizer, criterion, n):
    model = Net().cuda()
    loader = DataLoader(data, batch_size=2, shuffle=True)
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: a block of the file inside the model, passed to another function
from torch import nn
from torch.utils.data import DataLoader

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

def main(data, optimizer, criterion):
    batches = DataLoader(data, 4)
    train(Net(), batches, optimizer, criterion, 4)

# case: a model of torchvision, and a batch size of the command line
import argparse
from torch.utils.data import DataLoader
from torchvision import models

parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=8)
args = parser.parse_args()

def train(data, optimizer, criterion, n):
    loader = DataLoader(data, batch_size=args.batch_size)
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

# case: micro-batches that are large enough
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(data):
    loader = DataLoader(data, batch_size=128)
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: how large the micro-batches are is not known
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a segmentation network of torchvision
import torch
import torchvision
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=2)
model = torchvision.models.segmentation.deeplabv3_resnet50(num_classes=21).cuda()
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x.cuda())["out"], y.cuda()) / 8
    loss.backward()
    if (i + 1) % 8 == 0:
        optimizer.step()  # <- found
        optimizer.zero_grad()
