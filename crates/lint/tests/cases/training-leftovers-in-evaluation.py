# case: the outputs of the last batch
import torch
from torch import nn

device = torch.device("cuda")

@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    for x, y in loader:
        print(model(x.to(device)).argmax(1))

def main(loader, held_out):
    model = nn.Linear(4, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        model.train()
        for x, y in loader:
            out = model(x.to(device))
            loss = out.sum()
            loss.backward(retain_graph=True)
            optimizer.step()
        evaluate(model, held_out)  # <- found

# case: after the last epoch
import torch
from torchvision import models

def test(net, loader):
    net.eval()
    with torch.no_grad():
        for x, y in loader:
            print(net(x.cuda()).argmax(1))

def main(loader, held_out, criterion, optimizer):
    net = models.resnet18().cuda()
    for x, y in loader:
        logits = net(x.cuda())
        loss = criterion(logits, y.cuda())
        loss.backward(retain_graph=True)
        optimizer.step()
    test(net, held_out)  # <- found

# case: a method
import torch
from torchvision import models

class Trainer:
    def __init__(self):
        self.net = models.resnet18().cuda()

    @torch.no_grad()
    def validate(self, loader):
        self.net.eval()
        for x, y in loader:
            print(self.net(x.cuda()).argmax(1))

    def run(self, loader, held_out, criterion, optimizer):
        for epoch in range(10):
            for x, y in loader:
                logits = self.net(x.cuda())
                loss = criterion(logits, y.cuda())
                loss.backward(retain_graph=True)
                optimizer.step()
            self.validate(held_out)  # <- found

# case: every so many epochs
import torch
from torchvision import models

@torch.no_grad()
def test(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x.cuda()).argmax(1))

net = models.resnet18().cuda()
for epoch in range(10):
    for x, y in batches:
        out = net(x.cuda())
        out.sum().backward(retain_graph=True)
    if epoch % 5 == 0:
        test(net, held_out)  # <- found

# case: the result is bound
import torch
from torchvision import models

@torch.inference_mode()
def test(net, loader):
    net.eval()
    total = 0
    for x, y in loader:
        total += net(x.cuda()).argmax(1).sum().item()
    return total

net = models.resnet18().cuda()
while True:
    for x, y in batches:
        out = net(x.cuda())
        out.sum().backward(retain_graph=True)
    score = test(net, held_out)  # <- found

# case: one function further
import torch
from torchvision import models

net = models.resnet18().cuda()

@torch.no_grad()
def forward(x):
    return net(x.cuda()).argmax(1)

def test(loader):
    for x, y in loader:
        print(forward(x))

for epoch in range(10):
    for x, y in batches:
        out = net(x.cuda())
        out.sum().backward(retain_graph=True)
    test(held_out)  # <- found

# case: deleted
import torch
from torchvision import models

@torch.no_grad()
def test(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x.cuda()).argmax(1))

net = models.resnet18().cuda()
for epoch in range(10):
    for x, y in batches:
        out = net(x.cuda())
        out.sum().backward()
    del out
    test(net, held_out)

# case: the loop is a separate function
import torch
from torchvision import models

@torch.no_grad()
def test(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x.cuda()).argmax(1))

def train(net, loader):
    for x, y in loader:
        out = net(x.cuda())
        out.sum().backward()

net = models.resnet18().cuda()
for epoch in range(10):
    train(net, batches)
    test(net, held_out)

# case: only a loss is left
import torch
from torchvision import models

@torch.no_grad()
def test(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x.cuda()).argmax(1))

net = models.resnet18().cuda()
for epoch in range(10):
    for x, y in batches:
        loss = net(x.cuda()).sum()
        loss.backward()
    test(net, held_out)

# case: the function trains, too
import torch
from torchvision import models

def phase(net, loader, train):
    for x, y in loader:
        with torch.set_grad_enabled(train):
            out = net(x.cuda())
        if train:
            out.sum().backward()

net = models.resnet18().cuda()
for epoch in range(10):
    phase(net, batches, True)
    phase(net, held_out, False)

# case: it is not known whether it is on the card
import torch

@torch.no_grad()
def test(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x).argmax(1))

def main(net, batches, held_out):
    net.train()
    for x, y in batches:
        out = net(x)
        out.sum().backward()
    test(net, held_out)

# case: evaluation of something else
import torch
from torchvision import models

def plot(losses):
    print(losses)

net = models.resnet18().cuda()
for x, y in batches:
    out = net(x.cuda())
    out.sum().backward()
plot([])

# case: a second output, only to look at
import torch
from torchvision import models

@torch.no_grad()
def test(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x.cuda()).argmax(1))

net = models.resnet18().cuda()
for epoch in range(10):
    for x, y in batches:
        out = net(x.cuda())
        loss = out.sum()
        loss.backward()
        optimizer.step()
        after = net(x.cuda())
        print(after.argmax(1))
    test(net, held_out)  # <- found

# case: after a plain backward only the scores stay
import torch
from torchvision import models

@torch.no_grad()
def test(net, loader):
    net.eval()
    for x, y in loader:
        print(net(x.cuda()).argmax(1))

net = models.resnet18().cuda()
for epoch in range(10):
    for x, y in batches:
        out = net(x.cuda())
        loss = criterion(out, y.cuda())
        loss.backward()
        optimizer.step()
    test(net, held_out)

# case: the output is backpropagated through another name
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()

def evaluate(loader):
    with torch.no_grad():
        for x in loader:
            print(model(x.cuda()))

def train(loader, optimizer, criterion):
    for epoch in range(3):
        for x, y in loader:
            out = model(x.cuda())
            main_loss = criterion(out, y.cuda())
            loss = main_loss + out.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        evaluate(loader)

# case: the training is a separate function, whose names end with it
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()

def evaluate(loader):
    with torch.no_grad():
        for x in loader:
            print(model(x.cuda()))

def train_epoch(loader, optimizer, criterion):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after = model(x.cuda())
        print(after.mean().item())

def main(loader, optimizer, criterion):
    for epoch in range(3):
        train_epoch(loader, optimizer, criterion)
        evaluate(loader)
