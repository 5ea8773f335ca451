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

# case: an average in a list comprehension
averages = [p.detach().clone() for p in model.parameters()]
for x, y in loader:
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    averages = [0.99 * a + 0.01 * p for a, p in zip(averages, model.parameters())]  # <- found

# case: an average of a list of parameters
class Average:
    def update(self, model):
        weights = [p for p in model.parameters()]
        self.averages = [(a * self.n + w) / (self.n + 1) for a, w in zip(self.averages, weights)]  # <- found

# case: an average of a list of detached parameters
class Average:
    def update(self, model):
        weights = [p.detach() for p in model.parameters()]
        self.averages = [(a * self.n + w) / (self.n + 1) for a, w in zip(self.averages, weights)]

# case: an average in a dict comprehension without gradients
import torch

@torch.no_grad()
def update(averages, model):
    averages = {k: 0.99 * averages[k] + 0.01 * p for k, p in model.named_parameters()}
    return averages

# case: an average by lerp
import torch

class Average:
    def step(self, net):
        for n, p in net.named_parameters():
            self.weights[n] = torch.lerp(self.weights[n], p, 0.01)  # <- found

# case: an average with a dict of parameters
def update(shadow, model):
    parameters = dict(model.named_parameters())
    for name in shadow:
        shadow[name] = 0.9 * shadow[name] + 0.1 * parameters[name]  # <- found

# case: an average with a dict of detached parameters
def update(shadow, model):
    parameters = dict(model.named_parameters())
    for name in shadow:
        shadow[name] = 0.9 * shadow[name] + 0.1 * parameters[name].detach()

# case: an average of parameters that the object keeps
class Average:
    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.shadow = [p.detach().clone() for p in self.parameters]

    def update(self):
        for i, p in enumerate(self.parameters):
            self.shadow[i] = 0.9 * self.shadow[i] + 0.1 * p  # <- found

average = Average(net.parameters())
for x, y in loader:
    loss = criterion(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update()
