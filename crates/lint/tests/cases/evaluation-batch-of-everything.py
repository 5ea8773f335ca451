# case: a loader of one batch
import torch
from torch.utils.data import DataLoader

def test(model, held_out):
    model.eval()
    loader = DataLoader(held_out, batch_size=len(held_out))  # <- found
    with torch.no_grad():
        for x, y in loader:
            print(model(x).argmax(1))

# case: by position
import torch
from torch.utils.data import DataLoader
from torchvision import models

net = models.resnet18().cuda()
loader = DataLoader(test_set, len(test_set))  # <- found
with torch.no_grad():
    for x, y in loader:
        print(net(x.cuda()).argmax(1))

# case: given to a function in the file
import torch
from torch.utils.data import DataLoader
from torchvision import models

@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    for x, y in loader:
        print(model(x).argmax(1))

def main(test_set):
    net = models.resnet18()
    accuracy(net, DataLoader(dataset=test_set, batch_size=len(test_set)))  # <- found

# case: the only batch
import torch
from torch.utils.data import DataLoader
from torchvision import models

net = models.resnet18()
loader = DataLoader(test_set, batch_size=len(test_set), shuffle=False)  # <- found
x, y = next(iter(loader))
with torch.no_grad():
    print(net(x.cuda()).argmax(1))

# case: straight in the loop
import torch
import torch.utils.data as data

def test(model, held_out):
    model.eval()
    with torch.no_grad():
        for x, y in data.DataLoader(held_out, batch_size=len(held_out)):  # <- found
            print(model(x).argmax(1))

# case: an attribute
import torch
from torch.utils.data import DataLoader
from torchvision import models

class Tester:
    def __init__(self, data):
        self.data = data
        self.net = models.resnet18()
        self.loader = DataLoader(self.data, batch_size=len(self.data))  # <- found

    @torch.no_grad()
    def run(self):
        for x, y in self.loader:
            print(self.net(x).argmax(1))

# case: a fixed size
import torch
from torch.utils.data import DataLoader

def test(model, held_out):
    model.eval()
    loader = DataLoader(held_out, batch_size=64)
    with torch.no_grad():
        for x, y in loader:
            print(model(x).argmax(1))

# case: only the data is read
from torch.utils.data import DataLoader

loader = DataLoader(train_set, batch_size=len(train_set))
x, y = next(iter(loader))
print(x.mean(), x.std())

# case: training on the full set
from torch.utils.data import DataLoader

def train(model, data, optimizer, criterion):
    model.train()
    loader = DataLoader(data, batch_size=len(data))
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

# case: a part of the set
import torch
from torch.utils.data import DataLoader

def test(model, held_out):
    model.eval()
    loader = DataLoader(held_out, batch_size=len(held_out) // 100)
    with torch.no_grad():
        for x, y in loader:
            print(model(x).argmax(1))

# case: the length of something else
import torch
from torch.utils.data import DataLoader

def test(model, held_out, cards):
    model.eval()
    loader = DataLoader(held_out, batch_size=len(cards))
    with torch.no_grad():
        for x, y in loader:
            print(model(x).argmax(1))

# case: another class of that name
from loaders import DataLoader

def test(model, held_out):
    model.eval()
    for x, y in DataLoader(held_out, batch_size=len(held_out)):
        print(model(x).argmax(1))

# case: nothing goes to a card
import torch
from torch import nn
from torch.utils.data import DataLoader

def evaluate(test_set):
    model = nn.Linear(4, 2)
    loader = DataLoader(test_set, batch_size=len(test_set))
    with torch.no_grad():
        for x, y in loader:
            print((model(x).argmax(1) == y).float().mean().item())

# case: read into host memory for another library
import torch
from sklearn.svm import SVC
from torch.utils.data import DataLoader

def fit(train_set):
    loader = DataLoader(train_set, batch_size=len(train_set))
    x, y = next(iter(loader))
    SVC().fit(x.flatten(1).numpy(), y.numpy())

# case: the batch is cut before it goes through the model
import torch
from torch.utils.data import DataLoader

def evaluate(model, test_set):
    loader = DataLoader(test_set, batch_size=len(test_set))
    model.cuda()
    with torch.no_grad():
        for x, y in loader:
            for part in x.split(64):
                print(model(part.cuda()).argmax(1))

# case: the loader goes through a model in a comprehension
import torch
from torch.utils.data import DataLoader

val_loader = DataLoader(val_set, len(val_set))  # <- found
with torch.no_grad():
    hits = sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in val_loader)

# case: graphs in one batch
import torch
from torch_geometric.loader import DataLoader

loader = DataLoader(test_set, batch_size=len(test_set))  # <- found

def test(model):
    with torch.no_grad():
        for data in loader:
            data = data.to("cuda")
            return (model(data.x, data.edge_index).argmax(1) == data.y).sum().item()
