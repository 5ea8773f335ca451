# case: a config-driven trainer with a metrics registry
import torch
import torch.nn as nn
from torch.utils.tensorboard import SummaryWriter


class MetricTracker:
    def __init__(self, *keys):
        self._sums = {k: 0.0 for k in keys}
        self._counts = {k: 0 for k in keys}

    def update(self, key, value, n=1):
        self._sums[key] += value * n
        self._counts[key] += n

    def avg(self, key):
        return self._sums[key] / self._counts[key]


class BaseTrainer:
    def __init__(self, model, criterion, optimizer, config):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer
        self.epochs = config["epochs"]

    def train(self):
        for epoch in range(self.epochs):
            self._train_epoch(epoch)


class Trainer(BaseTrainer):
    def __init__(self, model, criterion, optimizer, config, data_loader):
        super().__init__(model, criterion, optimizer, config)
        self.data_loader = data_loader
        self.writer = SummaryWriter()
        self.train_metrics = MetricTracker("loss", "acc")

    def _train_epoch(self, epoch):
        self.model.train()
        for batch_idx, (data, target) in enumerate(self.data_loader):
            data, target = data.cuda(), target.cuda()
            self.optimizer.zero_grad()
            output = self.model(data)
            loss = self.criterion(output, target)
            loss.backward()
            self.optimizer.step()
            self.train_metrics.update("loss", loss)  # <- found: logged-loss
            self.writer.add_scalar("loss", loss.item(), batch_idx)

# case: jupyter style loop with zip lists
import torch
train_hist, val_hist = [], []
for epoch in range(EPOCHS):
    model.train()
    tl = 0
    for X, y in train_dl:
        optimizer.zero_grad()
        yhat = model(X.cuda())
        l = loss_fn(yhat, y.cuda())
        l.backward()
        optimizer.step()
        tl += l  # <- found: summed-loss
    model.eval()
    vl = 0
    for X, y in valid_dl:
        yhat = model(X.cuda())  # <- found: evaluation-with-gradients
        vl += loss_fn(yhat, y.cuda())  # <- found: summed-loss
    train_hist.append(tl / len(train_dl))
    val_hist.append(vl / len(valid_dl))

# case: actor critic keeps values and entropies across episodes on the agent
import torch
from torch import optim
from torch.distributions import Normal


class A2C:
    def __init__(self, net):
        self.net = net.to("cuda")
        self.opt = optim.Adam(net.parameters(), lr=7e-4)
        self.entropies = []

    def run_episode(self, env):
        obs, _ = env.reset()
        logps, values, rewards = [], [], []
        done = False
        while not done:
            mu, std, v = self.net(torch.tensor(obs, device="cuda"))
            dist = Normal(mu, std)
            a = dist.sample()
            logps.append(dist.log_prob(a).sum())
            values.append(v)
            self.entropies.append(dist.entropy().mean())  # <- found: collected-losses
            obs, r, done, _, _ = env.step(a.cpu().numpy())
            rewards.append(r)
        return logps, values, rewards

    def learn(self, env, n):
        for _ in range(n):
            logps, values, rewards = self.run_episode(env)
            R, loss = 0.0, 0.0
            for lp, v, r in zip(reversed(logps), reversed(values), reversed(rewards)):
                R = r + 0.99 * R
                adv = R - v
                loss = loss - lp * adv.detach() + adv.pow(2)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        print(torch.stack(self.entropies).mean())

# case: siamese network stores embeddings with labels for a plot
import torch
import torch.nn.functional as F

class Siamese(torch.nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk

    def forward(self, a, b):
        return self.trunk(a), self.trunk(b)

def train(model, loader, opt, margin=1.0):
    embeddings, labels = [], []
    for a, b, same in loader:
        ea, eb = model(a.cuda(), b.cuda())
        d = F.pairwise_distance(ea, eb)
        loss = (same.cuda() * d.pow(2) + (1 - same.cuda()) * F.relu(margin - d).pow(2)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        embeddings.append(ea)  # <- found: collected-outputs # missed at first
        labels.append(same)
    return embeddings, labels

# case: hf loop with progress bar postfix and list per logging window never emptied
from tqdm.auto import tqdm
import torch

progress = tqdm(range(num_training_steps))
window = []
model.train()
for epoch in range(num_epochs):
    for step, batch in enumerate(train_dataloader):
        batch = {k: v.to(device) for k, v in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        window += [loss]  # <- found: collected-losses
        progress.update(1)
        progress.set_postfix(loss=float(sum(window[-50:]) / 50))

# case: lightning module with manual optimisation adds the loss to an attribute
import lightning.pytorch as pl
import torch

class GAN(pl.LightningModule):
    def __init__(self, g, d):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d = g, d
        self.d_loss_sum = 0

    def training_step(self, batch, batch_idx):
        opt_g, opt_d = self.optimizers()
        imgs, _ = batch
        z = torch.randn(imgs.size(0), 128, device=self.device)
        fake = self.g(z)
        d_loss = -self.d(imgs).mean() + self.d(fake.detach()).mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.d_loss_sum += d_loss  # <- found: summed-loss
        g_loss = -self.d(fake).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()

# case: ray/optuna objective sums validation loss without no_grad
import optuna
import torch

def objective(trial):
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    model = define_model(trial).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(10):
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(model(data.cuda()), target.cuda())
            loss.backward()
            optimizer.step()
        model.eval()
        correct = 0
        for data, target in valid_loader:
            output = model(data.cuda())  # <- found: evaluation-with-gradients
            correct += output.argmax(dim=1).eq(target.cuda()).sum().item()
        trial.report(correct / len(valid_loader.dataset), epoch)
    return correct

# case: contrastive memory bank dictionary by index
import torch
import torch.nn.functional as F

bank = {}
for epoch in range(100):
    for idx, x in loader:
        z = F.normalize(encoder(x.cuda()), dim=-1)
        neg = torch.stack(list(bank.values())[:512]).detach() if bank else z.detach()
        loss = -F.log_softmax(z @ neg.t() / 0.1, dim=1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for i, vec in zip(idx.tolist(), z):
            bank[i] = vec  # <- found: collected-outputs

# case: time series with stateful LSTM object attribute and retain graph
import torch
import torch.nn as nn

class Forecaster(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lstm = nn.LSTM(n, 64)
        self.fc = nn.Linear(64, 1)

    def forward(self, x, h):
        o, h = self.lstm(x, h)
        return self.fc(o[-1]), h

net = Forecaster(8).cuda()
opt = torch.optim.Adam(net.parameters())
h = (torch.zeros(1, 1, 64).cuda(), torch.zeros(1, 1, 64).cuda())
for t in range(0, len(series) - 24, 24):
    x = series[t:t + 24].cuda()
    pred, h = net(x, h)  # <- found: recurrent-state
    loss = (pred - series[t + 24].cuda()).abs().mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()

# case: knowledge distillation with teacher in a list of teachers
import torch
import torch.nn.functional as F

class Ensemble:
    def __init__(self, paths):
        self.teachers = []
        for p in paths:
            t = torch.load(p, map_location="cuda")
            t.eval()
            self.teachers.append(t)

def distill(student, ens, loader, T=4.0):
    opt = torch.optim.SGD(student.parameters(), 0.05, momentum=0.9)
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        s = student(x)
        with torch.no_grad():
            soft = torch.stack([F.softmax(t(x) / T, 1) for t in ens.teachers]).mean(0)
        kd = F.kl_div(F.log_softmax(s / T, 1), soft, reduction="batchmean")
        ce = F.cross_entropy(s, y)
        loss = 0.9 * kd + 0.1 * ce
        opt.zero_grad()
        loss.backward()
        opt.step()
        stats["kd"].append(kd)  # <- found: collected-losses
        stats["ce"].append(ce)  # <- found: collected-losses

# case: VAE training function that returns a dict accumulated by the caller
import torch
import torch.nn.functional as F

def vae_step(vae, x, opt, beta):
    recon, mu, logvar = vae(x)
    r = F.binary_cross_entropy(recon, x, reduction="sum") / x.size(0)
    kld = -0.5 * torch.sum(1 + logvar - mu ** 2 - logvar.exp()) / x.size(0)
    loss = r + beta * kld
    opt.zero_grad()
    loss.backward()
    opt.step()
    return {"loss": loss, "recon": r, "kld": kld}

def train(vae, loader, opt):
    totals = {"loss": 0, "recon": 0, "kld": 0}
    for x, _ in loader:
        out = vae_step(vae, x.cuda(), opt, 1.0)
        for k in totals:
            totals[k] += out[k]  # <- found: summed-loss
    return {k: v / len(loader) for k, v in totals.items()}

# case: streamlit app without no_grad
import streamlit as st
import torch
from PIL import Image

@st.cache_resource
def load():
    m = torch.hub.load("pytorch/vision", "resnet50", pretrained=True)
    return m.eval().cuda()

net = load()
net.eval()
up = st.file_uploader("image")
if up:
    x = preprocess(Image.open(up)).unsqueeze(0).cuda()
    probs = net(x).softmax(1)[0]  # <- found: evaluation-with-gradients
    st.write(probs.topk(5).indices.tolist())

# case: federated learning clients keep their losses
import copy
import torch

class Client:
    def __init__(self, data, lr):
        self.data, self.lr = data, lr
        self.loss_history = []

    def local_train(self, model, epochs):
        opt = torch.optim.SGD(model.parameters(), lr=self.lr)
        for _ in range(epochs):
            for x, y in self.data:
                opt.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
                loss.backward()
                opt.step()
                self.loss_history.append(loss)  # <- found: collected-losses
        return model.state_dict()

def server(model, clients, rounds):
    for r in range(rounds):
        states = [c.local_train(copy.deepcopy(model), 1) for c in clients]
        model.load_state_dict({k: sum(s[k] for s in states) / len(states) for k in states[0]})

# case: image captioning test loop builds a dict of tensors
import torch

def caption_all(encoder, decoder, loader, vocab):
    encoder.eval()
    decoder.eval()
    results = {}
    for images, ids in loader:
        feats = encoder(images.to(device))  # <- found: evaluation-with-gradients
        tokens = decoder.sample(feats)
        for i, img_id in enumerate(ids):
            results[img_id] = feats[i]  # <- found: collected-outputs
    return results

# case: cycle gan keeps fake images in a pool with graph
import random
import torch

class ImagePool:
    def __init__(self, size):
        self.size = size
        self.images = []

    def query(self, images):
        out = []
        for image in images:
            image = image.unsqueeze(0)
            self.images.append(image)
            out.append(random.choice(self.images))
        return torch.cat(out, 0)

pool = ImagePool(50)
for real_a, real_b in loader:
    real_a, real_b = real_a.cuda(), real_b.cuda()
    fake_b = netG(real_a)
    g_loss = ((netD(fake_b) - 1) ** 2).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    pooled = pool.query(fake_b)  # <- found: logged-loss # missed at first
    d_loss = ((netD(real_b) - 1) ** 2).mean() + (netD(pooled.detach()) ** 2).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

# case: namedtuple results in a list
from typing import NamedTuple
import torch

class StepResult(NamedTuple):
    loss: torch.Tensor
    acc: float

def run(model, loader, opt, crit):
    results = []
    for x, y in loader:
        out = model(x.cuda())
        loss = crit(out, y.cuda())
        loss.backward()
        opt.step()
        opt.zero_grad()
        results.append(StepResult(loss, (out.argmax(1).cpu() == y).float().mean().item()))  # <- found: collected-losses # missed at first
    return results

# case: while loop with iterator and try StopIteration
import torch

def infinite(net, dl, opt, steps):
    it = iter(dl)
    losses = torch.zeros(steps).cuda()
    for step in range(steps):
        try:
            x, y = next(it)
        except StopIteration:
            it = iter(dl)
            x, y = next(it)
        loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses[step] = loss  # <- found: collected-losses
    return losses.mean()

# case: semantic search service class indexes documents with gradients
import torch
from transformers import AutoTokenizer, AutoModel

class Index:
    def __init__(self, name="sentence-transformers/all-MiniLM-L6-v2"):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.encoder = AutoModel.from_pretrained(name).cuda()
        self.encoder.eval()
        self.vectors = []

    def add(self, doc):
        toks = self.tokenizer(doc, return_tensors="pt", truncation=True).to("cuda")
        emb = self.encoder(**toks).last_hidden_state[:, 0]  # <- found: evaluation-with-gradients
        self.vectors.append(emb)  # <- found: collected-outputs # missed at first

    def search(self, q, k=5):
        toks = self.tokenizer(q, return_tensors="pt").to("cuda")
        with torch.no_grad():
            qv = self.encoder(**toks).last_hidden_state[:, 0]
        return (torch.cat(self.vectors) @ qv.t()).squeeze().topk(k).indices.tolist()

index = Index()
for line in open("docs.txt"):
    index.add(line)

# case: gradient accumulation in a function with args object, clip in every batch
import torch

def train(args, model, loader, optimizer, scheduler):
    model.zero_grad()
    for step, batch in enumerate(loader):
        loss = model(**{k: v.cuda() for k, v in batch.items()}).loss
        if args.gradient_accumulation_steps > 1:
            loss = loss / args.gradient_accumulation_steps
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)  # <- found: clipping-every-micro-batch
        if (step + 1) % args.gradient_accumulation_steps == 0:
            optimizer.step()  # <- found: last-window-forgotten
            scheduler.step()
            model.zero_grad()

# case: fastai callback
from fastai.callback.core import Callback

class LossSaver(Callback):
    def before_fit(self):
        self.all_losses = []

    def after_loss(self):
        self.all_losses.append(self.learn.loss_grad)  # <- found: collected-losses # missed at first

# case: audio: mel loss list in a partial-ed callback
import functools
import torch

def on_step(history, loss, step):
    history.append((step, loss))

def fit(model, loader, opt, hook):
    for i, (wav, mel) in enumerate(loader):
        pred = model(wav.cuda())
        loss = (pred - mel.cuda()).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        on_step(hook, loss, i)  # <- found: logged-loss

# case: detection: loss dict reduced and stored per epoch
import torch
import torchvision

model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights="DEFAULT").to("cuda")
params = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(params, lr=0.005)
epoch_losses = []
for epoch in range(10):
    running = 0.0
    for images, targets in data_loader:
        images = [i.to("cuda") for i in images]
        targets = [{k: v.to("cuda") for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        running = running + losses  # <- found: summed-loss
    epoch_losses.append(running)

# case: meta learning: outer losses kept in a tracker list
import torch
import torch.nn.functional as F
import higher

def outer_loop(model, meta_opt, tasks, tracker):
    for batch in tasks:
        meta_opt.zero_grad()
        total = 0.0
        for xs, ys, xq, yq in batch:
            inner = torch.optim.SGD(model.parameters(), lr=0.01)
            with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fm, diff):
                diff.step(F.cross_entropy(fm(xs.cuda()), ys.cuda()))
                q = F.cross_entropy(fm(xq.cuda()), yq.cuda())
                total = total + q
        total.backward()
        meta_opt.step()
        tracker.append(total)  # <- found: collected-losses # missed at first

# case: SAC target networks deepcopied inside an agent class
import copy
import torch
import torch.nn.functional as F

class SAC:
    def __init__(self, actor, critic):
        self.actor = actor.cuda()
        self.critic = critic.cuda()
        self.critic_target = copy.deepcopy(self.critic)
        self.a_opt = torch.optim.Adam(self.actor.parameters())
        self.c_opt = torch.optim.Adam(self.critic.parameters())

    def update(self, buf):
        s, a, r, s2, d = buf.sample(256)
        a2, logp = self.actor(s2)
        tq = self.critic_target(s2, a2)  # <- found: copy-with-gradients # missed at first
        y = r + 0.99 * (1 - d) * (tq - 0.2 * logp)
        loss = F.mse_loss(self.critic(s, a), y)
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()

# case: grad-cam like hook dictionary appending
import torch
from torchvision.models import resnet18

net = resnet18().cuda()
maps = {"layer3": [], "layer4": []}

def save(name):
    def fn(_m, _i, o):
        maps[name].append(o)  # <- found: activations-kept-by-hook # missed at first
    return fn

for n in maps:
    getattr(net, n).register_forward_hook(save(n))
for images, _ in loader:
    net(images.cuda())
print({k: len(v) for k, v in maps.items()})

# case: timeseries cross validation keeps models' best state on the card
import copy
import torch

def cross_validate(make, folds):
    best = {}
    for k, (tr, va) in enumerate(folds):
        net = make().cuda()
        opt = torch.optim.Adam(net.parameters())
        low = float("inf")
        for epoch in range(50):
            for x, y in tr:
                opt.zero_grad()
                torch.nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
                opt.step()
            v = validate(net, va)
            if v < low:
                low = v
                best[k] = copy.deepcopy(net.state_dict())  # <- found: state-dict-copied-on-card
    torch.save(best, "folds.pt")

# case: whole dataset preprocessed on the card then split in a loop
import torch

class GPUBatcher:
    def __init__(self, x, y, bs):
        self.x = torch.from_numpy(x).float().to("cuda")  # <- found: dataset-on-card # missed at first
        self.y = torch.from_numpy(y).long().to("cuda")  # <- found: dataset-on-card # missed at first
        self.bs = bs

    def __iter__(self):
        for i in range(0, len(self.x), self.bs):
            yield self.x[i:i + self.bs], self.y[i:i + self.bs]

def main(x, y):
    net = torch.nn.Linear(100, 10).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for xb, yb in GPUBatcher(x, y, 64):
        loss = torch.nn.functional.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: translation: attention weights of every sentence are kept
import torch

def evaluate_attention(encoder, decoder, pairs, device):
    encoder.eval()
    decoder.eval()
    attentions = []
    with torch.no_grad():
        for src, tgt in pairs:
            mem = encoder(src.to(device))
            out, attn = decoder(tgt.to(device), mem)
            attentions.append(attn)  # <- found: collected-outputs # missed at first
    return [a.cpu().numpy() for a in attentions]

# case: progressive list of losses via lambda callback
import torch

curve = []
log = lambda v: curve.append(v)
net = torch.nn.Linear(4, 1).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    loss = ((net(x.cuda()) - y.cuda()) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    log(loss)  # <- missed: logged-loss

# case: trainer with separate _forward returning loss and evaluation reuse
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
        total = 0.0
        for batch in loader:
            loss, _ = self._forward(batch)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            total += loss.item()
        return total / len(loader)

    def eval_epoch(self, loader):
        self.model.eval()
        total, outs = 0.0, []
        for batch in loader:
            loss, out = self._forward(batch)  # <- found: evaluation-with-gradients # missed at first
            total += loss  # <- found: summed-loss # missed at first
            outs.append(out)  # <- found: collected-outputs # missed at first
        return total / len(loader), torch.cat(outs)

# case: clip fine tuning with grad cache lists never emptied
import torch
import torch.nn.functional as F

img_cache, txt_cache = [], []
for images, texts in loader:
    i = F.normalize(clip.encode_image(images.cuda()), dim=-1)
    t = F.normalize(clip.encode_text(texts.cuda()), dim=-1)
    logits = 100 * i @ t.T
    y = torch.arange(len(logits), device="cuda")
    loss = (F.cross_entropy(logits, y) + F.cross_entropy(logits.T, y)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    img_cache.append(i)  # <- found: collected-outputs # missed at first
    txt_cache.append(t)  # <- found: collected-outputs # missed at first

# case: diffusion sampler collects intermediate images with gradients
import torch

def sample(unet, betas, shape):
    unet.eval()
    x = torch.randn(shape, device="cuda")
    frames = []
    for t in reversed(range(len(betas))):
        eps = unet(x, torch.full((shape[0],), t, device="cuda"))  # <- found: evaluation-with-gradients
        x = (x - betas[t] * eps) / (1 - betas[t]) ** 0.5
        frames.append(x)  # <- found: collected-outputs # missed at first
    return [f.detach().cpu() for f in frames]

# case: oom retry with a smaller batch in the handler of an inference loop
import torch

def predict(model, batches):
    outs = []
    with torch.no_grad():
        for b in batches:
            try:
                o = model(b.cuda()).cpu()
            except RuntimeError as e:
                if "out of memory" not in str(e):
                    raise
                torch.cuda.empty_cache()
                o = torch.cat([model(c.cuda()).cpu() for c in b.chunk(4)])  # <- found: recovery-inside-except
            outs.append(o)
    return torch.cat(outs)

# case: GNN: training on full graph stores embeddings per epoch
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCNConv

class GCN(torch.nn.Module):
    def __init__(self, i, h, o):
        super().__init__()
        self.c1, self.c2 = GCNConv(i, h), GCNConv(h, o)

    def forward(self, x, ei):
        h = self.c1(x, ei).relu()
        return self.c2(h, ei), h

model = GCN(dataset.num_features, 16, dataset.num_classes).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data = dataset[0].to("cuda")
snapshots = []
for epoch in range(200):
    model.train()
    optimizer.zero_grad()
    out, h = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    snapshots.append(h)  # <- found: collected-outputs # missed at first

# case: dataclass state object accumulates
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
        state.running_loss = 0.99 * state.running_loss + 0.01 * loss  # <- found: summed-loss

# case: adversarial training keeps perturbed examples with their graph
import torch
import torch.nn.functional as F

def pgd(model, x, y, eps, steps):
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        loss = F.cross_entropy(model(x + delta), y)
        g, = torch.autograd.grad(loss, delta)
        delta = (delta + 0.01 * g.sign()).clamp(-eps, eps).detach().requires_grad_(True)
    return x + delta

def train(model, loader, opt):
    clean, robust = 0, 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        xa = pgd(model, x, y, 8 / 255, 7)
        lc = F.cross_entropy(model(x), y)
        lr = F.cross_entropy(model(xa), y)
        opt.zero_grad()
        (lc + lr).backward()
        opt.step()
        clean += lc  # <- found: summed-loss
        robust += lr  # <- found: summed-loss
    return clean / len(loader), robust / len(loader)

# case: test time: logits of a language model collected for perplexity
import torch
from transformers import GPT2LMHeadModel, GPT2TokenizerFast

model = GPT2LMHeadModel.from_pretrained("gpt2-large").to("cuda")
tok = GPT2TokenizerFast.from_pretrained("gpt2-large")
enc = tok("\n\n".join(test["text"]), return_tensors="pt")
nlls = []
for begin in range(0, enc.input_ids.size(1), 512):
    ids = enc.input_ids[:, begin:begin + 1024].to("cuda")
    out = model(ids, labels=ids)
    nlls.append(out.loss)  # <- found: collected-losses # missed at first
ppl = torch.exp(torch.stack(nlls).mean())

# case: two optimizers, generator graph kept by critic loop
import torch

for i, real in enumerate(loader):
    real = real.cuda()
    for _ in range(5):
        noise = torch.randn(real.size(0), 64, device="cuda")
        fake = gen(noise)
        d_loss = critic(fake).mean() - critic(real).mean()  # <- found: fake-not-detached # missed at first
        critic_opt.zero_grad()
        d_loss.backward()
        critic_opt.step()
    g_loss = -critic(gen(noise)).mean()
    gen_opt.zero_grad()
    g_loss.backward()
    gen_opt.step()

# case: early stopping with module-level best state alias
import torch
best_state, best_val = None, 1e9
for epoch in range(50):
    for x, y in train_loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
        opt.step()
    val = evaluate(net)
    if val < best_val:
        best_val, best_state = val, net.state_dict()  # <- found: state-dict-aliased
net.load_state_dict(best_state)
