# case: epoch helper under no_grad by flag
import contextlib
import torch

def run_epoch(model, loader, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total = 0.0
    ctx = contextlib.nullcontext() if training else torch.no_grad()
    with ctx:
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)

# case: tutorial phase loop with numbers
import torch

for phase in ["train", "val"]:
    running_loss = 0.0
    for inputs, labels in dataloaders[phase]:
        inputs, labels = inputs.to(device), labels.to(device)
        with torch.set_grad_enabled(phase == "train"):
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        running_loss += loss.item() * inputs.size(0)

# case: meter of lists with numbers
import torch

class Meter:
    def __init__(self, names):
        self.sums = [0.0] * len(names)

    def update(self, values):
        for i, v in enumerate(values):
            self.sums[i] += v

m = Meter(["a", "b"])
for x, y in loader:
    a, b = net(x.cuda(), y.cuda())
    opt.zero_grad()
    (a + b).backward()
    opt.step()
    m.update([a.item(), b.item()])

# case: lightning training outputs cleared at the epoch end
import pytorch_lightning as pl
import torch

class M(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net, self.outs = net, []

    def validation_step(self, batch, i):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.outs.append(loss)

    def on_validation_epoch_end(self):
        self.log("val", torch.stack(self.outs).mean())
        self.outs.clear()

# case: critic helper with detached fake
import torch

def disc_loss(gen, disc, real, n):
    fake = gen(torch.randn(n, 64, device="cuda"))
    return disc(fake.detach()).mean() - disc(real).mean()

for real, _ in loader:
    d = disc_loss(gen, disc, real.cuda(), len(real))
    opt_d.zero_grad()
    d.backward()
    opt_d.step()

# case: early stopping with a host copy
import torch

class EarlyStopping:
    def __init__(self):
        self.best, self.state = None, None

    def __call__(self, score, model):
        if self.best is None or score > self.best:
            self.best = score
            self.state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}

stop = EarlyStopping()
for e in range(10):
    train(net)
    stop(evaluate(net), net)
net.load_state_dict(stop.state)

# case: early stopping saves to disk
import torch

class EarlyStopping:
    def __init__(self, path):
        self.path, self.best = path, None

    def __call__(self, score, model):
        if self.best is None or score > self.best:
            self.best = score
            torch.save(model.state_dict(), self.path)

# case: ignite evaluator with no_grad
import torch
from ignite.engine import Engine

def eval_step(engine, batch):
    model.eval()
    with torch.no_grad():
        x, y = batch
        return model(x.cuda()), y.cuda()

evaluator = Engine(eval_step)

# case: hf custom trainer logs a number
from transformers import Trainer

class T(Trainer):
    hist = []

    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        out = model(**inputs)
        self.hist.append(out.loss.detach().item())
        return (out.loss, out) if return_outputs else out.loss

# case: seq2seq trainer that generates
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
args = Seq2SeqTrainingArguments("o", predict_with_generate=True)
Seq2SeqTrainer(model, args, train_dataset=a, eval_dataset=b, compute_metrics=rouge).train()

# case: masks written one by one
import torch

unet.cuda().eval()
with torch.no_grad():
    for path in paths:
        m = unet(read(path).cuda()[None])[0]
        imsave(path, (m > 0).cpu().numpy())

# case: dict of results on the host
import torch

masks = {}
with torch.no_grad():
    for path in paths:
        masks[path] = unet(read(path).cuda()[None])[0].cpu()

# case: byol target frozen in the constructor
import copy
import torch
import torch.nn as nn

class BYOL(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.online = net
        self.target = copy.deepcopy(net)
        for p in self.target.parameters():
            p.requires_grad = False
        self.predictor = nn.Linear(256, 256)

    def forward(self, a, b):
        return (self.predictor(self.online(a)) - self.target(b)).pow(2).mean()

m = BYOL(resnet()).cuda()
opt = torch.optim.Adam([p for p in m.parameters() if p.requires_grad])
for a, b in loader:
    loss = m(a.cuda(), b.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: sac actor loss through the critic
import torch

class SAC:
    def update_actor(self, s):
        a, logp = self.actor.sample(s)
        q = self.critic(s, a)
        loss = (0.2 * logp - q).mean()
        self.actor_opt.zero_grad()
        loss.backward()
        self.actor_opt.step()
        return loss.item()

# case: reference logprobs under inference mode
import torch

for batch in loader:
    ids = batch["ids"].cuda()
    with torch.inference_mode():
        ref_lp = logprobs(ref(ids).logits, ids)
    lp = logprobs(policy(ids).logits, ids)
    loss = -torch.nn.functional.logsigmoid(0.1 * (lp - ref_lp)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: state detached in the loop
import torch

h = None
for x, y in batches:
    out, h = rnn(x.cuda(), h)
    h = tuple(t.detach() for t in h)
    loss = crit(out, y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: decoder steps inside one sentence are summed
import torch

def train_pair(src, tgt):
    hidden = enc(src.cuda())
    loss = 0
    tok = tgt[0]
    for di in range(1, len(tgt)):
        out, hidden = dec(tok.cuda(), hidden)
        loss += crit(out, tgt[di].cuda())
        tok = tgt[di]
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item() / len(tgt)

# case: scheduler inside the window
import torch

for i, (x, y) in enumerate(loader):
    (crit(model(x.cuda()), y.cuda()) / 4).backward()
    if (i + 1) % 4 == 0 or i + 1 == len(loader):
        opt.step()
        sched.step()
        opt.zero_grad()

# case: dataset arrays on the host, pinned
import torch
from torch.utils.data import DataLoader, TensorDataset

ds = TensorDataset(torch.from_numpy(x).float(), torch.from_numpy(y))
for xb, yb in DataLoader(ds, batch_size=64, pin_memory=True):
    loss = crit(model(xb.cuda(non_blocking=True)), yb.cuda(non_blocking=True))
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: collate stacks on the host
import torch
from torch.utils.data import DataLoader

def collate(batch):
    xs, ys = zip(*batch)
    return torch.stack(xs), torch.tensor(ys)

loader = DataLoader(ds, batch_size=32, collate_fn=collate, num_workers=8)

# case: hook of norms
import torch

norms = []

def hook(module, inp, out):
    norms.append(out.detach().norm().item())

net.fc.register_forward_hook(hook)
for x, _ in loader:
    net(x.cuda())

# case: attention weights read by a regulariser
import torch
import torch.nn as nn

class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q = nn.Linear(d, d)

    def forward(self, x):
        self.w = torch.softmax(self.q(x) @ x.transpose(1, 2), -1)
        return self.w @ x

net = Attn(64).cuda()
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    out = net(x.cuda())
    loss = crit(out, y.cuda()) + 0.01 * net.w.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: smoke test under no_grad
import torch

model = Net().cuda()
with torch.no_grad():
    out = model(torch.randn(2, 3, 64, 64).cuda())
print(out.shape)
for x, y in loader:
    loss = crit(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: small head in fp32
import torch
import torch.nn as nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(512, 10)

    def forward(self, h):
        return self.fc(h).float()

# case: oom handled after the except block
import torch

def run(model, batch):
    oom = False
    try:
        return model(batch.cuda()).cpu()
    except RuntimeError as err:
        if "out of memory" not in str(err):
            raise
        oom = True
    if oom:
        torch.cuda.empty_cache()
        h = len(batch) // 2
        return torch.cat([run(model, batch[:h]), run(model, batch[h:])])

# case: losses within one step are stacked and backpropagated
import torch

for views, y in loader:
    losses = []
    for v in views:
        losses.append(crit(model(v.cuda()), y.cuda()))
    loss = torch.stack(losses).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: rows with numbers
import torch

rows = []
for ep in range(3):
    for i, (x, y) in enumerate(loader):
        loss = crit(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        rows.append([ep, i, loss.item()])

# case: recorder converts
import torch

class Recorder:
    data = {}

    @classmethod
    def record(cls, key, value):
        if torch.is_tensor(value):
            value = value.item()
        cls.data.setdefault(key, []).append(value)

for x, y in loader:
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    Recorder.record("loss", loss)

# case: validation total without gradients on the card
import torch

@torch.no_grad()
def val(model, dl):
    model.eval()
    total = torch.zeros(1, device="cuda")
    for x, y in dl:
        total.add_(crit(model(x.cuda()), y.cuda()))
    return total.item() / len(dl)

# case: detection outputs to the host at once
import torch

@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    res = []
    for images, targets in loader:
        outputs = model([i.cuda() for i in images])
        res.extend({k: v.cpu() for k, v in o.items()} for o in outputs)
    return res

# case: gradient check of inputs in eval mode for saliency list
import torch

model.eval()
maps = []
for x, _ in loader:
    x = x.cuda().requires_grad_()
    model(x).max(1)[0].sum().backward()
    maps.append(x.grad.abs().cpu())

# case: latent optimisation of a frozen generator
import torch

G.eval()
w = torch.zeros(1, 512, device="cuda", requires_grad=True)
opt = torch.optim.Adam([w], lr=0.01)
for i in range(1000):
    img = G(w)
    loss = (img - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: bayesian dropout samples of one batch
import torch

def mc_predict(model, x, n=20):
    outs = []
    for _ in range(n):
        outs.append(torch.softmax(model(x), -1))
    outs = torch.stack(outs)
    return outs.mean(0), outs.var(0)

with torch.no_grad():
    for x, _ in loader:
        mean, var = mc_predict(net, x.cuda())
        write(mean.cpu(), var.cpu())

# case: patches of one image merged
import torch

@torch.no_grad()
def sliding(model, image):
    out = torch.zeros(2, *image.shape[1:], device="cuda")
    for y in range(0, image.shape[1], 256):
        for x in range(0, image.shape[2], 256):
            patch = image[:, y:y + 256, x:x + 256].cuda()
            out[:, y:y + 256, x:x + 256] = model(patch[None])[0]
    return out.argmax(0).cpu()

# case: replay buffer of numpy states
import random
from collections import deque
import torch

buf = deque(maxlen=100000)
for ep in range(500):
    s = env.reset()
    done = False
    while not done:
        with torch.no_grad():
            a = q_net(torch.from_numpy(s).float().cuda()).argmax().item()
        s2, r, done, _ = env.step(a)
        buf.append((s, a, r, s2, done))
        s = s2

# case: ppo rollout of one iteration emptied
import torch

class Memory:
    def __init__(self):
        self.logp, self.r = [], []

    def clear(self):
        del self.logp[:]
        del self.r[:]

mem = Memory()
for it in range(100):
    for t in range(128):
        with torch.no_grad():
            d = policy(obs.cuda())
            a = d.sample()
            mem.logp.append(d.log_prob(a))
        obs, r = env.step(a)
        mem.r.append(r)
    update(policy, mem)
    mem.clear()

# case: distillation features through hooks used in the loss
import torch

feats = {}
student.layer3.register_forward_hook(lambda m, i, o: feats.__setitem__("s", o))
teacher.layer3.register_forward_hook(lambda m, i, o: feats.__setitem__("t", o.detach()))
for x, y in loader:
    out = student(x.cuda())
    with torch.no_grad():
        teacher(x.cuda())
    loss = crit(out, y.cuda()) + (feats["s"] - feats["t"]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: swa with the library
import torch
from torch.optim.swa_utils import AveragedModel

swa = AveragedModel(model)
for e in range(10):
    for x, y in loader:
        opt.zero_grad()
        crit(model(x.cuda()), y.cuda()).backward()
        opt.step()
    swa.update_parameters(model)

# case: server handler with inference mode
import torch
from fastapi import FastAPI

app = FastAPI()
net = load().cuda().eval()

@app.post("/predict")
@torch.inference_mode()
def predict(item: Item):
    return {"scores": net(encode(item.text).cuda()).softmax(-1).tolist()}

# case: streaming statistics of activations
import torch

n, mean = 0, 0
with torch.no_grad():
    for x, _ in loader:
        f = net(x.cuda()).mean(0)
        n += 1
        mean = mean + (f - mean) / n

# case: closure for lbfgs
import torch

opt = torch.optim.LBFGS(net.parameters())
history = []
for epoch in range(20):
    def closure():
        opt.zero_grad()
        loss = crit(net(x.cuda()), y.cuda())
        loss.backward()
        return loss
    loss = opt.step(closure)
    history.append(loss.item())

# case: scores of a generator are consumed one by one
import torch

def scores(model, loader):
    for x, _ in loader:
        with torch.no_grad():
            yield model(x.cuda()).max(1).values

for s in scores(net, loader):
    print(s.mean().item())
