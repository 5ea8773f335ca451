# case: of an optimizer
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=False)  # <- found
        criterion(model(x), y).backward()
        optimizer.step()

# case: of a model, once per epoch
def train(model, loader, optimizer, criterion):
    for epoch in range(3):
        model.zero_grad(set_to_none=False)  # <- found
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()

# case: of an attribute, over two lines
class Trainer:
    def step(self, batch):
        self.optimizer.zero_grad(  # <- found
            set_to_none=False,
        )
        self.loss(batch).backward()
        self.optimizer.step()

# case: freed
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        criterion(model(x), y).backward()
        optimizer.step()

# case: the default frees
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

# case: a setting decides
def train(model, loader, optimizer, criterion, keep):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=not keep)
        criterion(model(x), y).backward()
        optimizer.step()

# case: a recorded graph needs gradients at fixed places
import torch

def record(model, x, y, optimizer, criterion):
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=False)
    with torch.cuda.graph(graph):
        criterion(model(x), y).backward()
        optimizer.step()

# case: between the forward and the backward pass nothing is saved
import torch

def train(generator, discriminator, optimizer, noise):
    generator.parameters()
    discriminator.parameters()
    for z in noise:
        loss = -torch.mean(discriminator(generator(z)))
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()

# case: every gradient is read as a number
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad(set_to_none=False)
        criterion(model(x), y).backward()
        flat = torch.cat([p.grad.view(-1) for p in model.parameters()])
        print(flat.norm().item())
        optimizer.step()

# case: a method of the script's own
class Store:
    def zero_grad(self, set_to_none=False):
        self.sums = None if set_to_none else 0

store = Store()
store.zero_grad(set_to_none=False)
