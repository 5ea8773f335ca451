# case: the best weights are returned
def train(model, loader, optimizer, criterion, epochs):
    best_loss, best = 1e10, None
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        if loss.item() < best_loss:
            best_loss = loss.item()
            best = model.state_dict()  # <- found
    return best

# case: loaded after the loop, training in another function
def run_epoch(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()

def fit(model, loader, optimizer, criterion):
    best_loss = 1e10
    best = None
    for epoch in range(10):
        loss = run_epoch(model, loader, optimizer, criterion)
        if loss < best_loss:
            best_loss = loss
            best = model.state_dict()  # <- found
    model.load_state_dict(best)

# case: saved after the loop
import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best_loss = 1e10
for epoch in range(10):
    loss = model(torch.zeros(4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < best_loss:
        best_loss = loss.item()
        weights = model.state_dict()  # <- found
torch.save(weights, "best.pt")

# case: a part of what is returned
from torchvision import models

def train(loader, optimizer, criterion):
    net = models.resnet18()
    best, weights = 0, None
    while best < 10:
        for x, y in loader:
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
        if loss.item() > best:
            weights = net.state_dict()  # <- found
            best = loss.item()
    return net, weights

# case: as an entry of what is saved
import torch
from torchvision import models

net = models.resnet18()
best = 1e10
for epoch in range(4):
    loss = net(torch.zeros(1, 3, 224, 224)).sum()
    loss.backward()
    optimizer.step()
    if loss.item() < best:
        best = loss.item()
        state = net.state_dict()  # <- found
torch.save({"model": state}, "x.pt")

# case: the wrapped module
from torch import nn

def train(loader, optimizer, criterion, best=1e10):
    net = nn.DataParallel(nn.Linear(4, 4))
    weights = None
    for epoch in range(4):
        for x, y in loader:
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
        if loss.item() < best:
            weights = net.module.state_dict()  # <- found
    return weights

# case: a deep copy
import copy

def train(model, loader, optimizer, criterion):
    model.train()
    best = None
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if loss.item() < 1:
            best = copy.deepcopy(model.state_dict())
    return best

# case: saved at once
import torch

def train(model, loader, optimizer, criterion):
    model.train()
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            state = model.state_dict()
            torch.save(state, f"{step}.pt")

# case: after training
import torch

def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    state = model.state_dict()
    torch.save(state, "last.pt")
    return state

# case: the last thing that is done
def train(model, loader, optimizer, criterion):
    model.train()
    best = None
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if loss.item() < 0.1:
            best = model.state_dict()
            break
    return best

# case: weights that are merged into a new model
def load(model, pretrained):
    model.eval()
    own = model.state_dict()
    for name, value in pretrained.items():
        if name in own:
            own[name].copy_(value)
    model.load_state_dict(own)

# case: recreated in every iteration, the last one counts
def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        state = model.state_dict()
    return state

# case: the last weights
def train(model, loader, optimizer, criterion, epochs):
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 9 or epoch > epochs - 2:
            last = model.state_dict()
    model.load_state_dict(last)

# case: the first weights are loaded again in every iteration
from torchvision import models

def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

net = models.resnet18()
start = net.state_dict()  # <- found
for fold in range(5):
    net.load_state_dict(start)
    train(net, loaders[fold], optimizer, criterion)

# case: early stopping
class EarlyStopping:
    def __init__(self):
        self.best_loss = 1e10
        self.best_state = None

    def __call__(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_state = model.state_dict()  # <- found

def fit(model, loader, optimizer, criterion):
    model.train()
    stopper = EarlyStopping()
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        stopper(loss.item(), model)
    model.load_state_dict(stopper.best_state)

# case: the comparison has a name
def train(model, loader, optimizer, criterion, best_loss=1e10):
    model.train()
    best = None
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        better = loss.item() < best_loss
        if better:
            best = model.state_dict()  # <- found
    return best

# case: the weights of one model for another
from torchvision import models

net, other = models.resnet18(), models.resnet18()
state = net.state_dict()
for x in batches:
    net(x).sum().backward()
    optimizer.step()
    other.load_state_dict(state)

# case: an object that saves at once
import torch

class EarlyStopping:
    def __init__(self):
        self.best_loss = 1e10

    def __call__(self, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.state = model.state_dict()
            torch.save(self.state, "best.pt")

# case: saved at once
import torch

def train(model, loader, optimizer, criterion, evaluate):
    best = 0
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = evaluate(model)
        if score > best:
            best = score
            state = model.state_dict()
            torch.save(state, "best.pt")

# case: a copy of the best
import torch

def train(model, loader, optimizer, criterion, evaluate):
    best, state = 0, None
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = evaluate(model)
        if score > best:
            best = score
            state = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(state)

# case: the state of another model
def train(student, teacher, loader, optimizer, criterion):
    wanted = teacher.state_dict()
    for x, y in loader:
        loss = criterion(student(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    student.load_state_dict(wanted)

# case: the training ends with the best
def train(model, loader, optimizer, criterion, evaluate):
    best = None
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if evaluate(model) > 0.99:
            best = model.state_dict()
            break
    return best

# case: restored at the end of each round
for task in tasks:
    before = model.state_dict()  # <- found
    for x, y in task:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(score(model, task))
    model.load_state_dict(before)

# case: averaged with what the round made of it
for task in tasks:
    before = copy.deepcopy(model.state_dict())
    for x, y in task:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = model.state_dict()
    model.load_state_dict({k: before[k] + 0.1 * (after[k] - before[k]) for k in before})

# case: kept with its loss in a tuple
best = (float("inf"), None)
for epoch in range(10):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    value = validate(model)
    if value < best[0]:
        best = (value, model.state_dict())  # <- found
model.load_state_dict(best[1])

# case: kept on the object and loaded by the same method
class Regressor:
    def fit(self, loader):
        for epoch in range(10):
            for x, y in loader:
                self.optimizer.zero_grad()
                self.criterion(self.net(x), y).backward()
                self.optimizer.step()
            loss = self.score()
            if loss < self.best_loss:
                self.best_loss = loss
                self.best_weights = self.net.state_dict()  # <- found
        self.net.load_state_dict(self.best_weights)

# case: a fold begins its best weights anew
for fold in range(5):
    best = (float("inf"), None)
    for epoch in range(10):
        for x, y in loaders[fold]:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        value = validate(model)
        if value < best[0]:
            best = (value, model.state_dict())  # <- found
    model.load_state_dict(best[1])
