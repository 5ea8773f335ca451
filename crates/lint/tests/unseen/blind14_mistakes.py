# case: a reward model keeps the margins of pairs on the card
import torch
import torch.nn.functional as F

def train_rm(reward_model, pairs, optimizer, scheduler, device):
    reward_model.train()
    stats = {"margin": [], "acc": []}
    for chosen, rejected in pairs:
        r_c = reward_model(**{k: v.to(device) for k, v in chosen.items()}).logits
        r_r = reward_model(**{k: v.to(device) for k, v in rejected.items()}).logits
        loss = -F.logsigmoid(r_c - r_r).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        stats["margin"].append((r_c - r_r).mean())  # <- found: collected-losses
        stats["acc"].append((r_c > r_r).float().mean().item())
    return stats

# case: a recommender adds up the BPR loss of an epoch by index
import numpy as np
import torch

class LightGCNRunner:
    def __init__(self, model, cfg):
        self.model = model.cuda()
        self.opt = torch.optim.Adam(model.parameters(), lr=cfg["lr"])

    def bpr(self, sampler):
        aver_loss = 0.
        batches = 0
        for users, pos, neg in sampler:
            loss, reg = self.model.bpr_loss(users.cuda(), pos.cuda(), neg.cuda())
            loss = loss + reg * 1e-4
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            aver_loss += loss  # <- found: summed-loss
            batches += 1
        return f"loss{aver_loss / batches:.3f}"

# case: an early stopper keeps the validation history of tensors
import torch

class EarlyStopper:
    def __init__(self, patience):
        self.patience, self.history = patience, []

    def __call__(self, value):
        self.history.append(value)
        return len(self.history) > self.patience and value > min(self.history[-self.patience:])

def evaluate(model, loader, criterion):
    model.eval()
    total = 0
    for x, y in loader:
        total += criterion(model(x.cuda()), y.cuda()).item()  # <- found: evaluation-with-gradients
    return total / len(loader)

# case: a diffusion trainer averages its loss exponentially
import torch
from tqdm import tqdm

def train(unet, noise_scheduler, dataloader, optimizer, device="cuda"):
    ema_loss = None
    bar = tqdm(dataloader)
    for images, _ in bar:
        images = images.to(device)
        noise = torch.randn_like(images)
        t = torch.randint(0, 1000, (images.shape[0],), device=device)
        noisy = noise_scheduler.add_noise(images, noise, t)
        loss = torch.nn.functional.mse_loss(unet(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema_loss = loss if ema_loss is None else ema_loss * 0.99 + loss * 0.01  # <- found: summed-loss
        bar.set_postfix(loss=f"{ema_loss:.4f}")

# case: a feature extractor for retrieval keeps everything on the card with gradients
import torch

def extract(model, loader):
    model.eval()
    feats, ids = [], []
    for img, pid in loader:
        f = model(img.cuda())  # <- found: evaluation-with-gradients
        f = f / f.norm(dim=1, keepdim=True)
        feats.append(f)  # <- found: collected-outputs
        ids.extend(pid)
    return torch.cat(feats), ids

# case: a policy gradient agent keeps log probabilities of all episodes
import torch
from torch.distributions import Categorical

class Agent:
    def __init__(self, policy, optimizer):
        self.policy, self.optimizer = policy, optimizer
        self.all_log_probs = []

    def act(self, state):
        dist = Categorical(logits=self.policy(state.cuda()))
        action = dist.sample()
        self.all_log_probs.append(dist.log_prob(action))  # <- missed: collected-outputs
        return action.item()

    def learn(self, returns):
        n = len(returns)
        loss = -(torch.stack(self.all_log_probs[-n:]) * returns).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

# case: distillation runs the teacher with a graph inside a helper
import torch
import torch.nn as nn
import torch.nn.functional as F

def kd_loss(student_logits, teacher_logits, T=4.0):
    return F.kl_div(F.log_softmax(student_logits / T, 1), F.softmax(teacher_logits / T, 1), reduction="batchmean") * T * T

def train_one_epoch(student, teacher, loader, optimizer):
    student.train()
    teacher.eval()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        s = student(x)
        t = teacher(x)  # <- found: frozen-model-with-gradients
        loss = F.cross_entropy(s, y) + kd_loss(s, t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a WGAN critic step on images that carry the generator's graph
import torch

for epoch in range(n_epochs):
    for i, (real, _) in enumerate(dataloader):
        real = real.cuda()
        z = torch.randn(real.size(0), 100, 1, 1, device="cuda")
        gen = G(z)
        opt_D.zero_grad()
        d_loss = -D(real).mean() + D(gen).mean()  # <- found: fake-not-detached
        d_loss.backward()
        opt_D.step()
        for p in D.parameters():
            p.data.clamp_(-0.01, 0.01)
        if i % 5 == 0:
            opt_G.zero_grad()
            g_loss = -D(G(z)).mean()
            g_loss.backward()
            opt_G.step()

# case: a Lightning module collects predictions of the test set on the card
import pytorch_lightning as pl
import torch

class Segmenter(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.test_outputs = []

    def test_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.test_outputs.append({"logits": logits, "y": y})  # <- found: collected-outputs
        return logits

    def on_test_epoch_end(self):
        logits = torch.cat([o["logits"] for o in self.test_outputs])
        self.log("iou", iou(logits))

# case: a character model carries its state through the file
import torch

hidden = None
for epoch in range(10):
    for seq, target in batches(text, 64):
        out, hidden = rnn(seq.cuda(), hidden)  # <- found: recurrent-state
        loss = criterion(out.view(-1, vocab), target.view(-1).cuda())
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

# case: a checkpoint averager copies the best weights on the card in each epoch
import copy
import torch

snapshots = []
for epoch in range(args.epochs):
    train(model, train_loader, optimizer)
    acc = validate(model, val_loader)
    if acc > best:
        best = acc
        snapshots.append(copy.deepcopy(model.state_dict()))  # <- missed: state-dict-copied-on-card

# case: a training script loads another's checkpoint where it was saved
import torch
from models import build_model

def main(args):
    model = build_model(args).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    if args.resume:
        ckpt = torch.load(args.resume)  # <- found: load-without-map-location
        model.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
    for epoch in range(args.epochs):
        for x, y in loader(args):
            loss = model(x.cuda(), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

# case: a Trainer computes rouge over all logits
from transformers import AutoModelForSeq2SeqLM, Trainer, TrainingArguments

model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")

def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = logits[0].argmax(-1)
    return {"acc": float((preds == labels).mean())}

args = TrainingArguments("out", per_device_train_batch_size=8, eval_strategy="epoch")
trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=val, compute_metrics=compute_metrics)  # <- found: trainer-keeps-logits
trainer.train()

# case: a hook records every activation of a vision model in training
import torch
import torchvision

model = torchvision.models.resnet50().cuda()
activations = {}

def save(name):
    def hook(module, inp, out):
        activations.setdefault(name, []).append(out)  # <- found: activations-kept-by-hook
    return hook

for name, m in model.named_modules():
    if isinstance(m, torch.nn.Conv2d):
        m.register_forward_hook(save(name))

for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a data set puts each image on the card when it is asked for
import torch
from torch.utils.data import Dataset, DataLoader
from PIL import Image

class Faces(Dataset):
    def __init__(self, files, transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = self.transform(Image.open(self.files[i]).convert("RGB"))
        return img.cuda()  # <- found: card-in-dataset

loader = DataLoader(Faces(files, tf), batch_size=64, num_workers=8)

# case: the whole training set is moved to the card before the loop
import numpy as np
import torch

X = torch.from_numpy(np.load("train_x.npy")).float().to("cuda")  # <- found: dataset-on-card
Y = torch.from_numpy(np.load("train_y.npy")).long().to("cuda")  # <- found: dataset-on-card
model = Net().to("cuda")
opt = torch.optim.Adam(model.parameters())
for epoch in range(100):
    perm = torch.randperm(len(X))
    for i in range(0, len(X), 256):
        idx = perm[i:i + 256]
        loss = torch.nn.functional.cross_entropy(model(X[idx]), Y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: wandb gets the loss in a dict that is kept until the end
import torch
import wandb

records = []
for step, batch in enumerate(loader):
    out = model(**{k: v.cuda() for k, v in batch.items()})
    out.loss.backward()
    opt.step()
    opt.zero_grad()
    records.append({"step": step, "loss": out.loss, "lr": sched.get_last_lr()[0]})  # <- found: collected-losses
wandb.log({"table": records})

# case: a beam search for captions without no_grad
import torch

def caption(encoder, decoder, image, vocab, beam=5):
    encoder.eval()
    decoder.eval()
    features = encoder(image.cuda())  # <- found: evaluation-with-gradients
    seqs = [[vocab.start]]
    for _ in range(50):
        scores = decoder(features, torch.tensor(seqs).cuda())  # <- found: evaluation-with-gradients
        seqs = [s + [int(scores[i].argmax())] for i, s in enumerate(seqs)]
    return seqs

# case: the perplexity of a language model over a corpus
import math
import torch
from transformers import AutoModelForCausalLM

lm = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
nlls = []
for begin in range(0, ids.size(1), 512):
    window = ids[:, begin:begin + 1024].cuda()
    nlls.append(lm(window, labels=window).loss)  # <- found: collected-losses, evaluation-with-gradients
print(math.exp(torch.stack(nlls).mean()))

# case: losses of many tasks in a dict of sums
import torch
from collections import defaultdict

def train_mtl(model, loaders, opt, weights):
    sums = defaultdict(float)
    for batches in zip(*loaders.values()):
        total = 0
        for task, (x, y) in zip(loaders, batches):
            l = model.loss(task, x.cuda(), y.cuda())
            sums[task] += l  # <- missed: summed-loss
            total = total + weights[task] * l
        opt.zero_grad()
        total.backward()
        opt.step()
    return {k: v / len(batches) for k, v in sums.items()}

# case: gradient accumulation that clips in every micro batch and steps the schedule too
import torch

for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / accum
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- found: clipping-every-micro-batch
    if (i + 1) % accum == 0:
        opt.step()  # <- found: last-window-forgotten
        opt.zero_grad()

# case: an out-of-memory handler keeps the failed batch
import torch

for batch in loader:
    try:
        loss = model(batch.cuda()).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
    except torch.cuda.OutOfMemoryError:
        for half in batch.chunk(2):
            model(half.cuda()).mean().backward()  # <- found: recovery-inside-except
        opt.step()
        opt.zero_grad()

# case: attention maps of each layer are stored on the modules
import torch
import torch.nn as nn

class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.maps = []

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        attn = (q @ k.transpose(-2, -1)).softmax(-1)
        self.maps.append(attn)  # <- found: output-kept-on-self
        return self.proj(attn @ v)

# case: a second order meta learner keeps its graph for a first order method
import torch

def fomaml_step(model, tasks, inner_lr, opt):
    opt.zero_grad()
    for xs, ys, xq, yq in tasks:
        fast = list(model.parameters())
        loss = ce(model.functional(xs.cuda(), fast), ys.cuda())
        grads = torch.autograd.grad(loss, fast, create_graph=True)  # <- missed: create-graph
        fast = [p - inner_lr * g.detach() for p, g in zip(fast, grads)]
        ce(model.functional(xq.cuda(), fast), yq.cuda()).backward()
    opt.step()

# case: a validation pass hidden in the training function
import torch

def fit(model, train_dl, val_dl, epochs):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    crit = torch.nn.BCEWithLogitsLoss()
    for e in range(epochs):
        model.train()
        for x, y in train_dl:
            opt.zero_grad()
            crit(model(x.cuda()), y.cuda()).backward()
            opt.step()
        model.eval()
        correct = n = 0
        for x, y in val_dl:
            p = torch.sigmoid(model(x.cuda())) > 0.5  # <- found: evaluation-with-gradients
            correct += (p == y.cuda()).sum().item()
            n += len(y)
        print(e, correct / n)

# case: all scores are concatenated onto one growing tensor
import torch

@torch.no_grad()
def score(model, loader):
    model.eval()
    scores = torch.empty(0, device="cuda")
    for x in loader:
        scores = torch.cat([scores, model(x.cuda()).softmax(1)])  # <- found: collected-outputs
    return scores.cpu()

# case: a fine-tuning with checkpointing and the cache of keys
from transformers import AutoModelForCausalLM
import torch

model = AutoModelForCausalLM.from_pretrained("EleutherAI/pythia-1b", use_cache=True).cuda()  # <- found: checkpointing-with-cache
model.gradient_checkpointing_enable()
for batch in loader:
    loss = model(**batch, use_cache=True).loss  # <- found: checkpointing-with-cache
    loss.backward()
    opt.step()
    opt.zero_grad()

# case: a function of metrics is given tensors that it keeps
import torch

class Recorder:
    def __init__(self):
        self.data = {}

    def log(self, **kwargs):
        for k, v in kwargs.items():
            self.data.setdefault(k, []).append(v)

rec = Recorder()
for x, y in loader:
    mu, sigma = net(x.cuda())
    nll = ((y.cuda() - mu) ** 2 / sigma + sigma.log()).mean()
    opt.zero_grad()
    nll.backward()
    opt.step()
    rec.log(nll=nll, epoch=epoch)  # <- found: logged-loss

# case: the best model is remembered as the live state
import torch

best_acc, best_wts = 0.0, None
for epoch in range(epochs):
    run(model, train_dl, opt)
    acc = test(model, val_dl)
    if acc > best_acc:
        best_acc, best_wts = acc, model.state_dict()  # <- missed: state-dict-aliased
model.load_state_dict(best_wts)

# case: the number of a batch is zeroed inside the window
import torch

for i, (x, y) in enumerate(loader):
    opt.zero_grad()  # <- found: zero-grad-while-accumulating
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step()

# case: a perceptual loss extracts target features with a graph
import torch
import torchvision

vgg = torchvision.models.vgg16(weights="DEFAULT").features[:16].cuda().eval()

def perceptual(pred, target):
    return torch.nn.functional.l1_loss(vgg(pred), vgg(target))  # <- found: frozen-model-with-gradients

for lo, hi in loader:
    sr = net(lo.cuda())
    loss = perceptual(sr, hi.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: predictions are stored in an array of the card by index
import torch

@torch.inference_mode()
def infer(model, loader):
    results = {}
    for ids, x in loader:
        out = model(x.to("cuda"))
        for i, o in zip(ids, out):
            results[int(i)] = o  # <- found: collected-outputs
    return results

# case: style features of a batch stay on the loss object
import torch
import torch.nn as nn
import torch.nn.functional as F

class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram(target_feature).detach()

    def forward(self, x):
        G = gram(x)
        self.loss = F.mse_loss(G, self.target)
        return x

run = [0]
style_scores = []
while run[0] <= 300:
    def closure():
        optimizer.zero_grad()
        model(img)
        s = sum(sl.loss for sl in style_losses)
        s.backward()
        style_scores.append(s)  # <- found: collected-losses # missed at first
        run[0] += 1
        return s
    optimizer.step(closure)

# case: a dqn keeps q values in its transitions
import torch
from collections import deque

buffer = deque(maxlen=100000)
for ep in range(500):
    s, done = env.reset(), False
    while not done:
        q = qnet(torch.as_tensor(s, device="cuda").float())
        a = int(q.argmax())
        s2, r, done, _ = env.step(a)
        buffer.append((s, a, r, s2, done, q))  # <- found: collected-outputs # missed at first
        s = s2

# case: an empty cache in every step
import torch

for x, y in loader:
    opt.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    opt.step()
    torch.cuda.empty_cache()  # <- found: empty-cache-in-loop

# case: a Keras like history object of tensors
import torch

class History(dict):
    def push(self, key, value):
        self.setdefault(key, []).append(value)

def fit(net, loader, opt, epochs):
    h = History()
    for _ in range(epochs):
        epoch_loss = torch.zeros(1, device="cuda")
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            epoch_loss += loss  # <- found: summed-loss
        h.push("loss", epoch_loss / len(loader))
    return h

# case: a tokenizer pads everything to the longest the model takes
from transformers import AutoTokenizer, Trainer, TrainingArguments

tok = AutoTokenizer.from_pretrained("bert-base-uncased")

def encode(batch):
    return tok(batch["text"], padding="max_length", truncation=True)  # <- found: padding-to-max-length

ds = ds.map(encode, batched=True)
Trainer(model=model, args=TrainingArguments("out"), train_dataset=ds).train()

# case: the allocator's variable is set after torch was imported and used
import torch
import os

model = torch.nn.Linear(10, 10).cuda()
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # <- found: allocator-variable-too-late

# case: mixup losses with a scaler and a running mean in a tuple
import torch

def train(model, loader, opt, scaler):
    avg = (0.0, 0)
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
        s, n = avg
        avg = (s + loss, n + 1)  # <- missed: summed-loss
    return avg[0] / avg[1]

# case: a server that answers with a graph
import torch
from flask import Flask, jsonify, request

app = Flask(__name__)
model = load_model().cuda()
model.eval()

@app.route("/predict", methods=["POST"])
def predict():
    x = preprocess(request.files["image"]).unsqueeze(0).cuda()
    probs = torch.softmax(model(x), dim=1)  # <- found: evaluation-with-gradients
    return jsonify(probs.tolist())

# case: a list of the losses of each level is kept as an attribute of the module
import torch
import torch.nn as nn

class PyramidLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, outputs, target):
        losses = [nn.functional.l1_loss(o, target) for o in outputs]
        total = sum(losses)
        self.history.append(losses)  # <- missed: collected-losses
        return total

crit = PyramidLoss()
for x, t in loader:
    loss = crit(net(x.cuda()), t.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: an adversary example generator keeps gradients of the model it attacks
import torch

def pgd(model, x, y, eps, alpha, steps):
    adv = x.clone().detach().cuda()
    saved = []
    for _ in range(steps):
        adv.requires_grad_()
        loss = torch.nn.functional.cross_entropy(model(adv), y.cuda())
        g, = torch.autograd.grad(loss, adv)
        adv = (adv + alpha * g.sign()).clamp(0, 1)
        saved.append(loss)  # <- missed: collected-losses
        adv = adv.detach()
    return adv, saved
