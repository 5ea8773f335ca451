# case: a federated client keeps each local loss
import copy
import torch
from torch import nn

class Client:
    def __init__(self, cid, model, data, lr):
        self.cid = cid
        self.model = copy.deepcopy(model).cuda()
        self.data = data
        self.optim = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def local_train(self, epochs):
        batch_loss = []
        for _ in range(epochs):
            for images, labels in self.data:
                self.model.zero_grad()
                logits = self.model(images.cuda())
                loss = self.criterion(logits, labels.cuda())
                loss.backward()
                self.optim.step()
                batch_loss.append(loss)  # <- found: collected-losses
        return {k: v.cpu() for k, v in self.model.state_dict().items()}, sum(batch_loss) / len(batch_loss)

# case: soft actor critic logs its three losses in a named tuple
from collections import namedtuple
import torch
import torch.nn.functional as F

Losses = namedtuple("Losses", "critic actor alpha")

class SAC:
    def __init__(self, actor, critic, target):
        self.actor, self.critic, self.target = actor.cuda(), critic.cuda(), target.cuda()
        self.log_alpha = torch.zeros(1, requires_grad=True, device="cuda")
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), 3e-4)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), 3e-4)
        self.alpha_optim = torch.optim.Adam([self.log_alpha], 3e-4)
        self.history = []

    def update(self, s, a, r, s2, d):
        with torch.no_grad():
            a2, logp2 = self.actor.sample(s2)
            y = r + 0.99 * (1 - d) * (self.target(s2, a2) - self.log_alpha.exp() * logp2)
        critic_loss = F.mse_loss(self.critic(s, a), y)
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()
        pi, logp = self.actor.sample(s)
        actor_loss = (self.log_alpha.exp().detach() * logp - self.critic(s, pi)).mean()
        self.actor_optim.zero_grad()
        actor_loss.backward()
        self.actor_optim.step()
        alpha_loss = -(self.log_alpha * (logp + 6).detach()).mean()
        self.alpha_optim.zero_grad()
        alpha_loss.backward()
        self.alpha_optim.step()
        self.history.append(Losses(critic_loss, actor_loss, alpha_loss))  # <- found: collected-losses

# case: a decorated step whose result is stored by the wrapper
import functools
import time
import torch

timeline = []

def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        t0 = time.perf_counter()
        out = fn(*args, **kwargs)
        timeline.append((time.perf_counter() - t0, out))  # <- missed: collected-losses # missed at first
        return out
    return wrapper

@timed
def step(model, x, y, opt):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss

def main(model, loader):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loader:
        step(model, x.cuda(), y.cuda(), opt)

# case: ignite engine state collects the output of each iteration
import torch
from ignite.engine import Engine, Events

model = Net().cuda()
opt = torch.optim.Adam(model.parameters())
history = []

def process(engine, batch):
    x, y = batch
    opt.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    opt.step()
    history.append(loss)  # <- found: collected-losses
    return loss.item()

trainer = Engine(process)
trainer.run(loader, max_epochs=5)

# case: a fabric loop with a list per epoch that is reduced at the end
import torch
from lightning.fabric import Fabric

fabric = Fabric(accelerator="cuda", devices=1)
model, optimizer = fabric.setup(Net(), torch.optim.AdamW(params))
loader = fabric.setup_dataloaders(loader)
for epoch in range(10):
    losses = []
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch["x"], batch["y"])
        fabric.backward(loss)
        optimizer.step()
        losses.append(loss)  # <- found: collected-losses
    fabric.print(epoch, torch.stack(losses).mean())

# case: a deque without length and a moving mean
from collections import deque
import torch

window = deque()
for i, (x, y) in enumerate(loader):
    pred = net(x.to(device))
    loss = loss_fn(pred, y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    window.append(loss)  # <- found: collected-losses
    print(f"\r{i} {sum(window) / len(window):.3f}", end="")

# case: a loss matrix of a hyperparameter search
import torch

table = {}
for lr in (1e-2, 1e-3, 1e-4):
    net = make_net().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        table[lr, i] = loss  # <- found: collected-losses

# case: the memory bank of a contrastive method has gradients
import torch
import torch.nn.functional as F

class Bank:
    def __init__(self):
        self.keys = []

    def enqueue(self, k):
        self.keys.append(k)

bank = Bank()
encoder = Encoder().cuda()
opt = torch.optim.SGD(encoder.parameters(), 0.03)
for (a, b), _ in loader:
    q = F.normalize(encoder(a.cuda()), dim=1)
    k = F.normalize(encoder(b.cuda()), dim=1)
    loss = info_nce(q, k)
    opt.zero_grad()
    loss.backward()
    opt.step()
    bank.enqueue(k)  # <- found: logged-loss

# case: a progress class with an attribute per metric
import torch

class Progress:
    def __init__(self):
        self.metrics = {}

    def log(self, name, value, weight=1):
        total, n = self.metrics.get(name, (0.0, 0))
        self.metrics[name] = (total + value * weight, n + weight)

    def mean(self, name):
        total, n = self.metrics[name]
        return total / n

def run(model, loader, opt):
    progress = Progress()
    for x, y in loader:
        out = model(x.cuda())
        loss = torch.nn.functional.cross_entropy(out, y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        progress.log("loss", loss, x.size(0))  # <- found: logged-loss # missed at first
    return progress

# case: a queue that a writer thread drains
import queue
import threading
import torch

class AsyncLogger(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.rows = []
        self.q = queue.Queue()

    def push(self, step, value):
        self.rows.append((step, value))

logger = AsyncLogger()
for step, batch in enumerate(loader):
    loss = model(batch.cuda()).mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
    logger.push(step, loss)  # <- found: logged-loss

# case: a mixin records what compute_loss returns
import torch

class RecordMixin:
    def record(self, **values):
        for key, value in values.items():
            self.records.setdefault(key, []).append(value)

class Trainer(RecordMixin):
    def __init__(self, net, opt):
        self.net, self.opt, self.records = net, opt, {}

    def step(self, x, y):
        out = self.net(x.cuda())
        loss = torch.nn.functional.l1_loss(out, y.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.record(loss=loss)  # <- found: logged-loss

# case: a total in a nonlocal closure
import torch

def make_step(model, opt, loss_fn):
    total = 0.0
    count = 0

    def step(x, y):
        nonlocal total, count
        loss = loss_fn(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss * len(x)  # <- found: summed-loss
        count += len(x)
        return total / count

    return step

# case: a Welford mean of the loss
import torch

mean, n = 0.0, 0
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    n += 1
    mean = mean + (loss - mean) / n  # <- found: summed-loss

# case: the reconstruction error of an autoencoder on all validation images
import torch

@torch.no_grad()
def codes(ae, loader):
    return torch.cat([ae.encoder(x.cuda()).cpu() for x in loader])

def validate(ae, loader):
    ae.eval()
    err = 0
    for x in loader:
        rec = ae(x.cuda())  # <- found: evaluation-with-gradients
        err += ((rec - x.cuda()) ** 2).mean()  # <- found: summed-loss
    return err / len(loader)

# case: perplexity by tokens without no_grad
import math
import torch
from transformers import GPT2LMHeadModel, GPT2TokenizerFast

model = GPT2LMHeadModel.from_pretrained("gpt2").to("cuda")
tok = GPT2TokenizerFast.from_pretrained("gpt2")
model.eval()
ids = tok("\n\n".join(texts), return_tensors="pt").input_ids
nll, count = 0.0, 0
for begin in range(0, ids.size(1), 512):
    chunk = ids[:, begin:begin + 512].to("cuda")
    out = model(chunk, labels=chunk)  # <- found: evaluation-with-gradients
    nll += out.loss.item() * chunk.size(1)
    count += chunk.size(1)
print(math.exp(nll / count))

# case: a kNN evaluation keeps all train features on the card
import torch

def features(model, loader):
    feats, labels = [], []
    model.eval()
    with torch.no_grad():
        for img, lab in loader:
            f = torch.nn.functional.normalize(model(img.cuda(non_blocking=True)), dim=1)
            feats.append(f)  # <- found: collected-outputs
            labels.append(lab)
    return torch.cat(feats).cpu(), torch.cat(labels)

# case: attention maps of each batch in a dict of lists
import torch
from collections import defaultdict

store = defaultdict(list)
model.eval()
with torch.inference_mode():
    for batch in loader:
        out = model(batch["ids"].cuda(), output_attentions=True)
        store["attn"].append(out.attentions[-1])  # <- found: collected-outputs # missed at first
maps = torch.cat(store["attn"]).cpu().numpy()

# case: logits of the whole epoch are kept for a calibration plot
import torch

def train_epoch(net, loader, opt, crit):
    net.train()
    all_logits, all_targets = [], []
    for x, t in loader:
        logits = net(x.cuda())
        loss = crit(logits, t.cuda())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        all_logits.append(logits)  # <- found: collected-outputs
        all_targets.append(t)
    return expected_calibration_error(torch.cat(all_logits).detach().cpu(), torch.cat(all_targets))

# case: an accelerate evaluation gathers and keeps on the card
import torch
from accelerate import Accelerator

accelerator = Accelerator()
model, loader = accelerator.prepare(model, loader)
model.eval()
preds = []
for batch in loader:
    with torch.no_grad():
        out = model(**batch)
    preds.append(accelerator.gather(out.logits))  # <- found: collected-outputs
result = torch.cat(preds).cpu()

# case: a rendering script keeps all views
import torch
import imageio

@torch.no_grad()
def render_path(nerf, poses, hw):
    frames = []
    for pose in poses:
        rays = get_rays(pose, hw).cuda()
        rgb = nerf(rays)
        frames.append(rgb)  # <- found: collected-outputs # missed at first
    return torch.stack(frames).cpu().numpy()

# case: hooks by name over all convolutions
import torch
from torch import nn

acts = {}

def watch(model):
    for name, m in model.named_modules():
        if isinstance(m, nn.Conv2d):
            acts[name] = []
            m.register_forward_hook(lambda m, i, o, name=name: acts[name].append(o))  # <- found: activations-kept-by-hook

model = Net().cuda()
watch(model)
opt = torch.optim.Adam(model.parameters())
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a global hook for inputs with a counter
import torch

inputs_seen = []

def pre_hook(module, args):
    inputs_seen.append(args[0])  # <- found: activations-kept-by-hook

net = Net().to("cuda:0")
net.head.register_forward_pre_hook(pre_hook)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
for epoch in range(3):
    for xb, yb in dl:
        loss = torch.nn.functional.mse_loss(net(xb.to("cuda:0")), yb.to("cuda:0"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: Polyak averaging with lerp in a step function
import torch

class Polyak:
    def __init__(self, net, tau=0.005):
        self.tau = tau
        self.weights = {n: p.detach().clone() for n, p in net.named_parameters()}

    def step(self, net):
        for n, p in net.named_parameters():
            self.weights[n] = torch.lerp(self.weights[n], p, self.tau)  # <- found: averaged-weights-with-graph # missed at first

net = Net().cuda()
avg = Polyak(net)
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg.step(net)

# case: EMA in a function with zip of two dicts
import torch

def ema_update(shadow, model, decay):
    params = dict(model.named_parameters())
    for name in shadow:
        shadow[name] = decay * shadow[name] + (1 - decay) * params[name]  # <- found: averaged-weights-with-graph # missed at first

shadow = {k: p.detach().clone() for k, p in model.named_parameters()}
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema_update(shadow, model, 0.999)

# case: a cache of masks per size on the card with a plain dict
import torch

class Decoder(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.proj = torch.nn.Linear(d, d)

_CACHE = {}

def text_features(encoder, prompt):
    if prompt in _CACHE:
        return _CACHE[prompt]
    tokens = tokenize(prompt).cuda()
    _CACHE[prompt] = encoder(tokens)  # <- found: cached-tensors
    return _CACHE[prompt]

# case: functools cache on an embedding helper
import functools
import torch
from sentence_transformers import SentenceTransformer

encoder = SentenceTransformer("all-MiniLM-L6-v2", device="cuda")

@functools.cache  # <- found: cached-tensors
def embed(text):
    return torch.tensor(encoder.encode(text), device="cuda")

def score(a, b):
    return (embed(a) @ embed(b)).item()

# case: a second order option that the optimizer does not use
import torch

class Trainer:
    def __init__(self, model):
        self.model = model.cuda()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def fit(self, loader):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
            self.opt.zero_grad()
            loss.backward(retain_graph=True, create_graph=True)  # <- found: create-graph
            self.opt.step()

# case: an infoGAN discriminator step inside a function with a given fake
import torch

def d_step(D, G, real, z, opt, bce):
    fake = G(z)
    out_real, out_fake = D(real), D(fake)  # <- found: fake-not-detached # missed at first
    loss = bce(out_real, torch.ones_like(out_real)) + bce(out_fake, torch.zeros_like(out_fake))
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()

def g_step(D, G, z, opt, bce):
    out = D(G(z))
    loss = bce(out, torch.ones_like(out))
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()

def main(loader):
    D, G = Disc().cuda(), Gen().cuda()
    d_opt = torch.optim.Adam(D.parameters(), 2e-4)
    g_opt = torch.optim.Adam(G.parameters(), 2e-4)
    bce = torch.nn.BCEWithLogitsLoss()
    for real, _ in loader:
        z = torch.randn(real.size(0), 100).cuda()
        d_step(D, G, real.cuda(), z, d_opt, bce)
        g_step(D, G, z, g_opt, bce)

# case: lightning GAN with manual optimization
import pytorch_lightning as pl
import torch
import torch.nn.functional as F

class GAN(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = Generator()
        self.discriminator = Discriminator()

    def training_step(self, batch, batch_idx):
        imgs, _ = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(imgs.shape[0], 128, device=self.device)
        fake = self.generator(z)
        g_loss = F.softplus(-self.discriminator(fake)).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
        z = torch.randn(imgs.shape[0], 128, device=self.device)
        fake = self.generator(z)
        d_loss = F.softplus(self.discriminator(fake)).mean() + F.softplus(-self.discriminator(imgs)).mean()  # <- found: fake-not-detached
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.generator.parameters(), 2e-4), torch.optim.Adam(self.discriminator.parameters(), 2e-4)

# case: a segmentation network stores its logits for a visualiser that is gone
import torch
import torch.nn as nn
import torch.nn.functional as F

class Seg(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 32, 3, padding=1)
        self.up = nn.Conv2d(32, 21, 1)

    def forward(self, x):
        feats = F.relu(self.down(x))
        self.last_logits = self.up(feats)  # <- found: output-kept-on-self
        return self.last_logits

seg = Seg().cuda()
opt = torch.optim.SGD(seg.parameters(), 0.01)
for epoch in range(40):
    for img, mask in loader:
        loss = F.cross_entropy(seg(img.cuda()), mask.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: truncated BPTT over chunks forgets to detach
import torch

class CharRNN(torch.nn.Module):
    def __init__(self, v, h):
        super().__init__()
        self.emb = torch.nn.Embedding(v, h)
        self.rnn = torch.nn.LSTM(h, h, batch_first=True)
        self.out = torch.nn.Linear(h, v)

    def forward(self, x, state=None):
        y, state = self.rnn(self.emb(x), state)
        return self.out(y), state

rnn = CharRNN(100, 512).cuda()
opt = torch.optim.Adam(rnn.parameters())
state = None
for x, y in chunks:
    logits, state = rnn(x.cuda(), state)  # <- found: recurrent-state
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten().cuda())
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()

# case: retain_graph in a triplet training method
import torch

class Embedder:
    def __init__(self, net, lr):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.loss = torch.nn.TripletMarginLoss()

    def fit(self, loader, epochs):
        for _ in range(epochs):
            for a, p, n in loader:
                ea, ep, en = self.net(a.cuda()), self.net(p.cuda()), self.net(n.cuda())
                value = self.loss(ea, ep, en)
                self.opt.zero_grad()
                value.backward(retain_graph=True)  # <- found: retain-graph
                self.opt.step()

# case: PPO's two losses in one function with tensors from a buffer
import torch
import torch.nn.functional as F

def update(policy, value_fn, buf, pi_opt, v_opt, clip=0.2):
    obs = torch.as_tensor(buf["obs"], dtype=torch.float32).cuda()
    act = torch.as_tensor(buf["act"]).cuda()
    ret = torch.as_tensor(buf["ret"], dtype=torch.float32).cuda()
    adv = torch.as_tensor(buf["adv"], dtype=torch.float32).cuda()
    old = torch.as_tensor(buf["logp"], dtype=torch.float32).cuda()
    logp = torch.distributions.Categorical(logits=policy(obs)).log_prob(act)
    ratio = (logp - old).exp()
    pi_loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
    pi_opt.zero_grad()
    pi_loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
    pi_opt.step()
    v_loss = F.mse_loss(value_fn(obs).squeeze(-1), ret)
    v_opt.zero_grad()
    v_loss.backward()
    v_opt.step()

# case: a test split in one batch through a graph classifier
import torch
from torch_geometric.loader import DataLoader

train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=len(test_set))  # <- found: evaluation-batch-of-everything # missed at first

def test(model):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data in test_loader:
            data = data.to("cuda")
            correct += int((model(data.x, data.edge_index, data.batch).argmax(1) == data.y).sum())
    return correct / len(test_set)

# case: a gradio demo runs the model with gradients
import gradio as gr
import torch

net = load_net("net.pt").to("cuda")
net.eval()

def segment(image):
    x = to_tensor(image).unsqueeze(0).to("cuda")
    mask = net(x)[0].argmax(0)  # <- found: evaluation-with-gradients # missed at first
    return colorize(mask.cpu().numpy())

gr.Interface(segment, "image", "image").launch()

# case: test time augmentation without no_grad
import torch

def tta(model, loader, device):
    model.eval()
    results = []
    for x in loader:
        x = x.to(device)
        p = model(x).softmax(1) + model(x.flip(-1)).softmax(1)  # <- found: evaluation-with-gradients
        results.extend(p.argmax(1).tolist())
    return results

# case: the agent is tested for ten episodes in eval mode
import torch

def test_agent(policy, env, n=10):
    policy.eval()
    rewards = []
    for _ in range(n):
        state, done, total = env.reset(), False, 0.0
        while not done:
            s = torch.as_tensor(state, dtype=torch.float32).unsqueeze(0).cuda()
            action = policy(s).argmax(1).item()  # <- found: evaluation-with-gradients
            state, r, done, _ = env.step(action)
            total += r
        rewards.append(total)
    return sum(rewards) / n

# case: a translation model evaluated by Seq2SeqTrainer without generate
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

args = Seq2SeqTrainingArguments(
    "mt", per_device_train_batch_size=16, evaluation_strategy="epoch",
)
model = AutoModelForSeq2SeqLM.from_pretrained("Helsinki-NLP/opus-mt-en-de")
trainer = Seq2SeqTrainer(model, args, train_dataset=tr, eval_dataset=va, compute_metrics=bleu)  # <- found: trainer-keeps-logits
trainer.train()

# case: the collator moves the batch to the device of the model
import torch
from torch.utils.data import DataLoader

class Collate:
    def __init__(self, tokenizer, device):
        self.tok, self.device = tokenizer, device

    def __call__(self, rows):
        enc = self.tok([r["text"] for r in rows], padding=True, return_tensors="pt")
        return {k: v.cuda() for k, v in enc.items()}  # <- found: card-in-dataset # missed at first

dl = DataLoader(rows, batch_size=16, collate_fn=Collate(tok, "cuda"), num_workers=4)

# case: a transform of the dataset puts noise on the card
import torch
from torch.utils.data import Dataset, DataLoader

class Noisy(Dataset):
    def __init__(self, base):
        self.base = base

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        x, y = self.base[i]
        noise = torch.randn(x.shape, device="cuda")  # <- found: card-in-dataset
        return x.cuda() + noise, y  # <- found: card-in-dataset

loader = DataLoader(Noisy(base), batch_size=64, num_workers=6, pin_memory=False)

# case: mean teacher's copy runs beside the student
import copy
import torch
import torch.nn.functional as F

student = Net().cuda()
teacher = copy.deepcopy(student)
opt = torch.optim.SGD(student.parameters(), 0.1)
for (xl, y), xu in zip(labeled, unlabeled):
    xl, y, xu = xl.cuda(), y.cuda(), xu.cuda()
    sup = F.cross_entropy(student(xl), y)
    target = teacher(xu).softmax(1)  # <- found: copy-with-gradients
    cons = F.mse_loss(student(xu).softmax(1), target)
    loss = sup + 10 * cons
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.mul_(0.99).add_(s, alpha=0.01)

# case: all voxels of the study live on the card
import nibabel as nib
import torch

volume = torch.from_numpy(nib.load("t1.nii.gz").get_fdata()).float()
volume = volume.cuda()  # <- found: dataset-on-card
labels = torch.from_numpy(nib.load("seg.nii.gz").get_fdata()).long()
net = PatchNet().cuda()
opt = torch.optim.Adam(net.parameters())
for it in range(20000):
    idx = torch.randint(0, volume.shape[0], (16,))
    x = volume[idx]
    y = labels[idx].cuda()
    loss = torch.nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a device argument uploads the features of a recommender
import numpy as np
import torch
from torch.utils.data import TensorDataset, DataLoader

users = torch.tensor(np.load("users.npy"), device="cuda")  # <- found: dataset-on-card
items = torch.tensor(np.load("items.npy"), device="cuda")  # <- found: dataset-on-card
data = TensorDataset(users, items)
loader = DataLoader(data, batch_size=4096, shuffle=True)

# case: perceptual features of the target image with gradients
import torch
import torchvision
import torch.nn.functional as F

vgg = torchvision.models.vgg16(weights="DEFAULT").features.cuda().eval()
net = SRNet().cuda()
opt = torch.optim.Adam(net.parameters(), 1e-4)
for lr_img, hr_img in loader:
    lr_img, hr_img = lr_img.cuda(), hr_img.cuda()
    sr = net(lr_img)
    target = vgg(hr_img)  # <- found: frozen-model-with-gradients
    loss = F.l1_loss(sr, hr_img) + 0.1 * F.mse_loss(vgg(sr), target)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: the reward model of RLHF scores with a graph
import torch

class PPOTrainer:
    def __init__(self, policy, reward_model, opt):
        self.policy = policy.cuda()
        self.reward_model = reward_model.cuda()
        self.reward_model.eval()
        self.opt = opt

    def step(self, ids):
        ids = ids.cuda()
        logp = self.policy(ids).log_softmax(-1).gather(-1, ids[..., None]).squeeze(-1).sum(-1)
        score = self.reward_model(ids).squeeze(-1)  # <- found: frozen-model-with-gradients
        loss = -(logp * score).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

# case: distillation in a lightning module with a teacher in eval
import pytorch_lightning as pl
import torch
import torch.nn.functional as F

class Distill(pl.LightningModule):
    def __init__(self, student, teacher):
        super().__init__()
        self.student = student
        self.teacher = teacher
        self.teacher.eval()

    def training_step(self, batch, i):
        x, y = batch
        s = self.student(x)
        t = self.teacher(x)  # <- found: frozen-model-with-gradients
        return F.cross_entropy(s, y) + F.kl_div(s.log_softmax(1), t.softmax(1), reduction="batchmean")

    def configure_optimizers(self):
        return torch.optim.Adam(self.student.parameters(), 1e-3)

# case: a twin target critic in TD3
import copy
import torch
import torch.nn.functional as F

class TD3:
    def __init__(self, s_dim, a_dim):
        self.actor = Actor(s_dim, a_dim).to("cuda")
        self.actor_target = copy.deepcopy(self.actor)
        self.critic = Critic(s_dim, a_dim).to("cuda")
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), 3e-4)

    def train(self, buffer):
        s, a, s2, r, nd = buffer.sample(256)
        q = r + nd * 0.99 * self.critic_target(s2, self.actor_target(s2))  # <- found: copy-with-gradients
        loss = F.mse_loss(self.critic(s, a), q)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

# case: torch.load in the arguments of load_state_dict after cuda
import torch

net = Net()
net = net.cuda()
net.load_state_dict(torch.load("runs/best.pth"))  # <- found: load-without-map-location
net.eval()
with torch.no_grad():
    for x in loader:
        save(net(x.cuda()).cpu())

# case: a trainer class resumes with a checkpoint dict
import torch

class Trainer:
    def __init__(self, cfg):
        self.device = torch.device("cuda")
        self.model = build(cfg).to(self.device)
        self.opt = torch.optim.Adam(self.model.parameters())
        if cfg.resume:
            self.resume(cfg.resume)

    def resume(self, path):
        state = torch.load(path)  # <- found: load-without-map-location
        self.model.load_state_dict(state["model"])
        self.opt.load_state_dict(state["opt"])

# case: best model of a cross validation fold in a tuple
import torch

for fold in range(5):
    model = Net().cuda()
    opt = torch.optim.Adam(model.parameters())
    best = (float("inf"), None)
    for epoch in range(30):
        for x, y in loaders[fold]["train"]:
            opt.zero_grad()
            torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            opt.step()
        val = validate(model, loaders[fold]["val"])
        if val < best[0]:
            best = (val, model.state_dict())  # <- found: state-dict-aliased # missed at first
    model.load_state_dict(best[1])

# case: best weights on self in a fit method
import torch

class Regressor:
    def __init__(self, net):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.best_loss = float("inf")
        self.best_weights = None

    def fit(self, train, val, epochs):
        for _ in range(epochs):
            for x, y in train:
                self.opt.zero_grad()
                torch.nn.functional.mse_loss(self.net(x.cuda()), y.cuda()).backward()
                self.opt.step()
            loss = self.score(val)
            if loss < self.best_loss:
                self.best_loss = loss
                self.best_weights = self.net.state_dict()  # <- found: state-dict-aliased # missed at first
        self.net.load_state_dict(self.best_weights)

# case: a rollback copy in every round stays on the card
import copy
import torch

model = Net().to(device)
history = []
for rnd in range(100):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
    history.append(copy.deepcopy(model.state_dict()))  # <- found: state-dict-copied-on-card
torch.save(history, "trajectory.pt")

# case: accumulation in a while loop without division
import torch

step = 0
it = iter(loader)
while step < max_steps:
    try:
        x, y = next(it)
    except StopIteration:
        it = iter(loader)
        x, y = next(it)
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()  # <- found: accumulated-loss-not-divided
    step += 1
    if step % 8 == 0:
        opt.step()
        opt.zero_grad()

# case: amp accumulation whose loss is not divided
import torch

scaler = torch.amp.GradScaler()
for i, batch in enumerate(loader):
    with torch.amp.autocast("cuda"):
        loss = model(**batch).loss
    scaler.scale(loss).backward()  # <- found: accumulated-loss-not-divided
    if (i + 1) % args.gas == 0 or (i + 1) == len(loader):
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()

# case: norm clipping before the condition with a named bool
import torch

for i, (x, y) in enumerate(loader):
    loss = criterion(model(x.cuda()), y.cuda()) / n
    loss.backward()
    update = (i + 1) % n == 0 or i + 1 == len(loader)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)  # <- found: clipping-every-micro-batch
    if update:
        optimizer.step()
        optimizer.zero_grad()

# case: zero_grad by the model in each micro batch
import torch

def run(model, loader, optimizer, acc):
    for i, (x, y) in enumerate(loader):
        model.zero_grad()  # <- found: zero-grad-while-accumulating # missed at first
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / acc
        loss.backward()
        if (i + 1) % acc == 0 or i == len(loader) - 1:
            optimizer.step()

# case: the tail of an epoch is lost when counted by hand from zero
import torch

for epoch in range(10):
    for i, sample in enumerate(train_loader):
        loss = net(sample["image"].cuda(), sample["mask"].cuda()) / 4
        loss.backward()
        if i % 4 == 3:
            opt.step()  # <- found: last-window-forgotten
            opt.zero_grad()

# case: onecycle scheduler in each micro batch
import torch

opt = torch.optim.SGD(model.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=5000)
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / 4
    loss.backward()
    if (i + 1) % 4 == 0 or i + 1 == len(loader):
        opt.step()
        opt.zero_grad()
    sched.step()  # <- found: scheduler-every-micro-batch

# case: the environment variable is set inside the training function
import os
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("gpt2").to("cuda")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "garbage_collection_threshold:0.8"  # <- found: allocator-variable-too-late
opt = torch.optim.AdamW(model.parameters())

# case: use_cache stays on in the forward call of a checkpointed model
import torch
from transformers import LlamaForCausalLM

model = LlamaForCausalLM.from_pretrained("meta-llama/Llama-3.2-1B").cuda()
model.gradient_checkpointing_enable()
opt = torch.optim.AdamW(model.parameters())
for batch in loader:
    loss = model(**batch, use_cache=True).loss  # <- found: checkpointing-with-cache
    loss.backward()
    opt.step()
    opt.zero_grad()

# case: DataParallel over listed devices in a class
import torch
from torch import nn

class Runner:
    def __init__(self, net, ids):
        self.net = nn.DataParallel(net, device_ids=ids).cuda()  # <- found: data-parallel
        self.opt = torch.optim.Adam(self.net.parameters())

    def epoch(self, loader):
        for x, y in loader:
            loss = nn.functional.cross_entropy(self.net(x.cuda()), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

# case: empty_cache at the end of every training step method called in a loop
import torch

class Model:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt

    def train_step(self, x, y):
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        torch.cuda.empty_cache()  # <- found: empty-cache-in-loop
        return loss.item()

m = Model(net.cuda(), opt)
for x, y in train_loader:
    m.train_step(x.cuda(), y.cuda())

# case: the vocabulary head is cast before the loss in the script
import torch
from torch import nn
import torch.nn.functional as F

VOCAB = 128256
head = nn.Linear(2048, VOCAB, bias=False, device="cuda", dtype=torch.bfloat16)
for hidden, labels in loader:
    logits = head(hidden.cuda()).float()  # <- found: full-precision-logits # missed at first
    loss = F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1).cuda())
    loss.backward()
    opt.step()
    opt.zero_grad()

# case: a sanity check of the loss before training
import torch

net = Net().cuda()
images, targets = next(iter(train_loader))
initial = torch.nn.functional.cross_entropy(net(images.cuda()), targets.cuda())  # <- found: intermediate-kept-by-name # missed at first
print("initial loss", initial)
opt = torch.optim.Adam(net.parameters())
for images, targets in train_loader:
    loss = torch.nn.functional.cross_entropy(net(images.cuda()), targets.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: OOM in a trainer method returns None
import torch

class Trainer:
    def train(self, loader):
        for batch in loader:
            try:
                loss = self.model(batch.cuda())
                loss.backward()
                self.opt.step()
                self.opt.zero_grad()
            except torch.OutOfMemoryError as err:  # <- found: oom-skipped-with-gradients
                self.log.warning("skipped %s: %s", batch.shape, err)
                torch.cuda.empty_cache()

# case: a tokenizer pads to max_length inside a collator
import torch
from transformers import AutoTokenizer, AutoModelForSequenceClassification

tokenizer = AutoTokenizer.from_pretrained("roberta-base")
model = AutoModelForSequenceClassification.from_pretrained("roberta-base").cuda()

def collate(rows):
    texts, labels = zip(*rows)
    enc = tokenizer(list(texts), padding="max_length", max_length=256, truncation=True, return_tensors="pt")  # <- found: padding-to-max-length
    return enc, torch.tensor(labels)

opt = torch.optim.AdamW(model.parameters(), 2e-5)
for enc, labels in torch.utils.data.DataLoader(rows, 32, collate_fn=collate):
    loss = model(**enc.to("cuda"), labels=labels.cuda()).loss
    loss.backward()
    opt.step()
    opt.zero_grad()

# case: tiled inference inside the except block
import torch

def upscale(model, image):
    try:
        with torch.no_grad():
            return model(image)
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        with torch.no_grad():
            return torch.cat([model(tile) for tile in image.split(256, dim=-1)], dim=-1)  # <- found: recovery-inside-except

# case: model.zero_grad with zeros kept
import torch

for x, y in loader:
    model.zero_grad(set_to_none=False)  # <- found: zero-grad-keeps-memory
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()

# case: an optimizer steps although the loss is divided by the window
import torch

ACCUM = 4
for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss = loss / ACCUM
    loss.backward()
    optimizer.step()  # <- found: step-every-micro-batch
    if (i + 1) % ACCUM == 0 or i + 1 == len(loader):
        optimizer.zero_grad()
        sync_metrics()
