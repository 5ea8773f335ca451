# case: an average of the parameters themselves
class Average:
    def __init__(self, model):
        self.model = model
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    def update(self):
        for n, p in self.model.named_parameters():
            self.shadow[n] = self.shadow[n] * 0.99 + p * 0.01  # <- found

# case: an average in the training loop
def train(model, loader, optimizer, criterion, shadow, decay):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for i, p in enumerate(model.parameters()):
            shadow[i] = decay * shadow[i] + (1 - decay) * p  # <- found

# case: an average of their data
class Average:
    def __init__(self, model):
        self.model = model
        self.shadow = {}

    def update(self):
        for n, p in self.model.named_parameters():
            self.shadow[n] = self.shadow[n] * 0.99 + p.data * 0.01

# case: an average without gradients
import torch

class Average:
    def __init__(self, model):
        self.model = model
        self.shadow = {}

    @torch.no_grad()
    def update(self):
        for n, p in self.model.named_parameters():
            self.shadow[n] = self.shadow[n] * 0.99 + p * 0.01

# case: an average that is detached
class Average:
    def __init__(self, model):
        self.model = model
        self.shadow = {}

    def update(self):
        for n, p in self.model.named_parameters():
            self.shadow[n] = (self.shadow[n] * 0.99 + p * 0.01).detach()

# case: a sum of penalties by group is backpropagated
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        terms = {"weight": 0, "bias": 0}
        for n, p in model.named_parameters():
            kind = n.split(".")[-1]
            terms[kind] = terms[kind] * 0.5 + p
        loss = criterion(model(x), y) + terms["weight"].norm() + terms["bias"].norm()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
