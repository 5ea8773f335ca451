# case: notebook style train function with history dict of lists
import torch
from tqdm.notebook import tqdm

def fit(epochs, model, train_dl, val_dl, opt, crit, device):
    history = {"train": [], "val": []}
    for ep in range(epochs):
        model.train()
        batch_losses = []
        for xb, yb in tqdm(train_dl):
            xb, yb = xb.to(device), yb.to(device)
            loss = crit(model(xb), yb)
            loss.backward()
            opt.step()
            opt.zero_grad()
            batch_losses.append(loss)  # <- found: collected-losses
        history["train"].append(torch.stack(batch_losses).mean().item())
    return history

# case: while loop over iterator with next, running loss
import torch

it = iter(train_loader)
step, running = 0, 0.0
while step < args.max_steps:
    try:
        images, labels = next(it)
    except StopIteration:
        it = iter(train_loader)
        images, labels = next(it)
    out = net(images.cuda())
    loss = torch.nn.functional.cross_entropy(out, labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss  # <- found: summed-loss
    step += 1
    if step % 500 == 0:
        print(step, running / step)

# case: lightning module keeps training losses in a defaultdict
from collections import defaultdict

import pytorch_lightning as pl
import torch
import torch.nn.functional as F

class LitSeg(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.records = defaultdict(list)

    def training_step(self, batch, batch_idx):
        img, mask = batch
        pred = self.net(img)
        bce = F.binary_cross_entropy_with_logits(pred, mask)
        dice = 1 - (2 * (pred.sigmoid() * mask).sum() / (pred.sigmoid().sum() + mask.sum()))
        self.records["bce"].append(bce)  # <- found: collected-losses
        self.records["dice"].append(dice)  # <- found: collected-losses
        return bce + dice

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

# case: lightning validation step keeps logits for the epoch end
import lightning as L
import torch
from torchmetrics.functional import auroc

class Tagger(L.LightningModule):
    def __init__(self, encoder, classes):
        super().__init__()
        self.encoder = encoder
        self.fc = torch.nn.Linear(768, classes)
        self.validation_outputs = []

    def forward(self, ids, mask):
        return self.fc(self.encoder(ids, mask).pooler_output)

    def validation_step(self, batch, idx):
        logits = self(batch["ids"], batch["mask"])
        self.validation_outputs.append({"logits": logits, "y": batch["y"]})  # <- found: collected-outputs

    def on_validation_epoch_end(self):
        logits = torch.cat([o["logits"] for o in self.validation_outputs])
        y = torch.cat([o["y"] for o in self.validation_outputs])
        self.log("auroc", auroc(logits, y, task="multilabel"))

# case: smooth loss as in early fastai
import torch

avg_loss, beta, num = 0., 0.98, 0
lrs, losses = [], []
for inputs, labels in trn_loader:
    num += 1
    inputs, labels = inputs.cuda(), labels.cuda()
    optimizer.zero_grad()
    loss = criterion(net(inputs), labels)
    avg_loss = beta * avg_loss + (1 - beta) * loss  # <- found: summed-loss
    smoothed = avg_loss.item() / (1 - beta ** num)
    losses.append(smoothed)
    loss.backward()
    optimizer.step()

# case: lr finder class keeps best loss and losses as tensors
import torch

class LRFinder:
    def __init__(self, model, optimizer, criterion, device):
        self.model, self.optimizer, self.criterion = model.to(device), optimizer, criterion
        self.device = device
        self.history = {"lr": [], "loss": []}

    def range_test(self, loader, end_lr=10, num_iter=100):
        iterator = iter(loader)
        for iteration in range(num_iter):
            try:
                inputs, labels = next(iterator)
            except StopIteration:
                iterator = iter(loader)
                inputs, labels = next(iterator)
            loss = self._train_batch(inputs, labels)
            self.history["lr"].append(self.optimizer.param_groups[0]["lr"])
            self.history["loss"].append(loss)  # <- found: collected-losses

    def _train_batch(self, inputs, labels):
        self.model.train()
        self.optimizer.zero_grad()
        outputs = self.model(inputs.to(self.device))
        loss = self.criterion(outputs, labels.to(self.device))
        loss.backward()
        self.optimizer.step()
        return loss

# case: chinese tutorial, sum of test loss without no_grad
import torch
from torch import nn

# 测试函数
def test(dataloader, model, loss_fn):
    size = len(dataloader.dataset)
    model.eval()
    test_loss, correct = 0, 0
    for X, y in dataloader:
        X, y = X.to(device), y.to(device)
        pred = model(X)  # <- found: evaluation-with-gradients
        test_loss += loss_fn(pred, y).item()
        correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    print(f"正确率: {100 * correct / size:.1f}%")

for t in range(5):
    train(train_dataloader, model, loss_fn, optimizer)
    test(test_dataloader, model, loss_fn)

# case: chinese tutorial d2l accumulator style list
import torch
from torch import nn

class Accumulator:
    """在n个变量上累加"""
    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args):
        self.data = [a + b for a, b in zip(self.data, args)]

def train_epoch(net, train_iter, loss, updater, device):
    metric = Accumulator(2)
    for X, y in train_iter:
        X, y = X.to(device), y.to(device)
        l = loss(net(X), y)
        updater.zero_grad()
        l.mean().backward()
        updater.step()
        metric.add(l.sum(), y.numel())  # <- found: logged-loss # missed at first
    return metric.data[0] / metric.data[1]

# case: GAN training with the same fake for both networks
import torch
import torch.nn as nn

G, D = Generator().cuda(), Discriminator().cuda()
opt_g = torch.optim.Adam(G.parameters(), 2e-4)
opt_d = torch.optim.Adam(D.parameters(), 2e-4)
bce = nn.BCEWithLogitsLoss()
for epoch in range(100):
    for real, _ in loader:
        real = real.cuda()
        z = torch.randn(real.size(0), 128, 1, 1).cuda()
        fake = G(z)
        d_real = D(real)
        d_fake = D(fake)  # <- found: fake-not-detached
        loss_d = bce(d_real, torch.ones_like(d_real)) + bce(d_fake, torch.zeros_like(d_fake))
        opt_d.zero_grad()
        loss_d.backward(retain_graph=True)
        opt_d.step()
        out = D(fake)
        loss_g = bce(out, torch.ones_like(out))
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()

# case: cyclegan style class, backward_D_basic with attached fake
import torch

class Pix2Pix:
    def __init__(self, netG, netD, lr):
        self.netG, self.netD = netG.cuda(), netD.cuda()
        self.optimizer_G = torch.optim.Adam(self.netG.parameters(), lr=lr)
        self.optimizer_D = torch.optim.Adam(self.netD.parameters(), lr=lr)
        self.gan_loss = torch.nn.MSELoss()

    def forward(self):
        self.fake_B = self.netG(self.real_A)

    def backward_D(self):
        pred_fake = self.netD(torch.cat((self.real_A, self.fake_B), 1))  # <- found: fake-not-detached # missed at first
        pred_real = self.netD(torch.cat((self.real_A, self.real_B), 1))
        self.loss_D = 0.5 * (self.gan_loss(pred_fake, torch.zeros_like(pred_fake)) + self.gan_loss(pred_real, torch.ones_like(pred_real)))
        self.loss_D.backward()

    def backward_G(self):
        pred = self.netD(torch.cat((self.real_A, self.fake_B), 1))
        self.loss_G = self.gan_loss(pred, torch.ones_like(pred))
        self.loss_G.backward()

    def optimize_parameters(self, data):
        self.real_A, self.real_B = data["A"].cuda(), data["B"].cuda()
        self.forward()
        self.optimizer_D.zero_grad()
        self.backward_D()
        self.optimizer_D.step()
        self.forward()
        self.optimizer_G.zero_grad()
        self.backward_G()
        self.optimizer_G.step()

# case: wgan critic loop, generator runs with gradients
import torch

for i, (imgs, _) in enumerate(dataloader):
    real_imgs = imgs.cuda()
    optimizer_D.zero_grad()
    z = torch.randn(imgs.shape[0], opt.latent_dim, device="cuda")
    fake_imgs = generator(z)
    real_validity = discriminator(real_imgs)
    fake_validity = discriminator(fake_imgs)  # <- found: fake-not-detached
    d_loss = -torch.mean(real_validity) + torch.mean(fake_validity)
    d_loss.backward()
    optimizer_D.step()
    if i % opt.n_critic == 0:
        optimizer_G.zero_grad()
        g_loss = -torch.mean(discriminator(generator(z)))
        g_loss.backward()
        optimizer_G.step()

# case: distillation: teacher records a graph next to the student
import torch
import torch.nn.functional as F

def distill(student, teacher, loader, optimizer, T=4.0, alpha=0.7):
    student.train()
    teacher.eval()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        s = student(x)
        t = teacher(x)  # <- found: frozen-model-with-gradients
        kd = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
        loss = alpha * kd + (1 - alpha) * F.cross_entropy(s, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: mean teacher: ema copy runs with gradients
import copy
import torch

student = build_net().cuda()
ema = copy.deepcopy(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
for (x1, x2), y in loader:
    s_out = student(x1.cuda())
    t_out = ema(x2.cuda())  # <- found: copy-with-gradients
    loss = torch.nn.functional.cross_entropy(s_out, y.cuda()) + ((s_out.softmax(1) - t_out.softmax(1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), student.parameters()):
            p.mul_(0.999).add_(q, alpha=0.001)

# case: a shadow dict of weights with graphs
import torch

class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {n: p.clone().detach() for n, p in model.named_parameters()}

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = self.decay * self.shadow[name] + (1.0 - self.decay) * param  # <- found: averaged-weights-with-graph

# case: dqn target network forward with gradients in a learn method
import random
import torch
import torch.nn as nn

class DQNAgent:
    def __init__(self, state_dim, action_dim):
        self.policy_net = QNet(state_dim, action_dim).cuda()
        self.target_net = QNet(state_dim, action_dim).cuda()
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.optimizer = torch.optim.Adam(self.policy_net.parameters())
        self.memory = []

    def learn(self, batch_size=32):
        s, a, r, s2, done = map(torch.stack, zip(*random.sample(self.memory, batch_size)))
        q = self.policy_net(s.cuda()).gather(1, a.cuda())
        q_next = self.target_net(s2.cuda()).max(1)[0]  # <- found: frozen-model-with-gradients
        target = r.cuda() + 0.99 * q_next * (1 - done.cuda())
        loss = nn.functional.mse_loss(q.squeeze(), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

# case: hf trainer causal lm with compute_metrics
import evaluate
import numpy as np
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
metric = evaluate.load("accuracy")

def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return metric.compute(predictions=np.argmax(logits, -1).ravel(), references=labels.ravel())

args = TrainingArguments("out", per_device_eval_batch_size=8, eval_strategy="epoch")
trainer = Trainer(model=model, args=args, train_dataset=train_ds, eval_dataset=val_ds, compute_metrics=compute_metrics)  # <- found: trainer-keeps-logits
trainer.train()

# case: hf trainer in a main function with a token model picked by a variable
from transformers import AutoModelForMaskedLM, Trainer, TrainingArguments

def main(name="bert-base-uncased"):
    model = AutoModelForMaskedLM.from_pretrained(name)
    training_args = TrainingArguments(output_dir="mlm", num_train_epochs=3, fp16=True)

    def compute_metrics(p):
        preds = p.predictions.argmax(-1)
        mask = p.label_ids != -100
        return {"acc": (preds[mask] == p.label_ids[mask]).mean()}

    trainer = Trainer(  # <- found: trainer-keeps-logits
        model=model,
        args=training_args,
        train_dataset=tokenized["train"],
        eval_dataset=tokenized["validation"],
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())

# case: feature hooks appended to a list by a closure
import torch
import torchvision

features = []

def hook_fn(module, input, output):
    features.append(output)  # <- found: activations-kept-by-hook

model = torchvision.models.resnet50(pretrained=True).cuda()
handle = model.layer4.register_forward_hook(hook_fn)
for imgs, _ in loader:
    model(imgs.cuda())
feats = torch.cat([f.mean((2, 3)) for f in features])

# case: hook class with list attribute
import torch

class SaveFeatures:
    def __init__(self, module):
        self.features = []
        self.hook = module.register_forward_hook(self.hook_fn)

    def hook_fn(self, module, inp, out):
        self.features.append(out)  # <- found: activations-kept-by-hook

    def remove(self):
        self.hook.remove()

net = Net().cuda()
saver = SaveFeatures(net.block3)
for epoch in range(10):
    for x, y in train_loader:
        loss = criterion(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: retain_graph left over from debugging
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
mse = nn.MSELoss()
for epoch in range(200):
    for x, y in dl:
        opt.zero_grad()
        l = mse(model(x.cuda()), y.cuda())
        l.backward(retain_graph=True)  # <- found: retain-graph
        opt.step()

# case: lstm hidden state carried with retain_graph
import torch

hidden = model.init_hidden(batch_size)
for epoch in range(epochs):
    for i in range(0, train_data.size(0) - 1, bptt):
        data, targets = get_batch(train_data, i)
        optimizer.zero_grad()
        output, hidden = model(data, hidden)  # <- found: recurrent-state
        loss = criterion(output.view(-1, ntokens), targets)
        loss.backward(retain_graph=True)
        optimizer.step()

# case: kaggle inference: predictions gathered on the card in a dict of lists
import pandas as pd
import torch

outs = {"id": [], "pred": []}
model.cuda().eval()
with torch.no_grad():
    for batch in test_loader:
        logits = model(batch["image"].cuda())
        outs["id"] += batch["id"]
        outs["pred"] += [logits]  # <- found: collected-outputs
pred = torch.cat(outs["pred"]).cpu().numpy()

# case: feature extraction with += on a list and tuple
import torch

@torch.no_grad()
def extract(model, loader, device="cuda"):
    model.eval()
    feats, labels = [], []
    for x, y in loader:
        f = model.encode(x.to(device))
        feats += [f]  # <- found: collected-outputs # missed at first
        labels += [y]
    return torch.cat(feats).cpu(), torch.cat(labels)

encoder = Encoder().to("cuda")
train_f, train_y = extract(encoder, train_loader)

# case: embeddings concatenated tensor by tensor on the card
import torch

model = model.to("cuda").eval()
all_emb = None
with torch.no_grad():
    for images in gallery_loader:
        emb = model(images.to("cuda"))
        all_emb = emb if all_emb is None else torch.cat([all_emb, emb], dim=0)  # <- found: collected-outputs # missed at first
np.save("gallery.npy", all_emb.cpu().numpy())

# case: list comprehension over loader keeps outputs on the card
import torch

net.eval()
net.to("cuda:0")
with torch.inference_mode():
    preds = [net(x.to("cuda:0")) for x, _ in test_dl]  # <- found: collected-outputs # missed at first
preds = torch.cat(preds).argmax(1).cpu()

# case: generator function yields outputs, list() collects them
import torch

def predictions(model, loader):
    model.eval()
    with torch.no_grad():
        for x, _ in loader:
            yield model(x.cuda())

scores = list(predictions(net.cuda(), val_loader))  # <- found: collected-outputs # missed at first
print(torch.cat(scores).cpu().mean())

# case: plain validation without no_grad in class trainer
import torch

class Trainer(object):
    def __init__(self, model, train_loader, val_loader):
        self.model = model.cuda()
        self.train_loader, self.val_loader = train_loader, val_loader
        self.opt = torch.optim.AdamW(self.model.parameters())
        self.criterion = torch.nn.CrossEntropyLoss()

    def _step(self, batch):
        x, y = (t.cuda() for t in batch)
        return self.criterion(self.model(x), y)

    def train(self):
        self.model.train()
        for batch in self.train_loader:
            loss = self._step(batch)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def validate(self):
        self.model.eval()
        total = 0
        for batch in self.val_loader:
            total += self._step(batch)  # <- found: summed-loss, evaluation-with-gradients # missed at first
        return (total / len(self.val_loader)).item()

    def run(self):
        for _ in range(10):
            self.train()
            print(self.validate())

# case: best model deepcopied on the card
import copy
import torch

model = resnet.to("cuda")
best_acc, best_wts = 0.0, None
for epoch in range(25):
    train_one_epoch(model, loader, optimizer)
    acc = evaluate(model, val_loader)
    if acc > best_acc:
        best_acc = acc
        best_wts = copy.deepcopy(model.state_dict())  # <- found: state-dict-copied-on-card
model.load_state_dict(best_wts)

# case: best state is only an alias
import torch

best, best_loss = None, float("inf")
for epoch in range(epochs):
    model.train()
    for x, y in train_dl:
        optimizer.zero_grad()
        criterion(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
    val = validate(model, val_dl)
    if val < best_loss:
        best_loss = val
        best = model.state_dict()  # <- found: state-dict-aliased
torch.save(best, "best.pt")

# case: checkpoint loaded onto the card beside the model
import torch

model = UNet(3, 1).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
ckpt = torch.load("last.pth")  # <- found: load-without-map-location
model.load_state_dict(ckpt["state_dict"])
optimizer.load_state_dict(ckpt["optimizer"])
for epoch in range(ckpt["epoch"], 100):
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: gradient accumulation without dividing
import torch

accum = 8
optimizer.zero_grad()
for i, batch in enumerate(train_loader):
    loss = F.cross_entropy(model(batch["x"].cuda()), batch["y"].cuda())
    loss.backward()  # <- found: accumulated-loss-not-divided # missed at first
    if (i + 1) % accum == 0 or (i + 1) == len(train_loader):
        optimizer.step()
        optimizer.zero_grad()

# case: zero_grad at the top of an accumulating loop
import torch

for step, (x, y) in enumerate(loader):
    optimizer.zero_grad()  # <- found: zero-grad-while-accumulating # missed at first
    with torch.autocast("cuda"):
        loss = loss_fn(model(x.cuda()), y.cuda()) / args.grad_accum
    scaler.scale(loss).backward()
    if (step + 1) % args.grad_accum == 0 or step + 1 == len(loader):
        scaler.step(optimizer)
        scaler.update()

# case: optimizer steps every micro batch though the loss is divided
import torch

ACCUM = 4
for i, (src, tgt) in enumerate(loader):
    out = model(src.cuda(), tgt.cuda())
    loss = criterion(out.flatten(0, 1), tgt.cuda().flatten()) / ACCUM
    loss.backward()
    optimizer.step()  # <- found: step-every-micro-batch
    if (i + 1) % ACCUM == 0:
        optimizer.zero_grad()

# case: last window forgotten
import torch

for epoch in range(num_epochs):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(train_loader):
        loss = criterion(model(x.cuda()), y.cuda()) / accumulation_steps
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()  # <- found: last-window-forgotten
            optimizer.zero_grad()

# case: clipping in every micro batch of a method
import torch

class Runner:
    def train_epoch(self, loader):
        for it, (x, y) in enumerate(loader):
            loss = self.criterion(self.model(x.cuda()), y.cuda()) / self.accum
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # <- found: clipping-every-micro-batch
            if (it + 1) % self.accum == 0 or it + 1 == len(loader):
                self.optimizer.step()
                self.optimizer.zero_grad()

# case: empty_cache in every batch
import gc
import torch

for epoch in range(3):
    for ids, mask, y in loader:
        out = model(ids.cuda(), mask.cuda())
        loss = crit(out, y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        del ids, mask, y, out
        gc.collect()
        torch.cuda.empty_cache()  # <- found: empty-cache-in-loop

# case: oom handler skips a batch with its gradients
import torch

for i, sample in enumerate(train_iter):
    try:
        loss = model(sample["net_input"].cuda()).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except RuntimeError as e:  # <- found: oom-skipped-with-gradients
        if "out of memory" in str(e):
            print("| WARNING: ran out of memory, skipping batch")
            torch.cuda.empty_cache()
            continue
        raise e

# case: retry inside the except block
import torch

def forward_safe(model, x):
    try:
        return model(x)
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        halves = x.chunk(2)
        return torch.cat([model(h) for h in halves])  # <- found: recovery-inside-except

# case: dataset moves samples to the card
import torch
from torch.utils.data import DataLoader, Dataset

class SignalSet(Dataset):
    def __init__(self, xs, ys):
        self.xs, self.ys = xs, ys

    def __len__(self):
        return len(self.xs)

    def __getitem__(self, i):
        x = torch.from_numpy(self.xs[i]).float().cuda()  # <- found: card-in-dataset
        y = torch.tensor(self.ys[i]).cuda()  # <- found: card-in-dataset
        return x, y

loader = DataLoader(SignalSet(xs, ys), batch_size=64, shuffle=True, num_workers=4)

# case: whole data on the card, then TensorDataset
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
X_train = torch.tensor(X_train_np, dtype=torch.float32).to(device)  # <- found: dataset-on-card
y_train = torch.tensor(y_train_np, dtype=torch.long).to(device)  # <- found: dataset-on-card
train_loader = DataLoader(TensorDataset(X_train, y_train), batch_size=128, shuffle=True)
for epoch in range(50):
    for xb, yb in train_loader:
        optimizer.zero_grad()
        criterion(model(xb), yb).backward()
        optimizer.step()

# case: padding to max length in a preprocessing function
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

tok = AutoTokenizer.from_pretrained("roberta-base")

def preprocess(examples):
    return tok(examples["text"], truncation=True, padding="max_length", max_length=512)  # <- found: padding-to-max-length

ds = raw.map(preprocess, batched=True)
model = AutoModelForSequenceClassification.from_pretrained("roberta-base")
trainer = Trainer(model=model, args=TrainingArguments("o"), train_dataset=ds["train"])
trainer.train()

# case: set_to_none false
import torch

for x, y in loader:
    opt.zero_grad(set_to_none=False)  # <- found: zero-grad-keeps-memory
    loss = crit(model(x.cuda()), y.cuda())
    loss.backward()
    opt.step()

# case: DataParallel training script
import torch
import torch.nn as nn

model = ResNet18(num_classes=10)
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)  # <- found: data-parallel
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(200):
    for x, y in trainloader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()

# case: checkpointing with the cache left on
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf", use_cache=True)  # <- found: checkpointing-with-cache
model.gradient_checkpointing_enable()
model.cuda().train()
for batch in loader:
    out = model(**{k: v.cuda() for k, v in batch.items()})
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()

# case: allocator setting in the middle of main
import os
import torch

def main():
    device = torch.device("cuda")
    model = build().to(device)
    x = torch.zeros(1, 3, 224, 224, device=device)
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"  # <- found: allocator-variable-too-late
    train(model)

# case: create_graph without second derivative
import torch

optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    loss.backward(create_graph=True)  # <- found: create-graph
    optimizer.step()

# case: lru_cache returns tensors of the card
from functools import lru_cache
import torch

@lru_cache(maxsize=None)  # <- found: cached-tensors
def text_feature(prompt):
    tokens = tokenize(prompt).cuda()
    return clip_model.encode_text(tokens)

# case: module dict as feature cache
import torch

_cache = {}

def get_features(path, model):
    if path not in _cache:
        img = load_image(path).unsqueeze(0).cuda()
        with torch.no_grad():
            _cache[path] = model(img)  # <- found: cached-tensors
    return _cache[path]

# case: self attribute running loss in a Solver step method
import torch

class Solver:
    def __init__(self, net, opt):
        self.net, self.opt = net.cuda(), opt
        self.epoch_loss = 0

    def train_batch(self, x, y):
        self.opt.zero_grad()
        logit = self.net(x.cuda())
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, y.cuda())
        loss.backward()
        self.opt.step()
        self.epoch_loss += loss  # <- found: summed-loss # missed at first
        return loss.item()

    def fit(self, loader, epochs):
        for e in range(epochs):
            self.epoch_loss = 0
            for x, y in loader:
                self.train_batch(x, y)
            print(e, float(self.epoch_loss) / len(loader))

# case: sums of several losses in tuple assignment with walrus
import torch

cls_sum = box_sum = 0.0
for imgs, targets in loader:
    losses = detector(imgs.cuda(), targets)
    if (total := losses["cls"] + losses["box"]).isnan():
        continue
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    cls_sum, box_sum = cls_sum + losses["cls"], box_sum + losses["box"]  # <- found: summed-loss

# case: dataclass history
from dataclasses import dataclass, field
import torch

@dataclass
class History:
    loss: list = field(default_factory=list)
    acc: list = field(default_factory=list)

hist = History()
for epoch in range(epochs):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hist.loss.append(loss)  # <- found: collected-losses
        hist.acc.append((out.argmax(1) == y).float().mean().item())

# case: losses stored in a numpy like preallocated tensor with graph
import torch

loss_curve = torch.zeros(num_steps, device="cuda")
for step in range(num_steps):
    x, y = sample_batch()
    loss = loss_fn(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss_curve[step] = loss  # <- found: collected-losses

# case: accelerate loop sums loss for logging
from accelerate import Accelerator

accelerator = Accelerator()
model, optimizer, train_dl = accelerator.prepare(model, optimizer, train_dl)
for epoch in range(num_epochs):
    total_loss = 0
    for batch in train_dl:
        outputs = model(**batch)
        loss = outputs.loss
        total_loss += loss  # <- found: summed-loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print(total_loss / len(train_dl))

# case: accelerate evaluation gathers logits with gradients
from accelerate import Accelerator
import torch

accelerator = Accelerator()
model, eval_dl = accelerator.prepare(model, eval_dl)
model.eval()
preds = []
for batch in eval_dl:
    outputs = model(**batch)  # <- found: evaluation-with-gradients
    preds.append(accelerator.gather(outputs.logits))  # <- found: collected-outputs # missed at first
preds = torch.cat(preds)

# case: early return branch then append
import torch

epoch_losses = []

def step(batch):
    if batch is None:
        return
    x, y = batch
    pred = net(x.cuda())
    loss = ((pred - y.cuda()) ** 2).mean()
    if torch.isnan(loss):
        print("nan")
        return
    opt.zero_grad()
    loss.backward()
    opt.step()
    epoch_losses.append(loss)  # <- found: collected-losses

for b in loader:
    step(b)

# case: training output kept for the confusion matrix
import torch

y_true, y_prob = [], []
for x, y in train_loader:
    x, y = x.to("cuda"), y.to("cuda")
    prob = torch.softmax(model(x), dim=1)
    loss = torch.nn.functional.nll_loss(prob.log(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    y_true.append(y)
    y_prob.append(prob)  # <- found: collected-outputs

# case: ppo rollout keeps values with graph over whole training
import torch

class RolloutLog:
    def __init__(self):
        self.values = []

    def add(self, v):
        self.values.append(v)

log = RolloutLog()
for update in range(1000):
    obs = torch.as_tensor(envs.reset()).cuda()
    for t in range(128):
        value = critic(obs)
        log.add(value)  # <- found: logged-loss
        with torch.no_grad():
            obs = torch.as_tensor(envs.step(actor(obs).argmax(-1).cpu().numpy())[0]).cuda()
    ret = torch.as_tensor(compute_returns()).cuda()
    loss = (critic(obs) - ret).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: epoch loss from a nested function
import torch

def train(model, loader, opt):
    total = torch.tensor(0.0, device="cuda")

    def closure(x, y):
        nonlocal total
        loss = torch.nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total = total + loss  # <- found: summed-loss

    for x, y in loader:
        closure(x.cuda(), y.cuda())
    return total.item()

# case: validation with model.train(False)
import torch

def run_val(model, loader):
    model.train(False)
    hits = 0
    for x, y in loader:
        hits += (model(x.cuda()).argmax(-1) == y.cuda()).sum().item()  # <- found: evaluation-with-gradients
    return hits / len(loader.dataset)

print(run_val(net, val_loader))

# case: testing at module level of a homework
import torch

model.load_state_dict(torch.load("model.ckpt", map_location="cpu"))
model = model.to(device)
model.eval()
prediction = []
for data in test_loader:
    output = model(data.to(device))  # <- found: evaluation-with-gradients
    test_label = np.argmax(output.cpu().data.numpy(), axis=1)
    for y in test_label:
        prediction.append(y)

# case: metrics object with update method of this file
import torch

class Metrics:
    def __init__(self):
        self.reset()

    def reset(self):
        self.total, self.count = 0, 0

    def update(self, **values):
        self.total = self.total + values["loss"] * values["n"]
        self.count += values["n"]

m = Metrics()
for epoch in range(10):
    m.reset()
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        m.update(loss=loss, n=len(x))  # <- found: logged-loss # missed at first

# case: diffusion: sampling keeps every step
import torch

@torch.no_grad()
def p_sample_loop(model, shape, timesteps):
    img = torch.randn(shape, device="cuda")
    imgs = []
    for i in reversed(range(0, timesteps)):
        img = p_sample(model, img, torch.full((shape[0],), i, device="cuda", dtype=torch.long))
        imgs.append(img.cpu().numpy())
    return imgs

losses = []
for step, batch in enumerate(dataloader):
    optimizer.zero_grad()
    t = torch.randint(0, 200, (batch.shape[0],), device="cuda").long()
    noise = torch.randn_like(batch.cuda())
    pred = model(q_sample(batch.cuda(), t, noise), t)
    loss = torch.nn.functional.smooth_l1_loss(noise, pred)
    losses.append(loss)  # <- found: collected-losses
    loss.backward()
    optimizer.step()

# case: teacher forward inside the loss module
import torch
import torch.nn as nn

class KDLoss(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.teacher = teacher.eval()
        self.mse = nn.MSELoss()

    def forward(self, student_out, x):
        return self.mse(student_out, self.teacher(x))  # <- found: frozen-model-with-gradients # missed at first

student = Net().cuda()
kd = KDLoss(big_net.cuda())
opt = torch.optim.Adam(student.parameters())
for x, _ in loader:
    x = x.cuda()
    loss = kd(student(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: per class accumulators of tensors
from collections import Counter
import torch

meter = Counter()
for x, y in loader:
    loss_dict = model(x.cuda(), y.cuda())
    loss = sum(loss_dict.values())
    opt.zero_grad()
    loss.backward()
    opt.step()
    for name, value in loss_dict.items():
        meter[name] += value  # <- found: summed-loss
