# case: history of floats
import torch

def fit(epochs, model, dl, opt, crit, device):
    history = []
    for ep in range(epochs):
        running, seen = 0.0, 0
        for xb, yb in dl:
            xb, yb = xb.to(device), yb.to(device)
            loss = crit(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item() * len(xb)
            seen += len(xb)
        history.append(running / seen)
    return history

# case: losses of several heads summed, then backward
import torch

for x, ys in loader:
    outs = model(x.cuda())
    total = 0
    for head, y in zip(outs, ys):
        total += torch.nn.functional.cross_entropy(head, y.cuda())
    opt.zero_grad()
    total.backward()
    opt.step()

# case: d2l accumulator with floats
import torch

class Accumulator:
    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args):
        self.data = [a + float(b) for a, b in zip(self.data, args)]

metric = Accumulator(2)
for X, y in train_iter:
    l = loss(net(X.cuda()), y.cuda())
    trainer.zero_grad()
    l.backward()
    trainer.step()
    metric.add(l, y.numel())

# case: lightning training step collects detached losses
import pytorch_lightning as pl
import torch

class Lit(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.step_losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.step_losses.append(loss.detach().cpu())
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", torch.nn.functional.cross_entropy(self.net(x), y))

# case: lightning outputs reduced to labels on the host
import lightning as L
import torch

class Classifier(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net, self.preds = net, []

    def test_step(self, batch, _):
        logits = self.net(batch[0])
        self.preds.extend(logits.argmax(-1).cpu().tolist())

# case: gan with two backward passes on attached fake where both step
import torch

for real, _ in loader:
    real = real.cuda()
    z = torch.randn(len(real), 100).cuda()
    fake = G(z)
    loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = bce(D(fake), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

# case: wgan-gp with create_graph used by the penalty
import torch

def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1, device="cuda")
    mix = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    score = critic(mix)
    grad = torch.autograd.grad(score, mix, torch.ones_like(score), create_graph=True, retain_graph=True)[0]
    return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()

for real, _ in loader:
    real = real.cuda()
    fake = gen(torch.randn(len(real), 64, device="cuda")).detach()
    d_loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

# case: vgg perceptual loss needs the graph through the frozen network
import torch
import torchvision

vgg = torchvision.models.vgg16(weights="DEFAULT").features[:16].cuda().eval()
for p in vgg.parameters():
    p.requires_grad_(False)
for lr_img, hr_img in loader:
    sr = net(lr_img.cuda())
    loss = torch.nn.functional.l1_loss(vgg(sr), vgg(hr_img.cuda()))
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: teacher under no_grad as a decorator on a helper
import torch
import torch.nn.functional as F

@torch.no_grad()
def soft_targets(teacher, x, T):
    return F.softmax(teacher(x) / T, dim=1)

teacher.eval()
for x, y in loader:
    x, y = x.cuda(), y.cuda()
    s = student(x)
    loss = F.cross_entropy(s, y) + F.kl_div(F.log_softmax(s, 1), soft_targets(teacher, x, 3.0), reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: ema update with data
import torch

def update_average(model_tgt, model_src, beta):
    param_dict_src = dict(model_src.named_parameters())
    for p_name, p_tgt in model_tgt.named_parameters():
        p_src = param_dict_src[p_name]
        p_tgt.data.copy_(beta * p_tgt.data + (1.0 - beta) * p_src.data)

# case: policy gradient episode with saved log probs emptied in finish
import torch
from torch.distributions import Categorical

class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return self.fc(x).softmax(-1)

policy = Policy().cuda()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

def select_action(state):
    m = Categorical(policy(torch.from_numpy(state).float().cuda()))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()

def finish_episode():
    loss = torch.stack([-lp * r for lp, r in zip(policy.saved_log_probs, policy.rewards)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]

for ep in range(1000):
    s = env.reset()
    for t in range(500):
        s, r, done, _ = env.step(select_action(s))
        policy.rewards.append(r)
        if done:
            break
    finish_episode()

# case: truncated bptt with repackage
import torch

def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)

hidden = model.init_hidden(20)
for i in range(0, train_data.size(0) - 1, 35):
    data, targets = get_batch(train_data, i)
    model.zero_grad()
    hidden = repackage_hidden(hidden)
    output, hidden = model(data, hidden)
    loss = criterion(output, targets)
    loss.backward()
    optimizer.step()

# case: retain_graph for two losses of one graph
import torch

for x, y1, y2 in loader:
    h = shared(x.cuda())
    l1 = crit(head1(h), y1.cuda())
    l2 = crit(head2(h), y2.cuda())
    opt.zero_grad()
    l1.backward(retain_graph=True)
    l2.backward()
    opt.step()

# case: features under inference mode moved to the host
import torch

model.eval().cuda()
bank = []
with torch.inference_mode():
    for x, _ in loader:
        bank.append(model(x.cuda()).cpu())
bank = torch.cat(bank)

# case: predictions as ids from a helper
import torch

def to_list(t):
    return t.detach().cpu().numpy().tolist()

all_preds = []
with torch.no_grad():
    for x in test_loader:
        all_preds += to_list(model(x.cuda()).argmax(1))

# case: encoder layer outputs collected within one forward
import torch
import torch.nn as nn

class Encoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        hidden = []
        for layer in self.layers:
            x = layer(x)
            hidden.append(x)
        return x, hidden

# case: grad cam needs gradients in eval mode
import torch

model.eval()
for img, target in loader:
    img = img.cuda().requires_grad_(True)
    score = model(img)[0, target]
    model.zero_grad()
    score.backward()
    heat = img.grad.abs().amax(1)
    save(heat.cpu())

# case: fgsm in eval mode through a helper
import torch
import torch.nn.functional as F

def fgsm(model, x, y, eps):
    x = x.clone().detach().requires_grad_(True)
    loss = F.cross_entropy(model(x), y)
    grad = torch.autograd.grad(loss, x)[0]
    return (x + eps * grad.sign()).clamp(0, 1).detach()

model.eval()
correct = 0
for x, y in test_loader:
    adv = fgsm(model, x.cuda(), y.cuda(), 8 / 255)
    with torch.no_grad():
        correct += (model(adv).argmax(1) == y.cuda()).sum().item()

# case: evaluation decorated
import torch

@torch.inference_mode()
def evaluate(model, loader, criterion):
    model.eval()
    total = torch.zeros(1, device="cuda")
    for x, y in loader:
        total += criterion(model(x.cuda()), y.cuda())
    return (total / len(loader)).item()

# case: evaluation whose caller disables gradients
import torch

def accuracy(net, loader):
    net.eval()
    good = 0
    for x, y in loader:
        good += (net(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return good / len(loader.dataset)

for epoch in range(10):
    train(net, train_loader)
    with torch.no_grad():
        print(accuracy(net, test_loader))

# case: global switch before inference
import torch

torch.set_grad_enabled(False)
net = load_net("x.pth").cuda()
net.eval()
for name in names:
    out = net(preprocess(name).cuda())
    write(name, out.argmax().item())

# case: best weights to the host
import torch

best = None
for epoch in range(20):
    train_one_epoch(model)
    acc = validate(model)
    if best is None or acc > best[0]:
        best = (acc, {k: v.cpu().clone() for k, v in model.state_dict().items()})
model.load_state_dict(best[1])

# case: checkpoint loaded to the host
import torch

model = Net().cuda()
ck = torch.load("a.pth", map_location="cpu")
model.load_state_dict(ck["model"])
start = ck["epoch"]

# case: accumulation with everything right
import torch

for epoch in range(5):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = crit(model(x.cuda()), y.cuda()) / accum
        loss.backward()
        if (i + 1) % accum == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()

# case: accumulation with a sum loss
import torch

crit = torch.nn.CrossEntropyLoss(reduction="sum")
opt.zero_grad()
for i, (x, y) in enumerate(loader):
    crit(model(x.cuda()), y.cuda()).backward()
    if (i + 1) % 4 == 0 or i + 1 == len(loader):
        opt.step()
        opt.zero_grad()

# case: accelerate accumulate as documented
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
for batch in loader:
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()

# case: empty cache between epochs
import torch

for epoch in range(10):
    for x, y in loader:
        opt.zero_grad()
        crit(model(x.cuda()), y.cuda()).backward()
        opt.step()
    torch.cuda.empty_cache()
    evaluate(model)

# case: oom handler clears gradients
import torch

for x, y in loader:
    try:
        opt.zero_grad()
        crit(model(x.cuda()), y.cuda()).backward()
        opt.step()
    except torch.cuda.OutOfMemoryError:
        opt.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()

# case: dataset gives host tensors
import torch
from torch.utils.data import Dataset

class D(Dataset):
    def __init__(self, x, y):
        self.x, self.y = torch.from_numpy(x), torch.from_numpy(y)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].float(), self.y[i]

# case: full batch training of a small graph
import torch

data = dataset[0].to("cuda")
model = GCN().to("cuda")
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(200):
    model.train()
    opt.zero_grad()
    out = model(data.x, data.edge_index)
    loss = torch.nn.functional.nll_loss(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    opt.step()

# case: dynamic padding in the collator
from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer

tok = AutoTokenizer.from_pretrained("bert-base-cased")
ds = raw.map(lambda e: tok(e["text"], truncation=True), batched=True)
Trainer(model=model, train_dataset=ds["train"], data_collator=DataCollatorWithPadding(tok)).train()

# case: hf trainer for sequence classification has few logits
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-base-cased", num_labels=2)
trainer = Trainer(model=model, args=TrainingArguments("o"), train_dataset=a, eval_dataset=b,
                  compute_metrics=lambda p: {"acc": (p.predictions.argmax(-1) == p.label_ids).mean()})
trainer.train()

# case: hf causal lm trainer argmaxes its logits first
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")

def keep_ids(logits, labels):
    return logits.argmax(dim=-1)

trainer = Trainer(model=model, args=TrainingArguments("o"), train_dataset=a, eval_dataset=b,
                  compute_metrics=score, preprocess_logits_for_metrics=keep_ids)
trainer.train()

# case: hook keeps the last activation only
import torch

acts = {}

def save(name):
    def hook(module, inputs, output):
        acts[name] = output.detach()
    return hook

model.layer1.register_forward_hook(save("layer1"))
for x, _ in loader:
    model(x.cuda())
    print(acts["layer1"].mean().item())

# case: memory bank as a ring of detached features
import torch
from collections import deque

queue = deque(maxlen=64)
for x, _ in loader:
    q = enc_q(x[0].cuda())
    with torch.no_grad():
        k = enc_k(x[1].cuda())
    loss = contrast(q, k, list(queue))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue.append(k)

# case: smoothed loss as number
import torch

smooth = None
for x, y in loader:
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    smooth = loss.item() if smooth is None else 0.98 * smooth + 0.02 * loss.item()

# case: maml inner losses are differentiated
import torch

for tasks in meta_loader:
    meta_losses = []
    for support, query in tasks:
        fast = [p.clone() for p in net.parameters()]
        inner = net.loss(support.cuda(), fast)
        grads = torch.autograd.grad(inner, fast, create_graph=True)
        fast = [p - 0.01 * g for p, g in zip(fast, grads)]
        meta_losses.append(net.loss(query.cuda(), fast))
    meta_opt.zero_grad()
    torch.stack(meta_losses).mean().backward()
    meta_opt.step()

# case: running tensor sum of detached losses
import torch

total = torch.zeros((), device="cuda")
for x, y in loader:
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss.detach()
print(total.item() / len(loader))

# case: beam of the last outputs is overwritten each epoch
import torch

for epoch in range(100):
    preview = []
    for z in fixed_noise.split(8):
        with torch.no_grad():
            preview.append(gen(z.cuda()).cpu())
    save_grid(torch.cat(preview), epoch)

# case: step function returns numbers in a dict
import torch

def train_step(batch):
    x, y = batch
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    return {"loss": loss.item(), "n": len(x)}

log = []
for b in loader:
    log.append(train_step(b))

# case: target network under no_grad inside learn
import torch

class Agent:
    def learn(self, s, a, r, s2):
        with torch.no_grad():
            y = r + 0.99 * self.target_net(s2).max(1).values
        q = self.q_net(s).gather(1, a)
        loss = (q.squeeze(1) - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.losses.append(float(loss))

# case: cache of host tensors
import functools
import torch

@functools.lru_cache(maxsize=None)
def embedding(word):
    with torch.no_grad():
        return bert(tokenize(word).cuda()).cpu()

# case: image pool of detached fakes
import random
import torch

class ImagePool:
    def __init__(self, size=50):
        self.size, self.images = size, []

    def query(self, image):
        if len(self.images) < self.size:
            self.images.append(image)
            return image
        i = random.randrange(self.size)
        old, self.images[i] = self.images[i], image
        return old

pool = ImagePool()
for a, b in loader:
    fake = gen(a.cuda())
    loss_d = disc(pool.query(fake.detach())).mean() - disc(b.cuda()).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

# case: an average that is assigned to data keeps no graph
import torch

def update_ema(ema_model, model, decay):
    ema_params = dict(ema_model.named_parameters())
    for name, param in model.named_parameters():
        ema_params[name].data = decay * ema_params[name] + (1 - decay) * param
