# case: a class with train_one_epoch sums into its history dict
import torch
from torch import nn, optim


class Runner:
    def __init__(self, net, train_dl, val_dl, lr=3e-4):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = net.to(self.device)
        self.train_dl, self.val_dl = train_dl, val_dl
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
            self.history["loss"] += loss  # <- found: summed-loss
            self.history["acc"] += (out.argmax(1) == yb).float().mean().item()
            self.history["n"] += 1

    def fit(self, epochs):
        for _ in range(epochs):
            self.train_one_epoch()
            print(self.history["loss"] / self.history["n"])

# case: defaultdict of lists filled from a dict of losses
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
                logs[name].append(value)  # <- found: collected-losses # missed at first
        print({k: float(torch.stack(v).mean()) for k, v in logs.items()})
    return logs

# case: DQN pushes the online network's q values into the replay buffer
import random
from collections import deque
import torch
import torch.nn.functional as F

class Agent:
    def __init__(self, qnet, lr):
        self.q = qnet.cuda()
        self.optim = torch.optim.Adam(self.q.parameters(), lr=lr)
        self.memory = []

    def act(self, state, eps):
        state = torch.as_tensor(state, dtype=torch.float32, device="cuda")
        q = self.q(state)
        a = random.randrange(q.numel()) if random.random() < eps else q.argmax().item()
        return a, q

    def remember(self, *transition):
        self.memory.append(transition)

    def learn(self):
        batch = random.sample(self.memory, 32)
        ...

def play(agent, env, episodes):
    for ep in range(episodes):
        s, done = env.reset(), False
        while not done:
            a, q = agent.act(s, 0.1)
            s2, r, done, _ = env.step(a)
            agent.remember(s, a, r, s2, q)  # <- found: logged-loss # missed at first
            s = s2
            agent.learn()

# case: REINFORCE keeps log-probs of all episodes
import torch
from torch.distributions import Categorical

policy = Policy().cuda()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
all_log_probs = []
for episode in range(2000):
    state, done = env.reset(), False
    log_probs, rewards = [], []
    while not done:
        probs = policy(torch.from_numpy(state).float().cuda())
        m = Categorical(probs)
        action = m.sample()
        log_probs.append(m.log_prob(action))
        state, reward, done, _ = env.step(action.item())
        rewards.append(reward)
    R = sum(rewards)
    loss = torch.stack([-lp * R for lp in log_probs]).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    all_log_probs.extend(log_probs)  # <- found: collected-losses # missed at first

# case: lightning module averages the loss in on_train_epoch_end
import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class LitAE(pl.LightningModule):
    def __init__(self, enc, dec):
        super().__init__()
        self.enc, self.dec = enc, dec
        self.epoch_losses = []

    def training_step(self, batch, batch_idx):
        x, _ = batch
        z = self.enc(x.view(x.size(0), -1))
        rec = self.dec(z)
        loss = F.mse_loss(rec, x.view(x.size(0), -1))
        self.epoch_losses.append({"loss": loss, "bs": x.size(0)})  # <- found: collected-losses
        return loss

    def on_train_epoch_end(self):
        avg = torch.stack([d["loss"] for d in self.epoch_losses]).mean()
        self.log("train_avg", avg)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

# case: lightning callback stores outputs of validation batches
import lightning as L


class CollectPredictions(L.Callback):
    def __init__(self):
        self.preds = []

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        x, y = batch
        logits = pl_module(x)
        self.preds.append((logits, y))  # <- found: collected-outputs # missed at first

    def on_validation_epoch_end(self, trainer, pl_module):
        print("collected", len(self.preds))

# case: hf trainer subclass keeps component losses
from transformers import Trainer
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
        t_out = self.teacher(**inputs)  # <- found: frozen-model-with-gradients
        kd = F.kl_div(
            F.log_softmax(out.logits / self.T, -1), F.softmax(t_out.logits / self.T, -1), reduction="batchmean"
        ) * self.T**2
        loss = 0.5 * out.loss + 0.5 * kd
        self.kd_log.append(kd)  # <- found: collected-losses # missed at first
        return (loss, out) if return_outputs else loss

# case: accelerate loop with running total
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
            total_loss += loss  # <- found: summed-loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        for step, batch in enumerate(eval_dataloader):
            outputs = model(**batch)  # <- found: evaluation-with-gradients
            predictions = outputs.logits.argmax(dim=-1)
            metric.add_batch(predictions=accelerator.gather(predictions), references=accelerator.gather(batch["labels"]))
        accelerator.print(f"epoch {epoch}:", metric.compute(), total_loss / len(train_dataloader))

# case: ignite update function returns the tensor and a handler keeps it
from ignite.engine import Engine, Events
import torch.nn.functional as F

def create_trainer(model, optimizer, device):
    history = []

    def _update(engine, batch):
        model.train()
        optimizer.zero_grad()
        x, y = batch[0].to(device), batch[1].to(device)
        y_pred = model(x)
        loss = F.cross_entropy(y_pred, y)
        loss.backward()
        optimizer.step()
        history.append(loss)  # <- found: collected-losses
        return loss.item()

    trainer = Engine(_update)

    @trainer.on(Events.EPOCH_COMPLETED)
    def report(engine):
        print(engine.state.epoch, sum(history) / len(history))

    return trainer

# case: fastai-like learner with callbacks keeps the loss in a recorder
import torch

class Callback:
    pass

class Recorder(Callback):
    def begin_fit(self, learn):
        self.losses = []

    def after_loss(self, learn):
        self.losses.append(learn.loss)  # <- found: collected-losses # missed at first

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
        for cb in self.cbs:
            cb.begin_fit(self)
        for _ in range(n):
            for xb, yb in self.dls.train:
                self.one_batch(xb, yb)

# case: keras-like wrapper whose evaluate has no no_grad
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

    def evaluate(self, loader):
        self.module.eval()
        hits = n = 0
        for x, y in tqdm(loader, desc="eval"):
            p = self.module(x.to("cuda:0"))  # <- found: evaluation-with-gradients
            hits += (p.argmax(-1).cpu() == y).sum().item()
            n += len(y)
        return hits / n


if __name__ == "__main__":
    m = TorchModel(net, torch.nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), 0.1))
    m.fit(train_loader, epochs=3)
    print(m.evaluate(test_loader))

# case: GAN with one generator pass for both
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
        errD_real = bce(netD(real).view(-1), torch.ones(b, device=device))
        errD_real.backward()
        noise = torch.randn(b, 100, 1, 1, device=device)
        fake = netG(noise)
        errD_fake = bce(netD(fake).view(-1), torch.zeros(b, device=device))  # <- found: fake-not-detached
        errD_fake.backward(retain_graph=True)
        optD.step()
        netG.zero_grad()
        errG = bce(netD(fake).view(-1), torch.ones(b, device=device))
        errG.backward()
        optG.step()
        G_losses.append(errG)  # <- found: collected-losses

# case: truncated BPTT without detach inside a method
import torch
import torch.nn as nn

class CharRNN(nn.Module):
    def __init__(self, v, h):
        super().__init__()
        self.emb = nn.Embedding(v, h)
        self.lstm = nn.LSTM(h, h, 2, batch_first=True)
        self.out = nn.Linear(h, v)

    def forward(self, x, hc=None):
        y, hc = self.lstm(self.emb(x), hc)
        return self.out(y), hc

def run(model, chunks, opt, crit):
    h = None
    for x, y in chunks:
        logits, h = model(x.cuda(), h)  # <- found: recurrent-state
        loss = crit(logits.flatten(0, 1), y.cuda().flatten())
        opt.zero_grad()
        loss.backward(retain_graph=True)
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        opt.step()

# case: hidden state kept as attribute of the trainer
import torch
import torch.nn.functional as F

class StreamTrainer:
    def __init__(self, rnn, head, stream):
        self.rnn, self.head, self.stream = rnn.cuda(), head.cuda(), stream
        self.opt = torch.optim.RMSprop([*rnn.parameters(), *head.parameters()])
        self.state = torch.zeros(1, 16, 256, device="cuda")

    def step(self, frame, label):
        feat, self.state = self.rnn(frame, self.state)  # <- found: recurrent-state # missed at first
        loss = F.cross_entropy(self.head(feat), label)
        self.opt.zero_grad()
        loss.backward(retain_graph=True)
        self.opt.step()
        return loss.item()

    def run(self):
        for frame, label in self.stream:
            self.step(frame.cuda(), label.cuda())

# case: AverageMeter gets the tensor through kwargs
import torch

class AverageMeter(object):
    """Computes and stores the average and current value"""
    def __init__(self, name, fmt=':f'):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

def train(train_loader, model, criterion, optimizer, epoch, args):
    losses = AverageMeter('Loss', ':.4e')
    top1 = AverageMeter('Acc@1', ':6.2f')
    model.train()
    for i, (images, target) in enumerate(train_loader):
        images = images.cuda(args.gpu, non_blocking=True)
        target = target.cuda(args.gpu, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        losses.update(val=loss, n=images.size(0))  # <- found: logged-loss
        top1.update(accuracy(output, target)[0].item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: dataclass of metrics
from dataclasses import dataclass, field
import torch

@dataclass
class EpochStats:
    losses: list = field(default_factory=list)
    correct: int = 0
    seen: int = 0

def epoch(model, loader, opt, loss_fn):
    stats = EpochStats()
    for x, y in loader:
        x, y = x.to("cuda"), y.to("cuda")
        pred = model(x)
        loss = loss_fn(pred, y)
        opt.zero_grad(); loss.backward(); opt.step()
        stats.losses.append(loss)  # <- found: collected-losses
        stats.correct += (pred.argmax(1) == y).sum().item()
        stats.seen += y.numel()
    return stats

# case: deque without maxlen, walrus and f-string
import collections
import torch

recent = collections.deque()
it = iter(loader)
step = 0
while (batch := next(it, None)) is not None:
    opt.zero_grad(set_to_none=True)
    (loss := net(batch["image"].cuda(), batch["label"].cuda())).backward()
    opt.step()
    recent.append(loss)  # <- found: collected-losses
    step += 1
    if step % 50 == 0:
        print(f"{step=} loss={sum(recent) / len(recent):.4f}")

# case: a generator yields losses with graphs that the caller lists
import torch

def steps(model, loader, opt, crit):
    for x, y in loader:
        opt.zero_grad()
        loss = crit(model(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        yield loss

model = torch.nn.Linear(10, 2).cuda()
opt = torch.optim.SGD(model.parameters(), 0.01)
curve = []
for epoch in range(20):
    for loss in steps(model, loader, opt, torch.nn.CrossEntropyLoss()):
        curve.append(loss)  # <- found: collected-losses # missed at first

# case: comprehension accumulates losses of a helper
import torch
import torch.nn.functional as F

def train_step(model, opt, x, y):
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss, logits

def train_epoch(model, opt, loader, device):
    losses = [train_step(model, opt, x.to(device), y.to(device))[0] for x, y in loader]  # <- found: collected-losses # missed at first
    return torch.stack(losses).mean()

# case: nonlocal running loss in a closure
import torch

def make_trainer(model, opt, crit):
    running = 0.0
    seen = 0

    def step(x, y):
        nonlocal running, seen
        opt.zero_grad()
        loss = crit(model(x), y)
        loss.backward()
        opt.step()
        running += loss * x.size(0)  # <- found: summed-loss # missed at first
        seen += x.size(0)

    def average():
        return running / seen

    return step, average

# case: global total
import torch
TOTAL = 0
COUNT = 0

def do_batch(model, batch, optimizer):
    global TOTAL, COUNT
    x, y = batch
    loss = ((model(x.cuda()) - y.cuda()) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    TOTAL = TOTAL + loss  # <- found: summed-loss # missed at first
    COUNT += 1

def main(model, loader, optimizer):
    for batch in loader:
        do_batch(model, batch, optimizer)
    print(TOTAL / COUNT)

# case: torch.cat growing predictions in evaluation
import torch

def predict_all(net, loader):
    net.eval()
    preds = torch.tensor([]).cuda()
    with torch.no_grad():
        for x in loader:
            out = net(x.cuda())
            preds = torch.cat([preds, out], dim=0)  # <- found: collected-outputs
    return preds.cpu().numpy()

# case: hook class that stores activations under layer names
import torch
from collections import defaultdict

class ActivationProbe:
    def __init__(self, model, layers):
        self.store = defaultdict(list)
        for name, mod in model.named_modules():
            if name in layers:
                mod.register_forward_hook(self.make_hook(name))

    def make_hook(self, name):
        def hook(module, args, output):
            self.store[name].append(output)  # <- found: activations-kept-by-hook
        return hook

def analyse(model, loader, layers):
    probe = ActivationProbe(model, layers)
    for x, _ in loader:
        model(x.cuda())
    return {k: torch.cat([t.detach().cpu() for t in v]) for k, v in probe.store.items()}

# case: lambda hook
import torch
import torchvision

model = torchvision.models.resnet50(weights="DEFAULT").cuda()
acts = []
model.layer4.register_forward_hook(lambda m, i, o: acts.append(o))  # <- found: activations-kept-by-hook
for imgs, _ in dataloader:
    model(imgs.cuda())
feats = torch.cat(acts).mean((2, 3))

# case: retain_graph by habit in a helper
import torch

def optimise(loss, optimizer, clip=None, params=None):
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(params, clip)
    optimizer.step()

def train(net, loader):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        pred = net(x.cuda())
        loss = torch.nn.functional.mse_loss(pred, y.cuda())
        optimise(loss, opt, 1.0, net.parameters())

# case: validate without no_grad called from main
import torch
from sklearn.metrics import f1_score

def validate(val_loader, model, criterion):
    model.eval()
    val_loss = 0
    y_true, y_pred = [], []
    for images, labels in val_loader:
        images = images.cuda()
        labels = labels.cuda()
        outputs = model(images)  # <- found: evaluation-with-gradients
        val_loss += criterion(outputs, labels).item()
        y_true.extend(labels.tolist())
        y_pred.extend(outputs.argmax(1).tolist())
    return val_loss / len(val_loader), f1_score(y_true, y_pred, average="macro")

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
        print(validate(val_loader, model, crit))

main()

# case: flask inference server with gradients
import io
import torch
from flask import Flask, jsonify, request
from PIL import Image

app = Flask(__name__)
model = torch.load("model.pth", map_location="cuda")
model.eval()

@app.route("/predict", methods=["POST"])
def predict():
    img = Image.open(io.BytesIO(request.files["file"].read()))
    tensor = transform(img).unsqueeze(0).to("cuda")
    outputs = model(tensor)  # <- found: evaluation-with-gradients # missed at first
    _, y_hat = outputs.max(1)
    return jsonify({"class_id": int(y_hat.item())})

# case: feature extraction into a dict keyed by path
import torch
import timm

backbone = timm.create_model("vit_base_patch16_224", pretrained=True, num_classes=0)
backbone = backbone.to("cuda").eval()
database = {}
for paths, images in loader:
    features = backbone(images.to("cuda"))  # <- found: evaluation-with-gradients
    for p, f in zip(paths, features):
        database[p] = f  # <- found: collected-outputs # missed at first
torch.save(database, "db.pt")

# case: embeddings with a sentence encoder class
import torch
from transformers import AutoModel, AutoTokenizer

class Embedder:
    def __init__(self, name):
        self.tok = AutoTokenizer.from_pretrained(name)
        self.model = AutoModel.from_pretrained(name).to("cuda")
        self.model.eval()

    def embed(self, texts, bs=64):
        chunks = []
        for i in range(0, len(texts), bs):
            enc = self.tok(texts[i:i + bs], padding=True, truncation=True, return_tensors="pt").to("cuda")
            hidden = self.model(**enc).last_hidden_state  # <- found: evaluation-with-gradients
            mask = enc["attention_mask"].unsqueeze(-1)
            chunks.append((hidden * mask).sum(1) / mask.sum(1))  # <- found: collected-outputs # missed at first
        return torch.cat(chunks)

if __name__ == "__main__":
    e = Embedder("intfloat/e5-base")
    vectors = e.embed(open("corpus.txt").read().splitlines())
    torch.save(vectors.detach().cpu(), "vectors.pt")

# case: dataset moved to the card then indexed by permutation
import torch
import numpy as np

X = torch.tensor(np.load("X.npy"), dtype=torch.float32).cuda()  # <- found: dataset-on-card
Y = torch.tensor(np.load("Y.npy")).long().cuda()  # <- found: dataset-on-card
model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(30):
    perm = torch.randperm(X.size(0))
    for k in range(0, X.size(0), 128):
        idx = perm[k:k + 128]
        xb, yb = X[idx], Y[idx]
        loss = torch.nn.functional.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: EMA class updates from live parameters
import copy
import torch

class EMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {}
        for n, p in model.named_parameters():
            if p.requires_grad:
                self.shadow[n] = p.clone()

    def update(self, model):
        for n, p in model.named_parameters():
            if p.requires_grad:
                self.shadow[n] = self.decay * self.shadow[n] + (1.0 - self.decay) * p  # <- found: averaged-weights-with-graph

def train(model, loader, opt, crit):
    ema = EMA(model)
    for x, y in loader:
        loss = crit(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)

# case: mean teacher is a deep copy and runs with gradients
import copy
import torch
import torch.nn.functional as F

class MeanTeacher:
    def __init__(self, student):
        self.student = student.cuda()
        self.teacher = copy.deepcopy(self.student)
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.03)

    def ema(self, alpha=0.99):
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), self.student.parameters()):
                t.mul_(alpha).add_(s, alpha=1 - alpha)

    def step(self, xl, yl, xu):
        ls = F.cross_entropy(self.student(xl), yl)
        t = self.teacher(xu)  # <- found: copy-with-gradients # missed at first
        cons = F.mse_loss(F.softmax(self.student(xu), 1), F.softmax(t, 1))
        loss = ls + 10 * cons
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.ema()
        return loss.item()

# case: double DQN target network with gradients
import torch
import torch.nn as nn

policy_net = DQN(n_obs, n_act).to("cuda")
target_net = DQN(n_obs, n_act).to("cuda")
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-4)

def optimize_model(memory, batch_size, gamma):
    if len(memory) < batch_size:
        return
    s, a, r, s2, d = memory.sample(batch_size)
    q = policy_net(s).gather(1, a)
    nxt = target_net(s2).max(1)[0]  # <- found: frozen-model-with-gradients
    expected = r + gamma * nxt * (1 - d)
    loss = nn.SmoothL1Loss()(q, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: MoCo queue of keys with their graph
import torch
import torch.nn.functional as F

queue = []
for im_q, im_k in loader:
    q = F.normalize(encoder_q(im_q.cuda()), dim=1)
    k = F.normalize(encoder_k(im_k.cuda()), dim=1)
    l_pos = (q * k.detach()).sum(1, keepdim=True)
    if queue:
        l_neg = q @ torch.cat(queue).detach().t()
        logits = torch.cat([l_pos, l_neg], 1) / 0.07
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    queue.append(k)  # <- found: collected-outputs

# case: MAML style inner loop keeps create_graph though first order
import torch
import torch.nn.functional as F

def fomaml(model, tasks, meta_opt, inner_lr):
    for support, query in tasks:
        fast = [p.clone() for p in model.parameters()]
        loss = F.mse_loss(model.functional(support.x.cuda(), fast), support.y.cuda())
        grads = torch.autograd.grad(loss, fast, create_graph=True)  # <- found: create-graph
        norm = sum(g.norm().item() for g in grads)
        print("inner gradient norm", norm)
        out = model(query.x.cuda())
        meta_opt.zero_grad()
        F.mse_loss(out, query.y.cuda()).backward()
        meta_opt.step()

# case: oom handler skips the batch
import torch

def train(model, loader, optimizer):
    for i, batch in enumerate(loader):
        try:
            loss = model(batch["x"].cuda(), batch["y"].cuda())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        except RuntimeError as e:  # <- found: oom-skipped-with-gradients
            if "out of memory" in str(e):
                print("| WARNING: ran out of memory, skipping batch", i)
                torch.cuda.empty_cache()
                continue
            raise e

# case: oom handler halves the batch and recurses
import torch

def forward_backward(model, x, y, crit):
    try:
        loss = crit(model(x), y)
        loss.backward()
        return loss.item()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        h = len(x) // 2
        return forward_backward(model, x[:h], y[:h], crit) + forward_backward(model, x[h:], y[h:], crit)  # <- found: recovery-inside-except

# case: too late to the host
import torch

@torch.no_grad()
def run_inference(model, loader, device):
    model.eval()
    logits_list, labels_list = [], []
    for x, y in loader:
        logits = model(x.to(device))
        logits_list.append(logits)  # <- found: collected-outputs
        labels_list.append(y)
    logits = torch.cat(logits_list).cpu()
    labels = torch.cat(labels_list)
    return logits, labels

# case: segmentation masks kept on the card for a metric at the end
import torch

def test(model, loader, metric):
    model.eval()
    outputs = {"pred": [], "gt": []}
    with torch.inference_mode():
        for images, masks in loader:
            images = images.to("cuda")
            logits = model(images)["out"]
            outputs["pred"].append(logits.softmax(1))  # <- found: collected-outputs
            outputs["gt"].append(masks)
    p = torch.cat(outputs["pred"], 0).cpu().numpy()
    g = torch.cat(outputs["gt"], 0).numpy()
    return metric(p, g)

# case: adversarial inputs require grad and are collected
import torch
import torch.nn.functional as F

def fgsm_all(model, loader, eps):
    model.eval()
    adv = []
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        x.requires_grad_(True)
        loss = F.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        x_adv = (x + eps * x.grad.sign()).clamp(0, 1)
        out = model(x_adv)
        adv.append(out)  # <- found: collected-outputs
    return torch.cat(adv).argmax(1)

# case: data parallel training script
import torch
import torch.nn as nn

model = MyTransformer(vocab, 512, 8, 6)
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = nn.DataParallel(model)  # <- found: data-parallel
model.to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for src, tgt in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(src.cuda()), tgt.cuda())
        loss.backward()
        optimizer.step()

# case: dataset puts samples on the card in getitem
import torch
from torch.utils.data import Dataset, DataLoader
import pandas as pd

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

class TabularDataset(Dataset):
    def __init__(self, csv):
        self.df = pd.read_csv(csv)

    def __len__(self):
        return len(self.df)

    def __getitem__(self, i):
        row = self.df.iloc[i]
        x = torch.tensor(row[:-1].values, dtype=torch.float32).to(device)  # <- found: card-in-dataset
        y = torch.tensor(row[-1]).to(device)  # <- found: card-in-dataset
        return x, y

train = DataLoader(TabularDataset("train.csv"), batch_size=64, shuffle=True, num_workers=8)

# case: collate moves to the card
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

def collate(batch):
    xs, ys = zip(*batch)
    xs = pad_sequence(xs, batch_first=True).cuda()  # <- found: card-in-dataset
    ys = torch.stack(ys).cuda()  # <- found: card-in-dataset
    return xs, ys

loader = DataLoader(ds, batch_size=16, collate_fn=collate, num_workers=4)

# case: best weights aliased in early stopping class
import torch

class EarlyStopping:
    def __init__(self, patience=5):
        self.patience, self.bad, self.best = patience, 0, float("inf")
        self.best_state = None

    def __call__(self, val_loss, model):
        if val_loss < self.best:
            self.best = val_loss
            self.best_state = model.state_dict()  # <- found: state-dict-aliased
            self.bad = 0
        else:
            self.bad += 1
        return self.bad >= self.patience

def fit(model, opt, loader, val):
    es = EarlyStopping()
    for epoch in range(100):
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            opt.step()
        if es(val(model), model):
            break
    model.load_state_dict(es.best_state)
    return model

# case: deepcopy of best weights on the card, tutorial style
import copy
import torch

def train_model(model, criterion, optimizer, scheduler, dataloaders, num_epochs=25):
    model = model.to("cuda")
    best_model_wts = copy.deepcopy(model.state_dict())  # <- found: state-dict-copied-on-card
    best_acc = 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            model.train() if phase == "train" else model.eval()
            corrects = 0
            for inputs, labels in dataloaders[phase]:
                inputs, labels = inputs.to("cuda"), labels.to("cuda")
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                corrects += torch.sum(outputs.argmax(1) == labels.data).item()
            if phase == "val" and corrects > best_acc:
                best_acc = corrects
                best_model_wts = copy.deepcopy(model.state_dict())  # <- found: state-dict-copied-on-card
        scheduler.step()
    model.load_state_dict(best_model_wts)
    return model

# case: resume without map_location
import torch
import argparse

def main(args):
    model = build(args).cuda()
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    start = 0
    if args.resume:
        ckpt = torch.load(args.resume)  # <- found: load-without-map-location
        model.load_state_dict(ckpt["state_dict"])
        optimizer.load_state_dict(ckpt["optimizer"])
        start = ckpt["epoch"]
    for epoch in range(start, args.epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save({"state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, "ckpt.pt")

# case: accumulation without division and last window forgotten in a class
import torch

class Accum:
    def __init__(self, model, opt, n):
        self.model, self.opt, self.accum_iter = model, opt, n
        self.crit = torch.nn.CrossEntropyLoss()

    def run_epoch(self, loader):
        self.opt.zero_grad()
        for batch_idx, (x, y) in enumerate(loader):
            loss = self.crit(self.model(x.cuda()), y.cuda())
            loss.backward()  # <- found: accumulated-loss-not-divided
            if (batch_idx + 1) % self.accum_iter == 0:
                self.opt.step()  # <- found: last-window-forgotten
                self.opt.zero_grad()

# case: clipping in every micro-batch with amp
import torch
scaler = torch.cuda.amp.GradScaler()
ACC = 8
for step, (ids, labels) in enumerate(loader):
    with torch.cuda.amp.autocast():
        loss = model(ids.cuda(), labels=labels.cuda()).loss / ACC
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # <- found: clipping-every-micro-batch
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- found: clipping-every-micro-batch
    if (step + 1) % ACC == 0 or (step + 1) == len(loader):
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

# case: scheduler in every micro-batch
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR

def go(model, loader, cfg):
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    sched = CosineAnnealingLR(opt, T_max=1000)
    for it, batch in enumerate(loader):
        loss = model(batch.cuda()).mean() / 4
        loss.backward()
        if (it + 1) % 4 == 0 or it == len(loader) - 1:
            opt.step()
            opt.zero_grad(set_to_none=True)
        sched.step()  # <- found: scheduler-every-micro-batch

# case: zero_grad erases the window
import torch

def epoch(model, loader, optimizer, loss_fn, steps=4):
    model.train()
    for i, (a, b) in enumerate(loader, 1):
        optimizer.zero_grad()  # <- found: zero-grad-while-accumulating
        out = model(a.cuda())
        (loss_fn(out, b.cuda()) / steps).backward()
        if i % steps == 0 or i == len(loader):
            optimizer.step()

# case: empty cache in every step of a method
import gc
import torch

class Trainer:
    def training_epoch(self):
        for i, b in enumerate(self.loader):
            loss = self.model(b.to(self.device)).loss
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            del loss
            gc.collect()
            torch.cuda.empty_cache()  # <- found: empty-cache-in-loop

# case: smoke test keeps its output before training
import torch
net = BigNet().cuda()
x = torch.randn(64, 3, 224, 224).cuda()
y = net(x)  # <- found: intermediate-kept-by-name
print("output shape:", y.shape)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(90):
    for img, lab in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(img.cuda()), lab.cuda()).backward()
        optimizer.step()

# case: allocator configuration after the model is on the card
import os
import torch

def main():
    model = Net().cuda()
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"  # <- found: allocator-variable-too-late
    train(model)

# case: hf trainer with compute_metrics keeps all logits
import numpy as np
import evaluate
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, Trainer, TrainingArguments

model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
tokenizer = AutoTokenizer.from_pretrained("t5-small")
bleu = evaluate.load("sacrebleu")

def metrics(p):
    preds = np.argmax(p.predictions[0], -1)
    return bleu.compute(predictions=tokenizer.batch_decode(preds), references=tokenizer.batch_decode(p.label_ids))

args = TrainingArguments(output_dir="o", per_device_train_batch_size=8, evaluation_strategy="epoch", fp16=True)
trainer = Trainer(model, args, train_dataset=tr, eval_dataset=va, compute_metrics=metrics)  # <- found: trainer-keeps-logits
trainer.train()

# case: lru_cache of embeddings on the card
from functools import lru_cache
import torch

encoder = load_encoder().cuda().eval()

@lru_cache(maxsize=None)  # <- found: cached-tensors
def embed(text):
    with torch.no_grad():
        return encoder(tokenize(text).cuda())

def similarity(a, b):
    return torch.cosine_similarity(embed(a), embed(b), dim=-1).item()

# case: module stores features in forward that nobody reads
import torch
import torch.nn as nn

class Seg(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(3, 64, 3, padding=1)
        self.dec = nn.Conv2d(64, 2, 1)

    def forward(self, x):
        h = self.enc(x).relu()
        self.last_features = h  # <- found: output-kept-on-self
        return self.dec(h)

model = Seg().cuda()
opt = torch.optim.Adam(model.parameters())
for img, mask in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(model(img.cuda()), mask.cuda()).backward()
    opt.step()

# case: exponential moving average of the loss
import torch

ema_loss = None
for i, (x, y) in enumerate(loader):
    out = model(x.to(device))
    loss = criterion(out, y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema_loss = loss if ema_loss is None else 0.98 * ema_loss + 0.02 * loss  # <- found: summed-loss
    if i % 100 == 0:
        print(ema_loss.item())

# case: wandb log plus tensor kept for the epoch mean
import torch
import wandb

def train_epoch(model, dl, optimizer, loss_fn, epoch):
    epoch_loss = torch.zeros(1, device="cuda")
    for batch_idx, (data, target) in enumerate(dl):
        data, target = data.cuda(), target.cuda()
        optimizer.zero_grad()
        loss = loss_fn(model(data), target)
        loss.backward()
        optimizer.step()
        wandb.log({"train/loss": loss})
        epoch_loss += loss  # <- found: summed-loss
    wandb.log({"train/epoch_loss": epoch_loss / len(dl), "epoch": epoch})

# case: validation loss summed with the graph
import torch

def evaluate(model, data_source, criterion, bptt):
    model.eval()
    total_loss = 0.
    ntokens = len(corpus.dictionary)
    hidden = model.init_hidden(10)
    for i in range(0, data_source.size(0) - 1, bptt):
        data, targets = get_batch(data_source, i)
        output, hidden = model(data, hidden)  # <- found: evaluation-with-gradients
        total_loss += len(data) * criterion(output.view(-1, ntokens), targets)  # <- found: summed-loss # missed at first
    return total_loss / len(data_source)

# case: tuple returned from a helper, several sums at once
import torch

def losses_for(model, batch):
    recon, mu, logvar = model(batch)
    rec = torch.nn.functional.mse_loss(recon, batch)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
    return rec + kl, rec, kl

def train_vae(model, loader, opt):
    tot, tot_rec, tot_kl = 0, 0, 0
    for batch in loader:
        batch = batch.to("cuda")
        loss, rec, kl = losses_for(model, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot, tot_rec, tot_kl = tot + loss.item(), tot_rec + rec, tot_kl + kl  # <- found: summed-loss
    n = len(loader)
    print(f"loss {tot/n:.3f} rec {tot_rec/n:.3f} kl {tot_kl/n:.3f}")
