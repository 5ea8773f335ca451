# case: the discriminator's step goes back through the generator
import torch
from torch import nn

G = nn.Sequential(nn.Linear(100, 784), nn.Tanh()).cuda()
D = nn.Sequential(nn.Linear(784, 1), nn.Sigmoid()).cuda()
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.BCELoss()
for real, _ in loader:
    real = real.cuda()
    ones, zeros = torch.ones(len(real), 1).cuda(), torch.zeros(len(real), 1).cuda()
    fake = G(torch.randn(len(real), 100).cuda())
    d_loss = bce(D(real), ones) + bce(D(fake), zeros)  # <- found: fake-not-detached
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    fake = G(torch.randn(len(real), 100).cuda())
    g_loss = bce(D(fake), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

# case: the discriminator's step detaches
import torch
from torch import nn

G = nn.Sequential(nn.Linear(100, 784), nn.Tanh()).cuda()
D = nn.Sequential(nn.Linear(784, 1), nn.Sigmoid()).cuda()
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.BCELoss()
for real, _ in loader:
    real = real.cuda()
    ones, zeros = torch.ones(len(real), 1).cuda(), torch.zeros(len(real), 1).cuda()
    fake = G(torch.randn(len(real), 100).cuda())
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = bce(D(fake), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

# case: the critic of a class retains the graph instead of detaching
import torch


class WGAN:
    def __init__(self, generator, critic):
        self.generator, self.critic = generator.cuda(), critic.cuda()
        self.g_optimizer = torch.optim.RMSprop(self.generator.parameters(), lr=5e-5)
        self.c_optimizer = torch.optim.RMSprop(self.critic.parameters(), lr=5e-5)

    def step(self, real):
        z = torch.randn(real.size(0), 128, device="cuda")
        fake = self.generator(z)
        critic_loss = self.critic(fake).mean() - self.critic(real).mean()  # <- found: fake-not-detached
        self.c_optimizer.zero_grad()
        critic_loss.backward(retain_graph=True)
        self.c_optimizer.step()
        gen_loss = -self.critic(self.generator(z)).mean()
        self.g_optimizer.zero_grad()
        gen_loss.backward()
        self.g_optimizer.step()

# case: the critic's step makes its fakes without a graph
import torch


class WGAN:
    def __init__(self, generator, critic):
        self.generator, self.critic = generator.cuda(), critic.cuda()
        self.g_optimizer = torch.optim.RMSprop(self.generator.parameters(), lr=5e-5)
        self.c_optimizer = torch.optim.RMSprop(self.critic.parameters(), lr=5e-5)

    def step(self, real):
        z = torch.randn(real.size(0), 128, device="cuda")
        with torch.no_grad():
            fake = self.generator(z)
        critic_loss = self.critic(fake).mean() - self.critic(real).mean()
        self.c_optimizer.zero_grad()
        critic_loss.backward()
        self.c_optimizer.step()
        gen_loss = -self.critic(self.generator(z)).mean()
        self.g_optimizer.zero_grad()
        gen_loss.backward()
        self.g_optimizer.step()

# case: one loss trains generator and discriminator at once
import torch

opt = torch.optim.Adam(list(G.parameters()) + list(D.parameters()))
for real in loader:
    fake = G(real)
    loss = D(fake).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: an encoder and its head have two optimizers and one loss
import torch
import torch.nn.functional as F


def train(encoder, head, loader):
    enc_opt = torch.optim.Adam(encoder.parameters(), lr=1e-5)
    head_opt = torch.optim.Adam(head.parameters(), lr=1e-3)
    for x, y in loader:
        loss = F.cross_entropy(head(encoder(x)), y)
        enc_opt.zero_grad()
        head_opt.zero_grad()
        loss.backward()
        enc_opt.step()
        head_opt.step()

# case: a teacher from another package records its graph
import timm
import torch
import torch.nn.functional as F

teacher = timm.create_model("resnet50", pretrained=True).cuda()
teacher.eval()
student = timm.create_model("resnet18").cuda()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.cuda(), y.cuda()
    t = teacher(x)  # <- found: frozen-model-with-gradients
    s = student(x)
    loss = F.cross_entropy(s, y) + F.kl_div(s.log_softmax(1), t.softmax(1), reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a teacher from another package under no_grad
import timm
import torch
import torch.nn.functional as F

teacher = timm.create_model("resnet50", pretrained=True).cuda()
teacher.eval()
student = timm.create_model("resnet18").cuda()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.cuda(), y.cuda()
    with torch.no_grad():
        t = teacher(x)
    s = student(x)
    loss = F.cross_entropy(s, y) + F.kl_div(s.log_softmax(1), t.softmax(1), reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a teacher whose parameters are frozen
import torch
import torch.nn.functional as F
from torchvision import models

teacher = models.resnet50(weights="DEFAULT").cuda().eval()
for p in teacher.parameters():
    p.requires_grad = False
student = models.resnet18().cuda()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for x, y in loader:
    s, t = student(x.cuda()), teacher(x.cuda())
    loss = F.mse_loss(s, t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a teacher in a function that nothing calls
import torch
import torch.nn as nn


def distill(student, teacher, loader, epochs, lr, T, device):
    ce = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(student.parameters(), lr=lr)
    teacher.eval()
    student.train()
    for epoch in range(epochs):
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            teacher_logits = teacher(inputs)  # <- found: frozen-model-with-gradients
            student_logits = student(inputs)
            soft = nn.functional.softmax(teacher_logits / T, dim=-1)
            loss = ce(student_logits, labels) - (soft * student_logits.log_softmax(-1)).mean()
            loss.backward()
            optimizer.step()

# case: a perceptual loss needs the graph of its frozen network
import torch
from torchvision import models

vgg = models.vgg16(weights="DEFAULT").features.cuda().eval()
net = torch.nn.Conv2d(3, 3, 3, padding=1).cuda()
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader:
    out = net(x.cuda())
    with torch.no_grad():
        target = vgg(y.cuda())
    loss = (vgg(out) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a perceptual loss records the target's graph
import torch
from torchvision import models

vgg = models.vgg16(weights="DEFAULT").features.cuda().eval()
net = torch.nn.Conv2d(3, 3, 3, padding=1).cuda()
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader:
    out = net(x.cuda())
    target = vgg(y.cuda())  # <- found: frozen-model-with-gradients
    loss = (vgg(out) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a moving average of the weights grows a graph
import torch
from torch import nn

model = nn.Linear(16, 16).cuda()
optimizer = torch.optim.Adam(model.parameters())
shadow = {name: p.clone() for name, p in model.named_parameters()}
for x, y in loader:
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, p in model.named_parameters():
        shadow[name] = 0.999 * shadow[name] + 0.001 * p  # <- found: averaged-weights-with-graph

# case: a moving average of the weights without a graph
import torch
from torch import nn

model = nn.Linear(16, 16).cuda()
optimizer = torch.optim.Adam(model.parameters())
shadow = {name: p.detach().clone() for name, p in model.named_parameters()}
for x, y in loader:
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for name, p in model.named_parameters():
            shadow[name] = 0.999 * shadow[name] + 0.001 * p

# case: a class for moving averages without no_grad
class EMA:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {}
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = (1.0 - self.decay) * param + self.decay * self.shadow[name]  # <- found: averaged-weights-with-graph

# case: a class for moving averages of data
class EMA:
    def __init__(self, model, decay):
        self.model = model
        self.decay = decay
        self.shadow = {}
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                new = (1.0 - self.decay) * param.data + self.decay * self.shadow[name]
                self.shadow[name] = new.clone()

# case: a momentum teacher that is a copy
import copy

import torch
import torch.nn.functional as F


def byol(online, loader):
    target = copy.deepcopy(online)
    opt = torch.optim.Adam(online.parameters())
    for v1, v2 in loader:
        p = online(v1.cuda())
        z = target(v2.cuda())  # <- found: copy-with-gradients
        loss = 2 - 2 * F.cosine_similarity(p, z).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for a, b in zip(target.parameters(), online.parameters()):
                a.mul_(0.99).add_(b, alpha=0.01)

# case: a momentum teacher that is a copy and frozen
import copy

import torch
import torch.nn.functional as F


def byol(online, loader):
    target = copy.deepcopy(online).requires_grad_(False)
    opt = torch.optim.Adam(online.parameters())
    for v1, v2 in loader:
        p = online(v1.cuda())
        z = target(v2.cuda())
        loss = 2 - 2 * F.cosine_similarity(p, z).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for a, b in zip(target.parameters(), online.parameters()):
                a.mul_(0.99).add_(b, alpha=0.01)

# case: CycleGAN's discriminators get the fakes of the generators' step
import torch


def train(G_AB, G_BA, D_A, D_B, loader, mse, l1):
    opt_G = torch.optim.Adam(list(G_AB.parameters()) + list(G_BA.parameters()))
    opt_D = torch.optim.Adam(list(D_A.parameters()) + list(D_B.parameters()))
    for a, b in loader:
        a, b = a.cuda(), b.cuda()
        fake_b, fake_a = G_AB(a), G_BA(b)
        loss_g = mse(D_B(fake_b), torch.ones_like(D_B(fake_b))) + l1(G_BA(fake_b), a)
        opt_G.zero_grad()
        loss_g.backward(retain_graph=True)
        opt_G.step()
        loss_d = mse(D_B(b), torch.ones_like(D_B(b))) + mse(D_B(fake_b), torch.zeros_like(D_B(b)))  # <- found: fake-not-detached
        opt_D.zero_grad()
        loss_d.backward()
        opt_D.step()
