# case: polyak averaging through data needs no no_grad
import torch

def soft_update(target, source, tau):
    for t, s in zip(target.parameters(), source.parameters()):
        t.data = t.data * (1 - tau) + s * tau

def loop(q, q_target, opt, buf):
    for _ in range(100000):
        s, a, r, s2 = buf.sample()
        with torch.no_grad():
            y = r + 0.99 * q_target(s2).max(1).values
        loss = ((q(s).gather(1, a).squeeze() - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        soft_update(q_target, q, 0.005)

# case: tracker converts at its border
import torch


class MetricTracker:
    def __init__(self, *keys):
        self._sums = {k: 0.0 for k in keys}

    def update(self, key, value, n=1):
        self._sums[key] += float(value) * n


class Trainer:
    def __init__(self, model, criterion, optimizer, data_loader):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer
        self.data_loader = data_loader
        self.train_metrics = MetricTracker("loss", "acc")

    def _train_epoch(self, epoch):
        for data, target in self.data_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(data.cuda()), target.cuda())
            loss.backward()
            self.optimizer.step()
            self.train_metrics.update("loss", loss)

# case: set_grad_enabled by phase
import torch
for epoch in range(EPOCHS):
    for phase in ("train", "val"):
        training = phase == "train"
        model.train(training)
        total = 0.0
        with torch.set_grad_enabled(training):
            for X, y in loaders[phase]:
                yhat = model(X.cuda())
                l = loss_fn(yhat, y.cuda())
                if training:
                    optimizer.zero_grad()
                    l.backward()
                    optimizer.step()
                total += l.item()

# case: actor critic episode memory is used and dropped
import torch
from torch import optim
from torch.distributions import Normal


class A2C:
    def __init__(self, net):
        self.net = net.to("cuda")
        self.opt = optim.Adam(net.parameters(), lr=7e-4)
        self.log_probs, self.values, self.entropies = [], [], []

    def act(self, obs):
        mu, std, v = self.net(torch.tensor(obs, device="cuda"))
        dist = Normal(mu, std)
        a = dist.sample()
        self.log_probs.append(dist.log_prob(a).sum())
        self.values.append(v)
        self.entropies.append(dist.entropy().mean())
        return a.cpu().numpy()

    def update(self, returns):
        loss = 0
        for lp, v, e, R in zip(self.log_probs, self.values, self.entropies, returns):
            adv = R - v
            loss = loss - lp * adv.detach() + adv.pow(2) - 0.01 * e
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.log_probs, self.values, self.entropies = [], [], []

def train(agent, env, n):
    for _ in range(n):
        obs, done, rewards = env.reset(), False, []
        while not done:
            obs, r, done, _ = env.step(agent.act(obs))
            rewards.append(r)
        agent.update(discount(rewards))

# case: siamese embeddings detached
import torch
import torch.nn.functional as F

def train(model, loader, opt, margin=1.0):
    embeddings = []
    for a, b, same in loader:
        ea, eb = model(a.cuda(), b.cuda())
        d = F.pairwise_distance(ea, eb)
        loss = (same.cuda() * d.pow(2)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        embeddings.append(ea.detach().cpu())
    return embeddings

# case: window of losses is emptied when it is logged
import torch

window = []
for step, batch in enumerate(train_dataloader):
    loss = model(**{k: v.to(device) for k, v in batch.items()}).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    window.append(loss.detach())
    if step % 50 == 49:
        print(torch.stack(window).mean())
        window = []

# case: lightning manual optimisation logs
import lightning.pytorch as pl
import torch

class GAN(pl.LightningModule):
    def __init__(self, g, d):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d = g, d
        self.d_loss_sum = 0.0

    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        imgs, _ = batch
        fake = self.g(torch.randn(imgs.size(0), 128, device=self.device))
        d_loss = -self.d(imgs).mean() + self.d(fake.detach()).mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.d_loss_sum += d_loss.item()
        self.log_dict({"d": d_loss}, prog_bar=True)

# case: gradient accumulation over sub-losses in a chunked backward
import torch

def train(model, loader, opt, k):
    for x, y in loader:
        opt.zero_grad()
        seen = 0.0
        for xs, ys in zip(x.chunk(k), y.chunk(k)):
            loss = torch.nn.functional.cross_entropy(model(xs.cuda()), ys.cuda()) / k
            loss.backward()
            seen += loss.item()
        opt.step()
        print(seen)

# case: memory bank is a buffer written under no_grad
import torch
import torch.nn.functional as F

bank = torch.zeros(50000, 128, device="cuda")
for idx, x in loader:
    z = F.normalize(encoder(x.cuda()), dim=-1)
    loss = F.cross_entropy(z @ bank.t() / 0.1, idx.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        bank[idx] = 0.5 * bank[idx] + 0.5 * z

# case: stateful LSTM with detached state tuple
import torch
import torch.nn as nn

net = nn.LSTM(8, 64).cuda()
head = nn.Linear(64, 1).cuda()
opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
h = None
for t in range(0, len(series) - 24, 24):
    o, h = net(series[t:t + 24].cuda(), h)
    h = tuple(s.detach() for s in h)
    loss = (head(o[-1]) - series[t + 24].cuda()).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: distillation statistics as numbers in a Counter-like dict
import torch
import torch.nn.functional as F

def distill(student, teacher, loader, T=4.0):
    teacher.requires_grad_(False).eval()
    opt = torch.optim.SGD(student.parameters(), 0.05)
    stats = {"kd": [], "ce": []}
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        s, t = student(x), teacher(x)
        kd = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean")
        ce = F.cross_entropy(s, y)
        opt.zero_grad()
        (0.9 * kd + 0.1 * ce).backward()
        opt.step()
        for k, v in {"kd": kd, "ce": ce}.items():
            stats[k].append(v.item())
    return stats

# case: step returns numbers
import torch
import torch.nn.functional as F

def vae_step(vae, x, opt, beta):
    recon, mu, logvar = vae(x)
    r = F.mse_loss(recon, x)
    kld = -0.5 * torch.mean(1 + logvar - mu ** 2 - logvar.exp())
    loss = r + beta * kld
    opt.zero_grad()
    loss.backward()
    opt.step()
    return {k: v.item() for k, v in {"loss": loss, "recon": r, "kld": kld}.items()}

def train(vae, loader, opt):
    totals = {"loss": 0, "recon": 0, "kld": 0}
    for x, _ in loader:
        out = vae_step(vae, x.cuda(), opt, 1.0)
        for k in totals:
            totals[k] += out[k]
    return totals

# case: gradio app under inference mode
import gradio as gr
import torch

net = torch.hub.load("pytorch/vision", "resnet50", pretrained=True).eval().cuda()

@torch.inference_mode()
def classify(img):
    x = preprocess(img).unsqueeze(0).cuda()
    return {labels[i]: float(p) for i, p in enumerate(net(x).softmax(1)[0])}

gr.Interface(classify, "image", "label").launch()

# case: losses of one client averaged and returned
import torch

class Client:
    def __init__(self, data, lr):
        self.data, self.lr = data, lr
        self.loss_history = []

    def local_train(self, model, epochs):
        opt = torch.optim.SGD(model.parameters(), lr=self.lr)
        for _ in range(epochs):
            batch_loss = []
            for x, y in self.data:
                opt.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
                loss.backward()
                opt.step()
                batch_loss.append(loss.item())
            self.loss_history.append(sum(batch_loss) / len(batch_loss))
        return {k: v.cpu() for k, v in model.state_dict().items()}

# case: features to numpy per image
import torch

@torch.no_grad()
def caption_all(encoder, loader):
    encoder.eval()
    results = {}
    for images, ids in loader:
        feats = encoder(images.to("cuda")).cpu().numpy()
        for i, img_id in enumerate(ids):
            results[img_id] = feats[i]
    return results

# case: image pool of detached images, bounded
import random
import torch

class ImagePool:
    def __init__(self, size):
        self.size = size
        self.images = []

    def query(self, images):
        out = []
        for image in images.detach():
            image = image.unsqueeze(0)
            if len(self.images) < self.size:
                self.images.append(image)
                out.append(image)
            else:
                i = random.randrange(self.size)
                out.append(self.images[i])
                self.images[i] = image
        return torch.cat(out, 0)

pool = ImagePool(50)
for real_a, real_b in loader:
    fake_b = netG(real_a.cuda())
    g_loss = ((netD(fake_b) - 1) ** 2).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    pooled = pool.query(fake_b)
    d_loss = ((netD(real_b.cuda()) - 1) ** 2).mean() + (netD(pooled) ** 2).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

# case: named tuples of numbers
from typing import NamedTuple
import torch

class StepResult(NamedTuple):
    loss: float
    acc: float

def run(model, loader, opt, crit):
    results = []
    for x, y in loader:
        out = model(x.cuda())
        loss = crit(out, y.cuda())
        loss.backward()
        opt.step()
        opt.zero_grad()
        results.append(StepResult(loss.item(), (out.argmax(1).cpu() == y).float().mean().item()))
    return results

# case: loss curve in a preallocated array without graph
import torch

def infinite(net, dl, opt, steps):
    it = iter(dl)
    losses = torch.zeros(steps).cuda()
    for step in range(steps):
        x, y = next(it)
        loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses[step] = loss.detach()
    return losses.mean()

# case: index keeps host vectors
import torch
from transformers import AutoTokenizer, AutoModel

class Index:
    def __init__(self, name):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.encoder = AutoModel.from_pretrained(name).cuda().eval()
        self.vectors = []

    @torch.no_grad()
    def encode(self, text):
        toks = self.tokenizer(text, return_tensors="pt", truncation=True).to("cuda")
        return self.encoder(**toks).last_hidden_state[:, 0].cpu()

    def add(self, doc):
        self.vectors.append(self.encode(doc))

    def search(self, q, k=5):
        return (torch.cat(self.vectors) @ self.encode(q).t()).squeeze().topk(k).indices.tolist()

index = Index("m")
for line in open("docs.txt"):
    index.add(line)

# case: accumulation with the rest applied
import torch

def train(args, model, loader, optimizer, scheduler):
    model.zero_grad()
    for step, batch in enumerate(loader):
        loss = model(**{k: v.cuda() for k, v in batch.items()}).loss
        loss = loss / args.gradient_accumulation_steps
        loss.backward()
        if (step + 1) % args.gradient_accumulation_steps == 0 or step + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            scheduler.step()
            model.zero_grad()

# case: style features compared inside forward
import torch
import torch.nn as nn
import torch.nn.functional as F

class Perceptual(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(b.eval() for b in blocks)
        for p in self.parameters():
            p.requires_grad = False

    def forward(self, x, y):
        loss = 0.0
        feats = []
        for b in self.blocks:
            x, y = b(x), b(y)
            feats.append((x, y))
            loss += F.l1_loss(x, y)
        return loss, feats

# case: hook helper gets a number
import torch

def on_step(history, loss, step):
    history.append((step, loss))

def fit(model, loader, opt, hook):
    for i, (wav, mel) in enumerate(loader):
        loss = (model(wav.cuda()) - mel.cuda()).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        on_step(hook, loss.item(), i)

# case: multi-scale outputs are summed and backpropagated
import torch

def deep_supervision(net, loader, opt, crit):
    for x, y in loader:
        outs = net(x.cuda())
        losses = []
        for o in outs:
            losses.append(crit(o, y.cuda()))
        total = torch.stack(losses).sum()
        opt.zero_grad()
        total.backward()
        opt.step()
        print([l.item() for l in losses])

# case: meta loss over tasks
import torch
import torch.nn.functional as F

def outer(model, meta_opt, tasks):
    for batch in tasks:
        meta_opt.zero_grad()
        losses = []
        for xs, ys in batch:
            losses.append(F.cross_entropy(model(xs.cuda()), ys.cuda()))
        meta = sum(losses) / len(losses)
        meta.backward()
        meta_opt.step()

# case: SAC target under no_grad
import copy
import torch
import torch.nn.functional as F

class SAC:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor.cuda(), critic.cuda()
        self.critic_target = copy.deepcopy(self.critic)
        self.c_opt = torch.optim.Adam(self.critic.parameters())

    def update(self, buf):
        s, a, r, s2, d = buf.sample(256)
        with torch.no_grad():
            a2, logp = self.actor(s2)
            y = r + 0.99 * (1 - d) * (self.critic_target(s2, a2) - 0.2 * logp)
        loss = F.mse_loss(self.critic(s, a), y)
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()

# case: polyak averaging on data
import torch

def soft_update(target, source, tau):
    for t, s in zip(target.parameters(), source.parameters()):
        t.data.copy_(t.data * (1 - tau) + s.data * tau)

# case: hook removes itself and clears
import torch
from torchvision.models import resnet18

net = resnet18().cuda()
net.eval()

def features(x):
    kept = []
    handle = net.layer4.register_forward_hook(lambda m, i, o: kept.append(o))
    with torch.no_grad():
        net(x)
    handle.remove()
    return kept[0].cpu()

for images, _ in loader:
    print(features(images.cuda()).shape)

# case: fold states on the host
import torch

def cross_validate(make, folds):
    best = {}
    for k, (tr, va) in enumerate(folds):
        net = make().cuda()
        opt = torch.optim.Adam(net.parameters())
        for epoch in range(50):
            for x, y in tr:
                opt.zero_grad()
                torch.nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
                opt.step()
        best[k] = {n: v.cpu() for n, v in net.state_dict().items()}
    torch.save(best, "folds.pt")

# case: batcher moves slices
import torch

class Batcher:
    def __init__(self, x, y, bs):
        self.x, self.y, self.bs = torch.from_numpy(x).float(), torch.from_numpy(y).long(), bs

    def __iter__(self):
        for i in range(0, len(self.x), self.bs):
            yield self.x[i:i + self.bs].to("cuda"), self.y[i:i + self.bs].to("cuda")

# case: generation keeps tokens only
import torch

@torch.no_grad()
def generate(model, ids, n):
    model.eval()
    out = []
    for _ in range(n):
        logits = model(ids)[:, -1]
        nxt = torch.multinomial(logits.softmax(-1), 1)
        ids = torch.cat([ids, nxt], dim=1)
        out.append(nxt.item())
    return out

# case: callback object with detached tensors
import torch

class Curve:
    def __init__(self):
        self.values = []

    def __call__(self, v):
        self.values.append(v.detach().cpu())

log = Curve()
net = torch.nn.Linear(4, 1).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    loss = ((net(x.cuda()) - y.cuda()) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    log(loss)

# case: shared forward under no_grad in evaluation
import torch

class Engine:
    def __init__(self, model, optim, loss_fn):
        self.model, self.optim, self.loss_fn = model, optim, loss_fn

    def _forward(self, batch):
        x, y = (t.cuda() for t in batch)
        out = self.model(x)
        return self.loss_fn(out, y), out

    def train_epoch(self, loader):
        self.model.train()
        for batch in loader:
            loss, _ = self._forward(batch)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()

    @torch.no_grad()
    def eval_epoch(self, loader):
        self.model.eval()
        total, outs = 0.0, []
        for batch in loader:
            loss, out = self._forward(batch)
            total += loss
            outs.append(out.cpu())
        return total / len(loader), torch.cat(outs)

# case: beam search hypotheses carry tensors for a moment
import torch

def beam(model, start, k, n):
    model.eval()
    beams = [(0.0, [start])]
    with torch.no_grad():
        for _ in range(n):
            cand = []
            for score, seq in beams:
                lp = model(torch.tensor([seq], device="cuda"))[0, -1].log_softmax(-1)
                v, i = lp.topk(k)
                for s, t in zip(v.tolist(), i.tolist()):
                    cand.append((score + s, seq + [t]))
            beams = sorted(cand, reverse=True)[:k]
    return beams

# case: sampler under inference mode sends frames to the host
import torch

@torch.inference_mode()
def sample(unet, betas, shape):
    unet.eval()
    x = torch.randn(shape, device="cuda")
    frames = []
    for t in reversed(range(len(betas))):
        eps = unet(x, torch.full((shape[0],), t, device="cuda"))
        x = (x - betas[t] * eps) / (1 - betas[t]) ** 0.5
        frames.append(x.cpu())
    return frames

# case: deep equilibrium loop keeps states that the loss needs
import torch
import torch.nn.functional as F

def unroll(cell, x, steps):
    h = torch.zeros_like(x)
    hs = []
    for _ in range(steps):
        h = cell(x, h)
        hs.append(h)
    return torch.stack(hs)

for x, y in loader:
    hs = unroll(cell, x.cuda(), 10)
    loss = sum(F.mse_loss(h, y.cuda()) for h in hs)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: snapshot of embeddings every tenth epoch on the host
import torch
import torch.nn.functional as F

snapshots = []
for epoch in range(200):
    optimizer.zero_grad()
    out, h = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        snapshots.append(h.detach().cpu())

# case: state object with item
from dataclasses import dataclass
import torch

@dataclass
class State:
    step: int = 0
    running_loss: float = 0.0

def train(model, loader, opt, crit, state: State):
    for x, y in loader:
        loss = crit(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        state.step += 1
        state.running_loss = 0.99 * state.running_loss + 0.01 * loss.item()

# case: gradient penalty weights are summed per batch
import torch
import torch.nn.functional as F

def sam_step(model, opt, x, y, rho):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        eps = {}
        for n, p in model.named_parameters():
            eps[n] = rho * p.grad
            p.add_(eps[n])
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for n, p in model.named_parameters():
            p.sub_(eps[n])
    opt.step()
    return loss.item()

# case: perplexity under no_grad with losses on the card
import torch
from transformers import GPT2LMHeadModel

model = GPT2LMHeadModel.from_pretrained("gpt2-large").to("cuda")
nlls = []
with torch.no_grad():
    for begin in range(0, n, 512):
        ids = tokens[:, begin:begin + 1024].to("cuda")
        nlls.append(model(ids, labels=ids).loss)
ppl = torch.exp(torch.stack(nlls).mean())

# case: critic with detached fakes in an inner loop
import torch

for i, real in enumerate(loader):
    real = real.cuda()
    for _ in range(5):
        with torch.no_grad():
            fake = gen(torch.randn(real.size(0), 64, device="cuda"))
        d_loss = critic(fake).mean() - critic(real).mean()
        critic_opt.zero_grad()
        d_loss.backward()
        critic_opt.step()
    g_loss = -critic(gen(torch.randn(real.size(0), 64, device="cuda"))).mean()
    gen_opt.zero_grad()
    g_loss.backward()
    gen_opt.step()

# case: best state cloned to the host
import torch
best_state, best_val = None, 1e9
for epoch in range(50):
    for x, y in train_loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
        opt.step()
    val = evaluate(net)
    if val < best_val:
        best_val, best_state = val, {k: v.cpu().clone() for k, v in net.state_dict().items()}
net.load_state_dict(best_state)
