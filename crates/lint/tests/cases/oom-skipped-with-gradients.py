# case: cleared only after a step
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        except torch.cuda.OutOfMemoryError:  # <- found
            print("skipped")
            torch.cuda.empty_cache()

# case: known by the words of the message, and continue
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
            optimizer.step()
            model.zero_grad()
        except RuntimeError as e:  # <- found
            if "out of memory" in str(e):
                torch.cuda.empty_cache()
                continue
            else:
                raise e

# case: other errors are raised first
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        except RuntimeError as e:  # <- found
            if "out of memory" not in str(e):
                raise
            print("too large")

# case: cleared in the handler
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        except torch.cuda.OutOfMemoryError:
            optimizer.zero_grad(set_to_none=True)

# case: cleared one by one in the handler
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        except RuntimeError as e:
            if "out of memory" in str(e):
                for p in model.parameters():
                    if p.grad is not None:
                        del p.grad
                torch.cuda.empty_cache()
            else:
                raise e

# case: cleared before every backward
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            continue

# case: the error ends the run
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        except RuntimeError as e:
            if "out of memory" in str(e):
                print("use a smaller batch")
            raise

# case: nothing is backpropagated
import torch

def evaluate(model, loader):
    for x in loader:
        try:
            model(x)
        except torch.cuda.OutOfMemoryError:
            continue

# case: set to zero before every backward
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            continue

# case: the training ends there
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        except RuntimeError as error:
            if "out of memory" in str(error):
                print("try a smaller batch")
            raise

# case: the handler clears through its own method
import torch

class Trainer:
    def clear(self):
        for p in self.model.parameters():
            p.grad = None

    def train(self, loader):
        for x, y in loader:
            try:
                self.criterion(self.model(x), y).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            except torch.cuda.OutOfMemoryError:
                self.clear()
                continue

# case: a function that does one step catches the error
import torch

def train_step(model, optimizer, batch):
    try:
        loss = model(batch["source"].cuda(), batch["target"].cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except RuntimeError as e:  # <- found
        if "out of memory" in str(e):
            torch.cuda.empty_cache()
        else:
            raise e

for batch in loader:
    train_step(model, optimizer, batch)

# case: the loop that calls it clears gradients
import torch

def train_step(model, optimizer, batch):
    try:
        loss = model(batch["source"].cuda(), batch["target"].cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()

for batch in loader:
    optimizer.zero_grad()
    train_step(model, optimizer, batch)
