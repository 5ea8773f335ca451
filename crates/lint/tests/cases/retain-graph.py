# case: one backward in the step
def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # <- found
        optimizer.step()

# case: a gradient scaler
import torch

def train(model, loader, optimizer, criterion):
    scaler = torch.cuda.amp.GradScaler()
    model.train()
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward(retain_graph=True)  # <- found
        scaler.step(optimizer)

# case: the last backward of a step, of its own graph
import torch
from torch import nn

G = nn.Linear(4, 4)
D = nn.Linear(4, 1)
opt_G = torch.optim.Adam(G.parameters())
opt_D = torch.optim.Adam(D.parameters())
for step in range(100):
    fake = G(torch.randn(8, 4))
    loss_G = torch.log(1 - D(fake)).mean()
    opt_G.zero_grad()
    loss_G.backward()
    opt_G.step()
    loss_D = -torch.mean(torch.log(D(torch.randn(8, 4))) + torch.log(1 - D(fake.detach())))
    opt_D.zero_grad()
    loss_D.backward(retain_graph=True)  # <- found
    opt_D.step()

# case: a weighted sum
import torch.nn.functional as F
from torchvision import models

net = models.resnet18()
for x, y in batches:
    out = net(x)
    first = F.cross_entropy(out, y)
    second = F.mse_loss(out, out.detach())
    total = first + 0.1 * second
    total.backward(retain_graph=True)  # <- found
    optimizer.step()

# case: Accelerate
from accelerate import Accelerator

accelerator = Accelerator()

def train(model, loader, optimizer):
    model.train()
    for batch in loader:
        loss = model(batch).loss
        accelerator.backward(loss, retain_graph=True)  # <- found
        optimizer.step()

# case: losses of a list
import torch

def train(model, loader, optimizer, criterion):
    model.train()
    for x, ys in loader:
        out = model(x)
        losses = [criterion(out, y) for y in ys]
        loss = sum(losses)
        loss.backward(retain_graph=True)  # <- found
        optimizer.step()

# case: a second loss of the same graph
def train(model, loader, optimizer, criterion, penalty):
    model.train()
    for x, y in loader:
        out = model(x)
        first = criterion(out, y)
        second = penalty(out)
        first.backward(retain_graph=True)
        second.backward()
        optimizer.step()

# case: a graph from before the loop
def optimise(model, x, targets, criterion):
    model.train()
    out = model(x)
    for y in targets:
        loss = criterion(out, y)
        loss.backward(retain_graph=True)

# case: a state that is carried over
def train(model, loader, optimizer, criterion, state):
    model.train()
    for x, y in loader:
        out, state = model(x, state)
        loss = criterion(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: no loop, and what the caller does is not known
def step(loss, optimizer):
    loss.backward(retain_graph=True)
    optimizer.step()

# case: gradients through the same graph in a function in the file
import torch

def penalty(loss, weights):
    return torch.autograd.grad(loss, weights)

def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward(retain_graph=True)
        print(penalty(loss, list(model.parameters())))
        optimizer.step()

# case: a condition decides
def train(model, loader, optimizer, criterion, keep):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward(retain_graph=keep)
        optimizer.step()

# case: a module that keeps its own state
import torch
from torch import nn

class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.state = None

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state

net = Memory()
for x, y in batches:
    loss = (net(x) - y).pow(2).mean()
    loss.backward(retain_graph=True)
    optimizer.step()

# case: once for each entry
import torch

def jacobian(model, x):
    model.train()
    out = model(x)
    for i in range(out.shape[1]):
        out[:, i].sum().backward(retain_graph=True)

# case: one row of a Jacobian after the other
import torch

def rows(model, x):
    model.eval()
    y = model(x)
    mask = torch.zeros_like(y)
    for i in range(y.shape[1]):
        mask[:, i] = 1.0
        y.backward(mask, retain_graph=True)
        mask[:, i] = 0.0

# case: a method that is given a mask of what to go back from
import torch

class Attack:
    def rows(self, x):
        y = self.logits(x)
        mask = torch.zeros_like(y)
        for i in range(y.shape[1]):
            mask[:, i] = 1.0
            y.backward(mask, retain_graph=True)

# case: a function that does one step
from torch import nn
from torch.utils.data import DataLoader

def step(model, x, y, optimizer):
    criterion = nn.CrossEntropyLoss()
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # <- found
    optimizer.step()
    return loss.item()

def train(model, data, optimizer):
    model.train()
    for x, y in DataLoader(data):
        step(model, x, y, optimizer)

# case: a step that passes on its outputs
from torch import nn
from torch.utils.data import DataLoader

def step(model, x, y, optimizer):
    out = model(x)
    loss = nn.CrossEntropyLoss()(out, y)
    loss.backward(retain_graph=True)
    optimizer.step()
    return out

def train(model, data, optimizer):
    model.train()
    for x, y in DataLoader(data):
        step(model, x, y, optimizer).sum().backward()

# case: rows of one output share its graph
def gradients(actor, obs, optimizer):
    actor.parameters()
    mu = actor(obs).reshape(-1)
    for k, fx in enumerate(mu):
        optimizer.zero_grad()
        fx.backward(retain_graph=True)

# case: losses that are passed in may share layers
def step(losses, optimizer):
    for idx, loss in enumerate(losses):
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()

# case: a function in the file uses a graph from before the loop
import torch
from torch import nn

weight = nn.Parameter(torch.ones(4, 4))
adjacency = torch.softmax(weight, dim=1)
model = nn.Linear(4, 4)

def compute(x, y):
    return (model(x) @ adjacency - y).pow(2).mean()

def train(loader, optimizer):
    for x, y in loader:
        loss = compute(x, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

# case: a module of another file may keep a state of its own
import torch
from models import SpikingNet

def train(loader, optimizer, criterion):
    net = SpikingNet(10)
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

# case: a generator's loss goes through the same images
def train(generator, critic, loader, first, second, noise):
    for real in loader:
        fake = generator(noise())
        d_loss = critic(fake).mean() - critic(real).mean()
        first.zero_grad()
        d_loss.backward(retain_graph=True)
        first.step()
        g_loss = -critic(fake).mean()
        second.zero_grad()
        g_loss.backward()
        second.step()

# case: a state on the object that the next step reads
class Agent:
    def learn(self, loader):
        for x, y in loader:
            self.memory = self.cell(x, self.memory)
            loss = (self.memory - y).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)
            self.optimizer.step()

# case: two optimizers, the second goes back in a closure
def train(first, second, loader, one, two):
    for x in loader:
        shared = first(x)
        loss = second(shared).mean()
        one.zero_grad()
        loss.backward(retain_graph=True)
        one.step()

        def closure():
            two.zero_grad()
            other = shared.pow(2).mean()
            other.backward()
            return other

        two.step(closure)

# case: a gradient for each class of one output
def gradients(model, x):
    scores = model(x)
    rows = []
    for index in range(scores.shape[1]):
        model.zero_grad()
        scores[0, index].backward(retain_graph=True)
        rows.append(x.grad.clone())
    return rows

# case: what the loss is made of is backpropagated after the loop
import torch

def train(gen, critic, loader, gen_opt, critic_opt):
    for real in loader:
        for _ in range(5):
            fake = gen(torch.randn(8, 64))
            loss = critic(fake).mean() - critic(real).mean()
            critic_opt.zero_grad()
            loss.backward(retain_graph=True)
            critic_opt.step()
        gen_loss = -critic(fake).mean()
        gen_opt.zero_grad()
        gen_loss.backward()
        gen_opt.step()

# case: the actor's loss has a graph of its own
import torch
import torch.nn.functional as F

class Agent:
    def update(self, states, actions, rewards):
        states = torch.tensor(states).cuda()
        rewards = torch.tensor(rewards).cuda()
        actions = torch.tensor(actions).cuda()
        value = self.critic(states)
        critic_loss = F.mse_loss(value, rewards)
        self.critic_opt.zero_grad()
        critic_loss.backward(retain_graph=True)  # <- found
        self.critic_opt.step()
        advantage = (rewards - value).detach()
        actor_loss = -(self.actor(states).gather(1, actions) * advantage).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

# case: the actor's loss goes back through the critic's value
import torch
import torch.nn.functional as F

class Agent:
    def update(self, states, actions, rewards):
        states = torch.tensor(states).cuda()
        rewards = torch.tensor(rewards).cuda()
        actions = torch.tensor(actions).cuda()
        value = self.critic(states)
        critic_loss = F.mse_loss(value, rewards)
        self.critic_opt.zero_grad()
        critic_loss.backward(retain_graph=True)
        self.critic_opt.step()
        advantage = rewards - value
        actor_loss = -(self.actor(states).gather(1, actions) * advantage).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

# case: both losses begin with features that are added to on the way
import torch.nn.functional as F

for x, y in loader:
    feats = backbone(x.cuda())
    feats = feats + 1
    one = F.cross_entropy(head_a(feats), y.cuda())
    two = F.mse_loss(head_b(x.cuda()), x.cuda())
    two += F.cross_entropy(head_c(feats), y.cuda())
    optimizer.zero_grad()
    one.backward(retain_graph=True)
    two.backward()
    optimizer.step()

# case: the value function learns from the same observations
import torch
import torch.nn.functional as F

def update(policy, value_fn, buffer, pi_opt, v_opt, clip=0.2):
    obs = torch.as_tensor(buffer["obs"], dtype=torch.float32).cuda()
    adv = torch.as_tensor(buffer["adv"], dtype=torch.float32).cuda()
    ratio = policy(obs).exp()
    pi_loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
    pi_opt.zero_grad()
    pi_loss.backward(retain_graph=True)  # <- found
    pi_opt.step()
    v_loss = F.mse_loss(value_fn(obs), adv)
    v_opt.zero_grad()
    v_loss.backward()
    v_opt.step()
