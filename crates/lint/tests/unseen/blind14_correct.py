# case: the margins of pairs are numbers
import torch.nn.functional as F

def train_rm(reward_model, pairs, optimizer, scheduler, device):
    stats = {"margin": [], "acc": []}
    for chosen, rejected in pairs:
        r_c = reward_model(**{k: v.to(device) for k, v in chosen.items()}).logits
        r_r = reward_model(**{k: v.to(device) for k, v in rejected.items()}).logits
        loss = -F.logsigmoid(r_c - r_r).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        stats["margin"].append((r_c - r_r).mean().item())
        stats["acc"].append((r_c > r_r).float().mean().item())
    return stats

# case: the BPR losses of one batch are added before the backward pass
import torch

def step(model, batch, opt):
    total = 0.
    for users, pos, neg in batch:
        loss, reg = model.bpr_loss(users.cuda(), pos.cuda(), neg.cuda())
        total += loss + 1e-4 * reg
    opt.zero_grad()
    total.backward()
    opt.step()
    return total.item()

# case: features are extracted under a decorated function that calls a helper
import torch

def embed(model, img):
    f = model(img)
    return f / f.norm(dim=1, keepdim=True)

@torch.no_grad()
def extract(model, loader):
    model.eval()
    feats = []
    for img, pid in loader:
        feats.append(embed(model, img.cuda()).cpu())
    return torch.cat(feats)

# case: gradients are switched off for the whole evaluation script
import torch

torch.set_grad_enabled(False)
model = load().cuda().eval()
for x, name in loader:
    out = model(x.cuda())
    save(out.cpu(), name)

# case: an agent forgets its log probabilities after each episode
import torch
from torch.distributions import Categorical

class Agent:
    def __init__(self, policy, optimizer):
        self.policy, self.optimizer = policy, optimizer
        self.log_probs = []

    def act(self, state):
        dist = Categorical(logits=self.policy(state.cuda()))
        action = dist.sample()
        self.log_probs.append(dist.log_prob(action))
        return action.item()

    def learn(self, returns):
        loss = -(torch.stack(self.log_probs) * returns).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        del self.log_probs[:]

# case: a teacher whose parameters were frozen and whose call is guarded
import torch
import torch.nn.functional as F

for p in teacher.parameters():
    p.requires_grad_(False)
for x, y in loader:
    with torch.no_grad():
        t = teacher(x.cuda())
    s = student(x.cuda())
    loss = F.cross_entropy(s, y.cuda()) + F.mse_loss(s, t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a frozen backbone is called without a guard and trains a head
import torch

backbone = torchvision.models.resnet18().cuda()
for p in backbone.parameters():
    p.requires_grad = False
backbone.fc = torch.nn.Linear(512, 10).cuda()
opt = torch.optim.SGD(backbone.fc.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(backbone(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a critic on images made without a graph
import torch

for i, (real, _) in enumerate(dataloader):
    real = real.cuda()
    with torch.no_grad():
        gen = G(torch.randn(real.size(0), 100, 1, 1, device="cuda"))
    opt_D.zero_grad()
    d_loss = -D(real).mean() + D(gen).mean()
    d_loss.backward()
    opt_D.step()

# case: both players of a gan take a step from the same graph, by intention
import torch

for real, _ in dataloader:
    real = real.cuda()
    fake = G(torch.randn(real.size(0), 100, device="cuda"))
    d_real, d_fake = D(real), D(fake.detach())
    d_loss = torch.nn.functional.softplus(-d_real).mean() + torch.nn.functional.softplus(d_fake).mean()
    opt_D.zero_grad()
    d_loss.backward()
    opt_D.step()
    g_loss = torch.nn.functional.softplus(-D(fake)).mean()
    opt_G.zero_grad()
    g_loss.backward()
    opt_G.step()

# case: a gradient penalty needs its graph twice
import torch

def gradient_penalty(D, real, fake):
    eps = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    x = (eps * real + (1 - eps) * fake).requires_grad_(True)
    out = D(x)
    g, = torch.autograd.grad(out.sum(), x, create_graph=True, retain_graph=True)
    return ((g.flatten(1).norm(dim=1) - 1) ** 2).mean()

for real, _ in loader:
    real = real.cuda()
    fake = G(torch.randn(real.size(0), 100, device="cuda")).detach()
    loss = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(D, real, fake)
    opt_D.zero_grad()
    loss.backward()
    opt_D.step()

# case: Lightning moves predictions to the host
import pytorch_lightning as pl
import torch

class Segmenter(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.outputs = []

    def validation_step(self, batch, i):
        x, y = batch
        self.outputs.append((self.net(x).argmax(1).cpu(), y.cpu()))

    def on_validation_epoch_end(self):
        preds = torch.cat([p for p, _ in self.outputs])
        self.outputs.clear()
        self.log("n", float(len(preds)))

# case: the state of a recurrent net is cut from its graph
import torch

hidden = None
for seq, target in batches(text, 64):
    if hidden is not None:
        hidden = tuple(h.detach() for h in hidden)
    out, hidden = lstm(seq.cuda(), hidden)
    loss = criterion(out.view(-1, vocab), target.view(-1).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a state is new for each sequence
import torch

for seq, target in batches(text, 64):
    hidden = rnn.init_hidden(seq.size(1))
    loss = 0
    for t in range(seq.size(0)):
        out, hidden = rnn(seq[t].cuda(), hidden)
        loss += criterion(out, target[t].cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a mean teacher is blended in place without gradients
import torch

@torch.no_grad()
def update_teacher(teacher, student, alpha):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(alpha).add_(s, alpha=1 - alpha)

# case: the best weights are copied to the host
import copy
import torch

best = None
for epoch in range(args.epochs):
    train(model, train_loader, optimizer)
    acc = validate(model, val_loader)
    if best is None or acc > best[0]:
        best = acc, {k: v.cpu().clone() for k, v in model.state_dict().items()}

# case: a checkpoint is read to the host
import torch

ckpt = torch.load(args.resume, map_location="cpu", weights_only=True)
model = Net().cuda()
model.load_state_dict(ckpt["model"])

# case: a checkpoint that has only numbers
import torch

stats = torch.load("stats.pt")
mean, std = stats["mean"], stats["std"]
print(mean.item(), std.item())

# case: a Trainer reduces logits before it keeps them
from transformers import Trainer, TrainingArguments

def compute_metrics(p):
    return {"acc": float((p.predictions == p.label_ids).mean())}

trainer = Trainer(
    model=model,
    args=TrainingArguments("out", eval_strategy="epoch"),
    train_dataset=train,
    eval_dataset=val,
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
)
trainer.train()

# case: a hook overwrites the last activation on the host
import torch

acts = {}

def save(name):
    def hook(module, inp, out):
        acts[name] = out.detach().cpu()
    return hook

handles = [m.register_forward_hook(save(n)) for n, m in model.named_modules()]
with torch.no_grad():
    model(x.cuda())
for h in handles:
    h.remove()

# case: a data set of tensors on the host with a loader that pins them
import torch
from torch.utils.data import DataLoader, TensorDataset

X = torch.from_numpy(np.load("x.npy")).float()
Y = torch.from_numpy(np.load("y.npy")).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=256, shuffle=True, pin_memory=True)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a graph that is small and whole on the card
import torch

adj, features, labels = load_cora()
features, adj, labels = features.cuda(), adj.cuda(), labels.cuda()
for epoch in range(200):
    out = gcn(features, adj)
    loss = torch.nn.functional.nll_loss(out[idx_train], labels[idx_train])
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: records have numbers
import torch

records = []
for step, batch in enumerate(loader):
    out = model(**{k: v.cuda() for k, v in batch.items()})
    out.loss.backward()
    opt.step()
    opt.zero_grad()
    records.append({"step": step, "loss": out.loss.detach().cpu()})

# case: a beam search under inference mode
import torch

@torch.inference_mode()
def caption(encoder, decoder, image, vocab, beam=5):
    features = encoder(image.cuda())
    seqs = [[vocab.start]]
    for _ in range(50):
        scores = decoder(features, torch.tensor(seqs).cuda())
        seqs = [s + [int(scores[i].argmax())] for i, s in enumerate(seqs)]
    return seqs

# case: perplexity with a guard around the loop
import math
import torch

nlls = []
with torch.no_grad():
    for begin in range(0, ids.size(1), 512):
        window = ids[:, begin:begin + 1024].cuda()
        nlls.append(lm(window, labels=window).loss.item())
print(math.exp(sum(nlls) / len(nlls)))

# case: sums of many tasks that are backpropagated together
import torch

for batches in zip(*loaders.values()):
    losses = {}
    for task, (x, y) in zip(loaders, batches):
        losses[task] = model.loss(task, x.cuda(), y.cuda())
    total = sum(weights[t] * l for t, l in losses.items())
    opt.zero_grad()
    total.backward()
    opt.step()
    meter.update({t: l.item() for t, l in losses.items()})

# case: accumulation clips where it steps
import torch

for i, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / accum
    loss.backward()
    if (i + 1) % accum == 0 or i + 1 == len(loader):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()

# case: recovery after the handler
import torch

for batch in loader:
    failed = False
    try:
        model(batch.cuda()).mean().backward()
    except torch.cuda.OutOfMemoryError:
        failed = True
    if failed:
        opt.zero_grad()
        for half in batch.chunk(2):
            (model(half.cuda()).mean() / 2).backward()
    opt.step()
    opt.zero_grad()

# case: outputs of the layers of one pass are a list inside forward
import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(n))

    def forward(self, x):
        outs = []
        for layer in self.layers:
            x = layer(x).relu()
            outs.append(x)
        return torch.cat(outs, -1)

# case: a queue of embeddings has a fixed size and no graph
import torch

queue = torch.randn(128, 65536, device="cuda")
ptr = 0
for x1, x2 in loader:
    q = encoder(x1.cuda())
    with torch.no_grad():
        k = momentum_encoder(x2.cuda())
    loss = info_nce(q, k, queue)
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue[:, ptr:ptr + k.size(0)] = k.T
    ptr = (ptr + k.size(0)) % queue.size(1)

# case: MAML needs the second order
import torch

for xs, ys, xq, yq in tasks:
    fast = list(model.parameters())
    for _ in range(5):
        loss = ce(model.functional(xs.cuda(), fast), ys.cuda())
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [p - 0.01 * g for p, g in zip(fast, grads)]
    meta = ce(model.functional(xq.cuda(), fast), yq.cuda())
    opt.zero_grad()
    meta.backward()
    opt.step()

# case: validation and training share a guarded function
import torch

def run(model, dl, opt=None):
    total = 0.0
    model.train(opt is not None)
    with torch.set_grad_enabled(opt is not None):
        for x, y in dl:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            total += loss.item() * len(y)
    return total

# case: scores are written into an array on the host
import numpy as np
import torch

@torch.no_grad()
def score(model, loader, n):
    scores = np.zeros((n, 10), dtype=np.float32)
    for ids, x in loader:
        scores[ids] = model(x.cuda()).softmax(1).cpu().numpy()
    return scores

# case: accelerate gathers numbers
from accelerate import Accelerator

accelerator = Accelerator()
model, opt, dl = accelerator.prepare(model, opt, dl)
total = 0.0
for batch in dl:
    out = model(**batch)
    accelerator.backward(out.loss)
    opt.step()
    opt.zero_grad()
    total += accelerator.gather(out.loss.detach()).mean().item()

# case: live state that is saved at once
import torch

for epoch in range(epochs):
    run(model, train_dl, opt)
    acc = test(model, val_dl)
    if acc > best_acc:
        best_acc = acc
        torch.save(model.state_dict(), "best.pt")

# case: zero_grad at the start of a window
import torch

for i, (x, y) in enumerate(loader):
    if i % 4 == 0:
        opt.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()) / 4
    loss.backward()
    if i % 4 == 3 or i + 1 == len(loader):
        opt.step()

# case: a perceptual loss of a frozen net with a guarded target
import torch
import torchvision

vgg = torchvision.models.vgg16(weights="DEFAULT").features[:16].cuda().eval().requires_grad_(False)
for lo, hi in loader:
    with torch.no_grad():
        target = vgg(hi.cuda())
    loss = torch.nn.functional.l1_loss(vgg(net(lo.cuda())), target)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: style losses of one closure are summed
import torch

def closure():
    optimizer.zero_grad()
    model(img)
    s = 0
    for sl in style_losses:
        s += sl.loss
    s.backward()
    return s

for _ in range(300):
    optimizer.step(closure)

# case: a dqn keeps states on the host
import torch
from collections import deque

buffer = deque(maxlen=100000)
for ep in range(500):
    s, done = env.reset(), False
    while not done:
        with torch.no_grad():
            a = int(qnet(torch.as_tensor(s, device="cuda").float()).argmax())
        s2, r, done, _ = env.step(a)
        buffer.append((s, a, r, s2, done))
        s = s2

# case: an empty cache between training and evaluation
import torch

for epoch in range(epochs):
    train(model, train_dl, opt)
    torch.cuda.empty_cache()
    validate(model, val_dl)

# case: the loss is a tensor of the card that has no graph
import torch

epoch_loss = torch.zeros((), device="cuda")
for x, y in loader:
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    epoch_loss += loss.detach()
print(epoch_loss.item() / len(loader))

# case: a tokenizer pads by batch
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments

tok = AutoTokenizer.from_pretrained("bert-base-uncased")
ds = ds.map(lambda b: tok(b["text"], truncation=True), batched=True)
Trainer(model=model, args=TrainingArguments("out"), train_dataset=ds, data_collator=DataCollatorWithPadding(tok)).train()

# case: the allocator's variable is set before torch is imported
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch

model = torch.nn.Linear(10, 10).cuda()

# case: a server under no_grad
import torch
from flask import Flask, jsonify, request

app = Flask(__name__)
model = load_model().cuda()
model.eval()

@app.route("/predict", methods=["POST"])
@torch.no_grad()
def predict():
    x = preprocess(request.files["image"]).unsqueeze(0).cuda()
    return jsonify(torch.softmax(model(x), dim=1).tolist())

# case: a history of levels is replaced in each forward
import torch.nn as nn

class PyramidLoss(nn.Module):
    def forward(self, outputs, target):
        self.last = [nn.functional.l1_loss(o, target).item() for o in outputs]
        return sum(nn.functional.l1_loss(o, target) for o in outputs)

# case: an attack that keeps numbers
import torch

def pgd(model, x, y, eps, alpha, steps):
    adv = x.clone().detach().cuda()
    trace = []
    for _ in range(steps):
        adv.requires_grad_()
        loss = torch.nn.functional.cross_entropy(model(adv), y.cuda())
        g, = torch.autograd.grad(loss, adv)
        adv = (adv + alpha * g.sign()).clamp(0, 1).detach()
        trace.append(float(loss))
    return adv, trace

# case: deep supervision with weights of each output
import torch

def criterion(outputs, target, weights):
    loss = 0
    for w, o in zip(weights, outputs):
        loss += w * torch.nn.functional.cross_entropy(o, target)
    return loss

for x, y in loader:
    loss = criterion(net(x.cuda()), y.cuda(), [1, 0.5, 0.25])
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a2c gathers a rollout, then clears it
import torch

for update in range(1000):
    values, logps, rewards = [], [], []
    for _ in range(20):
        logits, v = net(torch.as_tensor(obs, device="cuda").float())
        dist = torch.distributions.Categorical(logits=logits)
        a = dist.sample()
        obs, r, done, _ = envs.step(a.cpu().numpy())
        values.append(v)
        logps.append(dist.log_prob(a))
        rewards.append(torch.as_tensor(r, device="cuda"))
    loss = a2c_loss(values, logps, rewards)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: teacher forcing collects the outputs of one sequence
import torch

def decode(decoder, h, target):
    outs = []
    x = target[:, 0]
    for t in range(1, target.size(1)):
        y, h = decoder(x, h)
        outs.append(y)
        x = target[:, t]
    return torch.stack(outs, 1)

# case: a loss of a data parallel model is averaged and made a number
import torch

running = 0.0
for x, y in loader:
    loss = ddp(x.cuda(), y.cuda()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    running = 0.9 * running + 0.1 * float(loss.detach())

# case: an lbfgs closure keeps its loss for printing
import torch

opt = torch.optim.LBFGS(model.parameters())
for epoch in range(20):
    def closure():
        opt.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        return loss
    value = opt.step(closure)
    print(value.item())

# case: retain_graph where a second backward pass follows
import torch

for x, y in loader:
    feats = encoder(x.cuda())
    la = head_a(feats).mean()
    lb = head_b(feats).mean()
    opt.zero_grad()
    la.backward(retain_graph=True)
    lb.backward()
    opt.step()

# case: numpy accumulates predictions of sklearn
import numpy as np
from sklearn.linear_model import Ridge

preds, losses = [], []
for train_idx, test_idx in folds:
    model = Ridge().fit(X[train_idx], y[train_idx])
    out = model.predict(X[test_idx])
    preds.append(out)
    losses.append(((out - y[test_idx]) ** 2).mean())

# case: a tensorflow loop in a file that imports torch for data
import tensorflow as tf
import torch

loss_sum = 0.0
for x, y in loader:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(net(x.numpy()) - y.numpy())
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    loss_sum += loss
