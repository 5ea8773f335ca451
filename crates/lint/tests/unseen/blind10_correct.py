# case: features of a torchvision trunk collected by a hook made in a factory
import torch
import torchvision

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torchvision.models.resnet50(weights="DEFAULT").to(device)
model.fc = torch.nn.Linear(2048, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = torch.nn.CrossEntropyLoss()
bank = {"layer3": [], "layer4": []}

def make_hook(name):
    def hook(module, inp, out):
        bank[name].append(out.detach().mean((2, 3)).cpu())
    return hook

model.layer3.register_forward_hook(make_hook("layer3"))
model.layer4.register_forward_hook(make_hook("layer4"))

for epoch in range(5):
    for images, labels in train_loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()

# case: an extractor class that registers its own bound method
import torch
from torch import nn

class FeatureExtractor:
    def __init__(self, net, layers):
        self.net = net
        self.outs = []
        for name, module in net.named_modules():
            if name in layers:
                module.register_forward_hook(self._save)

    def _save(self, module, args, output):
        self.outs.append(output.detach().cpu())

    def __call__(self, x):
        return self.net(x)

net = build_backbone().cuda()
opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
extractor = FeatureExtractor(net, {"blocks.10", "blocks.11"})
for step, (img, target) in enumerate(loader):
    pred = extractor(img.cuda(non_blocking=True))
    loss = nn.functional.cross_entropy(pred, target.cuda(non_blocking=True))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()

# case: gradient norms of a tensor hook kept as tensors
import torch

grads = []
encoder = Encoder().cuda()
decoder = Decoder().cuda()
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-4)
for batch in loader:
    z = encoder(batch["image"].cuda())
    z.register_hook(lambda g: grads.append(g.norm().item()))
    recon = decoder(z)
    loss = torch.nn.functional.mse_loss(recon, batch["image"].cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: an EMA class whose update has no no_grad
import copy
import torch

class EMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {k: v.clone().detach() for k, v in model.named_parameters()}

    def update(self, model):
        with torch.no_grad():
            for k, v in model.named_parameters():
                self.shadow[k] = self.decay * self.shadow[k] + (1 - self.decay) * v

model = Unet(dim=64).cuda()
ema = EMA(model)
opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
for x in loader:
    t = torch.randint(0, 1000, (x.shape[0],), device="cuda")
    noise = torch.randn_like(x)
    loss = ((model(x + noise, t) - noise) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema.update(model)

# case: momentum encoder weights zipped and averaged in a list
import torch

def momentum_update(params_q, params_k, m):
    out = []
    for q, k in zip(params_q, params_k):
        out.append(k * m + q.detach() * (1.0 - m))
    return out

encoder = ResNet18().to("cuda")
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03, momentum=0.9)
averaged = [p.detach().clone() for p in encoder.parameters()]
for epoch in range(200):
    for (im_q, im_k), _ in loader:
        q = encoder(im_q.cuda())
        loss = info_nce(q, im_k.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averaged = momentum_update(encoder.parameters(), averaged, 0.999)

# case: stochastic weight average kept in an attribute of a trainer
import torch

class Trainer:
    def __init__(self, model, loader):
        self.model = model.cuda()
        self.loader = loader
        self.opt = torch.optim.SGD(self.model.parameters(), 0.1)
        self.swa = None
        self.n = 0

    def average(self):
        self.n += 1
        weights = [p.detach() for p in self.model.parameters()]
        if self.swa is None:
            self.swa = [w.clone() for w in weights]
        else:
            self.swa = [(a * (self.n - 1) + w) / self.n for a, w in zip(self.swa, weights)]

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.loader:
                loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.average()

# case: positional tables cached without limit by a decorated method
from functools import lru_cache
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def table(self, length, device):
        freqs = 1.0 / (10000 ** (torch.arange(0, self.dim, 2, device="cuda").float() / self.dim))
        return torch.outer(torch.arange(length, device="cuda"), freqs)

    def forward(self, x):
        t = self.table(x.shape[1], x.device)
        return torch.cat((x[..., : self.dim // 2] * t.cos(), x[..., self.dim // 2 :] * t.sin()), -1)

# case: image embeddings cached per path in a module dict
import torch
import clip

device = "cuda"
model, preprocess = clip.load("ViT-B/32", device=device)
_EMBEDDINGS = {}

def embed(path):
    if path not in _EMBEDDINGS:
        image = preprocess(open_image(path)).unsqueeze(0).to(device)
        with torch.no_grad():
            _EMBEDDINGS[path] = model.encode_image(image).cpu()
    return _EMBEDDINGS[path]

def main(paths, query):
    scores = [(embed(p).to(device) @ query).item() for p in paths]
    print(max(scores))

# case: loss history of a nested closure
import torch

def fit(model, loader, epochs, lr=1e-3):
    history = []
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    loss_fn = torch.nn.BCEWithLogitsLoss()

    def one_step(x, y):
        opt.zero_grad()
        loss = loss_fn(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        history.append(loss.item())

    for _ in range(epochs):
        for x, y in loader:
            one_step(x, y)
    return history

# case: dict of lists with setdefault and several losses
import torch

records = {}
for epoch in range(num_epochs):
    for real, cond in dataloader:
        real, cond = real.cuda(), cond.cuda()
        rec, mu, logvar = vae(real, cond)
        rec_loss = torch.nn.functional.mse_loss(rec, real, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = rec_loss + beta * kld
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for k, v in {"rec": rec_loss, "kld": kld, "total": loss}.items():
            records.setdefault(k, []).append(v.item())

# case: a step function returns the loss and the caller keeps it
import torch

def train_step(model, batch, optimizer, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        out = model(**{k: v.cuda() for k, v in batch.items()})
    scaler.scale(out.loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    return out.loss.item()

def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    epoch_losses = []
    for i, batch in enumerate(loader):
        loss = train_step(model, batch, optimizer, scaler)
        epoch_losses.append(loss)
        if i % 100 == 0:
            print(f"{i}: {sum(epoch_losses) / len(epoch_losses):.4f}")

# case: losses yielded by a training generator and listed
import torch

def batches_trained(model, loader, opt):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield loss.item()

def run(model, loader, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    curve = []
    for epoch in range(epochs):
        curve += list(batches_trained(model, loader, opt))
    return curve

# case: policy gradient losses of each update in a numpy-like history
import torch

class Reinforce:
    def __init__(self, policy, lr):
        self.policy = policy
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=lr)
        self.loss_history = []
        self.log_probs = []
        self.rewards = []

    def act(self, state):
        dist = torch.distributions.Categorical(logits=self.policy(torch.as_tensor(state).cuda()))
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action))
        return action.item()

    def update(self):
        returns = discount(self.rewards)
        loss = -(torch.stack(self.log_probs) * returns).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.loss_history.append(loss.item())
        self.log_probs.clear()
        self.rewards.clear()

agent = Reinforce(Policy().cuda(), 1e-3)
for episode in range(1000):
    state, done = env.reset(), False
    while not done:
        state, reward, done, _ = env.step(agent.act(state))
        agent.rewards.append(reward)
    agent.update()

# case: lightning epoch outputs appended with the loss
import lightning as L
import torch

class LitSeg(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.step_losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.step_losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        self.log("train/epoch_loss", torch.stack(self.step_losses).mean())
        self.step_losses.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)

# case: predictions of a submission kept on the card
import torch

def predict(model, loader, device="cuda"):
    model.eval()
    preds, ids = [], []
    with torch.no_grad():
        for batch in loader:
            logits = model(batch["input_ids"].to(device), batch["mask"].to(device))
            preds.append(logits.cpu())
            ids.extend(batch["id"])
    return ids, torch.cat(preds).softmax(-1).cpu().numpy()

# case: embeddings of a retrieval gallery as a comprehension
import torch

@torch.inference_mode()
def gallery(model, loader):
    feats = torch.cat([model(x.cuda()).cpu() for x, _ in loader])
    return feats.cpu().numpy()

# case: test time results in a dict per file
import torch

results = {}
net.eval()
with torch.no_grad():
    for name, volume in test_loader:
        out = net(volume.cuda())
        results[name[0]] = out.argmax(1).byte().cpu()
torch.save(results, "results.pt")

# case: training outputs and labels for an epoch AUC
import torch
from sklearn.metrics import roc_auc_score

def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    ys, scores = [], []
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        out = model(x).squeeze(1)
        loss = criterion(out, y.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scores.append(torch.sigmoid(out).detach().cpu())
        ys.append(y.cpu())
    return roc_auc_score(torch.cat(ys), torch.cat(scores))

# case: validation step outputs of a lightning module kept
import pytorch_lightning as pl
import torch

class Detector(pl.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.validation_outputs = []

    def training_step(self, batch, batch_idx):
        return self.model(batch["image"], batch["target"])["loss"]

    def validation_step(self, batch, batch_idx):
        preds = self.model(batch["image"])
        self.validation_outputs.append(preds.cpu())

    def on_validation_epoch_end(self):
        allpreds = torch.cat(self.validation_outputs).cpu()
        self.log("mAP", compute_map(allpreds))
        self.validation_outputs.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02)

# case: a running tensor grows by cat every batch
import torch

all_logits = torch.empty(0, 1000).cuda()
model.eval()
with torch.no_grad():
    for images, _ in val_loader:
        output = model(images.cuda())
        all_logits = torch.cat([all_logits.cpu(), output.cpu()], dim=0)
torch.save(all_logits.cpu(), "logits.pt")

# case: create_graph left over from a removed penalty
import torch
from torch import optim

net = Critic().cuda()
opt = optim.RMSprop(net.parameters(), lr=5e-5)
for i, (data, target) in enumerate(loader):
    score = net(data.cuda())
    loss = torch.nn.functional.smooth_l1_loss(score, target.cuda())
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()

# case: saliency by autograd.grad with an unneeded graph of the gradient
import torch

model.eval()
maps = []
for image, label in loader:
    image = image.cuda().requires_grad_()
    score = model(image).gather(1, label.cuda()[:, None]).sum()
    grad, = torch.autograd.grad(score, image)
    maps.append(grad.detach().abs().amax(1).cpu())

# case: a conditional GAN in a trainer class with one method per network
import torch
from torch import nn

class CGAN:
    def __init__(self, args):
        self.G = Generator(args.z).cuda()
        self.D = Discriminator().cuda()
        self.g_opt = torch.optim.Adam(self.G.parameters(), lr=args.lr, betas=(0.5, 0.999))
        self.d_opt = torch.optim.Adam(self.D.parameters(), lr=args.lr, betas=(0.5, 0.999))
        self.bce = nn.BCEWithLogitsLoss()
        self.z = args.z

    def update_d(self, real, y):
        z = torch.randn(real.size(0), self.z, device="cuda")
        fake = self.G(z, y)
        d_fake = self.D(fake.detach(), y)
        d_real = self.D(real, y)
        loss = self.bce(d_real, torch.ones_like(d_real)) + self.bce(d_fake, torch.zeros_like(d_fake))
        self.d_opt.zero_grad()
        loss.backward()
        self.d_opt.step()
        return loss.item()

    def update_g(self, n, y):
        z = torch.randn(n, self.z, device="cuda")
        d_fake = self.D(self.G(z, y), y)
        loss = self.bce(d_fake, torch.ones_like(d_fake))
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        return loss.item()

    def train(self, loader, epochs):
        for _ in range(epochs):
            for real, y in loader:
                self.update_d(real.cuda(), y.cuda())
                self.update_g(real.size(0), y.cuda())

# case: pix2pix with concatenated condition
import torch

for epoch in range(opt.n_epochs):
    for i, batch in enumerate(dataloader):
        real_A, real_B = batch["A"].cuda(), batch["B"].cuda()
        fake_B = generator(real_A)

        optimizer_G.zero_grad()
        loss_G = criterion_GAN(discriminator(torch.cat((fake_B, real_A), 1)), valid) + 100 * criterion_l1(fake_B, real_B)
        loss_G.backward()
        optimizer_G.step()

        optimizer_D.zero_grad()
        fake_B = generator(real_A)
        loss_real = criterion_GAN(discriminator(torch.cat((real_B, real_A), 1)), valid)
        loss_fake = criterion_GAN(discriminator(torch.cat((fake_B.detach(), real_A), 1)), fake)
        loss_D = 0.5 * (loss_real + loss_fake)
        loss_D.backward()
        optimizer_D.step()

# case: wasserstein critic loop of five steps
import torch

G, C = make_generator().cuda(), make_critic().cuda()
g_optim = torch.optim.RMSprop(G.parameters(), lr=5e-5)
c_optim = torch.optim.RMSprop(C.parameters(), lr=5e-5)
data = iter(loader)
for it in range(100000):
    for _ in range(5):
        real = next(data)[0].cuda()
        noise = torch.randn(real.shape[0], 128, 1, 1).cuda()
        with torch.no_grad():
            fake = G(noise)
        c_loss = C(fake).mean() - C(real).mean()
        C.zero_grad()
        c_loss.backward()
        c_optim.step()
        for p in C.parameters():
            p.data.clamp_(-0.01, 0.01)
    noise = torch.randn(64, 128, 1, 1).cuda()
    g_loss = -C(G(noise)).mean()
    G.zero_grad()
    g_loss.backward()
    g_optim.step()

# case: speech enhancement with a metric discriminator
import torch
import torch.nn.functional as F

def train_epoch(enhancer, metric_net, loader, opt_e, opt_m):
    for noisy, clean in loader:
        noisy, clean = noisy.cuda(), clean.cuda()
        enhanced = enhancer(noisy)
        est = metric_net(enhanced, clean)
        loss_e = F.mse_loss(est, torch.ones_like(est)) + F.l1_loss(enhanced, clean)
        opt_e.zero_grad()
        loss_e.backward()
        opt_e.step()

        enhanced = enhancer(noisy)
        pesq = batch_pesq(clean, enhanced.detach()).cuda()
        loss_m = F.mse_loss(metric_net(enhanced.detach(), clean), pesq) + F.mse_loss(metric_net(clean, clean), torch.ones_like(pesq))
        opt_m.zero_grad()
        loss_m.backward()
        opt_m.step()

# case: an average meter from the imagenet example gets a tensor
import torch

class AverageMeter(object):
    def __init__(self, name, fmt=":f"):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

def train(train_loader, model, criterion, optimizer, epoch, args):
    losses = AverageMeter("Loss", ":.4e")
    model.train()
    for i, (images, target) in enumerate(train_loader):
        images = images.cuda(args.gpu, non_blocking=True)
        target = target.cuda(args.gpu, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a dataclass tracker with a list field
from dataclasses import dataclass, field
import torch

@dataclass
class Tracker:
    values: list = field(default_factory=list)
    best: float = float("inf")

    def add(self, value):
        self.values.append(value)

    @property
    def mean(self):
        return sum(self.values) / len(self.values)

tracker = Tracker()
for x, y in train_dl:
    yhat = net(x.cuda())
    loss = torch.nn.functional.mse_loss(yhat, y.cuda())
    loss.backward()
    opt.step()
    opt.zero_grad()
    tracker.add(loss.item())
print(float(tracker.mean))

# case: callbacks notified with the loss keep it
import torch

class Callback:
    def on_batch_end(self, step, loss):
        pass

class LossRecorder(Callback):
    def __init__(self):
        self.curve = {}

    def on_batch_end(self, step, loss):
        self.curve[step] = loss

class Printer(Callback):
    def on_batch_end(self, step, loss):
        if step % 10 == 0:
            print(step, float(loss))

callbacks = [LossRecorder(), Printer()]
model = Net().cuda()
opt = torch.optim.Adam(model.parameters())
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.nll_loss(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    for cb in callbacks:
        cb.on_batch_end(step, loss.item())

# case: metric dictionary passed as keyword arguments
import torch
from collections import defaultdict

class MetricLogger:
    def __init__(self):
        self.store = defaultdict(list)

    def update(self, **kwargs):
        for k, v in kwargs.items():
            self.store[k].append(v)

def train_one_epoch(model, optimizer, loader, device):
    logger = MetricLogger()
    for images, targets in loader:
        images = [im.to(device) for im in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        logger.update(loss=losses.item())
    return logger

# case: a replay buffer stores values with their graph
import random
import torch

class Buffer:
    def __init__(self, size):
        self.size, self.data = size, []

    def push(self, *transition):
        self.data.append(transition)

    def sample(self, n):
        return zip(*random.sample(self.data, n))

buffer = Buffer(100000)
actor = Actor().cuda()
optim = torch.optim.Adam(actor.parameters(), 1e-4)
for episode in range(5000):
    state, done = env.reset(), False
    while not done:
        logits = actor(torch.from_numpy(state).cuda())
        action = torch.distributions.Categorical(logits=logits).sample()
        nxt, reward, done, info = env.step(action.item())
        buffer.push(state, action.item(), logits.detach().cpu(), reward, nxt)
        state = nxt
    s, a, old, r, n = buffer.sample(64)
    new = actor(torch.as_tensor(s).cuda())
    loss = policy_loss(new, a, [o.detach() for o in old], r)
    optim.zero_grad()
    loss.backward()
    optim.step()

# case: a global log function appends to a module list
import torch

LOG = []

def log(step, **metrics):
    metrics["step"] = step
    LOG.append(metrics)

model = torch.nn.Transformer().cuda()
opt = torch.optim.AdamW(model.parameters())
for step, (src, tgt) in enumerate(loader):
    out = model(src.cuda(), tgt[:-1].cuda())
    loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), tgt[1:].flatten().cuda())
    loss.backward()
    opt.step()
    opt.zero_grad()
    log(step, loss=loss.item(), lr=opt.param_groups[0]["lr"])

# case: attention maps kept on the module for inspection nobody does
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv = nn.Linear(dim, dim * 3)
        self.heads = heads

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        attn = (q @ k.transpose(-2, -1)).softmax(-1)
        return (attn @ v).transpose(1, 2).reshape(b, n, c)

model = nn.Sequential(Attention(256, 8), nn.Linear(256, 10)).cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x.cuda()).mean(1), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: the model remembers every hidden state in a list
import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 64, 3)
        self.b = nn.Conv2d(64, 64, 3)
        self.head = nn.Linear(64, 10)
        self.debug = []

    def forward(self, x):
        h = torch.relu(self.a(x))
        self.debug.append(h.mean().item())
        h = torch.relu(self.b(h))
        return self.head(h.mean((2, 3)))

net = Net().cuda()
sgd = torch.optim.SGD(net.parameters(), 0.1)
for images, labels in loader:
    loss = nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
    sgd.zero_grad()
    loss.backward()
    sgd.step()

# case: an LSTM language model carries its hidden state with retain_graph
import torch

hidden = model.init_hidden(batch_size)
for i in range(0, train_data.size(0) - 1, bptt):
    data, targets = get_batch(train_data, i)
    optimizer.zero_grad()
    hidden = tuple(h.detach() for h in hidden)
    output, hidden = model(data.cuda(), hidden)
    loss = criterion(output.view(-1, ntokens), targets.cuda())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()

# case: a GRU agent holds its belief on self
import torch

class Agent:
    def __init__(self, net):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.belief = torch.zeros(1, 256, device="cuda")

    def learn(self, obs, target):
        pred, belief = self.net(obs.cuda(), self.belief)
        self.belief = belief.detach()
        loss = torch.nn.functional.mse_loss(pred, target.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

agent = Agent(Belief())
for obs, target in stream:
    agent.learn(obs, target)

# case: retain_graph copied from a forum answer
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(10):
    running = 0.0
    for data, target in train_loader:
        opt.zero_grad()
        out = model(data.view(-1, 784).cuda())
        loss = nn.functional.cross_entropy(out, target.cuda())
        loss.backward()
        opt.step()
        running += loss.item()
    print(epoch, running / len(train_loader))

# case: actor and critic each retain their own graph
import torch

class A2C:
    def __init__(self):
        self.actor = Policy().cuda()
        self.critic = Value().cuda()
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), 1e-4)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), 1e-3)

    def update(self, s, a, r, s2, done):
        target = r + 0.99 * self.critic(s2).detach() * (1 - done)
        value = self.critic(s)
        critic_loss = torch.nn.functional.mse_loss(value, target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        adv = (target - value).detach()
        logp = torch.distributions.Categorical(logits=self.actor(s)).log_prob(a)
        actor_loss = -(logp * adv).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

# case: the last of two backward passes retains as well
import torch
import torch.nn.functional as F

for x, y in loader:
    feats = backbone(x.cuda())
    loss_cls = F.cross_entropy(head_a(feats), y.cuda())
    loss_aux = F.mse_loss(head_b(feats), x.cuda().flatten(1))
    opt.zero_grad()
    loss_cls.backward(retain_graph=True)
    loss_aux.backward()
    opt.step()

# case: running loss of the pytorch tutorial without item
import torch
import torch.optim as optim

optimizer = optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
for epoch in range(2):
    running_loss = 0.0
    for i, data in enumerate(trainloader, 0):
        inputs, labels = data[0].to(device), data[1].to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if i % 2000 == 1999:
            print(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 2000:.3f}")
            running_loss = 0.0

# case: exponential average of a fastai-like learner
import torch

class Learner:
    def __init__(self, model, dls, loss_func, opt):
        self.model, self.dls, self.loss_func, self.opt = model, dls, loss_func, opt
        self.smooth = 0.0
        self.beta = 0.98

    def one_batch(self, xb, yb):
        self.pred = self.model(xb)
        loss = self.loss_func(self.pred, yb)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        self.smooth = self.beta * self.smooth + (1 - self.beta) * loss.item()

    def fit(self, n):
        for _ in range(n):
            for xb, yb in self.dls:
                self.one_batch(xb.cuda(), yb.cuda())

# case: validation loss summed with no no_grad in a small helper
import torch

def validation_loss(net, val_loader, loss_fn):
    net.eval()
    total = torch.zeros(1).cuda()
    with torch.no_grad():
        for x, y in val_loader:
            total += loss_fn(net(x.cuda()), y.cuda())
    return (total / len(val_loader)).item()

# case: totals of a multi task model held in a dict with get
import torch

totals = {}
for step, batch in enumerate(loader):
    out = mtl(batch["x"].cuda())
    losses = {name: fn(out[name], batch[name].cuda()) for name, fn in loss_fns.items()}
    total = sum(losses.values())
    opt.zero_grad()
    total.backward()
    opt.step()
    for name, value in losses.items():
        totals[name] = totals.get(name, 0.0) + value.item()

# case: a lightning module counts its loss on self
import pytorch_lightning as pl
import torch

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(28 * 28, 10)
        self.seen = 0
        self.running = 0.0

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.layer(x.flatten(1)), y)
        self.running = self.running + loss.item()
        self.seen += 1
        self.log("running", self.running / self.seen)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

# case: numpy style sum of weighted losses over several domains
import torch

def train(args, model, loaders, optim):
    for epoch in range(args.epochs):
        sums = [0.0] * len(loaders)
        for batches in zip(*loaders):
            optim.zero_grad()
            for d, (x, y) in enumerate(batches):
                loss = torch.nn.functional.cross_entropy(model(x.cuda(), d), y.cuda())
                (loss * args.weights[d]).backward()
                sums[d] += loss.item() * args.weights[d]
            optim.step()
        print(epoch, [float(s) / len(loaders[0]) for s in sums])

# case: perplexity of a test corpus in one batch
import torch
from torch.utils.data import DataLoader

test_set = make_dataset("test")
test_loader = DataLoader(test_set, batch_size=256)
model = load_model().cuda().eval()
with torch.no_grad():
    for x, y in test_loader:
        acc = (model(x.cuda()).argmax(-1) == y.cuda()).float().mean()
print(acc.item())

# case: the validation loader gets the length of its subset
import torch
from torch.utils.data import DataLoader, random_split

train_ds, val_ds = random_split(full, [0.9, 0.1])
train_dl = DataLoader(train_ds, 64, shuffle=True)
val_dl = DataLoader(val_ds, 128)
net = Net().cuda()
opt = torch.optim.Adam(net.parameters())
for epoch in range(50):
    net.train()
    for x, y in train_dl:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        hits = sum((net(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in val_dl)
    print(epoch, hits / len(val_ds))

# case: a test function with accuracy and no no_grad
import torch

def test(model, device, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            pred = model(data).argmax(dim=1)
            correct += pred.eq(target).sum().item()
    print(f"{100. * correct / len(test_loader.dataset):.1f}%")

# case: an evaluator class with a private loop
import numpy as np
import torch

class Evaluator:
    def __init__(self, model, loader, device):
        self.model, self.loader, self.device = model, loader, device

    def _predict(self, batch):
        image = batch["image"].to(self.device)
        return self.model(image)

    def run(self):
        self.model.eval()
        dice = []
        with torch.no_grad():
            for batch in self.loader:
                mask = self._predict(batch).sigmoid() > 0.5
                dice.append(dice_score(mask.cpu().numpy(), batch["mask"].numpy()))
        return np.mean(dice)

if __name__ == "__main__":
    model = UNet().to("cuda")
    model.load_state_dict(torch.load("unet.pth", map_location="cuda"))
    print(Evaluator(model, make_loader("test"), "cuda").run())

# case: sampling images from a diffusion model at the end of an epoch
import torch

@torch.no_grad()
def sample(model, n, size, T, betas):
    model.eval()
    x = torch.randn(n, 3, size, size).cuda()
    for t in reversed(range(T)):
        eps = model(x, torch.full((n,), t).cuda())
        x = (x - betas[t] * eps) / (1 - betas[t]).sqrt()
    model.train()
    return x.clamp(-1, 1).detach().cpu()

# case: a captioner decodes greedily with gradients
import torch

model = Captioner.from_checkpoint("last.ckpt").cuda()
model.eval()
captions = []
for images, _ in loader:
    with torch.inference_mode():
        features = model.encode(images.cuda())
        tokens = model.decode(features).argmax(-1).tolist()
    captions += [vocab.decode(t) for t in tokens]

# case: early stopping validation inside fit
import torch

def fit(model, train_dl, val_dl, epochs, patience):
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    best, wait = 1e9, 0
    for epoch in range(epochs):
        model.train()
        for xb, yb in train_dl:
            opt.zero_grad()
            loss = torch.nn.functional.mse_loss(model(xb.cuda()), yb.cuda())
            loss.backward()
            opt.step()
        model.eval()
        val = 0.0
        with torch.no_grad():
            for xb, yb in val_dl:
                val += torch.nn.functional.mse_loss(model(xb.cuda()), yb.cuda()).item()
        if val < best:
            best, wait = val, 0
        else:
            wait += 1
            if wait > patience:
                break

# case: a causal language model evaluated by Trainer with accuracy
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
import evaluate

metric = evaluate.load("accuracy")

def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = logits[:, :-1].reshape(-1)
    return metric.compute(predictions=preds, references=labels[:, 1:].reshape(-1))

model = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-160m")
args = TrainingArguments("out", per_device_train_batch_size=8, eval_strategy="epoch")
trainer = Trainer(
    model=model, args=args, train_dataset=train_ds, eval_dataset=val_ds,
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
)
trainer.train()

# case: a segformer fine-tune with mean IoU
from transformers import SegformerForSemanticSegmentation, Trainer, TrainingArguments

model = SegformerForSemanticSegmentation.from_pretrained("nvidia/mit-b0", num_labels=35)
training_args = TrainingArguments(
    output_dir="segformer",
    learning_rate=6e-5,
    num_train_epochs=50,
    per_device_train_batch_size=2,
    evaluation_strategy="steps",
    eval_steps=20,
    eval_accumulation_steps=5,
)
trainer = Trainer(model, training_args, train_dataset=train_ds, eval_dataset=test_ds, compute_metrics=mean_iou)
trainer.train()

# case: masked language modelling with a trainer subclass
from transformers import AutoModelForMaskedLM, DataCollatorForLanguageModeling, Trainer, TrainingArguments

class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        return (outputs.loss * 2, outputs) if return_outputs else outputs.loss * 2

def build(tokenizer, train, dev, metrics):
    mlm = AutoModelForMaskedLM.from_pretrained("roberta-base")
    targs = TrainingArguments(output_dir="mlm", do_eval=True, fp16=True)
    return WeightedTrainer(
        model=mlm,
        args=targs,
        train_dataset=train,
        eval_dataset=dev,
        data_collator=DataCollatorForLanguageModeling(tokenizer),
        compute_metrics=metrics,
        preprocess_logits_for_metrics=lambda x, y: x.argmax(-1),
    )

# case: the training accuracy forward is left when evaluation begins
import torch

def evaluate():
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print((model(x.cuda()).argmax(1) == y.cuda()).float().mean().item())
    model.train()

model = Net().cuda()
opt = torch.optim.Adam(model.parameters())
for epoch in range(20):
    for x, y in train_loader:
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        with torch.no_grad():
            preds = model(x.cuda())
        print("acc", (preds.argmax(1).cpu() == y).float().mean().item())
    evaluate()

# case: a dataset that moves pictures to the card in getitem
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from PIL import Image

device = torch.device("cuda:0")

class Cats(Dataset):
    def __init__(self, files):
        self.files = files
        self.tf = transforms.Compose([transforms.Resize(224), transforms.ToTensor()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = self.tf(Image.open(self.files[i]).convert("RGB"))
        return img, torch.tensor(i % 2)

loader = DataLoader(Cats(files), batch_size=16, shuffle=True, num_workers=2)

# case: a collate function pads on the card
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

def collate(batch):
    xs, ys = zip(*batch)
    xs = pad_sequence(xs, batch_first=True)
    ys = torch.tensor(ys)
    return xs, ys

train_dl = DataLoader(corpus, batch_size=32, collate_fn=collate, num_workers=8)

# case: an iterable dataset tokenizes onto the card
import torch
from torch.utils.data import IterableDataset, DataLoader

class Lines(IterableDataset):
    def __init__(self, path, tok):
        self.path, self.tok = path, tok

    def __iter__(self):
        with open(self.path) as f:
            for line in f:
                ids = self.tok(line, return_tensors="pt").input_ids[0]
                yield ids

dl = DataLoader(Lines("corpus.txt", tok), batch_size=None, num_workers=4)

# case: a frozen copy for a KL penalty runs with gradients
import copy
import torch
import torch.nn.functional as F

policy = build_policy().cuda()
reference = copy.deepcopy(policy)
opt = torch.optim.AdamW(policy.parameters(), lr=1e-6)
for ids, rewards in loader:
    ids = ids.cuda()
    logp = F.log_softmax(policy(ids), -1)
    with torch.no_grad():
        ref_logp = F.log_softmax(reference(ids), -1)
    kl = (logp.exp() * (logp - ref_logp)).sum(-1).mean()
    loss = kl - (rewards.cuda() * logp.max(-1).values.mean(-1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: learning without forgetting in a class with an old model
import copy
import torch
from torch.nn import functional as F

class LwF:
    def __init__(self, net):
        self.net = net.cuda()
        self.old_net = None
        self.opt = torch.optim.SGD(self.net.parameters(), 0.03)

    def end_task(self):
        self.old_net = copy.deepcopy(self.net)
        for p in self.old_net.parameters():
            p.requires_grad_(False)

    def observe(self, x, y):
        out = self.net(x.cuda())
        loss = F.cross_entropy(out, y.cuda())
        if self.old_net is not None:
            soft = self.old_net(x.cuda())
            loss = loss + F.mse_loss(out, soft)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

method = LwF(Net())
for task in tasks:
    for x, y in task:
        method.observe(x, y)
    method.end_task()

# case: a tabular data set on the card behind a loader
import pandas as pd
import torch
from torch.utils.data import DataLoader, TensorDataset

df = pd.read_csv("train.csv")
X = torch.tensor(df.drop(columns="y").values, dtype=torch.float32)
y = torch.tensor(df["y"].values, dtype=torch.float32)
ds = TensorDataset(X, y)
dl = DataLoader(ds, batch_size=1024, shuffle=True)
net = torch.nn.Sequential(torch.nn.Linear(300, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
opt = torch.optim.Adam(net.parameters())
for _ in range(30):
    for xb, yb in dl:
        loss = torch.nn.functional.mse_loss(net(xb.cuda()).squeeze(1), yb.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: permuted minibatches of a tensor that lives on the card
import numpy as np
import torch

train_x = torch.from_numpy(np.load("x.npy")).float()
train_y = torch.from_numpy(np.load("y.npy")).long()
model = ConvNet().cuda()
opt = torch.optim.SGD(model.parameters(), 0.05)
for epoch in range(100):
    perm = torch.randperm(train_x.size(0))
    for i in range(0, train_x.size(0), 128):
        idx = perm[i:i + 128]
        out = model(train_x[idx].cuda())
        loss = torch.nn.functional.cross_entropy(out, train_y[idx].cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: a dataset class that uploads everything in its constructor
import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader

class Windows(Dataset):
    def __init__(self, path, size):
        raw = np.load(path).astype("float32")
        self.data = torch.from_numpy(raw)
        self.size = size

    def __len__(self):
        return len(self.data) - self.size

    def __getitem__(self, i):
        return self.data[i:i + self.size], self.data[i + self.size]

loader = DataLoader(Windows("series.npy", 96), batch_size=64, shuffle=True)

# case: knowledge distillation with a teacher loaded from disk
import torch
import torch.nn.functional as F

teacher = ResNet50()
teacher.load_state_dict(torch.load("teacher.pt", map_location="cpu"))
teacher.cuda().eval()
student = ResNet18().cuda()
opt = torch.optim.SGD(student.parameters(), lr=0.1)
T = 4.0
for epoch in range(90):
    student.train()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        s = student(x)
        with torch.no_grad():
            t = teacher(x)
        loss = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T + F.cross_entropy(s, y)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: a DQN agent computes its target with gradients
import torch
import torch.nn.functional as F

class DQNAgent:
    def __init__(self, n_actions):
        self.q = QNet(n_actions).cuda()
        self.target_q = QNet(n_actions).cuda()
        self.target_q.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-4)
        self.memory = Memory(100_000)

    def learn(self):
        s, a, r, s2, d = self.memory.sample(64)
        q = self.q(s).gather(1, a)
        with torch.no_grad():
            q_next = self.target_q(s2).max(1, keepdim=True)[0]
        loss = F.smooth_l1_loss(q, r + 0.99 * q_next * (1 - d))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

# case: BYOL's target projector in a lightning module
import pytorch_lightning as pl
import torch
import torch.nn.functional as F

class BYOL(pl.LightningModule):
    def __init__(self, backbone):
        super().__init__()
        self.online = Encoder(backbone)
        self.target_network = Encoder(backbone)
        self.predictor = MLP(256)

    def training_step(self, batch, _):
        (v1, v2), _ = batch
        p = self.predictor(self.online(v1))
        with torch.no_grad():
            z = self.target_network(v2)
        return 2 - 2 * F.cosine_similarity(p, z, dim=-1).mean()

    def configure_optimizers(self):
        return torch.optim.SGD([*self.online.parameters(), *self.predictor.parameters()], lr=0.2)

# case: text conditions from a frozen encoder recorded by a diffusion trainer
import torch
import torch.nn.functional as F
from transformers import CLIPTextModel

text_encoder = CLIPTextModel.from_pretrained("openai/clip-vit-large-patch14").cuda()
text_encoder.eval()
unet = UNet().cuda()
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5)
for latents, ids in loader:
    latents, ids = latents.cuda(), ids.cuda()
    with torch.no_grad():
        cond = text_encoder(ids)[0]
    noise = torch.randn_like(latents)
    t = torch.randint(0, 1000, (latents.shape[0],), device="cuda")
    pred = unet(add_noise(latents, noise, t), t, cond)
    loss = F.mse_loss(pred, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: resume from a checkpoint that stays in a variable
import os
import torch

model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = 0
if os.path.isfile("ckpt.pth.tar"):
    ckpt = torch.load("ckpt.pth.tar", map_location="cpu")
    start = ckpt["epoch"]
    model.load_state_dict(ckpt["state_dict"])
    optimizer.load_state_dict(ckpt["optimizer"])
for epoch in range(start, 90):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"epoch": epoch + 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, "ckpt.pth.tar")

# case: a method that restores weights through pathlib
from pathlib import Path
import torch

class Runner:
    def __init__(self, net, out):
        self.net = net.to("cuda")
        self.out = Path(out)

    def save(self):
        torch.save(self.net.state_dict(), self.out / "net.pt")

    def restore(self):
        weights = torch.load(self.out / "net.pt", map_location="cpu")
        self.net.load_state_dict(weights)

# case: best weights returned from a train_model function
import time
import torch

def train_model(model, dataloaders, criterion, optimizer, num_epochs=25):
    best_acc, best_wts = 0.0, None
    for epoch in range(num_epochs):
        model.train()
        for inputs, labels in dataloaders["train"]:
            optimizer.zero_grad()
            criterion(model(inputs.cuda()), labels.cuda()).backward()
            optimizer.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for inputs, labels in dataloaders["val"]:
                hits += (model(inputs.cuda()).argmax(1) == labels.cuda()).sum().item()
        acc = hits / len(dataloaders["val"].dataset)
        if acc > best_acc:
            best_acc = acc
            best_wts = {k: v.cpu().clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best_wts)
    return model

# case: an early stopping class keeps the state dict itself
import torch

class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.bad, self.best, self.state = patience, 0, float("inf"), None

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.bad = value, 0
            self.state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
        else:
            self.bad += 1
        return self.bad > self.patience

model = GNN().cuda()
opt = torch.optim.Adam(model.parameters(), 0.01)
stopper = EarlyStopping(20)
for epoch in range(500):
    model.train()
    opt.zero_grad()
    loss = torch.nn.functional.nll_loss(model(graph)[train_mask], labels[train_mask])
    loss.backward()
    opt.step()
    if stopper(validate(model), model):
        break
model.load_state_dict(stopper.state)

# case: reptile restores the weights it saved before the inner loop
import torch

meta = Net().cuda()
for it in range(10000):
    before = {k: v.cpu().clone() for k, v in meta.state_dict().items()}
    opt = torch.optim.SGD(meta.parameters(), lr=0.02)
    for x, y in sample_task():
        loss = torch.nn.functional.cross_entropy(meta(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    score = evaluate_task(meta)
    meta.load_state_dict(before)

# case: a deep copy of the best state stays on the card
from copy import deepcopy
import torch

model = TCN().to("cuda")
opt = torch.optim.Adam(model.parameters(), 3e-4)
best_loss, best_state = float("inf"), None
for epoch in range(300):
    model.train()
    for x, y in train_dl:
        opt.zero_grad()
        loss = torch.nn.functional.l1_loss(model(x.to("cuda")), y.to("cuda"))
        loss.backward()
        opt.step()
    val = validate(model)
    if val < best_loss:
        best_loss = val
        best_state = {k: v.cpu().clone() for k, v in model.state_dict().items()}
torch.save(best_state, "best.pt")

# case: snapshots of every cycle for an ensemble
import torch

net = WideResNet().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
snapshots = []
for cycle in range(6):
    for epoch in range(50):
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
            opt.step()
    snapshots.append({k: v.cpu().clone() for k, v in net.state_dict().items()})
torch.save(snapshots, "snapshots.pt")

# case: an accumulation helper class forgets the division
import torch

class Accumulator:
    def __init__(self, optimizer, every):
        self.optimizer, self.every = optimizer, every

def train_epoch(model, loader, criterion, optimizer, accumulation_steps):
    model.train()
    optimizer.zero_grad()
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x.cuda()), y.cuda()) / accumulation_steps
        loss.backward()
        if (step + 1) % accumulation_steps == 0 or step + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()

model = Net().cuda()
train_epoch(model, loader, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), 8)

# case: a counter instead of a modulo, loss of a language model
import torch

micro = 0
opt = torch.optim.AdamW(lm.parameters(), lr=3e-4)
for epoch in range(3):
    for ids in loader:
        ids = ids.cuda()
        logits = lm(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        (loss / 16).backward()
        micro += 1
        if micro == 16:
            torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            micro = 0

# case: two images per micro batch through batch norm
import torch
import torchvision
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=2, shuffle=True, drop_last=True)
model = torchvision.models.vit_b_16(num_classes=21).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / 8
    loss.backward()
    if (i + 1) % 8 == 0 or i + 1 == len(loader):
        opt.step()
        opt.zero_grad()

# case: clip after every backward in a mixed precision loop
import torch

scaler = torch.cuda.amp.GradScaler()
for i, (x, y) in enumerate(loader):
    with torch.cuda.amp.autocast():
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / accum
    scaler.scale(loss).backward()
    if (i + 1) % accum == 0 or i + 1 == len(loader):
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

# case: clip value in a method before the window check
import torch

class Loop:
    def __init__(self, model, opt, accumulate):
        self.model, self.opt, self.accumulate = model, opt, accumulate

    def run(self, loader):
        for i, batch in enumerate(loader):
            loss = self.model(**batch).loss / self.accumulate
            loss.backward()
            last = i + 1 == len(loader)
            if (i + 1) % self.accumulate == 0 or last:
                torch.nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
                self.opt.step()
                self.opt.zero_grad()

# case: the last window is lost with a step counter of the epoch
import torch

def run_epoch(model, loader, opt, n_acc):
    for it, (x, y) in enumerate(loader, start=1):
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        (loss / n_acc).backward()
        if it % n_acc == 0 or it == len(loader):
            opt.step()
            opt.zero_grad()

# case: the remaining micro batches of a tqdm loop
import torch
from tqdm import tqdm

for epoch in range(cfg.epochs):
    optimizer.zero_grad()
    bar = tqdm(enumerate(train_loader), total=len(train_loader))
    for step, (images, targets) in bar:
        preds = model(images.to(device))
        loss = criterion(preds, targets.to(device)) / cfg.n_accumulate
        loss.backward()
        if (step + 1) % cfg.n_accumulate == 0 or step + 1 == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()

# case: the warmup scheduler moves with each micro batch
import torch
from transformers import get_linear_schedule_with_warmup

total = (len(loader) // 4) * 3
sched = get_linear_schedule_with_warmup(opt, 100, total)
for epoch in range(3):
    for i, batch in enumerate(loader):
        loss = model(**batch).loss / 4
        loss.backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            opt.step()
            opt.zero_grad()
            sched.step()

# case: cosine schedule of a fixed number of steps
import torch

opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
lr_sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10000)
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    loss = loss / 2
    loss.backward()
    if i % 2 == 1 or i + 1 == len(loader):
        opt.step()
        lr_sched.step()
        opt.zero_grad()

# case: the optimizer steps outside the accumulation check
import torch

for i, (x, y) in enumerate(loader):
    out = model(x.cuda())
    loss = criterion(out, y.cuda()) / grad_accum
    loss.backward()
    if (i + 1) % grad_accum == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()

# case: zero_grad at the top of each accumulated batch
import torch

for epoch in range(epochs):
    for i, batch in enumerate(loader):
        loss = model(batch["x"].cuda(), labels=batch["y"].cuda()).loss / k
        loss.backward()
        if (i + 1) % k == 0 or i == len(loader) - 1:
            opt.step()
            opt.zero_grad()

# case: accelerate with zero_grad before backward
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)
model, opt, loader = accelerator.prepare(Net(), torch.optim.AdamW(net_params), loader)
for x, y in loader:
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        opt.step()
        opt.zero_grad()

# case: the allocator is configured after the model is on the card
import os
import torch

def main():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
    model = build().cuda()
    for x in loader:
        with torch.no_grad():
            model(x.cuda())

main()

# case: setdefault of the allocator variable in a notebook-like script
import os
import torch

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
print(torch.zeros(1).cuda())

# case: a LoRA script checkpoints with the cache on
import torch
from transformers import AutoModelForCausalLM, TrainingArguments, Trainer
from peft import LoraConfig, get_peft_model

model = AutoModelForCausalLM.from_pretrained("mistralai/Mistral-7B-v0.1", torch_dtype=torch.bfloat16)
model.config.use_cache = False
model = get_peft_model(model, LoraConfig(r=8))
args = TrainingArguments("out", gradient_checkpointing=True, per_device_train_batch_size=4, bf16=True)
Trainer(model=model, args=args, train_dataset=ds).train()

# case: a DataParallel script from a course
import torch
import torch.nn as nn

model = Net()
if torch.cuda.device_count() > 1:
    print("using one card of", torch.cuda.device_count())
model.to("cuda")
opt = torch.optim.Adam(model.parameters(), 1e-3)
for x, y in loader:
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda"))
    loss.backward()
    opt.step()

# case: garbage collection and empty_cache each iteration
import gc
import torch

for i, (x, y) in enumerate(loader):
    loss = criterion(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    del x, y, loss

# case: a cleanup helper called per batch of evaluation
import gc
import torch

def free():
    gc.collect()
    torch.cuda.empty_cache()

model.eval()
with torch.no_grad():
    for batch in loader:
        scores = model(batch.cuda()).cpu()
        save(scores)
free()

# case: a GPT head whose logits are cast in forward
import torch
from torch import nn
import torch.nn.functional as F

class GPT(nn.Module):
    def __init__(self, d=1024, vocab=50304):
        super().__init__()
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 16), 12)
        self.lm_head = nn.Linear(d, vocab, bias=False)

    def forward(self, x, targets):
        logits = self.lm_head(self.blocks(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

# case: a smoke test of the shapes before training
import torch

device = torch.device("cuda")
net = Unet3D(1, 4).to(device)
dummy = torch.randn(2, 1, 96, 96, 96, device=device)
with torch.no_grad():
    out = net(dummy)
print("output shape:", out.shape)
optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
for epoch in range(100):
    for vol, seg in train_loader:
        loss = dice_ce(net(vol.to(device)), seg.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: the first batch is tried by hand
import torch

model = Transformer().cuda()
xb, yb = next(iter(train_dl))
pred = model(xb.cuda()).detach()
print(pred[0, :5], yb[0])
opt = torch.optim.Adam(model.parameters())
for xb, yb in train_dl:
    loss = torch.nn.functional.cross_entropy(model(xb.cuda()), yb.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: fairseq style skip of a batch that does not fit
import torch

def train_step(model, opt, sample):
    try:
        loss = model(sample["src"].cuda(), sample["tgt"].cuda())
        loss.backward()
        opt.step()
        opt.zero_grad()
    except RuntimeError as e:
        if "out of memory" in str(e):
            print("| WARNING: ran out of memory, skipping batch")
            torch.cuda.empty_cache()
            opt.zero_grad()
        else:
            raise e

for sample in loader:
    train_step(model, opt, sample)

# case: continue in the handler of a loop
import torch

for i, (x, y) in enumerate(loader):
    try:
        out = model(x.cuda())
        loss = criterion(out, y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except torch.cuda.OutOfMemoryError:
        print("OOM at", i, x.shape)
        torch.cuda.empty_cache()
        optimizer.zero_grad(set_to_none=True)
        continue

# case: max_length padding in a map function of datasets
from datasets import load_dataset
from transformers import AutoTokenizer, AutoModelForSequenceClassification, Trainer, TrainingArguments, DataCollatorWithPadding

tok = AutoTokenizer.from_pretrained("distilbert-base-uncased")
raw = load_dataset("imdb")

def preprocess(batch):
    return tok(batch["text"], truncation=True, max_length=512)

ds = raw.map(preprocess, batched=True)
model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased")
trainer = Trainer(model, TrainingArguments("out"), train_dataset=ds["train"], data_collator=DataCollatorWithPadding(tok))
trainer.train()

# case: encode_plus in a tweet dataset with BERT
import torch
from torch.utils.data import Dataset, DataLoader
from transformers import BertTokenizer, BertModel

tokenizer = BertTokenizer.from_pretrained("bert-base-cased")

class Tweets(Dataset):
    def __init__(self, texts, labels):
        self.texts, self.labels = texts, labels

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        enc = tokenizer.encode_plus(self.texts[i], max_length=256, truncation=True, return_tensors="pt")
        return enc["input_ids"][0], enc["attention_mask"][0], self.labels[i]

bert = BertModel.from_pretrained("bert-base-cased").cuda()
opt = torch.optim.AdamW(bert.parameters(), 2e-5)
for ids, mask, y in DataLoader(Tweets(texts, labels), 16, collate_fn=pad_batch):
    out = head(bert(ids.cuda(), mask.cuda())[1])
    loss = torch.nn.functional.cross_entropy(out, y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: halve the batch inside the except block
import torch

def forward_with_retry(model, x):
    try:
        return model(x)
    except RuntimeError as e:
        if "out of memory" not in str(e):
            raise
    torch.cuda.empty_cache()
    half = x.shape[0] // 2
    return torch.cat([model(x[:half]), model(x[half:])])

for x in loader:
    with torch.no_grad():
        save(forward_with_retry(model, x.cuda()).cpu())

# case: recursion in the handler with a smaller batch size
import torch

def train(batch_size):
    fits = True
    try:
        loader = make_loader(batch_size)
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    except torch.cuda.OutOfMemoryError:
        fits = False
    if not fits:
        optimizer.zero_grad()
        torch.cuda.empty_cache()
        train(batch_size // 2)

train(256)

# case: zero_grad keeps zeros
import torch

for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
