# case: captioning with floats
import torch

losses = []
for i, (images, captions) in enumerate(data_loader):
    loss = criterion(decoder(encoder(images.cuda())), captions.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(float(loss))

# case: pyg style sum with item
import torch
import torch.nn.functional as F

def train(model, loader, optimizer):
    total = 0
    for data in loader:
        data = data.to("cuda")
        optimizer.zero_grad()
        loss = F.nll_loss(model(data.x, data.edge_index), data.y)
        loss.backward()
        total += data.num_graphs * loss.item()
        optimizer.step()
    return total

# case: weights loss is a sum of parts
import torch

for x, ys in loader:
    outs = model(x.cuda())
    parts = [crit(o, y.cuda()) for o, y in zip(outs, ys)]
    total = parts[0] * 0
    for i, p in enumerate(parts):
        total = total + weights[i] * p
    optimizer.zero_grad()
    total.backward()
    optimizer.step()

# case: yolo mean of detached items
import torch

mloss = torch.zeros(3, device="cuda")
for i, (imgs, targets) in enumerate(loader):
    loss, items = compute_loss(model(imgs.cuda()), targets.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    mloss = (mloss * i + items.detach()) / (i + 1)

# case: moco queue as buffer
import torch

queue = torch.randn(128, 65536).cuda()
ptr = 0
for (a, b), _ in loader:
    q = enc_q(a.cuda())
    with torch.no_grad():
        k = enc_k(b.cuda())
    loss = nce(q, k, queue.clone())
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue[:, ptr:ptr + len(k)] = k.T
    ptr = (ptr + len(k)) % 65536

# case: features for a plot in host memory
import torch

feats = []
for x, y in loader:
    f, logit = net(x.cuda())
    loss = ce(logit, y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    feats.append(f.detach().cpu().numpy())

# case: trainer whose valid epoch has the decorator
import torch

class Trainer:
    def compute(self, a, b):
        return self.loss(self.model(a.cuda()), b.cuda())

    @torch.no_grad()
    def valid_epoch(self):
        self.model.eval()
        return torch.stack([self.compute(a, b) for a, b in self.val_loader]).mean().item()

# case: episode log probs are new for every episode
import torch
from torch.distributions import Categorical

for episode in range(1000):
    obs, done, logps, rewards = env.reset(), False, [], []
    while not done:
        dist = Categorical(logits=policy(torch.as_tensor(obs).float().cuda()))
        a = dist.sample()
        logps.append(dist.log_prob(a))
        obs, r, done, _ = env.step(a.item())
        rewards.append(r)
    loss = -(torch.stack(logps) * sum(rewards)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: td3 targets under no_grad
import copy
import torch
import torch.nn.functional as F

class TD3:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor.cuda(), critic.cuda()
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.opt = torch.optim.Adam(self.critic.parameters())

    def train(self, buf):
        s, a, s2, r = buf.sample(256)
        with torch.no_grad():
            tq = r + 0.99 * self.critic_target(s2, self.actor_target(s2))
        loss = F.mse_loss(self.critic(s, a), tq)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

# case: generator step through the discriminator
import torch

class T:
    def __init__(self, g, d):
        self.g, self.d = g.cuda(), d.cuda()
        self.opt_g = torch.optim.Adam(self.g.parameters())
        self.opt_d = torch.optim.Adam(self.d.parameters())

    def adv(self, pred, real):
        return torch.nn.functional.softplus(-pred if real else pred).mean()

    def step(self, x, z):
        fake = self.g(z)
        d_loss = self.adv(self.d(x), True) + self.adv(self.d(fake.detach()), False)
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()
        g_loss = self.adv(self.d(fake), True)
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()

# case: vae and its prior trained by one optimizer
import itertools
import torch

opt = torch.optim.Adam(itertools.chain(enc.parameters(), dec.parameters()))
for x, _ in loader:
    z = enc(x.cuda())
    rec = dec(z)
    loss = (rec - x.cuda()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: centers from detached features
import torch

centers = {}
for x, y in loader:
    f = extractor(x.cuda())
    loss = ce(classifier(f), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for c in range(10):
            m = f[y == c].mean(0)
            centers[c] = m if c not in centers else 0.9 * centers[c] + 0.1 * m

# case: kaggle valid to host
import torch

def valid_fn(loader, model, device):
    model.eval()
    preds = []
    for images, labels in loader:
        with torch.no_grad():
            y = model(images.to(device))
        preds.append(y.sigmoid().to("cpu").numpy())
    return preds

# case: lightning predict step returns
import pytorch_lightning as pl

class M(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def predict_step(self, batch, i):
        return self.net(batch).argmax(-1)

# case: perplexity under no_grad with numbers
import torch

model.eval()
nll = 0.0
with torch.no_grad():
    for i in range(0, n, stride):
        ids = tokens[:, i:i + 1024].cuda()
        nll += model(ids, labels=ids).loss.item()

# case: trainer with accumulation of evaluation on the host
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
args = TrainingArguments("o", eval_accumulation_steps=8)
Trainer(model, args, train_dataset=a, eval_dataset=b, compute_metrics=m).train()

# case: amp accumulation right
import torch

for it, (x, y) in enumerate(loader):
    with torch.autocast("cuda"):
        loss = crit(model(x.cuda()), y.cuda()) / 4
    scaler.scale(loss).backward()
    if (it + 1) % 4 == 0 or it + 1 == len(loader):
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

# case: federated average on the host
import copy
import torch

global_net = Net()
for rnd in range(100):
    w = []
    for c in chosen:
        local = copy.deepcopy(global_net).cuda()
        train_local(local, c)
        w.append({k: v.cpu() for k, v in local.state_dict().items()})
    global_net.load_state_dict(average(w))

# case: submission of ints
import torch

submission = {}
with torch.no_grad():
    for ids, imgs in test_loader:
        for i, o in zip(ids, model(imgs.cuda()).argmax(1).tolist()):
            submission[i] = o

# case: hook handle removed and list read per batch
import torch

acts = []
h = net.layer3.register_forward_hook(lambda m, i, o: acts.append(o.detach()))
for x, _ in loader:
    acts.clear()
    net(x.cuda())
    analyse(acts[0])
h.remove()

# case: gan with retained graph for two optimizers
import torch

for x, z in loader:
    fake = G(z.cuda())
    score = D(fake)
    d_loss = score.mean() - D(x.cuda()).mean()
    g_loss = -score.mean()
    opt_d.zero_grad()
    d_loss.backward(retain_graph=True)
    opt_g.zero_grad()
    g_loss.backward()
    opt_d.step()
    opt_g.step()

# case: recorded values of a meter class with detach inside
import torch

class Meter:
    def __init__(self):
        self.data = [0.0, 0.0]

    def add(self, *values):
        values = [v.detach() if torch.is_tensor(v) else v for v in values]
        self.data = [a + b for a, b in zip(self.data, values)]

m = Meter()
for x, y in loader:
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    m.add(loss, 1)

# case: encoding of a corpus by sentence transformers
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("all-MiniLM-L6-v2", device="cuda")
vecs = []
for chunk in chunks:
    vecs.append(model.encode(chunk))

# case: retrieval bank stays on the card for the matrix product
import torch

model.eval().cuda()
with torch.no_grad():
    bank = torch.cat([model(x.cuda()) for x, _ in gallery_loader])
    for q, _ in query_loader:
        sim = model(q.cuda()) @ bank.T
        write(sim.argmax(1).tolist())

# case: evaluation helper computes the loss that training uses
import torch

def forward_loss(model, batch):
    return model(batch["x"].cuda()).pow(2).mean()

def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(forward_loss(model, b).item() for b in loader)

for b in loader:
    loss = forward_loss(model, b)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: test function of an attack sums the loss for its gradient
import torch

def test_attack(model, xs, y, eps):
    model.eval()
    delta = torch.zeros_like(xs[0]).cuda().requires_grad_()
    total = 0
    for x in xs:
        total = total + torch.nn.functional.cross_entropy(model(x.cuda() + delta), y.cuda())
    total.backward()
    return (eps * delta.grad.sign()).cpu()

# case: evaluation loss over crops is returned for meta learning
import torch

def validate_fast_weights(net, fast, crops, y):
    loss = 0
    for c in crops:
        loss = loss + torch.nn.functional.cross_entropy(net(c.cuda(), fast), y.cuda())
    return loss / len(crops)

# case: engine metrics are numbers
from ignite.engine import Engine

def update(engine, batch):
    x, y = batch
    loss = crit(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    engine.state.losses.append(loss.item())
    return loss.item()

trainer = Engine(update)

# case: loss dict of the batch object
import torch

def step(batch):
    out = net(batch.x.cuda())
    batch.losses.append(torch.nn.functional.mse_loss(out, batch.y.cuda()))
    loss = sum(batch.losses)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: gradient norms by tensor hooks
import torch

norms = {}
for n, p in net.named_parameters():
    p.register_hook(lambda g, n=n: norms.__setitem__(n, g.norm().item()))
for x, y in loader:
    opt.zero_grad()
    crit(net(x.cuda()), y.cuda()).backward()
    opt.step()

# case: running loss reset at each log with numbers
import torch

running = 0.0
for i, (x, y) in enumerate(loader):
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    running += loss.item()
    if i % 100 == 99:
        print(running / 100)
        running = 0.0
