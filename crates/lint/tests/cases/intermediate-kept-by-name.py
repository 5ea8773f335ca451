# case: a first try on one batch
import torch
from torch import nn

def main(loader, criterion):
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sample = next(iter(loader))[0].cuda()
    output = model(sample)  # <- found
    print(output.shape)
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

# case: in a script, with a loss printed once
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = model(torch.randn(8, 4).cuda())  # <- found
print(first.mean().item())
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: without gradients
import torch
from torch import nn

def main(loader, criterion, optimizer):
    model = nn.Linear(4, 4).cuda()
    with torch.no_grad():
        output = model(torch.randn(8, 4).cuda())
    print(output.shape)
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()

# case: used in the loop
from torch import nn

def main(loader, criterion, optimizer, anchor):
    model = nn.Linear(4, 4).cuda()
    reference = model(anchor)
    for x, y in loader:
        (criterion(model(x), y) + (model(anchor) - reference.detach()).mean()).backward()
        optimizer.step()

# case: bound again in the loop
from torch import nn

def main(loader, criterion, optimizer, sample):
    model = nn.Linear(4, 4).cuda()
    output = model(sample)
    print(output.shape)
    for x, y in loader:
        output = model(x)
        criterion(output, y).backward()
        optimizer.step()

# case: deleted
from torch import nn

def main(loader, criterion, optimizer, sample):
    model = nn.Linear(4, 4).cuda()
    output = model(sample)
    print(output.shape)
    del output
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()

# case: used after the loop
from torch import nn

def main(loader, criterion, optimizer, sample):
    model = nn.Linear(4, 4).cuda()
    before = model(sample)
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
    print((model(sample) - before).abs().max())

# case: backpropagated before the loop
from torch import nn

def main(loader, criterion, optimizer, sample, target):
    model = nn.Linear(4, 4).cuda()
    output = model(sample)
    loss = criterion(output, target)
    loss.backward()
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()

# case: in a separate function
from torch import nn

def look(model, sample):
    output = model(sample)
    print(output.shape)

def train(model, loader, criterion, optimizer):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()

# case: a layer that is tried out on the host
import torch
from torch import nn

flatten = nn.Flatten()
flat = flatten(torch.randn(1, 28, 28))
print(flat.shape)
layer = nn.Conv2d(3, 8, 3)
seen = layer(torch.randn(1, 3, 64, 64))
print(seen.shape)

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: another model on the card that nothing trains
import torch
from torch import nn

probe = nn.Flatten().cuda()
flat = probe(torch.randn(8, 4).cuda())
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a look at the output before the training, released
import torch
from torch import nn

def train(loader, x, criterion):
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = model(x.cuda())
    print(out.shape)
    del out
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: the loop uses the same name
import torch
from torch import nn

def train(loader, x, criterion):
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out = model(x.cuda())
    print(out.shape)
    for x, y in loader:
        out = model(x.cuda())
        loss = criterion(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: the loss of a trial on one batch
import torch.nn.functional as F

net = Net().cuda()
images, targets = next(iter(loader))
initial = F.cross_entropy(net(images.cuda()), targets.cuda())  # <- found
print(initial)
for images, targets in loader:
    loss = F.cross_entropy(net(images.cuda()), targets.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: the number of the loss of a trial on one batch
import torch.nn.functional as F

net = Net().cuda()
images, targets = next(iter(loader))
initial = F.cross_entropy(net(images.cuda()), targets.cuda()).item()
for images, targets in loader:
    loss = F.cross_entropy(net(images.cuda()), targets.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
