# case: a teacher
import copy
import torch.nn.functional as F
from torchvision import models

student = models.resnet18()
teacher = copy.deepcopy(student)
for x in batches:
    loss = F.mse_loss(student(x), teacher(x))  # <- found
    loss.backward()
    optimizer.step()

# case: a moving average that is updated by hand
from copy import deepcopy
import torch
import torch.nn.functional as F

def train(model, loader, optimizer):
    model.train()
    ema = deepcopy(model)
    for x in loader:
        target = ema(x)  # <- found
        loss = F.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(ema.parameters(), model.parameters()):
                a.mul_(0.99).add_(b, alpha=0.01)

# case: a target network in a class
import copy
from torch import nn
import torch.nn.functional as F

class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.target = copy.deepcopy(self.net)

    def learn(self, batches, optimizer):
        for x, r in batches:
            wanted = r + 0.9 * self.target(x).max(1)[0]  # <- found
            loss = F.mse_loss(self.net(x).max(1)[0], wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

# case: in evaluation mode
import copy
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
reference = copy.deepcopy(net)
reference.eval()
for x in batches:
    loss = F.kl_div(net(x), reference(x))  # <- found
    loss.backward()
    optimizer.step()

# case: moved to the card
import copy
import torch.nn.functional as F
from torchvision import models

net = models.resnet18().cuda()
old = copy.deepcopy(net)
old = old.cuda()
for x in batches:
    loss = F.mse_loss(net(x), old(x))  # <- found
    loss.backward()
    optimizer.step()

# case: weights are copied again and again
import copy
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
target = copy.deepcopy(net)
for step, x in enumerate(batches):
    loss = F.mse_loss(net(x), target(x))  # <- found
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        target.load_state_dict(net.state_dict())

# case: without gradients
import copy
import torch
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
teacher = copy.deepcopy(net)
for x in batches:
    with torch.no_grad():
        wanted = teacher(x)
    loss = F.mse_loss(net(x), wanted)
    loss.backward()

# case: frozen
import copy
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
teacher = copy.deepcopy(net)
for p in teacher.parameters():
    p.requires_grad = False
for x in batches:
    loss = F.mse_loss(net(x), teacher(x))
    loss.backward()

# case: frozen at once
import copy
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
teacher = copy.deepcopy(net).requires_grad_(False)
other = copy.deepcopy(net)
other.requires_grad_(False)
for x in batches:
    loss = F.mse_loss(net(x), teacher(x) + other(x))
    loss.backward()

# case: trained, too
import copy
import torch
import torch.nn.functional as F
from torchvision import models

first = models.resnet18()
second = copy.deepcopy(first)
optimizer = torch.optim.Adam(list(first.parameters()) + list(second.parameters()))
for x in batches:
    loss = F.mse_loss(first(x), second(x))
    loss.backward()
    optimizer.step()

# case: given to a function
import copy
from helpers import freeze
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
teacher = copy.deepcopy(net)
freeze(teacher)
for x in batches:
    loss = F.mse_loss(net(x), teacher(x))
    loss.backward()

# case: detached at once
import copy
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
teacher = copy.deepcopy(net)
for x in batches:
    loss = F.mse_loss(net(x), teacher(x).detach())
    loss.backward()

# case: the inner model of meta-learning
import copy
import torch
from torchvision import models

net = models.resnet18()
for x, y in tasks:
    fast = copy.deepcopy(net)
    loss = (fast(x) - y).mean()
    grads = torch.autograd.grad(loss, fast.parameters())
    outer = net(x).mean()
    outer.backward()

# case: an attack on a copy
from copy import deepcopy
import torch

def attack(model, x):
    model = deepcopy(model)
    model.eval()
    x.requires_grad_(True)
    for step in range(10):
        model(x).sum().backward()

# case: a critic through which the gradients go back
import copy
from torchvision import models
from nets import Generator

critic = models.resnet18()
frozen = copy.deepcopy(critic)
painter = models.resnet50()
for x in batches:
    fake = painter(x)
    loss = frozen(fake).mean() - critic(x).mean()
    loss.backward()
    optimizer.step()

# case: frozen by the method, and detached in place
import copy
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
ema = copy.deepcopy(net)
for p in ema.parameters():
    p.requires_grad_(False)
teacher = copy.deepcopy(net)
for p in teacher.parameters():
    p.detach_()
for x in batches:
    loss = F.mse_loss(net(x), ema(x)) + F.mse_loss(net(x), teacher(x))
    loss.backward()

# case: the gradients of the copy are used
import copy
from torchvision import models

net = models.resnet18()
local = copy.deepcopy(net)
for x in batches:
    net(x).sum().backward()
    local.zero_grad()
    local(x).sum().backward()

other = copy.deepcopy(net)
for x in batches:
    net(x).sum().backward()
    other(x).sum().backward()
    for p in other.parameters():
        p.data -= 0.1 * p.grad

# case: its output is used without its graph
import copy
import torch

def train(model, loader, optimizer, criterion):
    teacher = copy.deepcopy(model)
    for x, y in loader:
        with torch.no_grad():
            wanted = teacher(x)
        loss = criterion(model(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a copy for each task that is trained itself
import copy
import torch

def meta_train(model, tasks, criterion):
    for support, query, y in tasks:
        learner = copy.deepcopy(model)
        inner = torch.optim.SGD(learner.parameters(), lr=0.1)
        for _ in range(5):
            loss = criterion(learner(support), y)
            inner.zero_grad()
            loss.backward()
            inner.step()
        print(criterion(model(query), y).item(), criterion(learner(query), y).item())

# case: gradients go through the copy to an input
import copy
import torch

def attack(model, x, y, criterion, optimizer):
    proxy = copy.deepcopy(model)
    for _ in range(10):
        noise = torch.zeros_like(x, requires_grad=True)
        criterion(proxy(x + noise), y).backward()
        x = x + noise.grad.sign() * 0.01
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

# case: a moving average that runs in evaluation only
import copy
import torch

def train(model, loader, held_out, optimizer, criterion):
    average = copy.deepcopy(model)
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(average.parameters(), model.parameters()):
                old.lerp_(new, 0.01)
    with torch.no_grad():
        for x, y in held_out:
            print(criterion(average(x), y).item())

# case: the copy is made after each task
import copy
import torch.nn.functional as F

class Learner:
    def __init__(self, net, optimizer):
        self.net = net.cuda()
        self.old_net = None
        self.optimizer = optimizer

    def end_task(self):
        self.old_net = copy.deepcopy(self.net)

    def observe(self, x, y):
        out = self.net(x.cuda())
        loss = F.cross_entropy(out, y.cuda())
        if self.old_net is not None:
            loss = loss + F.mse_loss(out, self.old_net(x.cuda()))  # <- found
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

# case: target networks of TD3, whose class is named like the optimizer
import copy
import torch
import torch.nn.functional as F

class TD3:
    def __init__(self, states, actions):
        self.critic = Critic(states, actions).to("cuda")
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters())

    def train(self, buffer):
        s, a, s2, r, going = buffer.sample(256)
        q = r + going * 0.99 * self.critic_target(s2, a)  # <- found
        loss = F.mse_loss(self.critic(s, a), q)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

# case: a copy of a model of unknown origin
import copy
import torch.nn.functional as F

for task, loader in enumerate(tasks):
    old = copy.deepcopy(model)
    for x, y in loader:
        out = model(x.cuda())
        loss = F.cross_entropy(out, y.cuda()) + F.mse_loss(out, old(x.cuda()))  # <- found
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
