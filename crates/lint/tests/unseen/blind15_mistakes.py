# case: a masked autoencoder adds its loss to the sum of a meter dict
import torch
def train_one_epoch(model, data_loader, optimizer, device, args):
    model.train(True)
    stats = dict(loss=0.0, n=0)
    for samples, _ in data_loader:
        samples = samples.to(device, non_blocking=True)
        with torch.cuda.amp.autocast():
            loss, _, _ = model(samples, mask_ratio=args.mask_ratio)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        stats["loss"] = stats["loss"] + loss  # <- found: summed-loss
        stats["n"] += 1
    return stats["loss"] / stats["n"]

# case: a graph net is validated by a function that takes a split
import torch
import torch.nn.functional as F
def run(model, loader, device):
    correct = 0
    for data in loader:
        data = data.to(device)
        out = model(data.x, data.edge_index, data.batch)  # <- found: evaluation-with-gradients
        correct += int((out.argmax(dim=1) == data.y).sum())
    return correct / len(loader.dataset)
def test(model, loader, device):
    model.eval()
    return run(model, loader, device)

# case: an ASR decoder keeps encoder outputs of the corpus in a list
import torch
def transcribe(model, loader):
    model.eval()
    encoded = []
    for feats, lens in loader:
        enc, enc_lens = model.encoder(feats.cuda(), lens.cuda())  # <- found: evaluation-with-gradients
        encoded.append(enc)  # <- found: collected-outputs
    return encoded

# case: a pruning script retains the graph for nothing
import torch
def finetune(net, loader, optimizer, criterion, epochs):
    for epoch in range(epochs):
        for i, batch in enumerate(loader):
            inputs, targets = batch["image"].cuda(), batch["label"].cuda()
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, targets) + 1e-4 * sum(p.abs().sum() for p in net.parameters())
            loss.backward(retain_graph=True)  # <- found: retain-graph
            optimizer.step()

# case: a trainer class with history lists per phase
import torch
class Runner:
    def __init__(self, model, loss_fn, optim):
        self.model, self.loss_fn, self.optim = model, loss_fn, optim
        self.history = {"train_loss": [], "val_loss": []}
    def fit(self, train_dl, val_dl, epochs):
        for _ in range(epochs):
            self.model.train()
            run = 0
            for xb, yb in train_dl:
                loss = self.loss_fn(self.model(xb.cuda()), yb.cuda())
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
                run += loss  # <- found: summed-loss
            self.history["train_loss"].append(run / len(train_dl))

# case: CycleGAN's discriminators get images with the generators' graph
import torch
for i, batch in enumerate(dataloader):
    real_A, real_B = batch["A"].cuda(), batch["B"].cuda()
    fake_B, fake_A = netG_A2B(real_A), netG_B2A(real_B)
    optimizer_G.zero_grad()
    loss_G = gan(netD_B(fake_B), valid) + gan(netD_A(fake_A), valid) + 10 * cyc(netG_B2A(fake_B), real_A)
    loss_G.backward(retain_graph=True)
    optimizer_G.step()
    optimizer_D_B.zero_grad()
    loss_D_B = gan(netD_B(real_B), valid) + gan(netD_B(fake_B), fake)  # <- missed: fake-not-detached
    loss_D_B.backward()
    optimizer_D_B.step()

# case: a self-distilled model with a teacher on self
import torch
import torch.nn as nn
class DINOTrainer:
    def __init__(self, student, teacher, opt, loss):
        self.student, self.teacher, self.opt, self.loss = student.cuda(), teacher.cuda(), opt, loss
    def step(self, crops):
        crops = [c.cuda() for c in crops]
        teacher_out = self.teacher(crops[0])  # <- missed: frozen-model-with-gradients
        student_out = self.student(torch.cat(crops))
        loss = self.loss(student_out, teacher_out.detach())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

# case: validation logits of a segmentation net are stacked on the card
import numpy as np
import torch
@torch.no_grad()
def validate(net, loader):
    net.eval()
    preds, gts = [], []
    for img, mask in loader:
        preds += [net(img.cuda()).sigmoid()]  # <- found: collected-outputs
        gts += [mask]
    return iou(torch.cat(preds).cpu().numpy(), torch.cat(gts).numpy())

# case: a bandit keeps its loss in a named tuple list
import torch
from collections import namedtuple
Rec = namedtuple("Rec", "step loss reward")
log = []
for t in range(10000):
    x, r = env.pull()
    pred = net(torch.as_tensor(x, device="cuda"))
    loss = (pred - r) ** 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    log.append(Rec(t, loss, r))  # <- found: collected-losses

# case: a gradual unfreezing script evaluates with a list comprehension
import torch
model.eval()
scores = [model(x.cuda()).argmax(1) for x, _ in val_loader]  # <- found: evaluation-with-gradients

# case: a checkpoint manager keeps the best five on the card
import copy
import torch
model = Net().cuda()
best = []
for epoch in range(100):
    train(model)
    score = validate(model)
    best.append((score, copy.deepcopy(model.state_dict())))  # <- found: state-dict-copied-on-card
    best = sorted(best, key=lambda b: -b[0])[:5]

# case: seq2seq training carries the decoder's state over batches
import torch
state = decoder.init_state(batch_size)
for src, tgt in loader:
    optimizer.zero_grad()
    enc = encoder(src.cuda())
    logits, state = decoder(tgt.cuda(), enc, tuple(s.detach() for s in state))
    loss = F.cross_entropy(logits.flatten(0, 1), tgt.cuda().flatten())
    loss.backward()
    optimizer.step()

# case: the evaluation loss of a language model with a helper and a tuple
import torch
def forward_pass(model, batch, device):
    ids = batch["input_ids"].to(device)
    out = model(ids, labels=ids)
    return out.loss, out.logits
def evaluate(model, loader, device):
    model.eval()
    losses = []
    for batch in loader:
        loss, _ = forward_pass(model, batch, device)  # <- found: evaluation-with-gradients
        losses.append(loss.item())
    return sum(losses) / len(losses)

# case: tensorboard writes are deferred
import torch
pending = []
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.l1_loss(net(x.cuda()), y.cuda())
    loss.backward()
    opt.step()
    opt.zero_grad()
    pending.append(("loss", loss, step))  # <- found: collected-losses
for tag, value, step in pending:
    writer.add_scalar(tag, value, step)

# case: an accumulating trainer forgets to divide and clips each time
import torch
ACC = 8
for i, batch in enumerate(dl):
    loss = model(batch.cuda()).loss
    loss.backward()  # <- found: accumulated-loss-not-divided
    if (i + 1) % ACC == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()  # <- found: last-window-forgotten
        opt.zero_grad()

# case: style transfer keeps every image with its graph
import torch
frames = []
img = content.clone().cuda().requires_grad_(True)
opt = torch.optim.Adam([img], lr=0.01)
for it in range(2000):
    opt.zero_grad()
    feats = vgg(img)
    loss = content_loss(feats) + 1e4 * style_loss(feats)
    loss.backward()
    opt.step()
    frames.append(loss + 0)  # <- found: collected-losses

# case: an embedding index on the card with its graph
import torch
class Index:
    def __init__(self, encoder):
        self.encoder = encoder.cuda().eval()
        self.vectors = []
    def add_all(self, loader):
        for ids, x in loader:
            v = self.encoder(x.cuda())  # <- missed: evaluation-with-gradients
            self.vectors.append(v)  # <- found: collected-outputs

# case: a probe reads all hidden states of a frozen model
import torch
from transformers import AutoModel
bert = AutoModel.from_pretrained("bert-base-uncased", output_hidden_states=True).cuda()
bert.eval()
bank = {}
for i, b in enumerate(loader):
    hs = bert(**{k: v.cuda() for k, v in b.items()}).hidden_states  # <- found: evaluation-with-gradients
    bank[i] = hs[-1]  # <- found: collected-outputs

# case: a Trainer of transformers in eval only
from transformers import Trainer, TrainingArguments, AutoModelForTokenClassification
model = AutoModelForTokenClassification.from_pretrained("bert-base-cased", num_labels=9)
def metrics(p):
    predictions, labels = p
    predictions = predictions.argmax(axis=2)
    return {"f1": f1(predictions, labels)}
trainer = Trainer(model, TrainingArguments("o", do_eval=True), eval_dataset=ds, compute_metrics=metrics)
print(trainer.evaluate())

# case: loss curves of folds are kept as tensors in a data frame
import pandas as pd
import torch
rows = []
for fold in range(5):
    model = build().cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loaders[fold]:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        rows.append([fold, loss])  # <- found: collected-losses
pd.DataFrame(rows).to_csv("curve.csv")
