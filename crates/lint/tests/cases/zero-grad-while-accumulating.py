# case: zero_grad first in every micro-batch
def train(model, loader, optimizer, criterion, accumulation):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()  # <- found
        loss = criterion(model(x), y) / accumulation
        loss.backward()
        if (i + 1) % accumulation == 0:
            optimizer.step()

# case: zero_grad last in every micro-batch, of the model
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / 8
        loss.backward()
        if i % 8 == 7:
            optimizer.step()
        model.zero_grad()  # <- found

# case: the condition has a name, the step a scaler
import torch

def train(model, loader, criterion, optimizer, every, scaler):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad(set_to_none=True)  # <- found
        with torch.autocast("cuda"):
            loss = criterion(model(x), y) / every
        scaler.scale(loss).backward()
        update = (i + 1) % every == 0 or i + 1 == len(loader)
        if update:
            optimizer.step()

# case: an early continue guards the step
def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()  # <- found
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4:
            continue
        optimizer.step()

# case: an early continue guards step and zero_grad
def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4 != 0:
            continue
        optimizer.step()
        optimizer.zero_grad()

# case: zero_grad under the same condition
def train(model, loader, optimizer, criterion, n):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / n
        loss.backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: zero_grad at the beginning of each window
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        if i % n == 0:
            optimizer.zero_grad()
        loss = criterion(model(x), y) / n
        loss.backward()
        if i % n == n - 1:
            optimizer.step()

# case: a generator that is trained more rarely is no accumulation
def train(G, D, loader, opt_g, opt_d, n_critic):
    for i, x in enumerate(loader):
        opt_d.zero_grad()
        D(x).mean().backward()
        opt_d.step()
        if i % n_critic == 0:
            opt_g.zero_grad()
            D(G(x)).mean().backward()
            opt_g.step()

# case: a window of one
def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        if i % 1 == 0:
            optimizer.step()

# case: a step in every batch, and logging now and then
def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(loss.item())

# case: first inside accelerator.accumulate
from accelerate import Accelerator

def train(model, loader, optimizer, criterion):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            optimizer.zero_grad()  # <- found
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            optimizer.step()

# case: last inside accelerator.accumulate
from accelerate import Accelerator

def train(model, loader, optimizer, criterion):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

# case: accelerator.accumulate without a number of micro-batches
from accelerate import Accelerator

def train(model, loader, optimizer, criterion):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            optimizer.step()

# case: a step of Lightning that has two conditions at once
from lightning import LightningModule

class Model(LightningModule):
    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        loss = self.loss(batch)
        self.manual_backward(loss)
        if batch_idx > 0 and batch_idx % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a step of Lightning that discards what it accumulates
from lightning import LightningModule

class Model(LightningModule):
    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()  # <- found
        loss = self.loss(batch)
        self.manual_backward(loss)
        if (batch_idx + 1) % 4 == 0:
            optimizer.step()

# case: a counter that is set back
def train(model, loader, optimizer, criterion, n):
    seen = 0
    for x, y in loader:
        optimizer.zero_grad()  # <- found
        (criterion(model(x), y) / n).backward()
        seen += 1
        if seen == n:
            optimizer.step()
            seen = 0

# case: a counter that is set back, and gradients with it
def train(model, loader, optimizer, criterion, n):
    seen = 0
    for x, y in loader:
        (criterion(model(x), y) / n).backward()
        seen += 1
        if seen >= n:
            optimizer.step()
            optimizer.zero_grad()
            seen = 0

# case: another model's gradients
def train(model, helper, loader, optimizer, other, criterion):
    for i, (x, y) in enumerate(loader):
        other.zero_grad()
        criterion(helper(x), y).backward()
        other.step()
        if i % 4 == 0:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

# case: set to zero where the window begins
def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        if i % 4 == 0:
            optimizer.zero_grad()
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()

# case: under a separate setting, for those who do not accumulate
def train(model, loader, optimizer, criterion, args):
    for i, (x, y) in enumerate(loader):
        if args.plain:
            optimizer.zero_grad()
        (criterion(model(x), y) / args.count).backward()
        if (i + 1) % args.count == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: the iterations without a step backpropagate in a branch of their own
def train(model, loader, optimizer, criterion, count):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()  # <- found
        loss = criterion(model(x), y) / count
        if (i + 1) % count == 0:
            loss.backward()
            optimizer.step()
        else:
            with model.no_sync():
                loss.backward()

# case: the other branch has no window
def train(model, loader, optimizer, criterion, scaler, args):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if args.mixed:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            optimizer.zero_grad()
        else:
            loss = loss / args.count
            if (i + 1) % args.count == 0:
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            else:
                with model.no_sync():
                    loss.backward()

# case: the model clears its gradients, and the optimizer is known by its name
def run(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        model.zero_grad()  # <- found
        loss = criterion(model(x), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
