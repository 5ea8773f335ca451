# case: epoch helper with a number
import torch

def run_epoch(model, iterator, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    epoch_loss = 0
    with torch.set_grad_enabled(training):
        for batch in iterator:
            loss = criterion(model(batch.text.cuda()).squeeze(1), batch.label.cuda())
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            epoch_loss += loss.item()
    return epoch_loss / len(iterator)

# case: solver sums components into the loss
import torch
import torch.nn as nn

class Solver(object):
    def __init__(self, loader, net, weights):
        self.loader, self.net, self.weights = loader, net.cuda(), weights
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def compute_total(self, outputs, targets):
        total = 0
        for name, out in outputs.items():
            total += self.weights[name] * nn.functional.mse_loss(out, targets[name].cuda())
        return total

    def train(self):
        for x, targets in self.loader:
            total = self.compute_total(self.net(x.cuda()), targets)
            self.optimizer.zero_grad()
            total.backward()
            self.optimizer.step()

# case: beta-vae object keeps the loss dict of the last step only
import torch

class Exp:
    def __init__(self, vae, opt):
        self.vae, self.opt = vae, opt
        self.last = {}

    def step(self, x):
        rec, mu, lv = self.vae(x.cuda())
        r = torch.nn.functional.mse_loss(rec, x.cuda())
        k = (mu ** 2 + lv.exp() - lv - 1).mean()
        self.opt.zero_grad()
        (r + k).backward()
        self.opt.step()
        self.last = {"r": r, "k": k}
        self.last["sum"] = r + k

# case: replay memory of detached states in a ring
from collections import deque, namedtuple
import random
import torch

Transition = namedtuple("Transition", ("state", "action", "reward"))

class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

memory = ReplayMemory(10000)
for ep in range(100):
    state = torch.tensor(env.reset(), device="cuda")
    for t in range(1000):
        with torch.no_grad():
            action = policy_net(state).argmax()
        obs, reward, done, _ = env.step(action.item())
        memory.push(state, action, reward)
        state = torch.tensor(obs, device="cuda")

# case: experiment averages floats
import torch

class Experiment:
    total_loss = 0.0

    def __init__(self, net, opt, data):
        self.net, self.opt, self.data = net, opt, data

    def on_batch(self, x, y):
        self.loss = ((self.net(x.cuda()) - y.cuda()) ** 2).mean()
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()
        self.total_loss = self.total_loss + self.loss.item()

    def run(self):
        for x, y in self.data:
            self.on_batch(x, y)

# case: buffer of rollouts is cleared by the update it calls
import torch
from torch.distributions import Categorical

class Buffer:
    def __init__(self):
        self.logps, self.rewards = [], []

    def store(self, logp, reward):
        self.logps.append(logp)
        self.rewards.append(reward)

    def clear(self):
        self.logps.clear()
        self.rewards.clear()

buffer = Buffer()
for ep in range(1000):
    s, done = env.reset(), False
    while not done:
        d = Categorical(logits=policy(torch.tensor(s).cuda()))
        a = d.sample()
        s, r, done, _ = env.step(a.item())
        buffer.store(d.log_prob(a), r)
    loss = -(torch.stack(buffer.logps) * sum(buffer.rewards)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    buffer.clear()

# case: meter helper with floats
import torch

class Meter:
    def __init__(self):
        self.history = []

    def update(self, v):
        self.history.append(v.item() if torch.is_tensor(v) else v)

def report(meters, **values):
    for name, value in values.items():
        meters[name].update(value)

def train(model, loader, crit, opt):
    meters = {"total": Meter()}
    for img, kp in loader:
        total = crit(model(img.cuda()), kp.cuda())
        opt.zero_grad()
        total.backward()
        opt.step()
        report(meters, total=total)

# case: kNN bank needed on the card without gradients
import torch
import torch.nn.functional as F

@torch.no_grad()
def knn_monitor(net, memory_loader, test_loader):
    net.eval()
    bank = []
    for data, _ in memory_loader:
        bank.append(F.normalize(net(data.cuda()), dim=1))
    bank = torch.cat(bank, dim=0).t()
    hits = 0
    for data, target in test_loader:
        sim = F.normalize(net(data.cuda()), dim=1) @ bank
        hits += (sim.argmax(1).cpu() == target).sum().item()
    return hits

# case: ppo acts under no_grad
import torch
from torch.distributions import Categorical

class PPO:
    def __init__(self, net, lr):
        self.states, self.logprobs = [], []
        self.policy = net.cuda()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)

    def select_action(self, state):
        with torch.no_grad():
            dist = Categorical(self.policy(torch.FloatTensor(state).cuda()))
            action = dist.sample()
            self.logprobs.append(dist.log_prob(action))
        return action.item()

    def update(self):
        old = torch.stack(self.logprobs)
        dist = Categorical(self.policy(torch.stack(self.states)))
        loss = -(dist.logits.max(1).values - old).exp().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.logprobs = []

# case: unrolled optimisation sums inner losses
import torch

def learned_optimizer_step(optnet, optimizee, data, meta_opt, unroll=20):
    total = 0
    theta = optimizee.init()
    for t in range(unroll):
        loss = optimizee.loss(theta, data)
        total = total + loss
        g, = torch.autograd.grad(loss, theta, create_graph=True)
        theta = theta + optnet(g)
    meta_opt.zero_grad()
    total.backward()
    meta_opt.step()
    return total.item()

# case: decoder keeps attention that the loss reads afterwards
import torch
import torch.nn as nn

class Decoder(nn.Module):
    def __init__(self, h, v):
        super().__init__()
        self.gru = nn.GRU(h, h)
        self.out = nn.Linear(h, v)
        self.attns = []

    def forward(self, x, hidden):
        o, hidden = self.gru(x, hidden)
        self.attns.append(o.softmax(-1))
        return self.out(o), hidden

dec = Decoder(256, 1000).cuda()
opt = torch.optim.SGD(dec.parameters(), lr=0.01)
for x, h0, y in loader:
    dec.attns = []
    logits, _ = dec(x.cuda(), h0.cuda())
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.cuda().flatten())
    loss = loss + sum(a.pow(2).mean() for a in dec.attns)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: history gets numbers
import torch

class History:
    def __init__(self):
        self.history = {}

    def on_batch_end(self, logs):
        for k, v in logs.items():
            self.history.setdefault(k, []).append(v)

def fit(net, loader, opt, crit):
    hist = History()
    for x, y in loader:
        l = crit(net(x.cuda()), y.cuda())
        opt.zero_grad()
        l.backward()
        opt.step()
        hist.on_batch_end({"loss": l.item(), "size": len(x)})
    return hist

# case: teacher list under inference mode
import torch
import torch.nn.functional as F

def distill(student, teachers, loader, opt):
    for x, y in loader:
        x = x.cuda()
        with torch.inference_mode():
            soft = sum(F.softmax(t(x), 1) for t in teachers) / len(teachers)
        loss = F.kl_div(F.log_softmax(student(x), 1), soft.clone(), reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: layers collected inside forward for a U-Net
import torch
import torch.nn as nn

class UNet(nn.Module):
    def __init__(self, downs, ups):
        super().__init__()
        self.downs, self.ups = nn.ModuleList(downs), nn.ModuleList(ups)

    def forward(self, x):
        skips = []
        for d in self.downs:
            x = d(x)
            skips.append(x)
        for u in self.ups:
            x = u(torch.cat([x, skips.pop()], 1))
        return x

# case: pseudo labels by a function under no_grad
import copy
import torch
import torch.nn.functional as F

@torch.no_grad()
def label(teacher, u):
    return F.softmax(teacher(u), dim=1)

def self_train(student, labeled, unlabeled):
    opt = torch.optim.Adam(student.parameters())
    teacher = copy.deepcopy(student)
    for (x, y), u in zip(labeled, unlabeled):
        pseudo = label(teacher, u.cuda())
        loss = F.cross_entropy(student(x.cuda()), y.cuda()) + F.mse_loss(F.softmax(student(u.cuda()), 1), pseudo)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: per step store of numpy values
import torch

STORE = {}

def log_metrics(step, **metrics):
    for k, v in metrics.items():
        STORE.setdefault(k, []).append((step, v))

def train(model, dl, opt):
    for step, (a, b) in enumerate(dl):
        loss = torch.nn.functional.l1_loss(model(a.cuda()), b.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        log_metrics(step, loss=loss.detach().cpu().numpy())

# case: losses of all crops of one image
import torch

def multi_crop(student, crops_loader, opt):
    for crops in crops_loader:
        total, n = 0, 0
        outs = [student(c.cuda()) for c in crops]
        for i, a in enumerate(outs):
            for j, b in enumerate(outs):
                if i != j:
                    total += -(a.softmax(-1).detach() * b.log_softmax(-1)).sum(-1).mean()
                    n += 1
        total /= n
        opt.zero_grad()
        total.backward()
        opt.step()

# case: token counts per id
import torch

per_utt = dict()
for batch in train_loader:
    out = model(batch["feats"].cuda())
    loss = torch.nn.functional.cross_entropy(out, batch["y"].cuda())
    optim.zero_grad()
    loss.backward()
    optim.step()
    value = loss.item()
    for uid in batch["ids"]:
        per_utt[uid] = value

# case: server object with decorator on call
import torch

class FeatureServer:
    def __init__(self):
        self.net = torch.hub.load("facebookresearch/dino:main", "dino_vits16").cuda()
        self.net.eval()

    @torch.no_grad()
    def __call__(self, image):
        return self.net(torch.as_tensor(image).cuda()).tolist()

server = FeatureServer()
for img in stream():
    publish(server(img))

# case: tracker detaches
import torch

class Tracker:
    def __init__(self):
        self.g = 0

    def add(self, g):
        self.g = self.g + g.detach()

tracker = Tracker()
for real in loader:
    z = torch.randn(len(real), 100, device="cuda")
    loss_g = -D(G(z)).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    tracker.add(loss_g)

# case: worker writes to the host
import torch
results = []

@torch.no_grad()
def worker(model, jobs):
    model.eval().cuda()
    while not jobs.empty():
        results.append(model(jobs.get().cuda()).cpu())

# case: class with callbacks where a new object is made per batch
import torch

class StepLog:
    def __init__(self):
        self.parts = []

    def add_part(self, v):
        self.parts.append(v)

def train(model, loader, opt, crits):
    for x, y in loader:
        log = StepLog()
        out = model(x.cuda())
        for c in crits:
            log.add_part(c(out, y.cuda()))
        loss = sum(log.parts)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: loss collector object is summed and reset in every step
import torch

class LossBag:
    def __init__(self):
        self.items = {}

    def put_loss(self, name, v):
        self.items[name] = v

    def total(self):
        s = sum(self.items.values())
        self.items = {}
        return s

bag = LossBag()
for x, y in loader:
    out = model(x.cuda())
    bag.put_loss("ce", torch.nn.functional.cross_entropy(out, y.cuda()))
    bag.put_loss("l2", out.pow(2).mean())
    opt.zero_grad()
    bag.total().backward()
    opt.step()

# case: gan penalty retains the graph for the second loss
import torch
for x, y in loader:
    feat = encoder(x.cuda())
    adv = discriminator(feat).mean()
    cls = torch.nn.functional.cross_entropy(classifier(feat), y.cuda())
    enc_opt.zero_grad()
    adv.backward(retain_graph=True)
    cls.backward()
    enc_opt.step()

# case: saliency of every layer kept as numbers
import torch

def norms(model, loader, crit):
    out = []
    for x, y in loader:
        crit(model(x.cuda()), y.cuda()).backward()
        out.append({n: p.grad.norm().item() for n, p in model.named_parameters()})
        model.zero_grad()
    return out

# case: moving average in closure as float
import torch

def make_step(model, opt):
    smooth = None

    def step(x, y):
        nonlocal smooth
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        v = loss.item()
        smooth = v if smooth is None else smooth * 0.95 + v * 0.05
        return smooth

    return step

# case: evaluation of towers under no_grad
import torch

def evaluate(model, item_loader):
    model.eval()
    items = []
    with torch.no_grad():
        for i in item_loader:
            items.append(model.item_tower(i.cuda()))
    items = torch.cat(items)
    return items @ items.t()

# case: lightning validation outputs cleared
import pytorch_lightning as pl
import torch

class Seg(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.val_logits = []

    def validation_step(self, batch, _):
        x, y = batch
        self.val_logits.append(self.net(x))

    def on_validation_epoch_end(self):
        print(torch.cat(self.val_logits).mean())
        self.val_logits = []

# case: actor loss goes through the critic on purpose
import torch

for s, a, r, s2 in replay_loader:
    with torch.no_grad():
        y = r.cuda() + 0.99 * critic_target(s2.cuda(), actor_target(s2.cuda()))
    c_loss = (critic(s.cuda(), a.cuda()) - y).pow(2).mean()
    c_opt.zero_grad()
    c_loss.backward()
    c_opt.step()
    a_loss = -critic(s.cuda(), actor(s.cuda())).mean()
    a_opt.zero_grad()
    a_loss.backward()
    a_opt.step()

# case: reconstruction errors as list of floats
import torch

def fit_threshold(ae, loader):
    errors = []
    with torch.no_grad():
        for x in loader:
            x = x.cuda()
            errors.extend(((ae(x) - x) ** 2).flatten(1).mean(1).tolist())
    return sorted(errors)[int(0.99 * len(errors))]

# case: bptt inside a function that returns the loss to its caller
import torch

def sequence_loss(cell, head, xs, ys):
    h = None
    losses = []
    for x, y in zip(xs, ys):
        h = cell(x.cuda(), h)
        losses.append(torch.nn.functional.cross_entropy(head(h), y.cuda()))
    return torch.stack(losses).mean()

for xs, ys in loader:
    loss = sequence_loss(cell, head, xs, ys)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: evaluator with no_grad inside the loop
import torch

class Evaluator:
    def __init__(self, model, loss):
        self.model, self.loss = model, loss

    def evaluate(self, loader):
        self.model.eval()
        losses = []
        for batch in loader:
            with torch.no_grad():
                out = self.model(batch.src.cuda())
                losses.append(self.loss(out, batch.tgt.cuda()))
        return torch.stack(losses).mean().item()

# case: checkpoint on the host, whole model loaded
import torch

def resume(path, model, optimizer):
    state = torch.load(path, map_location=lambda storage, loc: storage)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["opt"])
    return state["epoch"]

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
start = resume("last.pth", model, optimizer)

# case: generator yields batches on the card
import torch

def batches(loader):
    for x, y in loader:
        yield x.cuda(), y.cuda()

seen = []
for x, y in batches(loader):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    seen.append(len(x))

# case: hook averages
import torch.nn as nn

means = {}

def attach(model):
    for name, layer in model.named_modules():
        if isinstance(layer, nn.ReLU):
            means[name] = []
            layer.register_forward_hook(lambda m, i, o, name=name: means[name].append(o.mean().item()))

attach(net)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
    opt.step()

# case: gradient caching keeps representations until the second pass
import torch

for big_batch in loader:
    reps = []
    with torch.no_grad():
        for chunk in big_batch.chunk(8):
            reps.append(model(chunk.cuda()))
    reps = torch.cat(reps).requires_grad_()
    loss = contrastive(reps)
    loss.backward()
    opt.zero_grad()
    for chunk, g in zip(big_batch.chunk(8), reps.grad.chunk(8)):
        r = model(chunk.cuda())
        r.backward(g)
    opt.step()

# case: guesses as indices
import torch

@torch.no_grad()
def confusion(rnn, n):
    guesses = []
    for i in range(n):
        line = random_example()
        hidden = rnn.initHidden().cuda()
        for j in range(line.size(0)):
            output, hidden = rnn(line[j].cuda(), hidden)
        guesses.append(output.argmax().item())
    return guesses

# case: losses list of floats from aux heads
import torch

def fit(net, dl, opt):
    hist = []
    for x, y in dl:
        losses = [torch.nn.functional.cross_entropy(o, y.cuda()) for o in net(x.cuda())]
        opt.zero_grad()
        sum(losses).backward()
        opt.step()
        hist.append([l.item() for l in losses])
    return hist

# case: accumulation over a fixed number of tasks before one step
import torch

def meta_train(model, sampler, opt, n_tasks):
    for it in range(10000):
        opt.zero_grad()
        outer = []
        for _ in range(n_tasks):
            xs, ys = sampler.sample()
            outer.append(torch.nn.functional.mse_loss(model(xs.cuda()), ys.cuda()))
        loss = torch.stack(outer).mean()
        loss.backward()
        opt.step()
        if it % 100 == 0:
            print(it, [o.item() for o in outer])

# case: every tenth loss as number
import torch

train_losses = []

def train(epoch, network, loader, optimizer):
    network.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(network(data.to("cuda")), target.to("cuda"))
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            train_losses.append(loss.item())
