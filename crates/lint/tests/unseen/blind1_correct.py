# case: a class with train_one_epoch sums numbers
import torch
from torch import nn, optim


class Runner:
    def __init__(self, net, train_dl, lr=3e-4):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = net.to(self.device)
        self.train_dl = train_dl
        self.opt = optim.AdamW(self.net.parameters(), lr=lr)
        self.crit = nn.CrossEntropyLoss()
        self.history = {"loss": 0.0, "acc": 0.0, "n": 0}

    def train_one_epoch(self):
        self.net.train()
        for xb, yb in self.train_dl:
            xb, yb = xb.to(self.device), yb.to(self.device)
            self.opt.zero_grad()
            out = self.net(xb)
            loss = self.crit(out, yb)
            loss.backward()
            self.opt.step()
            self.history["loss"] += loss.detach()
            self.history["acc"] += (out.argmax(1) == yb).float().mean()
            self.history["n"] += 1

# case: defaultdict of floats from a dict of losses
from collections import defaultdict
import torch

def train(model, loader, optimizer, device, epochs):
    logs = defaultdict(list)
    for epoch in range(epochs):
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}
            losses = model(**batch)
            total = sum(losses.values())
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            for name, value in losses.items():
                logs[name].append(value.item())
    return logs

# case: replay buffer of detached values on the host
import random
import torch

class Agent:
    def __init__(self, qnet, lr):
        self.q = qnet.cuda()
        self.optim = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.memory = []

    @torch.no_grad()
    def act(self, state, eps):
        state = torch.as_tensor(state, dtype=torch.float32, device="cuda")
        q = self.q(state)
        a = random.randrange(q.numel()) if random.random() < eps else q.argmax().item()
        return a, q.cpu()

    def remember(self, *transition):
        self.memory.append(transition)

def play(agent, env, episodes):
    for ep in range(episodes):
        s, done = env.reset(), False
        while not done:
            a, q = agent.act(s, 0.1)
            s2, r, done, _ = env.step(a)
            agent.remember(s, a, r, s2, q)
            s = s2

# case: REINFORCE keeps log-probs of one episode only
import torch
from torch.distributions import Categorical

class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(4, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return torch.softmax(self.l(x), -1)

policy = Policy().cuda()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)

def select_action(state):
    probs = policy(torch.from_numpy(state).float().cuda())
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()

def finish_episode():
    R = 0
    returns = []
    policy_loss = []
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    opt.zero_grad()
    torch.stack(policy_loss).sum().backward()
    opt.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]

# case: lightning module clears its list
import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class LitAE(pl.LightningModule):
    def __init__(self, enc, dec):
        super().__init__()
        self.enc, self.dec = enc, dec
        self.validation_step_outputs = []

    def training_step(self, batch, batch_idx):
        x, _ = batch
        loss = F.mse_loss(self.dec(self.enc(x)), x)
        self.log("train_loss", loss)
        return {"loss": loss}

    def validation_step(self, batch, batch_idx):
        x, _ = batch
        loss = F.mse_loss(self.dec(self.enc(x)), x)
        self.validation_step_outputs.append(loss)
        return loss

    def on_validation_epoch_end(self):
        self.log("val_avg", torch.stack(self.validation_step_outputs).mean())
        self.validation_step_outputs.clear()

# case: lightning callback stores host copies
import lightning as L


class CollectPredictions(L.Callback):
    def __init__(self):
        self.preds = []

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        x, y = batch
        logits = pl_module(x)
        self.preds.append((logits.cpu(), y.cpu()))

    def on_validation_epoch_end(self, trainer, pl_module):
        self.preds = []

# case: hf trainer subclass with a guarded teacher
from transformers import Trainer
import torch
import torch.nn.functional as F


class DistillTrainer(Trainer):
    def __init__(self, *args, teacher=None, temperature=2.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher
        self.teacher.eval()
        self.T = temperature
        self.kd_log = []

    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        out = model(**inputs)
        with torch.no_grad():
            t_out = self.teacher(**inputs)
        kd = F.kl_div(
            F.log_softmax(out.logits / self.T, -1), F.softmax(t_out.logits / self.T, -1), reduction="batchmean"
        ) * self.T**2
        loss = 0.5 * out.loss + 0.5 * kd
        self.kd_log.append(float(kd))
        return (loss, out) if return_outputs else loss

# case: accelerate loop with detached total
from accelerate import Accelerator
import torch


def training_function(config, args):
    accelerator = Accelerator(mixed_precision=args.mixed_precision)
    model = build_model(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    model, optimizer, train_dataloader, eval_dataloader = accelerator.prepare(
        model, optimizer, get_train(config), get_eval(config)
    )
    for epoch in range(config["num_epochs"]):
        model.train()
        total_loss = 0
        for step, batch in enumerate(train_dataloader):
            outputs = model(**batch)
            loss = outputs.loss
            total_loss += loss.detach().float()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        losses = []
        for step, batch in enumerate(eval_dataloader):
            with torch.no_grad():
                outputs = model(**batch)
            losses.append(accelerator.gather_for_metrics(outputs.loss.repeat(8)))
        print(torch.cat(losses).mean())

# case: ignite returns the number
from ignite.engine import Engine, Events
import torch.nn.functional as F

def create_trainer(model, optimizer, device):
    history = []

    def _update(engine, batch):
        model.train()
        optimizer.zero_grad()
        x, y = batch[0].to(device), batch[1].to(device)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer = Engine(_update)

    @trainer.on(Events.ITERATION_COMPLETED)
    def report(engine):
        history.append(engine.state.output)

    return trainer

# case: fastai-like recorder detaches
import torch

class Recorder:
    def begin_fit(self, learn):
        self.losses = []

    def after_loss(self, learn):
        self.losses.append(learn.loss.detach().cpu())

class Learner:
    def __init__(self, model, dls, loss_func, lr, cbs):
        self.model, self.dls, self.loss_func, self.cbs = model.cuda(), dls, loss_func, cbs
        self.opt = torch.optim.SGD(self.model.parameters(), lr)

    def one_batch(self, xb, yb):
        self.pred = self.model(xb.cuda())
        self.loss = self.loss_func(self.pred, yb.cuda())
        for cb in self.cbs:
            cb.after_loss(self)
        self.loss.backward()
        self.opt.step()
        self.opt.zero_grad()

    def fit(self, n):
        for _ in range(n):
            for xb, yb in self.dls.train:
                self.one_batch(xb, yb)

# case: keras-like wrapper with decorator
import torch
from tqdm import tqdm


class TorchModel:
    def __init__(self, module, loss, optimizer):
        self.module = module.to("cuda:0")
        self.loss_fn = loss
        self.optimizer = optimizer

    def fit(self, loader, epochs=1):
        self.module.train()
        for e in range(epochs):
            for x, y in tqdm(loader):
                self.optimizer.zero_grad()
                l = self.loss_fn(self.module(x.to("cuda:0")), y.to("cuda:0"))
                l.backward()
                self.optimizer.step()

    @torch.inference_mode()
    def evaluate(self, loader):
        self.module.eval()
        hits = n = 0
        for x, y in tqdm(loader, desc="eval"):
            p = self.module(x.to("cuda:0"))
            hits += (p.argmax(-1).cpu() == y).sum().item()
            n += len(y)
        return hits / n


m = TorchModel(net, torch.nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), 0.1))
m.fit(train_loader, epochs=3)
print(m.evaluate(test_loader))

# case: GAN with detach
import torch, torch.nn as nn
device = torch.device("cuda")
netG = Generator().to(device)
netD = Discriminator().to(device)
optD = torch.optim.Adam(netD.parameters(), 2e-4, (0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), 2e-4, (0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
G_losses = []
for epoch in range(25):
    for i, (real, _) in enumerate(dataloader):
        real = real.to(device)
        b = real.size(0)
        netD.zero_grad()
        bce(netD(real).view(-1), torch.ones(b, device=device)).backward()
        fake = netG(torch.randn(b, 100, 1, 1, device=device))
        errD_fake = bce(netD(fake.detach()).view(-1), torch.zeros(b, device=device))
        errD_fake.backward()
        optD.step()
        netG.zero_grad()
        errG = bce(netD(fake).view(-1), torch.ones(b, device=device))
        errG.backward()
        optG.step()
        G_losses.append(errG.item())

# case: truncated BPTT with repackaging helper
import torch
import torch.nn as nn

def repackage(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage(v) for v in h)

def run(model, chunks, opt, crit):
    h = model.init_hidden(32)
    for x, y in chunks:
        h = repackage(h)
        logits, h = model(x.cuda(), h)
        loss = crit(logits.flatten(0, 1), y.cuda().flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        opt.step()

# case: window of steps is backpropagated at once
import torch
import torch.nn.functional as F

def tbptt(cell, head, stream, opt, k=16):
    h = torch.zeros(1, 256, device="cuda")
    losses = []
    for t, (x, y) in enumerate(stream):
        h = cell(x.cuda(), h)
        losses.append(F.cross_entropy(head(h), y.cuda()))
        if (t + 1) % k == 0:
            opt.zero_grad()
            torch.stack(losses).mean().backward()
            opt.step()
            losses = []
            h = h.detach()

# case: meter converts tensors itself
import torch

class AverageMeter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        if isinstance(val, torch.Tensor):
            val = val.item()
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)

def train(train_loader, model, criterion, optimizer):
    losses = AverageMeter()
    for images, target in train_loader:
        loss = criterion(model(images.cuda()), target.cuda())
        losses.update(loss, images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses.avg

# case: smoothed value of fixed length
from collections import deque
import torch

class SmoothedValue:
    def __init__(self, window_size=20):
        self.deque = deque(maxlen=window_size)
        self.total = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

def train_one_epoch(model, optimizer, data_loader, device):
    meter = SmoothedValue()
    for images, targets in data_loader:
        loss_dict = model([i.to(device) for i in images], targets)
        losses = sum(loss for loss in loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        meter.update(losses.item())

# case: multi-task losses summed within the step
import torch

for batch in loader:
    total = 0
    parts = []
    for task, head in heads.items():
        l = criterion[task](head(backbone(batch["image"].cuda())), batch[task].cuda())
        total = total + weights[task] * l
        parts.append(l)
    opt.zero_grad()
    total.backward()
    opt.step()
    print([p.item() for p in parts])

# case: generator yields numbers
import torch

def steps(model, loader, opt, crit):
    for x, y in loader:
        opt.zero_grad()
        loss = crit(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        yield loss.item()

curve = []
for epoch in range(20):
    for loss in steps(model, loader, opt, torch.nn.CrossEntropyLoss()):
        curve.append(loss)

# case: helper returns loss and logits, number kept
import torch
import torch.nn.functional as F

def train_step(model, opt, x, y):
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item(), logits.detach()

def train_epoch(model, opt, loader, device):
    losses, acc = [], 0
    for x, y in loader:
        l, logits = train_step(model, opt, x.to(device), y.to(device))
        losses.append(l)
        acc += (logits.argmax(1).cpu() == y).sum()
    return sum(losses) / len(losses), acc

# case: closure for LBFGS
import torch
opt = torch.optim.LBFGS([img.requires_grad_(True)])
run = [0]
while run[0] <= 300:
    def closure():
        opt.zero_grad()
        model(img)
        style_score = 0
        content_score = 0
        for sl in style_losses:
            style_score += sl.loss
        for cl in content_losses:
            content_score += cl.loss
        loss = 1e6 * style_score + content_score
        loss.backward()
        run[0] += 1
        return style_score + content_score
    opt.step(closure)

# case: total of a sequence is backpropagated
import torch

def train_seq2seq(enc, dec, pair_iter, eo, do, crit):
    for src, tgt in pair_iter:
        eo.zero_grad(); do.zero_grad()
        loss = 0
        out, h = enc(src.cuda())
        inp = tgt[:, 0].cuda()
        for t in range(1, tgt.size(1)):
            logits, h = dec(inp, h, out)
            loss += crit(logits, tgt[:, t].cuda())
            inp = tgt[:, t].cuda()
        loss.backward()
        eo.step(); do.step()
        print(loss.item() / tgt.size(1))

# case: predictions reduced before keeping
import torch

def predict_all(net, loader):
    net.eval()
    preds = []
    with torch.no_grad():
        for x in loader:
            preds.append(net(x.cuda()).argmax(-1))
    return torch.cat(preds).cpu().numpy()

# case: hook writes into one slot
import torch

class Probe:
    def __init__(self, module):
        self.act = None
        module.register_forward_hook(self.hook)

    def hook(self, module, args, output):
        self.act = output

def analyse(model, layer, loader):
    p = Probe(layer)
    stats = []
    with torch.no_grad():
        for x, _ in loader:
            model(x.cuda())
            stats.append(p.act.mean().item())
    return stats

# case: hook list is cleared per batch
import torch
import torchvision

model = torchvision.models.resnet50(weights="DEFAULT").cuda().eval()
acts = []
model.layer4.register_forward_hook(lambda m, i, o: acts.append(o))
pooled = []
with torch.no_grad():
    for imgs, _ in dataloader:
        acts.clear()
        model(imgs.cuda())
        pooled.append(acts[0].mean((2, 3)).cpu())

# case: retain_graph for two losses
import torch

for x, y in loader:
    z = encoder(x.cuda())
    la = head_a(z).mean()
    lb = head_b(z).mean()
    opt_a.zero_grad()
    la.backward(retain_graph=True)
    opt_b.zero_grad()
    lb.backward()
    opt_a.step()
    opt_b.step()

# case: validate under no_grad at the call
import torch

def validate(val_loader, model, criterion):
    model.eval()
    val_loss = 0
    for images, labels in val_loader:
        outputs = model(images.cuda())
        val_loss += criterion(outputs, labels.cuda()).item()
    return val_loss / len(val_loader)

def main():
    model = get_model().cuda()
    opt = torch.optim.Adam(model.parameters())
    crit = torch.nn.CrossEntropyLoss()
    for epoch in range(10):
        model.train()
        for images, labels in train_loader:
            opt.zero_grad()
            crit(model(images.cuda()), labels.cuda()).backward()
            opt.step()
        with torch.no_grad():
            print(validate(val_loader, model, crit))

main()

# case: fastapi server with global switch
import torch
from fastapi import FastAPI

torch.set_grad_enabled(False)
app = FastAPI()
model = torch.jit.load("model.pt").cuda().eval()

@app.post("/predict")
def predict(body: dict):
    x = torch.tensor(body["x"], device="cuda")
    return {"y": model(x).softmax(-1).tolist()}

# case: feature extraction to numpy
import torch
import timm
import numpy as np

backbone = timm.create_model("vit_base_patch16_224", pretrained=True, num_classes=0).cuda().eval()
database = {}
with torch.no_grad():
    for paths, images in loader:
        features = backbone(images.cuda()).cpu().numpy()
        for p, f in zip(paths, features):
            database[p] = f
np.save("db.npy", database)

# case: saliency needs gradients in eval mode
import torch

def saliency(model, loader):
    model.eval()
    maps = []
    for x, y in loader:
        x = x.cuda().requires_grad_()
        score = model(x).gather(1, y.cuda()[:, None]).sum()
        g, = torch.autograd.grad(score, x)
        maps.append(g.abs().amax(1).cpu())
    return torch.cat(maps)

# case: batches moved one by one
import torch
import numpy as np

X = torch.tensor(np.load("X.npy"), dtype=torch.float32)
Y = torch.tensor(np.load("Y.npy")).long()
model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(30):
    perm = torch.randperm(X.size(0))
    for k in range(0, X.size(0), 128):
        idx = perm[k:k + 128]
        xb, yb = X[idx].cuda(), Y[idx].cuda()
        loss = torch.nn.functional.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: EMA class under no_grad
import torch

class EMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            if p.requires_grad:
                self.shadow[n] = self.decay * self.shadow[n] + (1.0 - self.decay) * p

def train(model, loader, opt, crit):
    ema = EMA(model)
    for x, y in loader:
        loss = crit(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)

# case: mean teacher is frozen
import copy
import torch
import torch.nn.functional as F

class MeanTeacher:
    def __init__(self, student):
        self.student = student.cuda()
        self.teacher = copy.deepcopy(self.student)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.03)

    def step(self, xl, yl, xu):
        ls = F.cross_entropy(self.student(xl), yl)
        t = self.teacher(xu)
        cons = F.mse_loss(F.softmax(self.student(xu), 1), F.softmax(t, 1))
        loss = ls + 10 * cons
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

# case: target network detached
import torch
import torch.nn as nn

policy_net = DQN(n_obs, n_act).to("cuda")
target_net = DQN(n_obs, n_act).to("cuda")
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-4)

def optimize_model(memory, batch_size, gamma):
    s, a, r, s2, d = memory.sample(batch_size)
    q = policy_net(s).gather(1, a)
    with torch.no_grad():
        nxt = target_net(s2).max(1)[0]
    loss = nn.SmoothL1Loss()(q, (r + gamma * nxt * (1 - d)).unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: MoCo queue of detached keys with bounded length
import torch
import torch.nn.functional as F
from collections import deque

queue = deque(maxlen=64)
for im_q, im_k in loader:
    q = F.normalize(encoder_q(im_q.cuda()), dim=1)
    with torch.no_grad():
        k = F.normalize(encoder_k(im_k.cuda()), dim=1)
    logits = torch.cat([(q * k).sum(1, keepdim=True)] + [q @ o.t() for o in queue], 1) / 0.07
    loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue.append(k)

# case: MAML second order
import torch
import torch.nn.functional as F

def maml(model, tasks, meta_opt, inner_lr):
    meta_loss = 0.0
    for support, query in tasks:
        fast = list(model.parameters())
        loss = F.mse_loss(model.functional(support.x.cuda(), fast), support.y.cuda())
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [p - inner_lr * g for p, g in zip(fast, grads)]
        meta_loss = meta_loss + F.mse_loss(model.functional(query.x.cuda(), fast), query.y.cuda())
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()

# case: gradient penalty
import torch

def penalty(D, real, fake):
    a = torch.rand(real.size(0), 1, 1, 1, device="cuda")
    x = (a * real + (1 - a) * fake).requires_grad_(True)
    out = D(x)
    g = torch.autograd.grad(out.sum(), x, create_graph=True, retain_graph=True)[0]
    return ((g.flatten(1).norm(2, 1) - 1) ** 2).mean()

for real in loader:
    real = real.cuda()
    fake = G(torch.randn(real.size(0), 128, device="cuda")).detach()
    d_loss = D(fake).mean() - D(real).mean() + 10 * penalty(D, real, fake)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

# case: oom handler clears gradients and retries outside
import torch

def train(model, loader, optimizer, crit):
    for i, (x, y) in enumerate(loader):
        oom = False
        try:
            crit(model(x.cuda()), y.cuda()).backward()
        except torch.cuda.OutOfMemoryError:
            oom = True
        if oom:
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            for xs, ys in zip(x.chunk(2), y.chunk(2)):
                crit(model(xs.cuda()), ys.cuda()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

# case: logits go to the host at once
import torch

@torch.no_grad()
def run_inference(model, loader, device):
    model.eval()
    logits_list, labels_list = [], []
    for x, y in loader:
        logits_list.append(model(x.to(device)).cpu())
        labels_list.append(y)
    return torch.cat(logits_list), torch.cat(labels_list)

# case: metric updated batch by batch
import torch
import torchmetrics

def test(model, loader):
    iou = torchmetrics.JaccardIndex("multiclass", num_classes=21).to("cuda")
    model.eval()
    with torch.inference_mode():
        for images, masks in loader:
            iou.update(model(images.to("cuda"))["out"].argmax(1), masks.to("cuda"))
    return iou.compute()

# case: adversarial accuracy counted
import torch
import torch.nn.functional as F

def fgsm_all(model, loader, eps):
    model.eval()
    correct = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        x.requires_grad_(True)
        loss = F.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            x_adv = (x + eps * x.grad.sign()).clamp(0, 1)
            correct += (model(x_adv).argmax(1) == y).sum().item()
    return correct

# case: distributed data parallel
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
model = DDP(MyTransformer(vocab, 512, 8, 6).cuda(), device_ids=[rank])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for epoch in range(10):
    for src, tgt in train_loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(src.cuda()), tgt.cuda())
        loss.backward()
        optimizer.step()
        avg = loss.detach().clone()
        dist.all_reduce(avg)

# case: dataset stays on the host
import torch
from torch.utils.data import Dataset, DataLoader
import pandas as pd

class TabularDataset(Dataset):
    def __init__(self, csv):
        self.df = pd.read_csv(csv)

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        return torch.tensor(row[:-1].values, dtype=torch.float32), torch.tensor(row[-1])

train = DataLoader(TabularDataset("train.csv"), batch_size=64, shuffle=True, num_workers=8, pin_memory=True)

# case: prefetcher moves one batch ahead
import torch

class Prefetcher:
    def __init__(self, loader):
        self.it = iter(loader)
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        self.batch = next(self.it, None)
        if self.batch is None:
            return
        with torch.cuda.stream(self.stream):
            self.batch = [t.cuda(non_blocking=True) for t in self.batch]

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        b = self.batch
        self.preload()
        return b

# case: best weights saved to disk
import torch

class EarlyStopping:
    def __init__(self, path, patience=5):
        self.path, self.patience, self.bad, self.best = path, patience, 0, float("inf")

    def __call__(self, val_loss, model):
        if val_loss < self.best:
            self.best = val_loss
            torch.save(model.state_dict(), self.path)
            self.bad = 0
        else:
            self.bad += 1
        return self.bad >= self.patience

def fit(model, opt, loader, val):
    es = EarlyStopping("best.pt")
    for epoch in range(100):
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            opt.step()
        if es(val(model), model):
            break
    model.load_state_dict(torch.load("best.pt", map_location="cpu"))
    return model

# case: best weights copied to the host
import torch

def train_model(model, criterion, optimizer, loaders, epochs=25):
    model = model.to("cuda")
    best, best_acc = None, 0.0
    for epoch in range(epochs):
        model.train()
        for inputs, labels in loaders["train"]:
            optimizer.zero_grad()
            criterion(model(inputs.to("cuda")), labels.to("cuda")).backward()
            optimizer.step()
        model.eval()
        corrects = 0
        with torch.no_grad():
            for inputs, labels in loaders["val"]:
                corrects += (model(inputs.to("cuda")).argmax(1).cpu() == labels).sum().item()
        if corrects > best_acc:
            best_acc = corrects
            best = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best)
    return model

# case: resume with map_location and del
import torch

def main(args):
    model = build(args).cuda()
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    if args.resume:
        ckpt = torch.load(args.resume, map_location="cpu", weights_only=True)
        model.load_state_dict(ckpt["state_dict"])
        optimizer.load_state_dict(ckpt["optimizer"])
        del ckpt
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

# case: accumulation done right in a class
import torch

class Accum:
    def __init__(self, model, opt, n):
        self.model, self.opt, self.accum_iter = model, opt, n
        self.crit = torch.nn.CrossEntropyLoss()

    def run_epoch(self, loader):
        self.opt.zero_grad()
        for batch_idx, (x, y) in enumerate(loader):
            loss = self.crit(self.model(x.cuda()), y.cuda()) / self.accum_iter
            loss.backward()
            if (batch_idx + 1) % self.accum_iter == 0 or batch_idx + 1 == len(loader):
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.opt.zero_grad()

# case: accelerate accumulate
from accelerate import Accelerator
accelerator = Accelerator(gradient_accumulation_steps=4)
model, optimizer, loader, sched = accelerator.prepare(model, optimizer, loader, sched)
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        sched.step()
        optimizer.zero_grad()

# case: step after loop applies the rest
import torch

def go(model, loader, opt, sched, k):
    n = 0
    for batch in loader:
        (model(batch.cuda()).mean() / k).backward()
        n += 1
        if n % k == 0:
            opt.step()
            sched.step()
            opt.zero_grad()
    if n % k:
        opt.step()
        opt.zero_grad()

# case: manual no_grad context object passed around
import contextlib
import torch

def run(model, loader, train, opt=None):
    model.train(train)
    ctx = contextlib.nullcontext() if train else torch.no_grad()
    total = 0.0
    with ctx:
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            if train:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item()
    return total

# case: empty cache once per epoch
import torch

for epoch in range(10):
    for b in loader:
        loss = model(b.cuda()).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.empty_cache()
    validate(model)

# case: smoke test deletes its output
import torch
net = BigNet().cuda()
x = torch.randn(64, 3, 224, 224).cuda()
y = net(x)
print("output shape:", y.shape)
del y, x
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for img, lab in train_loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(img.cuda()), lab.cuda()).backward()
    optimizer.step()

# case: PPO rollout storage without graph
import torch

class Rollout:
    def __init__(self):
        self.obs, self.logp, self.val = [], [], []

    def add(self, o, l, v):
        self.obs.append(o)
        self.logp.append(l)
        self.val.append(v)

def collect(env, agent, n):
    buf = Rollout()
    o = env.reset()
    for _ in range(n):
        with torch.no_grad():
            a, l, v = agent.act(torch.as_tensor(o).cuda())
        buf.add(o, l, v)
        o, r, d, _ = env.step(a.cpu().numpy())
    return buf

# case: hf trainer with preprocess
from transformers import AutoModelForSeq2SeqLM, Trainer, TrainingArguments

model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
args = TrainingArguments(output_dir="o", per_device_train_batch_size=8, fp16=True, eval_accumulation_steps=8)
trainer = Trainer(model, args, train_dataset=tr, eval_dataset=va, compute_metrics=metrics,
                  preprocess_logits_for_metrics=lambda l, _: l[0].argmax(-1))
trainer.train()

# case: small cache of host embeddings
from functools import lru_cache
import torch

encoder = load_encoder().cuda().eval()

@lru_cache(maxsize=10000)
def embed(text):
    with torch.no_grad():
        return encoder(tokenize(text).cuda()).cpu()

# case: module attribute is read by the loss
import torch
import torch.nn as nn

class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(64, 8)
        self.experts = nn.ModuleList(nn.Linear(64, 64) for _ in range(8))

    def forward(self, x):
        w = self.gate(x).softmax(-1)
        self.aux_loss = (w.mean(0) ** 2).sum()
        return sum(w[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))

model = MoE().cuda()
opt = torch.optim.Adam(model.parameters())
for x, y in loader:
    opt.zero_grad()
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda()) + 0.01 * model.aux_loss
    loss.backward()
    opt.step()

# case: average of the loss as number
import torch

ema_loss = None
for i, (x, y) in enumerate(loader):
    loss = criterion(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    v = loss.item()
    ema_loss = v if ema_loss is None else 0.98 * ema_loss + 0.02 * v

# case: epoch loss on the card without the graph
import torch
import wandb

def train_epoch(model, dl, optimizer, loss_fn, epoch):
    epoch_loss = torch.zeros(1, device="cuda")
    for data, target in dl:
        optimizer.zero_grad()
        loss = loss_fn(model(data.cuda()), target.cuda())
        loss.backward()
        optimizer.step()
        wandb.log({"train/loss": loss})
        with torch.no_grad():
            epoch_loss += loss
    wandb.log({"train/epoch_loss": epoch_loss / len(dl), "epoch": epoch})

# case: perceptual loss flows through a frozen network
import torch
import torchvision

vgg = torchvision.models.vgg16(weights="DEFAULT").features[:16].cuda().eval()
for p in vgg.parameters():
    p.requires_grad = False
for lr, hr in loader:
    sr = gen(lr.cuda())
    loss = torch.nn.functional.l1_loss(vgg(sr), vgg(hr.cuda()))
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: several sums at once with numbers
import torch

def losses_for(model, batch):
    recon, mu, logvar = model(batch)
    rec = torch.nn.functional.mse_loss(recon, batch)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
    return rec + kl, {"rec": rec.item(), "kl": kl.item()}

def train_vae(model, loader, opt):
    sums = {}
    for batch in loader:
        loss, parts = losses_for(model, batch.to("cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        for k, v in parts.items():
            sums[k] = sums.get(k, 0) + v
    print(sums)
