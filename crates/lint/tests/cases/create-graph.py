# case: nothing is differentiated again
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(create_graph=True)  # <- found
        optimizer.step()

# case: with retain_graph beside it
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True, create_graph=True)  # <- found
        optimizer.step()

# case: a gradient that is only looked at
import torch

def sensitivity(model, loader):
    model.eval()
    for x, y in loader:
        x.requires_grad_(True)
        grads = torch.autograd.grad(model(x).sum(), x, create_graph=True)  # <- found
        print(grads[0].norm())

# case: its first element
from torch import autograd

def norms(model, x):
    model.eval()
    x.requires_grad_(True)
    grad = autograd.grad(model(x).sum(), x, create_graph=True)[0]  # <- found
    print(float(grad.norm()))

# case: several names
import torch

def look(model, x, z):
    model.eval()
    gx, gz = torch.autograd.grad(model(x, z).sum(), [x, z], create_graph=True)  # <- found
    print(gx.shape, gz.shape)

# case: an optimizer of the file body
import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def run(batches):
    for x in batches:
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward(create_graph=True)  # <- found
        optimizer.step()

# case: a gradient penalty
import torch

def train(D, real, fake, optimizer):
    D.train()
    for a, b in zip(real, fake):
        grad = torch.autograd.grad(D(a).sum(), a, create_graph=True)[0]
        loss = D(b).mean() + (grad.norm() - 1) ** 2
        loss.backward()
        optimizer.step()

# case: a penalty that is returned
import torch

def penalty(D, x):
    D.train()
    grad = torch.autograd.grad(D(x).sum(), x, create_graph=True)[0]
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()

# case: an optimizer that needs second derivatives
from torch_optimizer import Adahessian

def train(model, loader, criterion):
    optimizer = Adahessian(model.parameters())
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(create_graph=True)
        optimizer.step()

# case: a second backward follows
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward(create_graph=True)
        norm = sum(p.grad.pow(2).sum() for p in model.parameters())
        norm.backward()
        optimizer.step()

# case: fast weights of meta-learning
import torch

def adapt(model, x, y, criterion, weights):
    loss = criterion(model(x, weights), y)
    grads = torch.autograd.grad(loss, weights, create_graph=True)
    fast = [w - 0.1 * g for w, g in zip(weights, grads)]
    return fast

# case: the order decides
import torch

def adapt(loss, weights, second_order):
    grads = torch.autograd.grad(loss, weights, create_graph=second_order)
    print(grads)

# case: given to something unknown
import torch
from penalties import add_penalty

def look(model, x):
    grad = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]
    add_penalty(grad)

# case: a gradient penalty
import torch

def penalty(critic, real, fake):
    mixed = (real + fake) / 2
    mixed.requires_grad_(True)
    score = critic(mixed)
    grads = torch.autograd.grad(score.sum(), mixed, create_graph=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()

def train(critic, loader, optimizer, generator):
    for real in loader:
        loss = critic(real).mean() + penalty(critic, real, generator(real))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a residual of a differential equation
import torch

def train(net, points, optimizer):
    for x in points:
        x.requires_grad_(True)
        u = net(x)
        u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
        loss = ((u_xx + u) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: an optimizer that uses the second order
import torch
from hessian import AdaHessian

def train(model, loader, criterion):
    optimizer = AdaHessian(model.parameters())
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(create_graph=True)
        optimizer.step()

# case: an inner step of meta-learning
import torch

def adapt(model, loss, weights, rate):
    grads = torch.autograd.grad(loss, weights.values(), create_graph=True)
    for (name, weight), grad in zip(weights.items(), grads):
        weights[name] = weight - rate * grad
    return weights

# case: a unit test asks whether it can be done
import torch
import unittest

class GraphTest(unittest.TestCase):
    def test_gradients_of_a_severed_module(self):
        fail = False
        try:
            grads = torch.autograd.grad(self.loss, self.model.parameters(), create_graph=True)
        except RuntimeError:
            fail = True
        self.assertTrue(fail)
