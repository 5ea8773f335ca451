# case: a meter
class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

def train(model, loader, optimizer, criterion):
    losses = AverageMeter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.update(loss, x.size(0))  # <- found

# case: a history
class History:
    def __init__(self):
        self.all = []

    def add(self, value):
        self.all.append(value)

def train(model, loader, optimizer, criterion):
    history = History()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        history.add(loss)  # <- found

# case: by keyword, summed the long way
class Meter:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total = self.total + value

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(value=loss)  # <- found

# case: an attribute of a trainer
class Meter:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total += value

class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.meter = Meter()

    def run(self, loader):
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.meter.add(loss)  # <- found

# case: one of several meters
class Meter:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total += value

def train(model, loader, optimizer, criterion):
    losses, hits = Meter(), Meter()
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        losses.add(loss)  # <- found
        hits.add((out.argmax(1) == y).sum().item())

# case: a meter of the file
class Meter:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total += value

meter = Meter()

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss)  # <- found

# case: a number is given
class Meter:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total += value

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss.item())

# case: the meter takes the number
class Meter:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total += value.item()

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss)

# case: the meter takes the number first
class Meter:
    def __init__(self):
        self.total = 0

    def add(self, value):
        if hasattr(value, "item"):
            value = value.item()
        self.total += value

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss)

# case: only the last value is kept
class Meter:
    def __init__(self):
        self.last = 0

    def add(self, value):
        self.last = value

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss)

# case: a collector of terms that is backpropagated
class Terms:
    def __init__(self):
        self.total = 0

    def add(self, value):
        self.total += value

    def backward(self):
        self.total.backward()

def train(model, loader, optimizer, criterion):
    terms = Terms()
    for x, y in loader:
        loss = criterion(model(x), y)
        terms.add(loss)
        terms.backward()
        optimizer.step()

# case: loggers of other files
import wandb
from torch.utils.tensorboard import SummaryWriter

def train(model, loader, optimizer, criterion):
    writer = SummaryWriter()
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        wandb.log({"loss": loss})
        writer.add_scalar("loss", loss, step)

# case: reset in every iteration
class Meter:
    def __init__(self):
        self.total = 0

    def reset(self):
        self.total = 0

    def add(self, value):
        self.total += value

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        meter.reset()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        meter.add(loss)

# case: a meter that records nothing
import torch

class Meter:
    def __init__(self):
        self.total = 0.0

    @torch.no_grad()
    def update(self, value):
        self.total += value

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)

# case: a meter that takes the number when it is a tensor
import torch

class Meter:
    def __init__(self):
        self.total = 0.0

    def update(self, value, n=1):
        if isinstance(value, torch.Tensor):
            value = value.item()
        self.total += value * n

def train(model, loader, optimizer, criterion):
    meter = Meter()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss, x.size(0))

# case: a meter of the last value
class Last:
    def __init__(self):
        self.value = None

    def update(self, value):
        self.value = value

def train(model, loader, optimizer, criterion):
    last = Last()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        last.update(loss)

# case: callbacks in a list keep what they are told
class Recorder:
    def __init__(self):
        self.curve = {}

    def on_batch_end(self, step, loss):
        self.curve[step] = loss

class Printer:
    def on_batch_end(self, step, loss):
        print(step, float(loss))

callbacks = [Recorder(), Printer()]
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for callback in callbacks:
        callback.on_batch_end(step, loss)  # <- found

# case: the last loss by its name
class Recorder:
    def __init__(self):
        self.last = {}

    def note(self, name, loss):
        self.last[name] = loss

recorder = Recorder()
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recorder.note("train", loss)

# case: a total and a count in a tuple
class Progress:
    def __init__(self):
        self.metrics = {}

    def log(self, name, value, weight=1):
        total, n = self.metrics.get(name, (0.0, 0))
        self.metrics[name] = (total + value * weight, n + weight)

progress = Progress()
for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    progress.log("loss", loss, x.size(0))  # <- found

# case: a dict of dicts by step
class Summary:
    def __init__(self):
        self.scalars = {}

    def scalar(self, tag, value, step):
        self.scalars.setdefault(tag, {})[step] = value

summary = Summary()
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    summary.scalar("loss", loss, step)  # <- found

# case: a dict of meters is told by keywords
class Mean:
    def __init__(self):
        self.s, self.n = 0.0, 0

    def update(self, v):
        self.s += v
        self.n += 1

class Metrics:
    def __init__(self, *names):
        self.all = {name: Mean() for name in names}

    def update(self, **given):
        for name, value in given.items():
            self.all[name].update(value)

metrics = Metrics("loss")
for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    metrics.update(loss=loss)  # <- found
