# case: captioning: loss list printed as mean every hundred steps
import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence

all_losses = []
for i, (images, captions, lengths) in enumerate(data_loader):
    images, captions = images.to(device), captions.to(device)
    targets = pack_padded_sequence(captions, lengths, batch_first=True)[0]
    features = encoder(images)
    outputs = decoder(features, captions, lengths)
    loss = criterion(outputs, targets)
    decoder.zero_grad()
    encoder.zero_grad()
    loss.backward()
    optimizer.step()
    all_losses.append(loss)  # <- found: collected-losses
    if i % 100 == 0:
        print(i, sum(all_losses) / len(all_losses))

# case: graph classification, pyg style train with data.num_graphs
import torch
import torch.nn.functional as F

def train(model, loader, optimizer):
    model.train()
    loss_all = 0
    for data in loader:
        data = data.to("cuda")
        optimizer.zero_grad()
        output = model(data.x, data.edge_index, data.batch)
        loss = F.nll_loss(output, data.y)
        loss.backward()
        loss_all += data.num_graphs * loss  # <- found: summed-loss
        optimizer.step()
    return loss_all / len(loader.dataset)

# case: pyg test without no_grad
import torch

def test(model, loader):
    model.eval()
    correct = 0
    for data in loader:
        data = data.to("cuda")
        pred = model(data.x, data.edge_index, data.batch).argmax(dim=1)  # <- found: evaluation-with-gradients
        correct += int((pred == data.y).sum())
    return correct / len(loader.dataset)

for epoch in range(1, 201):
    train(model, train_loader, optimizer)
    print(test(model, test_loader))

# case: crowd counting: mae list of tensors in validation
import torch

model.eval()
errors = []
for img, gt in val_loader:
    with torch.set_grad_enabled(True):
        density = model(img.cuda())  # <- found: evaluation-with-gradients
    errors.append((density.sum() - gt.cuda().sum()).abs())  # <- found: collected-outputs
print("MAE", torch.stack(errors).mean().item())

# case: yolo style loss items tensor mean with graph
import torch

mloss = torch.zeros(3, device=device)
for i, (imgs, targets, paths, _) in enumerate(pbar):
    imgs = imgs.to(device).float() / 255
    pred = model(imgs)
    loss, loss_items = compute_loss(pred, targets.to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    mloss = (mloss * i + loss) / (i + 1)  # <- found: summed-loss

# case: few shot episode accuracies and losses in dict of lists on self
import torch
import torch.nn.functional as F

class Episodic:
    def __init__(self, net, opt):
        self.net, self.opt = net.cuda(), opt
        self.stats = dict(loss=[], acc=[])

    def episode(self, support, query, labels):
        protos = self.net(support.cuda()).view(5, 5, -1).mean(1)
        logits = -torch.cdist(self.net(query.cuda()), protos)
        loss = F.cross_entropy(logits, labels.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.stats["loss"].append(loss)  # <- found: collected-losses
        self.stats["acc"].append((logits.argmax(1) == labels.cuda()).float().mean().item())

# case: contrastive queue without detach
import torch

queue = []
for (im_q, im_k), _ in train_loader:
    q = encoder_q(im_q.cuda())
    k = encoder_k(im_k.cuda())
    loss = info_nce(q, k, queue[-10:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue.append(k.detach())  # <- missed: collected-outputs

# case: t-sne features during training epoch
import torch

feats, labs = [], []
for epoch in range(30):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        feat, logit = net(x)
        loss = ce(logit, y) + 0.1 * center(feat, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch == 29:
            pass
        feats.append(feat)  # <- found: collected-outputs
        labs.append(y.cpu())

# case: speech enhancement: validation sum through helper method
import torch

class Trainer:
    def __init__(self, model, loss, loaders):
        self.model = model.to("cuda")
        self.loss = loss
        self.loaders = loaders
        self.opt = torch.optim.Adam(self.model.parameters())

    def compute(self, noisy, clean):
        return self.loss(self.model(noisy.to("cuda")), clean.to("cuda"))

    def train_epoch(self):
        self.model.train()
        for noisy, clean in self.loaders["train"]:
            loss = self.compute(noisy, clean)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def valid_epoch(self):
        self.model.eval()
        losses = []
        for noisy, clean in self.loaders["valid"]:
            losses.append(self.compute(noisy, clean))  # <- found: collected-losses, evaluation-with-gradients # missed at first
        return torch.stack(losses).mean().item()

# case: neural ode: trajectory list never cleared across epochs
import torch

trajectories = []
for itr in range(2000):
    optimizer.zero_grad()
    y0, t, y = get_batch()
    pred = odeint(func_net, y0.cuda(), t.cuda())
    loss = torch.mean(torch.abs(pred - y.cuda()))
    loss.backward()
    optimizer.step()
    trajectories.append(pred)  # <- missed: collected-outputs

# case: reinforce agent keeps baseline as running tensor
import torch
from torch.distributions import Categorical

baseline = 0.0
for episode in range(5000):
    obs, done, logps, rewards = env.reset(), False, [], []
    while not done:
        dist = Categorical(logits=policy(torch.as_tensor(obs).float().cuda()))
        a = dist.sample()
        logps.append(dist.log_prob(a))
        obs, r, done, _ = env.step(a.item())
        rewards.append(r)
    loss = -(torch.stack(logps) * (sum(rewards) - float(baseline))).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * loss  # <- found: summed-loss # missed at first

# case: td3 target actor without no_grad
import copy
import torch
import torch.nn.functional as F

class TD3:
    def __init__(self, actor, critic):
        self.actor = actor.cuda()
        self.actor_target = copy.deepcopy(self.actor)
        self.critic = critic.cuda()
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters())

    def train(self, buf):
        s, a, s2, r, nd = buf.sample(256)
        a2 = self.actor_target(s2)  # <- found: copy-with-gradients # missed at first
        tq = r + nd * 0.99 * self.critic_target(s2, a2)  # <- found: copy-with-gradients # missed at first
        loss = F.mse_loss(self.critic(s, a), tq)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()

# case: inpainting gan with adversarial step helper class
import torch
import torch.nn as nn

class InpaintTrainer:
    def __init__(self, g, d):
        self.g, self.d = g.cuda(), d.cuda()
        self.opt_g = torch.optim.Adam(self.g.parameters(), 1e-4)
        self.opt_d = torch.optim.Adam(self.d.parameters(), 1e-4)
        self.bce = nn.BCEWithLogitsLoss()

    def d_step(self, real, mask):
        fake = self.g(torch.cat([real * mask, mask], 1))
        pr, pf = self.d(real), self.d(fake)  # <- found: fake-not-detached
        loss = self.bce(pr, torch.ones_like(pr)) + self.bce(pf, torch.zeros_like(pf))
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def g_step(self, real, mask):
        fake = self.g(torch.cat([real * mask, mask], 1))
        pf = self.d(fake)
        loss = self.bce(pf, torch.ones_like(pf)) + (fake - real).abs().mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()

# case: domain adaptation keeps feature means of each class with graph
import torch

centers = {}
for x, y in source_loader:
    f = extractor(x.cuda())
    loss = cls_loss(classifier(f), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for c in range(10):
        m = f[y == c].mean(0)
        centers[c] = m if c not in centers else 0.9 * centers[c] + 0.1 * m  # <- found: summed-loss

# case: multi task totals in a list by index
import torch

totals = [0.0, 0.0, 0.0]
for x, ys in loader:
    outs = model(x.cuda())
    parts = [crit(o, y.cuda()) for o, y in zip(outs, ys)]
    loss = sum(parts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for i, p in enumerate(parts):
        totals[i] += p  # <- found: summed-loss

# case: wandb run: loss in summary list through closure logger
import torch

def make_logger():
    history = []
    def log(value):
        history.append(value)
        return history
    return log

log = make_logger()
for x, y in loader:
    loss = crit(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    log(loss)  # <- found: logged-loss

# case: kaggle: valid_fn returns concatenated predictions left on the card
import torch
from tqdm.auto import tqdm

def valid_fn(valid_loader, model, device):
    model.eval()
    preds = []
    for step, (images, labels) in enumerate(tqdm(valid_loader)):
        images = images.to(device)
        with torch.no_grad():
            y_preds = model(images)
        preds.append(y_preds.sigmoid())  # <- found: collected-outputs
    return torch.cat(preds).cpu().numpy()

# case: kaggle: inference over models and batches
import torch

def inference(test_loader, model, states, device):
    probs = []
    for images in test_loader:
        images = images.to(device)
        avg = []
        for state in states:
            model.load_state_dict(state["model"])
            model.eval()
            y = model(images)  # <- found: evaluation-with-gradients
            avg.append(y.softmax(1).to("cpu").detach().numpy())
        probs.append(sum(avg) / len(avg))
    return probs

# case: lightning: test outputs appended in tuple
import pytorch_lightning as pl
import torch

class Model(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.results = []

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.results.append((self.net(x), y))  # <- found: collected-outputs

# case: lightning: running ema of the loss in training step
import pytorch_lightning as pl
import torch.nn.functional as F

class Model(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net, self.ema = net, 0.0

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
        self.ema = 0.95 * self.ema + 0.05 * loss  # <- found: summed-loss
        self.log("ema", self.ema)
        return loss

# case: lightning manual optimisation gan with attached fake
import pytorch_lightning as pl
import torch

class GAN(pl.LightningModule):
    def __init__(self, generator, discriminator):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator
        self.automatic_optimization = False

    def configure_optimizers(self):
        return (torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.discriminator.parameters()))

    def training_step(self, batch, idx):
        opt_g, opt_d = self.optimizers()
        real, _ = batch
        fake = self.generator(torch.randn(len(real), 100, device=self.device))
        d_loss = self.discriminator(fake).mean() - self.discriminator(real).mean()  # <- found: fake-not-detached
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        g_loss = -self.discriminator(self.generator(torch.randn(len(real), 100, device=self.device))).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()

# case: hf generation loop stores scores with past
import torch
from transformers import AutoModelForCausalLM

lm = AutoModelForCausalLM.from_pretrained("gpt2").to("cuda").eval()
all_logits = []
for ids in prompts_loader:
    with torch.no_grad():
        out = lm(ids.to("cuda"))
    all_logits.append(out.logits)  # <- found: collected-outputs
torch.save(all_logits, "logits.pt")

# case: hf perplexity stride loop without no_grad
import torch
from transformers import GPT2LMHeadModel

model = GPT2LMHeadModel.from_pretrained("gpt2-large").to("cuda")
model.eval()
nlls = []
for i in range(0, encodings.input_ids.size(1), stride):
    input_ids = encodings.input_ids[:, i:i + max_length].to("cuda")
    outputs = model(input_ids, labels=input_ids)  # <- found: evaluation-with-gradients
    nlls.append(outputs.loss * input_ids.size(1))  # <- found: collected-outputs
ppl = torch.exp(torch.stack(nlls).sum() / total)

# case: trainer for token classification? no, causal lm with lora and metrics
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

base = AutoModelForCausalLM.from_pretrained("facebook/opt-350m")
model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM"))
args = TrainingArguments(output_dir="o", per_device_eval_batch_size=4)
trainer = Trainer(model, args, train_dataset=tr, eval_dataset=ev, compute_metrics=metrics)  # <- found: trainer-keeps-logits
trainer.train()

# case: accelerate: eval losses gathered on the card with grads
import torch
from accelerate import Accelerator

accelerator = Accelerator()
model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)
for epoch in range(3):
    model.train()
    for batch in train_dl:
        loss = model(**batch).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    losses = []
    for batch in eval_dl:
        out = model(**batch)  # <- found: evaluation-with-gradients
        losses.append(out.loss)  # <- found: collected-losses
    print(torch.stack(losses).mean().item())

# case: fabric loop totals
import lightning as L
import torch

fabric = L.Fabric(accelerator="cuda")
fabric.launch()
model, optimizer = fabric.setup(model, optimizer)
dl = fabric.setup_dataloaders(dl)
total = 0
for batch in dl:
    x, y = batch
    loss = torch.nn.functional.cross_entropy(model(x), y)
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    total += loss  # <- found: summed-loss

# case: deepspeed engine loop appends loss
import deepspeed
import torch

engine, opt, _, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters())
curve = []
for batch in loader:
    loss = engine(batch["x"].cuda(), batch["y"].cuda())
    engine.backward(loss)
    engine.step()
    curve.append(loss)  # <- found: collected-losses

# case: amp training sum with scaler
import torch

scaler = torch.cuda.amp.GradScaler()
epoch_loss = 0.0
for x, y in loader:
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.amp.autocast():
        loss = crit(model(x.cuda()), y.cuda())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    epoch_loss += loss.float()  # <- found: summed-loss

# case: amp accumulation zeroes after every backward
import torch

for it, (x, y) in enumerate(loader):
    with torch.autocast("cuda"):
        loss = crit(model(x.cuda()), y.cuda()) / 4
    scaler.scale(loss).backward()
    if (it + 1) % 4 == 0 or it + 1 == len(loader):
        scaler.step(optimizer)
        scaler.update()
    optimizer.zero_grad()  # <- found: zero-grad-while-accumulating

# case: accumulation in transformers-like loop not divided
import torch
import torch.nn as nn

criterion = nn.CrossEntropyLoss()
model.zero_grad()
for step, batch in enumerate(train_dataloader):
    out = model(batch[0].cuda())
    loss = criterion(out, batch[1].cuda())
    loss.backward()  # <- found: accumulated-loss-not-divided
    if (step + 1) % args.gradient_accumulation_steps == 0 or step + 1 == len(train_dataloader):
        optimizer.step()
        model.zero_grad()

# case: best weights dict of clones on the card
import torch

net = Net().to("cuda")
best = {"acc": 0, "state": None}
for epoch in range(40):
    fit_epoch(net)
    acc = test(net)
    if acc > best["acc"]:
        best["acc"] = acc
        best["state"] = {k: v.clone() for k, v in net.state_dict().items()}  # <- found: state-dict-copied-on-card
net.load_state_dict(best["state"])

# case: federated server collects client states on the card
import copy
import torch

global_net = Net().cuda()
for rnd in range(100):
    w_locals = []
    for idx in chosen:
        local = copy.deepcopy(global_net)
        train_local(local, clients[idx])
        w_locals.append(copy.deepcopy(local.state_dict()))  # <- found: state-dict-copied-on-card
    global_net.load_state_dict(average(w_locals))

# case: patch scoring: heat maps stacked on the card
import torch

@torch.inference_mode()
def score_slide(model, tiles_loader):
    model.cuda().eval()
    scores = torch.empty(0, device="cuda")
    for tiles in tiles_loader:
        out = model(tiles.cuda()).softmax(1)
        scores = torch.cat((scores, out))  # <- found: collected-outputs
    return scores.cpu().numpy()

# case: dictionary keyed by image id in inference
import torch

model.cuda()
model.eval()
submission = {}
for ids, imgs in test_loader:
    out = model(imgs.cuda())  # <- found: evaluation-with-gradients
    for i, o in zip(ids, out):
        submission[i] = o  # <- found: collected-outputs
rows = [(k, int(v.argmax())) for k, v in submission.items()]

# case: hook as method of a class storing in a dict of lists
import torch

class Probe:
    def __init__(self, net):
        self.store = {}
        for name, m in net.named_modules():
            m.register_forward_hook(self.make(name))

    def make(self, name):
        def hook(module, args, output):
            self.store.setdefault(name, []).append(output)  # <- found: activations-kept-by-hook
        return hook

net = Net().cuda()
probe = Probe(net)
for x, y in loader:
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: retained graph for a single loss in a notebook
import torch
import torch.nn as nn

net = nn.LSTM(10, 20, batch_first=True).cuda()
head = nn.Linear(20, 1).cuda()
opt = torch.optim.Adam(list(net.parameters()) + list(head.parameters()))
for x, y in dl:
    out, _ = net(x.cuda())
    loss = ((head(out[:, -1]) - y.cuda()) ** 2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)  # <- found: retain-graph
    opt.step()

# case: recurrent policy hidden in evaluation of game with training each step
import torch

hx = torch.zeros(1, 256).cuda()
for step in range(100000):
    logits, hx = policy_net(obs.cuda(), hx)  # <- found: recurrent-state
    loss = actor_loss(logits)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()

# case: oom skip in fairseq-like trainer method
import torch

class T:
    def train(self, loader):
        for batch in loader:
            try:
                loss = self.model(batch["x"].cuda()).mean()
                loss.backward()
                self.opt.step()
                self.opt.zero_grad()
            except torch.cuda.OutOfMemoryError:  # <- found: oom-skipped-with-gradients
                torch.cuda.empty_cache()
                continue

# case: numpy array data moved to the card before TensorDataset in a function
import torch
from torch.utils.data import DataLoader, TensorDataset

def make_loader(X, y):
    X = torch.FloatTensor(X).cuda()  # <- found: dataset-on-card
    y = torch.LongTensor(y).cuda()  # <- found: dataset-on-card
    return DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True)

loader = make_loader(X_np, y_np)

# case: text dataset tokenises to max length in getitem
import torch
from torch.utils.data import Dataset
from transformers import BertTokenizer

tokenizer = BertTokenizer.from_pretrained("bert-base-uncased")

class Tweets(Dataset):
    def __init__(self, texts, labels):
        self.texts, self.labels = texts, labels

    def __getitem__(self, i):
        enc = tokenizer.encode_plus(self.texts[i], max_length=512, padding="max_length", truncation=True, return_tensors="pt")  # <- found: padding-to-max-length
        return enc["input_ids"][0], self.labels[i]

for ids, y in loader:
    loss = model(ids.cuda(), labels=y.cuda()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

# case: empty cache after each optimizer step in a method
import torch

class Fitter:
    def fit(self, loader):
        for step, (x, y) in enumerate(loader):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x.to(self.device)), y.to(self.device))
            loss.backward()
            self.optimizer.step()
            del loss
            torch.cuda.empty_cache()  # <- found: empty-cache-in-loop
