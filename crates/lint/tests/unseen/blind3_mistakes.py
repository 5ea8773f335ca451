# case: nlp course: epoch helper with train flag
import torch

def run_epoch(model, iterator, criterion, optimizer=None):
    training = optimizer is not None
    model.train() if training else model.eval()
    epoch_loss, epoch_acc = 0, 0
    for batch in iterator:
        text, labels = batch.text.cuda(), batch.label.cuda()
        predictions = model(text).squeeze(1)
        loss = criterion(predictions, labels)
        acc = ((predictions > 0) == labels).float().mean()
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        epoch_loss += loss  # <- found: summed-loss
        epoch_acc += acc.item()
    return epoch_loss / len(iterator), epoch_acc / len(iterator)

# case: solver class with a report dictionary of lists
import torch
import torch.nn as nn

class Solver(object):
    def __init__(self, config, train_loader):
        self.config = config
        self.loader = train_loader
        self.unet = None
        self.reports = {"bce": [], "dice": []}
        self.build()

    def build(self):
        self.unet = UNet(self.config.img_ch, 1)
        self.optimizer = torch.optim.Adam(list(self.unet.parameters()), self.config.lr)
        self.unet.to("cuda")

    def train(self):
        bce = nn.BCEWithLogitsLoss()
        for epoch in range(self.config.num_epochs):
            for i, (images, GT) in enumerate(self.loader):
                images, GT = images.to("cuda"), GT.to("cuda")
                SR = self.unet(images)
                l1 = bce(SR, GT)
                inter = (torch.sigmoid(SR) * GT).sum()
                l2 = 1 - 2 * inter / (torch.sigmoid(SR).sum() + GT.sum())
                total = l1 + self.config.w * l2
                self.optimizer.zero_grad()
                total.backward()
                self.optimizer.step()
                self.reports["bce"].append(l1)  # <- found: collected-losses
                self.reports["dice"].append(l2)  # <- found: collected-losses

# case: VQ-VAE: codes kept from evaluation for the prior
import torch

def extract_codes(vqvae, loader):
    codes = []
    vqvae.eval()
    for img, _ in loader:
        quant = vqvae.encode(img.cuda())
        rec = vqvae(img.cuda())  # <- found: evaluation-with-gradients
        codes.append(rec)  # <- found: collected-outputs
    return codes

# case: DQN agent stores state values in a deque without bound through push
from collections import deque, namedtuple
import random
import torch
import torch.nn as nn

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "qvalue"))

class ReplayMemory(object):
    def __init__(self):
        self.memory = deque([])

    def push(self, *args):
        """Save a transition"""
        self.memory.append(Transition(*args))

    def sample(self, n):
        return random.sample(self.memory, n)

policy_net = QNet().to("cuda")
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-4)
memory = ReplayMemory()

for i_episode in range(600):
    state, info = env.reset()
    state = torch.tensor(state, dtype=torch.float32, device="cuda").unsqueeze(0)
    for t in range(1000):
        q = policy_net(state)
        action = q.max(1).indices.view(1, 1)
        obs, reward, done, _, _ = env.step(action.item())
        next_state = torch.tensor(obs, dtype=torch.float32, device="cuda").unsqueeze(0)
        memory.push(state, action, next_state, reward, q)  # <- missed: logged-loss
        state = next_state
        if len(memory.memory) > 128:
            batch = Transition(*zip(*memory.sample(128)))
            s = torch.cat(batch.state)
            loss = nn.functional.smooth_l1_loss(policy_net(s).max(1).values, torch.tensor(batch.reward, device="cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if done:
            break

# case: two-phase trainer, attribute total reset per epoch only at the end of the run
import torch

class Experiment:
    total_loss = 0.0

    def __init__(self, net, opt, data):
        self.net, self.opt, self.data = net, opt, data

    def on_batch(self, x, y):
        y_ = self.net(x.cuda())
        self.loss = ((y_ - y.cuda()) ** 2).mean()
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()
        self.total_loss = self.total_loss + self.loss  # <- found: summed-loss

    def run(self):
        for x, y in self.data:
            self.on_batch(x, y)
        print("mean", self.total_loss / len(self.data))

# case: HF custom loop: eval losses gathered in a list with no no_grad
import torch
from transformers import AutoModelForSequenceClassification, get_scheduler

model = AutoModelForSequenceClassification.from_pretrained("bert-base-cased", num_labels=5)
model.to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for epoch in range(3):
    model.train()
    for batch in train_dataloader:
        batch = {k: v.to("cuda") for k, v in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    eval_losses, eval_logits = [], []
    for batch in eval_dataloader:
        batch = {k: v.to("cuda") for k, v in batch.items()}
        outputs = model(**batch)  # <- found: evaluation-with-gradients
        eval_losses.append(outputs.loss)  # <- found: collected-losses
        eval_logits.append(outputs.logits)  # <- found: collected-outputs
    print(torch.stack(eval_losses).mean())

# case: pose estimation: AverageMeter from the file updated inside a helper
import torch

class Meter:
    def __init__(self):
        self.history = []

    def update(self, v):
        self.history.append(v)

    @property
    def mean(self):
        return sum(self.history) / len(self.history)

def report(meters, **values):
    for name, value in values.items():
        meters[name].update(value)

def train(model, loader, crit, opt):
    meters = {"total": Meter(), "joints": Meter()}
    for img, kp in loader:
        out = model(img.cuda())
        joints = crit(out, kp.cuda())
        total = joints + 1e-4 * sum(p.pow(2).sum() for p in model.parameters())
        opt.zero_grad()
        total.backward()
        opt.step()
        report(meters, total=total, joints=joints)  # <- found: logged-loss # missed at first
    return {k: m.mean for k, m in meters.items()}

# case: embedding table precomputed on the card with grad for kNN
import torch
import torch.nn.functional as F

def knn_monitor(net, memory_loader, test_loader, k=200):
    net.eval()
    bank = []
    for data, _ in memory_loader:
        feature = F.normalize(net(data.cuda(non_blocking=True)), dim=1)  # <- found: evaluation-with-gradients
        bank.append(feature)  # <- found: collected-outputs
    bank = torch.cat(bank, dim=0).t().contiguous()
    hits = 0
    for data, target in test_loader:
        feature = F.normalize(net(data.cuda()), dim=1)
        sim = feature @ bank
        hits += (sim.argmax(1).cpu() == target).sum().item()
    return hits

# case: ppo agent: old log probs kept with graph in rollout buffer class
import torch
import torch.nn as nn
from torch.distributions import Categorical

class RolloutBuffer:
    def __init__(self):
        self.actions, self.states, self.logprobs, self.rewards = [], [], [], []

class PPO:
    def __init__(self, net, lr):
        self.buffer = RolloutBuffer()
        self.policy = net.cuda()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)
        self.all_rewards = []

    def select_action(self, state):
        state = torch.FloatTensor(state).to("cuda")
        probs = self.policy(state)
        dist = Categorical(probs)
        action = dist.sample()
        self.buffer.states.append(state)
        self.buffer.logprobs.append(dist.log_prob(action))  # <- found: collected-outputs
        return action.item()

    def update(self):
        old = torch.stack(self.buffer.logprobs).detach()
        states = torch.stack(self.buffer.states)
        for _ in range(10):
            dist = Categorical(self.policy(states))
            ratios = (dist.logits.max(1).values - old).exp()
            loss = -ratios.mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

def main(env, agent):
    for ep in range(1000):
        s = env.reset()
        for t in range(400):
            a = agent.select_action(s)
            s, r, done, _ = env.step(a)
            if t % 100 == 0:
                agent.update()
            if done:
                break

# case: super resolution: psnr computed without no_grad and outputs in dict of lists by scale
import torch
from collections import defaultdict

def validate(model, loaders):
    model.eval()
    sr = defaultdict(list)
    for scale, loader in loaders.items():
        for lr, hr in loader:
            out = model(lr.cuda())  # <- found: evaluation-with-gradients
            sr[scale].append(out)  # <- found: collected-outputs
    return {s: psnr(torch.cat(v)) for s, v in sr.items()}

# case: seq2seq with attention: history of decoder states for plotting during training
import torch
import torch.nn as nn

class DecoderRNN(nn.Module):
    def __init__(self, h, v):
        super().__init__()
        self.gru = nn.GRU(h, h)
        self.out = nn.Linear(h, v)
        self.trace = []

    def forward(self, x, hidden):
        o, hidden = self.gru(x, hidden)
        self.trace.append(hidden)  # <- found: output-kept-on-self
        return self.out(o), hidden

dec = DecoderRNN(256, 10000).cuda()
opt = torch.optim.SGD(dec.parameters(), lr=0.01)
for x, h0, y in batches_loader:
    logits, _ = dec(x.cuda(), h0.cuda())
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.cuda().flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: keras style history object with on_batch_end
import torch

class History:
    def __init__(self):
        self.epoch, self.history = [], {}

    def on_batch_end(self, logs):
        for k, v in logs.items():
            self.history.setdefault(k, []).append(v)

class Model:
    def __init__(self, net):
        self.net = net.cuda()

    def compile(self, optimizer, loss):
        self.optimizer, self.loss = optimizer, loss

    def fit(self, loader, epochs):
        hist = History()
        for _ in range(epochs):
            for x, y in loader:
                pred = self.net(x.cuda())
                l = self.loss(pred, y.cuda())
                self.optimizer.zero_grad()
                l.backward()
                self.optimizer.step()
                hist.on_batch_end({"loss": l, "size": len(x)})  # <- found: logged-loss
        return hist

# case: multi gpu old tutorial: DataParallel and list of outputs
import torch
import torch.nn as nn

net = nn.DataParallel(ResNet()).cuda()  # <- found: data-parallel
opt = torch.optim.SGD(net.parameters(), lr=0.1)
crit = nn.CrossEntropyLoss().cuda()
for ep in range(100):
    for x, y in trainloader:
        opt.zero_grad()
        l = crit(net(x.cuda()), y.cuda())
        l.backward()
        opt.step()

# case: graph classification with early best copy by reference
import torch

def fit(model, opt, loaders, patience):
    best, best_params, wait = 0, None, 0
    while wait < patience:
        model.train()
        for b in loaders["train"]:
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(b.x.cuda(), b.ei.cuda()), b.y.cuda())
            loss.backward()
            opt.step()
        acc = evaluate(model, loaders["val"])
        if acc > best:
            best, wait = acc, 0
            best_params = model.state_dict()  # <- found: state-dict-aliased
        else:
            wait += 1
    model.load_state_dict(best_params)
    return model

# case: self-training: teacher pseudo labels with gradients
import copy
import torch
import torch.nn.functional as F

def self_train(student, labeled, unlabeled, rounds):
    opt = torch.optim.Adam(student.parameters())
    teacher = copy.deepcopy(student)
    for r in range(rounds):
        for (x, y), u in zip(labeled, unlabeled):
            x, y, u = x.cuda(), y.cuda(), u.cuda()
            pseudo = F.softmax(teacher(u), dim=1)  # <- found: copy-with-gradients
            loss = F.cross_entropy(student(x), y) + F.mse_loss(F.softmax(student(u), 1), pseudo)
            opt.zero_grad()
            loss.backward()
            opt.step()
        teacher.load_state_dict(student.state_dict())

# case: logging wrapper with kwargs and global store
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
        log_metrics(step, loss=loss)  # <- found: logged-loss

# case: accumulate over several losses, mean over window is tensor
import torch

acc_loss = torch.tensor(0.0, device="cuda")
for i, data in enumerate(train_loader):
    img, tgt = data["img"].cuda(), data["tgt"].cuda()
    loss = loss_fn(model(img), tgt)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    acc_loss = acc_loss + loss  # <- found: summed-loss
    if i % 100 == 99:
        print(i, (acc_loss / 100).item())

# case: speech: CTC loss per utterance in a dict keyed by id
import torch
import torch.nn as nn

ctc = nn.CTCLoss()
per_utt = dict()
for batch in train_loader:
    logp = acoustic_model(batch["feats"].cuda()).log_softmax(-1)
    loss = ctc(logp.transpose(0, 1), batch["tokens"].cuda(), batch["len"], batch["tlen"])
    optim.zero_grad()
    loss.backward()
    optim.step()
    for uid in batch["ids"]:
        per_utt[uid] = loss  # <- found: collected-losses

# case: torch.hub feature server in a class with __call__
import torch

class FeatureServer:
    def __init__(self):
        self.net = torch.hub.load("facebookresearch/dino:main", "dino_vits16").cuda()
        self.net.eval()

    def __call__(self, image):
        x = self.prepare(image).cuda()
        f = self.net(x)  # <- found: evaluation-with-gradients
        return f.squeeze(0).tolist()

    def prepare(self, image):
        return torch.as_tensor(image).permute(2, 0, 1)[None].float() / 255

server = FeatureServer()
for img in stream():
    publish(server(img))

# case: gan losses tracked in a small class via property setter style method
import torch

class Tracker:
    def __init__(self):
        self.g = 0
        self.d = 0
        self.n = 0

    def add(self, g, d):
        self.g = self.g + g
        self.d = self.d + d
        self.n += 1

tracker = Tracker()
for real in loader:
    real = real.cuda()
    z = torch.randn(len(real), 100, device="cuda")
    fake = G(z)
    loss_d = torch.relu(1 - D(real)).mean() + torch.relu(1 + D(fake.detach())).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = -D(fake).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    tracker.add(loss_g, loss_d)  # <- found: logged-loss

# case: async data: queue of outputs
import queue
import torch

results = []

@torch.no_grad()
def worker(model, jobs):
    model.eval().cuda()
    while not jobs.empty():
        batch = jobs.get()
        heat = model(batch.cuda())
        results.append(heat)  # <- found: collected-outputs # missed at first

def save(path):
    torch.save([r.cpu() for r in results], path)

# case: optimizer state: zero_grad set_to_none false in method
import torch

class Loop:
    def __init__(self, m, dl):
        self.m, self.dl = m.cuda(), dl
        self.o = torch.optim.Adam(m.parameters())

    def go(self):
        for x, y in self.dl:
            self.o.zero_grad(set_to_none=False)  # <- found: zero-grad-keeps-memory
            torch.nn.functional.mse_loss(self.m(x.cuda()), y.cuda()).backward()
            self.o.step()

# case: video: clip features concatenated to a growing tensor with grads
import torch

def video_features(backbone, frames, bs=16):
    backbone.eval()
    feats = None
    for s in range(0, len(frames), bs):
        f = backbone(frames[s:s + bs].cuda())  # <- found: evaluation-with-gradients
        feats = f if feats is None else torch.cat([feats, f])  # <- found: collected-outputs
    return feats.detach().cpu().numpy()

# case: retain graph in simple regression
import torch
w = torch.zeros(10, 1, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for x, y in loader:
    pred = x.cuda() @ w
    loss = ((pred - y.cuda()) ** 2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
    opt.step()

# case: teacher forcing RL captioning: list of rewards times logprob summed over epochs
import torch

class SCST:
    def __init__(self, captioner, opt):
        self.captioner, self.opt = captioner, opt
        self.log = {"rl_loss": [], "reward": []}

    def step(self, imgs):
        seq, logp = self.captioner(imgs.cuda())
        reward = score(seq)
        rl_loss = -(logp * reward).mean()
        self.opt.zero_grad()
        rl_loss.backward()
        self.opt.step()
        self.log["rl_loss"].append(rl_loss)  # <- found: collected-losses
        self.log["reward"].append(reward)

# case: ema of loss in nonlocal closure used by scheduler
import torch

def make_step(model, opt):
    smooth = None

    def step(x, y):
        nonlocal smooth
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth = loss if smooth is None else smooth * 0.95 + loss * 0.05  # <- found: summed-loss
        return float(loss)

    return step

# case: recsys: embeddings of all items computed with gradients every epoch
import torch

class TwoTower(torch.nn.Module):
    def __init__(self, u, i):
        super().__init__()
        self.user_tower, self.item_tower = u, i

    def forward(self, u, i):
        return (self.user_tower(u) * self.item_tower(i)).sum(-1)

def evaluate(model, item_loader, user_loader):
    model.eval()
    items = []
    for i in item_loader:
        items.append(model.item_tower(i.cuda()))  # <- found: collected-outputs, evaluation-with-gradients
    items = torch.cat(items)
    hits = 0
    for u, pos in user_loader:
        s = model.user_tower(u.cuda()) @ items.t()
        hits += (s.topk(10).indices.cpu() == pos[:, None]).any(1).sum().item()
    return hits

# case: lightning validation loop keeps logits on card until the epoch end, list never cleared
import pytorch_lightning as pl
import torch

class Seg(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.val_logits = []

    def validation_step(self, batch, _):
        x, y = batch
        logits = self.net(x)
        self.val_logits.append(logits)  # <- found: collected-outputs # missed at first
        self.log("val_loss", torch.nn.functional.cross_entropy(logits, y))

    def on_validation_epoch_end(self):
        print("mean logit", sum(l.mean().item() for l in self.val_logits) / len(self.val_logits))

# case: amp loop keeps scaled loss
import torch
scaler = torch.amp.GradScaler("cuda")
trace = []
for x, y in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda"):
        out = net(x.cuda())
        loss = criterion(out, y.cuda())
    scaled = scaler.scale(loss)
    scaled.backward()
    scaler.step(optimizer)
    scaler.update()
    trace.append(scaled)  # <- found: collected-losses

# case: anomaly detection: reconstruction errors kept as tensors with graph per sample
import torch

def fit_threshold(ae, loader):
    errors = []
    for x in loader:
        x = x.cuda()
        rec = ae(x)
        err = ((rec - x) ** 2).flatten(1).mean(1)
        errors.extend(err)  # <- found: collected-outputs # missed at first
    return torch.stack(errors).quantile(0.99).item()

# case: fine-tuning script: gpu memory "fix" in loop
import torch
import gc

def train_fn(data_loader, model, optimizer, device, scheduler):
    model.train()
    for d in data_loader:
        ids = d["ids"].to(device)
        targets = d["targets"].to(device)
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids), targets)
        loss.backward()
        optimizer.step()
        scheduler.step()
        torch.cuda.empty_cache()  # <- found: empty-cache-in-loop
        gc.collect()

# case: evaluation with loss list inside class Evaluator
import torch

class Evaluator:
    def __init__(self, model, loss):
        self.model = model
        self.loss = loss

    def evaluate(self, loader):
        self.model.eval()
        match, total, losses = 0, 0, []
        for batch in loader:
            out = self.model(batch.src.cuda())  # <- found: evaluation-with-gradients
            losses.append(self.loss(out, batch.tgt.cuda()))  # <- found: collected-losses
            match += (out.argmax(-1).cpu() == batch.tgt).sum().item()
            total += batch.tgt.numel()
        return torch.stack(losses).mean().item(), match / total

# case: loads checkpoint of another card while model is there
import torch

def resume(path, model, optimizer):
    state = torch.load(path)  # <- found: load-without-map-location
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["opt"])
    return state["epoch"]

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
start = resume("last.pth", model, optimizer)
for e in range(start, 100):
    for x, y in dl:
        torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        optimizer.zero_grad()

# case: generator function of training that yields tensors to a dashboard list
import torch

def fit(net, data, opt):
    for epoch in range(5):
        for x, y in data:
            loss = (net(x.cuda()) - y.cuda()).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            yield epoch, loss

points = []
for epoch, l in fit(net, loader, opt):
    points.append((epoch, l))  # <- found: collected-losses

# case: hook registered by decorator-like helper on all relu layers
import torch.nn as nn

stats = {}

def attach(model):
    for name, layer in model.named_modules():
        if isinstance(layer, nn.ReLU):
            stats[name] = []
            layer.register_forward_hook(lambda m, i, o, name=name: stats[name].append(o))  # <- found: activations-kept-by-hook

attach(net)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
    opt.step()

# case: mixup training with dictionary sums
import torch

sums = {}
for x, y in train_dl:
    x, y = x.cuda(), y.cuda()
    lam = 0.7
    perm = torch.randperm(len(x), device="cuda")
    out = model(lam * x + (1 - lam) * x[perm])
    a, b = criterion(out, y), criterion(out, y[perm])
    loss = lam * a + (1 - lam) * b
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for k, v in (("a", a), ("b", b)):
        sums[k] = sums.get(k, 0) + v  # <- found: summed-loss # missed at first

# case: RNN classifier per line, output list for confusion matrix with grads
import torch

def confusion(rnn, n):
    guesses = []
    for i in range(n):
        category, line, ct, lt = random_example()
        hidden = rnn.initHidden().cuda()
        for j in range(lt.size(0)):
            output, hidden = rnn(lt[j].cuda(), hidden)
        guesses.append(output)  # <- found: collected-outputs # missed at first
    return torch.cat(guesses).argmax(1)

# case: sum of losses for logging inside a with-autocast block and python sum
import torch

def fit(net, dl, opt, scaler):
    hist = []
    for x, y in dl:
        with torch.cuda.amp.autocast():
            out = net(x.cuda())
            losses = [torch.nn.functional.cross_entropy(o, y.cuda()) for o in out]
            loss = sum(losses)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        hist.append(losses)  # <- found: collected-losses
    return hist

# case: fabric training loop
import torch
from lightning.fabric import Fabric

fabric = Fabric(accelerator="cuda", devices=1)
fabric.launch()
model, optimizer = fabric.setup(model, optimizer)
loader = fabric.setup_dataloaders(loader)
running = 0
for batch in loader:
    x, y = batch
    loss = torch.nn.functional.cross_entropy(model(x), y)
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    running += loss  # <- found: summed-loss

# case: module level functions with global lists
import torch

train_losses = []

def train(epoch, network, loader, optimizer):
    network.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = network(data.to("cuda"))
        loss = torch.nn.functional.nll_loss(output, target.to("cuda"))
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            train_losses.append(loss)  # <- found: collected-losses
            torch.save(network.state_dict(), "model.pth")
