# case: a point cloud trainer keeps chamfer distances
import torch
from torch import optim

class PCTrainer(object):
    def __init__(self, opt):
        self.net = PointNet2(opt.k).cuda()
        self.optim = optim.Adam(self.net.parameters(), lr=opt.lr)
        self.log = {"train": [], "val": []}

    def run_epoch(self, loader):
        self.net.train()
        for pts, gt in loader:
            pred = self.net(pts.cuda())
            cd = chamfer(pred, gt.cuda())
            self.optim.zero_grad()
            cd.backward()
            self.optim.step()
            self.log["train"].append(cd.item())

# case: a Monte Carlo tree search trainer returns a list of losses
import torch

def optimise(net, examples, opt, epochs=10):
    out = []
    for _ in range(epochs):
        for boards, pis, vs in examples.batches(64):
            p, v = net(boards.cuda())
            l = -(pis.cuda() * p).sum(1).mean() + (vs.cuda() - v.view(-1)).pow(2).mean()
            opt.zero_grad()
            l.backward()
            opt.step()
            out.append((l.item(), p.shape[0]))
    return out

# case: an event logger with a module function and a dict of lists
import collections
import torch

EVENTS = collections.defaultdict(list)

def emit(kind, payload):
    EVENTS[kind].append(payload)

for epoch in range(5):
    for x, y in train_loader:
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        loss.backward()
        opt.step()
        emit("loss", float(loss))

# case: a metric collection updates every metric with the loss
import torch

class Mean:
    def __init__(self):
        self.s, self.n = 0.0, 0

    def update(self, v):
        self.s += v
        self.n += 1

class Metrics:
    def __init__(self, *names):
        self.m = {n: Mean() for n in names}

    def update(self, **kw):
        for k, v in kw.items():
            self.m[k].update(v)

metrics = Metrics("loss")
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    metrics.update(loss=loss.item())

# case: a generator of training logs consumed by a for loop that keeps them
import torch

def train(model, loader, opt):
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield i, loss.item()

logs = []
for i, loss in train(net, dl, opt):
    logs.append(loss)

# case: the epoch loss of a VAE with a weighted sum and division
import torch

def fit_vae(vae, loader, opt, beta):
    for epoch in range(20):
        ep_loss = 0.
        for x, _ in loader:
            x = x.cuda()
            recon, mu, logvar = vae(x)
            bce = torch.nn.functional.binary_cross_entropy(recon, x, reduction="sum")
            kld = -0.5 * torch.sum(1 + logvar - mu ** 2 - logvar.exp())
            loss = bce + beta * kld
            opt.zero_grad()
            loss.backward()
            opt.step()
            ep_loss += loss.item() / len(x)
        print(epoch, ep_loss / len(loader))

# case: a lightning validation step sums its loss on self
import pytorch_lightning as pl
import torch

class Lit(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.total = 0.0

    def training_step(self, batch, i):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.total += loss.detach()
        return loss

    def on_train_epoch_end(self):
        self.log("epoch_loss", self.total)
        self.total = 0.0

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

# case: test loss with functional api and no context in main
import torch
import torch.nn.functional as F

if __name__ == "__main__":
    net = LeNet().cuda()
    net.load_state_dict(torch.load("lenet.pt", map_location="cpu"))
    net.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for img, lab in test_loader:
            logit = net(img.cuda())
            loss += F.nll_loss(logit, lab.cuda(), reduction="sum").item()
            right += (logit.argmax(1).cpu() == lab).sum().item()
    print(loss, right)

# case: an inference class for a web service
import torch
from flask import Flask, request, jsonify

app = Flask(__name__)
model = torch.load("classifier.pth", map_location="cuda")
model.eval()

@app.route("/predict", methods=["POST"])
def predict():
    x = decode(request.data).to("cuda")
    with torch.no_grad():
        y = model(x)
    return jsonify(label=int(y.argmax()))

# case: validation inside a GAN trainer for FID features
import torch

@torch.no_grad()
def activations(inception, loader):
    acts = []
    for img in loader:
        f = inception(img.cuda())[0].squeeze(-1).squeeze(-1)
        acts.append(f.cpu())
    return torch.cat(acts).cpu().numpy()

# case: a language model script keeps logits of every window
import torch

all_logits = []
lm.eval()
with torch.no_grad():
    for i in range(0, ids.size(1) - 512, 512):
        out = lm(ids[:, i:i + 512].cuda())
        all_logits.append(out.logits.argmax(-1).cpu())
result = torch.cat(all_logits, 1).cpu()

# case: a few shot script stacks prototypes of each episode
import torch

protos = {}
encoder.eval()
with torch.inference_mode():
    for cls, images in episodes:
        z = encoder(images.cuda())
        protos[cls] = z.mean(0).cpu()
torch.save(protos, "protos.pt")

# case: attention weights of a decoder saved by an attribute for a plot elsewhere
import torch
from torch import nn

class Dec(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(h, h), nn.Linear(h, h), nn.Linear(h, h)

    def forward(self, x, mem):
        w = torch.softmax(self.q(x) @ self.k(mem).transpose(1, 2), -1)
        return w @ self.v(mem)

dec = Dec(512).cuda()
opt = torch.optim.Adam(dec.parameters())
for x, mem, y in loader:
    loss = nn.functional.mse_loss(dec(x.cuda(), mem.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: hooks in a class of gradient statistics
import torch

class GradStats:
    def __init__(self, model):
        self.all = []
        for m in model.children():
            m.register_full_backward_hook(self.hook)

    def hook(self, module, grad_in, grad_out):
        self.all.append(grad_out[0].norm().item())

net = Net().cuda()
stats = GradStats(net)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a cached tokenizer output is fine but the encoded tensor is kept
import torch
from functools import lru_cache
from transformers import AutoModel, AutoTokenizer

tok = AutoTokenizer.from_pretrained("bert-base-uncased")
bert = AutoModel.from_pretrained("bert-base-uncased").to("cuda")

def encode(text):
    with torch.no_grad():
        return bert(**tok(text, return_tensors="pt").to("cuda")).last_hidden_state[:, 0]

# case: shadow weights in a list updated by index
import torch

class Ema:
    def __init__(self, params, decay):
        self.decay = decay
        self.params = list(params)
        self.shadow = [p.detach().clone() for p in self.params]

    def update(self):
        for i, p in enumerate(self.params):
            self.shadow[i] = self.decay * self.shadow[i] + (1 - self.decay) * p.detach()

net = Net().cuda()
ema = Ema(net.parameters(), 0.99)
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema.update()

# case: an audio GAN step with multi scale discriminators
import torch
import torch.nn.functional as F

for mel, wav in loader:
    mel, wav = mel.cuda(), wav.cuda()
    fake = generator(mel)
    d_loss = 0
    for real_score, fake_score in zip(msd(wav), msd(fake.detach())):
        d_loss = d_loss + F.mse_loss(real_score, torch.ones_like(real_score)) + F.mse_loss(fake_score, torch.zeros_like(fake_score))
    msd_optim.zero_grad()
    d_loss.backward()
    msd_optim.step()
    g_loss = sum(F.mse_loss(s, torch.ones_like(s)) for s in msd(generator(mel)))
    generator_optim.zero_grad()
    g_loss.backward()
    generator_optim.step()

# case: a detection distiller records its big model
import torch
import torch.nn.functional as F

big = load_detector("large.pt").cuda()
big.eval()
small = Detector().cuda()
optimizer = torch.optim.SGD(small.parameters(), lr=0.01)
for images, targets in loader:
    images = images.cuda()
    with torch.inference_mode():
        big_out = big(images)
    small_out = small(images)
    loss = F.mse_loss(small_out, big_out) + detection_loss(small_out, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: MoCo's key encoder is a deep copy that records
import copy
import torch
import torch.nn as nn

class MoCo(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.encoder_q = base
        self.encoder_k = copy.deepcopy(base)

    def forward(self, a, b):
        q = nn.functional.normalize(self.encoder_q(a), dim=1)
        with torch.no_grad():
            k = nn.functional.normalize(self.encoder_k(b), dim=1)
        return (q * k).sum(1)

moco = MoCo(resnet()).cuda()
opt = torch.optim.SGD(moco.encoder_q.parameters(), 0.03)
for (a, b), _ in loader:
    loss = -moco(a.cuda(), b.cuda()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a forecast model's full history is on the card
import numpy as np
import torch

class Windows(torch.utils.data.Dataset):
    def __init__(self, path, length):
        series = np.load(path)
        self.x = torch.tensor(series, dtype=torch.float32)
        self.length = length

    def __len__(self):
        return len(self.x) - self.length

    def __getitem__(self, i):
        return self.x[i:i + self.length]

# case: a checkpoint for fine tuning is loaded beside the model
import torch

model = Backbone().to("cuda")
pretrained = torch.load("pretrain/epoch_100.pth", map_location="cpu")
model.load_state_dict(pretrained["model"], strict=False)
opt = torch.optim.AdamW(model.parameters())
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda"))
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: the best model of an nnU-Net like trainer
import torch

class NetworkTrainer:
    def train(self):
        best = None
        best_dice = 0
        for epoch in range(self.max_epochs):
            for batch in self.tr:
                self.optimizer.zero_grad()
                l = self.loss(self.network(batch["data"].cuda()), batch["target"].cuda())
                l.backward()
                self.optimizer.step()
            dice = self.validate()
            if dice > best_dice:
                best_dice = dice
                best = {k: v.cpu().clone() for k, v in self.network.state_dict().items()}
        self.network.load_state_dict(best)

# case: unneeded graph retention in a physics informed network
import torch

for it in range(20000):
    x = torch.rand(1024, 1, device="cuda", requires_grad=True)
    u = net(x)
    du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    loss = (du - torch.cos(x)).pow(2).mean() + net(torch.zeros(1, 1, device="cuda")).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: accumulation of a transformer loss without dividing, step by counter of tokens
import torch

opt.zero_grad()
for i, batch in enumerate(loader):
    out = model(batch["ids"].cuda(), labels=batch["ids"].cuda())
    (out.loss / 4).backward()
    if (i + 1) % 4 == 0 or i + 1 == len(loader):
        opt.step()
        opt.zero_grad()

# case: a diffusion trainer with accumulate zeroes before backward
import torch
from accelerate import Accelerator

acc = Accelerator(gradient_accumulation_steps=8, mixed_precision="bf16")
unet, opt, dl = acc.prepare(unet, opt, dl)
for lat, cond in dl:
    with acc.accumulate(unet):
        noise = torch.randn_like(lat)
        pred = unet(lat + noise, cond)
        loss = torch.nn.functional.mse_loss(pred, noise)
        acc.backward(loss)
        opt.step()
        opt.zero_grad()

# case: a batch finder retries in the handler
import torch

def try_batch(model, size):
    x = torch.randn(size, 3, 224, 224).cuda()
    model(x).sum().backward()

def find(model, size=512):
    smaller = False
    try:
        try_batch(model, size)
    except torch.cuda.OutOfMemoryError:
        smaller = True
    if smaller:
        torch.cuda.empty_cache()
        return find(model, size // 2)
    return size

# case: memory is cleaned at each step of an RL loop
import gc
import torch

for step in range(100000):
    batch = memory.sample(256)
    loss = td_loss(q_net, batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: all texts are encoded to 512 tokens in a list of tensors
import torch
from transformers import BertTokenizerFast, BertForSequenceClassification

tok = BertTokenizerFast.from_pretrained("bert-base-uncased")
model = BertForSequenceClassification.from_pretrained("bert-base-uncased").cuda()
rows = [tok(t, truncation=True, max_length=512) for t in texts]
dl = torch.utils.data.DataLoader(list(zip(rows, labels)), batch_size=16, shuffle=True, collate_fn=pad)
opt = torch.optim.AdamW(model.parameters(), lr=2e-5)
for ids, mask, y in dl:
    loss = model(ids.cuda(), attention_mask=mask.cuda(), labels=y.cuda()).loss
    opt.zero_grad()
    loss.backward()
    opt.step()
