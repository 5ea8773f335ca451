# case: a running loss in a training function
import torch.nn.functional as F

def train(model, loader, optimizer):
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss  # <- found
    return running / len(loader)

# case: a criterion of unknown kind is known by its backward
def train(net, batches, criterion, opt):
    total = 0
    for x, y in batches:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total = total + loss * x.size(0)  # <- found
    print(total)

# case: the number is added
def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()

# case: a sum of terms that is backpropagated
def step(model, loader, optimizer, criterion):
    for x, ys in loader:
        loss = 0
        for y in ys:
            loss += criterion(model(x), y)
        loss.backward()
        optimizer.step()

# case: the total is backpropagated after the loop
def step(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        total += criterion(model(x), y)
    total.backward()
    optimizer.step()

# case: a helper that returns a number
def train_step(model, x, y, optimizer, criterion):
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()

def train(model, loader, optimizer, criterion):
    total = 0.0
    for x, y in loader:
        loss = train_step(model, x, y, optimizer, criterion)
        total += loss

# case: a helper that returns the loss itself
import torch
from torch.utils.data import DataLoader

def train_step(model, x, y, optimizer, criterion):
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

def train(model, data, optimizer, criterion):
    total = 0.0
    for x, y in DataLoader(data):
        loss = train_step(model, x, y, optimizer, criterion)
        total += loss  # <- found
    print(total)

# case: evaluation without gradients
import torch

def evaluate(model, loader, criterion):
    total = 0
    with torch.no_grad():
        for x, y in loader:
            total += criterion(model(x), y)
    return total

# case: a scaled loss with a gradient scaler
import torch

def train(model, loader, optimizer, criterion):
    scaler = torch.cuda.amp.GradScaler()
    total = 0
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss  # <- found

# case: a loss reduced by something unknown after backward
from utils import reduce_value

def train(model, loader, optimizer, criterion):
    mean_loss = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        loss = reduce_value(loss)
        mean_loss += loss
        optimizer.step()

# case: an attribute of a trainer class
from torch import nn

class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.criterion = nn.MSELoss()
        self.total = 0

    def epoch(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.total += loss  # <- found

# case: the window of one step, with the step outside of the loop
class Imagine:
    def train_step(self, x):
        total_loss = 0
        for _ in range(self.gradient_accumulate_every):
            loss = self.criterion(self.model(x)) / self.gradient_accumulate_every
            total_loss += loss
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total_loss

# case: a total over the students of one batch
import torch.nn.functional as F

def train(students, optimizers, loader, teacher):
    epoch_loss = 0.0
    for data, label in loader:
        avg = 0
        for i in range(len(students)):
            loss = F.cross_entropy(teacher(data), label)
            loss.backward()
            optimizers[i].step()
            avg += loss
        epoch_loss += avg.item()
    teacher.parameters()

# case: a sum of losses that are passed in
def compute_aux_loss(aux_list, backward=False):
    aux_loss_sum = 0
    for aux_loss in aux_list:
        aux_loss_sum += aux_loss
        if backward is True:
            aux_loss.backward()
    return aux_loss_sum

# case: an epoch's total, restarted in every epoch, is kept through the epoch
def train(model, loader, optimizer, criterion):
    for epoch in range(10):
        total = 0
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss  # <- found
        print(epoch, total)

# case: the total goes backward in a helper
def update(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def train(model, loader, optimizer, criterion):
    for epoch in range(3):
        total = 0
        for x, y in loader:
            total += criterion(model(x), y)
        update(total, optimizer)

# case: the total goes backward somewhere else
from engine import Engine

def train(model, loader, optimizer, criterion):
    engine = Engine(optimizer)
    for epoch in range(3):
        total = 0
        for x, y in loader:
            total = total + criterion(model(x), y)
        engine.optimize(total)

# case: added where nothing is recorded
import torch

def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            total = total + loss

# case: the outputs of one step, each backpropagated, in a separate function
def backward_all(outputs, y, criterion):
    total = 0
    for out in outputs:
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        total += loss
    return total

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        print(backward_all(model(x), y, criterion).item())
        optimizer.step()

# case: chunks of one batch
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        total = 0
        for part, target in zip(x.chunk(4), y.chunk(4)):
            loss = criterion(model(part), target) / 4
            loss.backward()
            total += loss
        optimizer.step()
        print(total.item())

# case: the window of one step, counted
def train(model, loader, optimizer, criterion, count):
    total = 0
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / count
        loss.backward()
        total += loss
        if (i + 1) % count == 0:
            optimizer.step()
            optimizer.zero_grad()
            print(total.item())
            total = 0

# case: taken off the graph with its own name
def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        total += loss

# case: each time the number of a reduced copy
import torch.distributed as dist

def mean_over_ranks(tensor):
    copy = tensor.clone().detach()
    dist.all_reduce(copy)
    return copy / dist.get_world_size()

def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += mean_over_ranks(loss)

# case: a total in place, of a tensor without a graph
import torch

def train(model, loader, optimizer, criterion):
    total = torch.zeros(1)
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total.add_(loss.data)

# case: two losses of one step
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        total = 0
        for head in (0, 1):
            total += criterion(model(x)[head], y)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()

# case: a penalty of all weights
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        loss = criterion(model(x), y)
        penalty = 0
        for weight in model.parameters():
            penalty += weight.pow(2).sum()
        optimizer.zero_grad()
        (loss + 0.01 * penalty).backward()
        optimizer.step()

# case: a moving average of numbers
def train(model, loader, optimizer, criterion):
    average = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = 0.9 * average + 0.1 * loss.item()

# case: a time that a module gives beside its output
from time import perf_counter
import torch
from torch import nn

class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x, benchmark=False):
        begin = perf_counter()
        out = self.body(x)
        elapsed = perf_counter() - begin
        if benchmark:
            return elapsed
        return out, elapsed

def train(loader, optimizer, criterion):
    painter = Painter()
    total = 0.0
    for x, y in loader:
        out, elapsed = painter(x)
        total += elapsed
        total += perf_counter() + elapsed
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: what a model returns next to its loss may be an accuracy
def train(model, loader, optimizer):
    total = 0
    model.train()
    for x, y in loader:
        loss, accuracy = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += accuracy

# case: a list is made longer
def train(model, loader, optimizer, criterion):
    weights, more = [], []
    model.train()
    for x, y in loader:
        out, alpha = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        weights += out
        more += alpha

# case: the terms of a loss are unknown but for their sum
totals = {}
for batch in loader:
    out = model(batch["x"].cuda())
    losses = {name: measure(out[name], batch[name]) for name, measure in measures.items()}
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, value in losses.items():
        totals[name] = totals.get(name, 0.0) + value  # <- found

# case: two totals in a tuple
totals = (0.0, 0.0)
for x, y in loader:
    first, second = losses(model(x), y)
    loss = first + second
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    totals = (totals[0] + first, totals[1] + second)  # <- found
