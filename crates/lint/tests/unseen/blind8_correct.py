# case: global lists of floats
import torch

hist = []

def train_one_epoch():
    for x, y in trainloader:
        opt.zero_grad()
        l = lossfn(net(x.to(dev)), y.to(dev))
        l.backward()
        opt.step()
        hist.append(l.item())

# case: rendering in chunks on the card is joined for a loss
import torch

def render(model, rays):
    out = []
    for i in range(0, len(rays), 1024):
        out.append(model(rays[i:i + 1024].cuda()))
    return torch.cat(out)

for rays, rgb in loader:
    loss = (render(nerf, rays) - rgb.cuda()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: averaging under no_grad in a list
import torch

class Averager:
    def __init__(self, params):
        self.params = list(params)
        self.avg = [p.detach().clone() for p in self.params]

    @torch.no_grad()
    def step(self):
        self.avg = [0.999 * a + 0.001 * p for a, p in zip(self.avg, self.params)]

# case: loss of a module with a frozen network through which gradients flow
import torch
import torch.nn as nn

class Perceptual(nn.Module):
    def __init__(self, vgg):
        super().__init__()
        self.vgg = vgg.eval()

    def forward(self, fake, real):
        return (self.vgg(fake) - self.vgg(real).detach()).abs().mean()

crit = Perceptual(vgg16().cuda())
for x, y in loader:
    loss = crit(gen(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: model part trained by the optimizer of its loss module
import torch
import torch.nn as nn

class Joint(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = a, b.eval()

    def forward(self, x):
        return (self.a(x) - self.b(x)).pow(2).mean()

m = Joint(net_a, net_b).cuda()
opt = torch.optim.Adam(m.parameters())
for x in loader:
    loss = m(x.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: discriminator helper gets detached images from its caller
import torch

def d_loss(disc, real, fake):
    return disc(fake).mean() - disc(real).mean()

for real, z in loader:
    fake = gen(z.cuda())
    ld = d_loss(disc, real.cuda(), fake.detach())
    opt_disc.zero_grad()
    ld.backward()
    opt_disc.step()
    lg = -disc(fake).mean()
    opt_gen.zero_grad()
    lg.backward()
    opt_gen.step()

# case: one helper for the losses of both networks
import torch

def adv(disc, images, sign):
    return sign * disc(images).mean()

for real, z in loader:
    fake = gen(z.cuda())
    ld = adv(disc, fake.detach(), 1) + adv(disc, real.cuda(), -1)
    opt_disc.zero_grad()
    ld.backward()
    opt_disc.step()
    lg = adv(disc, fake, -1)
    opt_gen.zero_grad()
    lg.backward()
    opt_gen.step()

# case: fakes in an attribute are detached in the other method
import torch

class P2P:
    def __init__(self, g, d):
        self.g, self.d = g.cuda(), d.cuda()
        self.og = torch.optim.Adam(self.g.parameters())
        self.od = torch.optim.Adam(self.d.parameters())

    def forward(self, x):
        self.fake = self.g(x)

    def back_d(self, y):
        self.loss_d = self.d(self.fake.detach()).mean() - self.d(y).mean()
        self.loss_d.backward()

    def back_g(self):
        self.loss_g = -self.d(self.fake).mean()
        self.loss_g.backward()

    def step(self, x, y):
        self.forward(x.cuda())
        self.od.zero_grad()
        self.back_d(y.cuda())
        self.od.step()
        self.og.zero_grad()
        self.back_g()
        self.og.step()

# case: validation loss of a dict of parts reset for every batch
import torch

for x, y in loader:
    parts = {"a": 0, "b": 0}
    for v in x:
        la, lb = net(v.cuda(), y.cuda())
        parts = {k: parts[k] + t for k, t in (("a", la), ("b", lb))}
    loss = parts["a"] + parts["b"]
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: list of a generator of numbers
import torch

def accuracies(model, loader):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            yield (model(x.cuda()).argmax(1) == y.cuda()).float().mean().item()

accs = list(accuracies(net, loader))

# case: comprehension of host outputs
import torch

with torch.inference_mode():
    preds = [net(x.cuda()).cpu() for x, _ in test_loader]

# case: encode method of a model on the host
import torch

model.eval()
with torch.no_grad():
    codes = [model.encode(x) for x in loader]

# case: teacher frozen by a helper in another class
import torch
import torch.nn as nn

class KD(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.teacher = teacher.eval()
        for p in self.teacher.parameters():
            p.requires_grad = False

    def forward(self, s, x):
        return (s - self.teacher(x)).pow(2).mean()

kd = KD(big.cuda())
for x, _ in loader:
    loss = kd(student(x.cuda()), x.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: actor loss through a target critic
import copy
import torch

class DDPG:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor.cuda(), critic.cuda()
        self.critic_target = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters())

    def actor_step(self, s):
        a = self.actor(s)
        loss = -self.critic_target(s, a).mean() + 0 * self.critic(s, a).mean()
        self.actor_opt.zero_grad()
        loss.backward()
        self.actor_opt.step()

# case: a name from another cell is an optimizer
for x, y in loader:
    loss = crit(model(x.cuda()), y.cuda())
    optim.zero_grad()
    loss.backward()
    optim.step()
    history.append(loss.item())

# case: state collected by an agent for one update and given back
import torch

def rollout(agent, env, storage):
    obs = env.reset()
    for t in range(64):
        value = agent.critic(obs.cuda())
        storage.values.append(value)
        obs, r, done, _ = env.step(agent.act(obs))
    return storage

def update(agent, storage, opt):
    loss = torch.stack(storage.values).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    storage.values = []

for it in range(100):
    update(agent, rollout(agent, env, storage), opt)

# case: running average logged every hundred steps with detach
import torch

run = 0
for i, (x, y) in enumerate(loader):
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    run = run + loss.detach()
    if i % 100 == 0:
        print(run)
        run = 0

# case: lightning detaches the loss that it gives to callbacks
import pytorch_lightning as pl

class LossHistory(pl.Callback):
    def __init__(self):
        self.values = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.values.append(outputs["loss"])
