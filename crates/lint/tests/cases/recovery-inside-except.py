# case: a smaller batch inside the handler
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()

def run(x):
    try:
        return model(x)
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return torch.cat([model(part) for part in x.chunk(2)])  # <- found

# case: known by the words of the message
import torch
from torch import nn

def train(loader, criterion):
    model = nn.Linear(4, 4).cuda()
    for x, y in loader:
        try:
            loss = criterion(model(x), y)
            loss.backward()
        except RuntimeError as error:
            if "out of memory" in str(error):
                loss = criterion(model(x[:4]), y[:4])  # <- found
                loss.backward()
            else:
                raise

# case: a function that calls itself
import torch

def train(model, loader, size):
    try:
        for x in loader(size):
            model(x).sum().backward()
    except torch.OutOfMemoryError:
        train(model, loader, size // 2)  # <- found

# case: a helper of the file that runs the model
import torch
from torch import nn

net = nn.Linear(4, 4)

def forward(x):
    return net(x)

def safe(x):
    try:
        return forward(x)
    except (torch.OutOfMemoryError, ValueError):
        return forward(x.half())  # <- found

# case: retried after the handler
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()

def run(x):
    failed = False
    try:
        out = model(x)
    except torch.cuda.OutOfMemoryError:
        failed = True
    if failed:
        torch.cuda.empty_cache()
        out = model(x[:1])
    return out

# case: logged and raised again
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()

def run(x):
    try:
        return model(x)
    except torch.cuda.OutOfMemoryError:
        print("too large", x.shape)
        raise

# case: skipped
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()

def train(loader, optimizer):
    for x in loader:
        try:
            model(x).sum().backward()
            optimizer.step()
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            torch.cuda.empty_cache()
        optimizer.zero_grad()

# case: another error
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()

def run(x):
    try:
        return model(x)
    except RuntimeError:
        return model(x.float())

# case: a method that calls itself with half of the work
import torch
from engine import run_part

class Scheduler:
    def run(self, items):
        try:
            run_part(self.part, items)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            half = len(items) // 2
            self.run(items[:half])  # <- found
            self.run(items[half:])

# case: a model that is passed in, and a handler for any error that empties the cache
import torch

def predict(model, x):
    try:
        return model(x)
    except RuntimeError:
        torch.cuda.empty_cache()
        return torch.cat([model(part) for part in x.split(1)])  # <- found

# case: a helper that prints is called again
import torch

def predict(model, report, x):
    try:
        report("starts")
        return model(x)
    except torch.cuda.OutOfMemoryError:
        print("too large")
        return None

# case: the user ends the training early
import torch

def main(model, loader, optimizer, criterion):
    try:
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
    except KeyboardInterrupt:
        torch.cuda.empty_cache()
        print(model(x))

# case: retried on the CPU
import torch

def predict(model, x):
    try:
        return model(x.cuda())
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        model.cpu()
        return model(x.cpu())

# case: a handler that counts, and the next iteration that retries
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        for size in (32, 16, 8):
            try:
                for part, wanted in zip(x.split(size), y.split(size)):
                    criterion(model(part), wanted).backward()
                break
            except torch.cuda.OutOfMemoryError:
                optimizer.zero_grad()
        optimizer.step()
        optimizer.zero_grad()
