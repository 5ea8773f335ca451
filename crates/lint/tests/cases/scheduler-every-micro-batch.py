# case: the scheduler after the condition
import torch

def train(model, loader, criterion, n):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()  # <- found

# case: a schedule made for windows, called for micro-batches
import torch
from transformers import get_linear_schedule_with_warmup

def train(model, loader, criterion, args):
    optimizer = torch.optim.AdamW(model.parameters())
    total = len(loader) // args.accumulate * args.epochs
    scheduler = get_linear_schedule_with_warmup(optimizer, 0, total)
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / args.accumulate).backward()
        scheduler.step()  # <- found
        if (i + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: known by being asked for its learning rate
def train(model, loader, optimizer, schedule, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()
        schedule.step()  # <- found
        print(schedule.get_last_lr())

# case: a schedule made for micro-batches
import torch

def train(model, loader, criterion, n, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader)
    )
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()

# case: the scheduler under the condition
import torch

def train(model, loader, criterion, n):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

# case: once per epoch
import torch

def train(model, loader, criterion, n):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    for epoch in range(10):
        for i, (x, y) in enumerate(loader):
            (criterion(model(x), y) / n).backward()
            if (i + 1) % n == 0:
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()

# case: told the fraction of the epoch
import torch

def train(model, loader, criterion, n, epoch):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 10)
    for i, (x, y) in enumerate(loader):
        scheduler.step(epoch + i / len(loader))
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: no accumulation
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()

# case: passed in by one caller of several
import torch

class Idle:
    def step(self):
        pass

def run(model, loader, optimizer, scheduler, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if i % n == 0:
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()  # <- found

def main(model, loader, criterion):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    run(model, loader, optimizer, scheduler, criterion, 4)
    run(model, loader, optimizer, Idle(), criterion, 4)

# case: a step of Lightning with the scheduler under the same two conditions
import torch
from lightning import LightningModule

class Model(LightningModule):
    def __init__(self, optimizer):
        super().__init__()
        self.plan = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        self.optimizer = optimizer

    def training_step(self, batch, batch_idx):
        self.manual_backward(self.loss(batch))
        if batch_idx > 0 and batch_idx % 4 == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.plan.step()

# case: the schedule steps with the optimizer
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

# case: once per epoch
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for epoch in range(3):
        for i, (x, y) in enumerate(loader):
            (criterion(model(x), y) / 4).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()

# case: the length of the schedule bounds the loop, through a parameter
import math
from transformers import get_scheduler

def train(model, loader, optimizer, criterion, scheduler, num_steps, count):
    done = 0
    for epoch in range(math.ceil(num_steps / len(loader))):
        for x, y in loader:
            scheduler.step()
            (criterion(model(x), y) / count).backward()
            done += 1
            if done % count == 0:
                optimizer.step()
                optimizer.zero_grad()

def main(model, loader, optimizer, criterion, args):
    scheduler = get_scheduler("linear", optimizer, num_training_steps=args.steps)
    train(model, loader, optimizer, criterion, scheduler, args.steps, args.count)

# case: a length that is multiplied by the window
from transformers import get_linear_schedule_with_warmup

def train(model, loader, optimizer, criterion, args):
    scheduler = get_linear_schedule_with_warmup(optimizer, 0, args.steps * args.count)
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / args.count).backward()
        scheduler.step()
        if (i + 1) % args.count == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: the schedule's length is divided by the window, a number
from transformers import get_linear_schedule_with_warmup

total = (len(loader) // 4) * 3
schedule = get_linear_schedule_with_warmup(optimizer, 100, total)
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
    schedule.step()  # <- found
