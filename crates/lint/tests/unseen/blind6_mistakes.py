# case: classifier training returns stacked mean of kept losses
import torch
import torch.nn as nn
from torchvision import models, transforms

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

def train_classifier(train_loader, classifier, criterion, optimizer):
    classifier.train()
    losses = []
    for i, (images, labels, _) in enumerate(train_loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        logits = classifier(images)
        loss = criterion(logits, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss)  # <- found: collected-losses
    return torch.stack(losses).mean().item()

# case: tagger sentence loop, total over dataset
import torch
import torch.optim as optim

def train(model, sentences, tags, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.01, weight_decay=1e-4)
    for epoch in range(epochs):
        sum_nll = 0
        for s, t in zip(sentences, tags):
            model.zero_grad()
            nll = model.neg_log_likelihood(s.cuda(), t.cuda())
            nll.backward()
            optimizer.step()
            sum_nll += nll  # <- found: summed-loss
        print("epoch %d: %.3f" % (epoch, sum_nll / len(sentences)))

# case: evaluate without eval mode sums loss and accuracy tensors
import torch

def accuracy(preds, y):
    return (preds.max(1)[1] == y).float().mean()

def train(model, criterion, optimizer, data):
    for epoch in range(100):
        for d in data:
            preds = model(d.text.cuda())
            loss = criterion(preds, d.label.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

def evaluate(model, criterion, data):
    epoch_acc = 0.0
    epoch_loss = 0.0
    for d in data:
        preds = model(d.text.cuda())
        epoch_acc += accuracy(preds, d.label.cuda())
        epoch_loss += criterion(preds, d.label.cuda())  # <- found: summed-loss # missed at first
    print(f"准确率: {epoch_acc / len(data)}, loss: {epoch_loss / len(data)}")

# case: score keeper class keeps raw outputs of training
import torch

class ScoreKeeper:
    def __init__(self):
        self.history, self.outputs, self.total = [], [], 0

    def add_batch(self, y_batch, output):
        y_pred = output.argmax(1)
        self.history.append((y_pred == y_batch).float().mean().item())
        self.total += len(y_batch)
        self.outputs.append(output)

keeper = ScoreKeeper()
for x, y in train_loader:
    x, y = x.cuda(), y.cuda()
    out = network(x)
    loss = criterion(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    keeper.add_batch(y, out)  # <- found: logged-loss

# case: physics informed network retains the graph in each iteration
import torch

class PINN:
    def __init__(self, net, x_train, y_train):
        self.net = net.cuda()
        self.x_train, self.y_train = x_train, y_train
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.loss = torch.nn.MSELoss()

    def fit(self, iterations):
        self.net.train(True)
        for it in range(iterations):
            self.optimizer.zero_grad()
            out = self.net(self.x_train)
            loss = self.loss(out, self.y_train)
            loss.backward(retain_graph=True)  # <- missed: retain-graph
            self.optimizer.step()
            if it % 100 == 99:
                print(it, loss.item())

# case: course gan assignment with get_disc_loss helpers
import torch

def get_disc_loss(gen, disc, criterion, real, num_images, z_dim, device):
    noise = torch.randn(num_images, z_dim, device=device)
    fake = gen(noise)
    fake_pred = disc(fake)  # <- found: fake-not-detached
    fake_loss = criterion(fake_pred, torch.zeros_like(fake_pred))
    real_pred = disc(real)
    real_loss = criterion(real_pred, torch.ones_like(real_pred))
    return (fake_loss + real_loss) / 2

def get_gen_loss(gen, disc, criterion, num_images, z_dim, device):
    fake_pred = disc(gen(torch.randn(num_images, z_dim, device=device)))
    return criterion(fake_pred, torch.ones_like(fake_pred))

gen = Generator(64).to("cuda")
disc = Discriminator().to("cuda")
gen_opt = torch.optim.Adam(gen.parameters(), lr=1e-5)
disc_opt = torch.optim.Adam(disc.parameters(), lr=1e-5)
for epoch in range(200):
    for real, _ in dataloader:
        real = real.view(len(real), -1).to("cuda")
        disc_opt.zero_grad()
        disc_loss = get_disc_loss(gen, disc, criterion, real, len(real), 64, "cuda")
        disc_loss.backward()
        disc_opt.step()
        gen_opt.zero_grad()
        gen_loss = get_gen_loss(gen, disc, criterion, len(real), 64, "cuda")
        gen_loss.backward()
        gen_opt.step()

# case: point cloud runner updates meters with tensors
import torch

class AverageMeter(object):
    def __init__(self, items=None):
        self.items = items
        self.n_items = 1 if items is None else len(items)
        self.reset()

    def reset(self):
        self._val = [0] * self.n_items
        self._sum = [0] * self.n_items
        self._count = [0] * self.n_items

    def update(self, values):
        for idx, v in enumerate(values):
            self._val[idx] = v
            self._sum[idx] += v
            self._count[idx] += 1

    def avg(self, idx):
        return self._sum[idx] / self._count[idx]

class Runner:
    def __init__(self, net, opt, loader):
        self.net, self.opt, self.loader = net.cuda(), opt, loader
        self.losses = AverageMeter(["coarse", "refine"])

    def train_step(self, partial, gt):
        coarse, refine = self.net(partial.cuda())
        c = chamfer(coarse, gt.cuda())
        r = chamfer(refine, gt.cuda())
        self.opt.zero_grad()
        (c + r).backward()
        self.opt.step()
        self.losses.update([c, r])  # <- found: logged-loss

    def train(self):
        for epoch in range(150):
            for partial, gt in self.loader:
                self.train_step(partial, gt)

# case: seq2seq homework sums output.loss of a hf model
import torch
from tqdm import tqdm
from transformers import BertForQuestionAnswering

model = BertForQuestionAnswering.from_pretrained("bert-base-chinese").to(device)
train_loss = train_acc = 0
for data in tqdm(train_loader):
    data = [i.to(device) for i in data]
    output = model(input_ids=data[0], token_type_ids=data[1], attention_mask=data[2], start_positions=data[3], end_positions=data[4])
    train_loss += output.loss  # <- found: summed-loss # missed at first
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % logging_step == 0:
        print(f"Step {step} | loss = {train_loss.item() / logging_step:.3f}")
        train_loss = 0

# case: lightning outputs lists with epoch end that forgets to clear
import pytorch_lightning as pl
import torch

class TextModel(pl.LightningModule):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.training_step_outputs = []
        self.train_losses = []

    def training_step(self, batch, batch_idx):
        logits = self.backbone(batch["input_ids"], batch["attention_mask"])
        loss = torch.nn.functional.cross_entropy(logits, batch["labels"])
        self.log("train_loss", loss, prog_bar=True)
        self.training_step_outputs.append(loss)  # <- found: collected-losses
        return loss

    def on_train_epoch_end(self):
        self.train_losses.append(torch.stack(self.training_step_outputs).mean().item())

# case: best parameters in a tuple on the card
import copy
import torch

def fit(model, loader, val_loader, optimizer, criterion, epochs):
    model.to("cuda")
    best = (float("inf"), None)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x.to("cuda")), y.to("cuda")).backward()
            optimizer.step()
        v = score(model, val_loader)
        if v < best[0]:
            best = (v, copy.deepcopy(model.state_dict()))  # <- found: state-dict-copied-on-card # missed at first
    model.load_state_dict(best[1])
    return model

# case: early stopping class stores alias of weights
import torch

class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.count, self.best, self.state = patience, 0, None, None

    def __call__(self, val_loss, model):
        if self.best is None or val_loss < self.best:
            self.best, self.count = val_loss, 0
            self.state = model.state_dict()  # <- found: state-dict-aliased
        else:
            self.count += 1
        return self.count >= self.patience

stopper = EarlyStopping(5)
for epoch in range(100):
    train(model, train_loader, optimizer)
    if stopper(evaluate(model, val_loader), model):
        break
model.load_state_dict(stopper.state)

# case: early stopping class copies weights on the card
import copy
import torch

class EarlyStopping:
    def __init__(self, patience=7):
        self.patience, self.counter = patience, 0
        self.best_score, self.best_weights = None, None

    def step(self, score, model):
        if self.best_score is None or score > self.best_score:
            self.best_score = score
            self.best_weights = copy.deepcopy(model.state_dict())  # <- found: state-dict-copied-on-card
            self.counter = 0
        else:
            self.counter += 1

    def restore(self, model):
        model.load_state_dict(self.best_weights)

net = Net().cuda()
es = EarlyStopping()
for epoch in range(50):
    run_epoch(net)
    es.step(val_accuracy(net), net)
es.restore(net)

# case: attention maps kept in dict of lists for visualisation during training
from collections import defaultdict
import torch

attn_maps = defaultdict(list)
for epoch in range(num_epochs):
    for src, tgt in loader:
        logits, attn = transformer(src.cuda(), tgt[:, :-1].cuda())
        loss = criterion(logits.reshape(-1, vocab), tgt[:, 1:].reshape(-1).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        attn_maps[epoch].append(attn)  # <- found: collected-outputs # missed at first

# case: ignite process function keeps the loss in engine state
import torch
from ignite.engine import Engine, Events

def update(engine, batch):
    model.train()
    optimizer.zero_grad()
    x, y = batch
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    engine.state.losses.append(loss)  # <- found: collected-losses # missed at first
    return loss.item()

trainer = Engine(update)

@trainer.on(Events.EPOCH_STARTED)
def start(engine):
    engine.state.losses = []

trainer.run(train_loader, max_epochs=5)

# case: ignite evaluator without no_grad
import torch
from ignite.engine import Engine

def eval_step(engine, batch):
    model.eval()
    x, y = batch
    return model(x.cuda()), y.cuda()  # <- found: evaluation-with-gradients # missed at first

evaluator = Engine(eval_step)
evaluator.run(val_loader)

# case: hf callback-like custom trainer stores loss per step
from transformers import Trainer

class LossTrainer(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_history = []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        loss = outputs.loss
        self.loss_history.append(loss)  # <- found: collected-losses
        return (loss, outputs) if return_outputs else loss

# case: hf trainer teacher in compute_loss records a graph
import torch
import torch.nn.functional as F
from transformers import Trainer

class DistillTrainer(Trainer):
    def __init__(self, teacher_model=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = teacher_model
        self.teacher.eval()

    def compute_loss(self, model, inputs, return_outputs=False):
        out_s = model(**inputs)
        out_t = self.teacher(**inputs)  # <- found: frozen-model-with-gradients
        kd = F.kl_div(F.log_softmax(out_s.logits / 2, -1), F.softmax(out_t.logits / 2, -1), reduction="batchmean")
        loss = 0.5 * out_s.loss + 0.5 * kd
        return (loss, out_s) if return_outputs else loss

# case: seq2seq trainer without generate keeps logits
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
args = Seq2SeqTrainingArguments(output_dir="t5", per_device_train_batch_size=8, num_train_epochs=3, evaluation_strategy="steps")
trainer = Seq2SeqTrainer(  # <- found: trainer-keeps-logits
    model,
    args,
    train_dataset=train_ds,
    eval_dataset=val_ds,
    data_collator=collator,
    tokenizer=tokenizer,
    compute_metrics=compute_metrics,
)
trainer.train()

# case: semantic segmentation trainer keeps logits
from transformers import SegformerForSemanticSegmentation, Trainer, TrainingArguments

model = SegformerForSemanticSegmentation.from_pretrained("nvidia/mit-b0", num_labels=150)
training_args = TrainingArguments("segformer", learning_rate=6e-5, evaluation_strategy="epoch")
trainer = Trainer(model=model, args=training_args, train_dataset=train_ds, eval_dataset=test_ds, compute_metrics=compute_metrics)  # <- found: trainer-keeps-logits
trainer.train()

# case: inference of a folder keeps every mask on the card
import glob
import torch

unet = UNet().to("cuda")
unet.load_state_dict(torch.load("unet.pt", map_location="cpu"))
unet.eval()
masks = {}
with torch.no_grad():
    for path in glob.glob("imgs/*.png"):
        x = read(path).to("cuda")
        masks[path] = torch.sigmoid(unet(x[None]))[0]  # <- found: collected-outputs
for path, m in masks.items():
    imsave(path.replace("imgs", "out"), (m.cpu() > 0.5).numpy())

# case: ensemble predictions over folds stay on the card
import torch

fold_preds = []
for fold in range(5):
    model = Net().cuda()
    model.load_state_dict(torch.load(f"fold{fold}.pth", map_location="cpu"))
    model.eval()
    preds = []
    with torch.no_grad():
        for x in test_loader:
            preds.append(model(x.cuda()))  # <- found: collected-outputs
    fold_preds.append(torch.cat(preds).cpu().numpy())

# case: tta inference with gradients
import torch

def tta(model, images):
    flips = [images, images.flip(-1), images.flip(-2)]
    return torch.stack([model(f) for f in flips]).mean(0)  # <- found: evaluation-with-gradients # missed at first

model.cuda()
model.eval()
results = []
for images in test_loader:
    out = tta(model, images.cuda())
    results.append(out.detach().cpu().numpy())

# case: embeddings with graph to the host
import torch

emb = []
for names, imgs in loader:
    e = backbone(imgs.cuda())
    emb.append(e.cpu())  # <- found: collected-outputs
emb = torch.cat(emb).detach().numpy()

# case: siamese distances list in test loop
import torch
import torch.nn.functional as F

siamese.eval()
distances, labels = [], []
for a, b, same in test_loader:
    ea, eb = siamese(a.cuda(), b.cuda())  # <- found: evaluation-with-gradients # missed at first
    d = F.pairwise_distance(ea, eb)
    distances.append(d)  # <- found: collected-outputs # missed at first
    labels.append(same)
print(torch.cat(distances)[:10])

# case: actor critic storing critic losses on self
import torch

class A2C:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor.cuda(), critic.cuda()
        self.opt = torch.optim.Adam(list(self.actor.parameters()) + list(self.critic.parameters()))
        self.logs = {"actor": [], "critic": []}

    def update(self, states, actions, returns):
        values = self.critic(states.cuda()).squeeze(-1)
        adv = returns.cuda() - values
        logp = torch.log_softmax(self.actor(states.cuda()), -1).gather(1, actions.cuda())
        actor_loss = -(logp.squeeze(1) * adv.detach()).mean()
        critic_loss = adv.pow(2).mean()
        self.opt.zero_grad()
        (actor_loss + 0.5 * critic_loss).backward()
        self.opt.step()
        self.logs["actor"].append(actor_loss)  # <- found: collected-losses
        self.logs["critic"].append(critic_loss)  # <- found: collected-losses

# case: sac target critic with gradients
import copy
import torch
import torch.nn.functional as F

class SAC:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor.cuda(), critic.cuda()
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-4)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-4)

    def update_critic(self, s, a, r, s2, d):
        a2, logp = self.actor.sample(s2)
        q1, q2 = self.critic_target(s2, a2)  # <- found: copy-with-gradients
        y = r + 0.99 * (1 - d) * (torch.min(q1, q2) - 0.2 * logp)
        c1, c2 = self.critic(s, a)
        loss = F.mse_loss(c1, y.detach()) + F.mse_loss(c2, y.detach())
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()

# case: byol target network without no_grad
import copy
import torch
import torch.nn as nn

class BYOL(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.online = net
        self.target = copy.deepcopy(net)
        self.predictor = nn.Linear(256, 256)

    def forward(self, v1, v2):
        p = self.predictor(self.online(v1))
        z = self.target(v2)  # <- missed: copy-with-gradients
        return 2 - 2 * nn.functional.cosine_similarity(p, z.detach(), dim=-1).mean()

learner = BYOL(resnet()).cuda()
opt = torch.optim.Adam(list(learner.online.parameters()) + list(learner.predictor.parameters()), lr=3e-4)
for (v1, v2), _ in loader:
    loss = learner(v1.cuda(), v2.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: reference model of dpo runs with gradients
import copy
import torch

policy = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
ref = copy.deepcopy(policy).eval()
opt = torch.optim.AdamW(policy.parameters(), lr=5e-7)
for batch in loader:
    ids = batch["ids"].cuda()
    lp = logprobs(policy(ids).logits, ids)
    ref_lp = logprobs(ref(ids).logits, ids)  # <- found: frozen-model-with-gradients
    loss = -torch.nn.functional.logsigmoid(0.1 * (lp - ref_lp)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: sequence of truncated steps carries state without detach, method form
import torch

class CharTrainer:
    def __init__(self, rnn):
        self.rnn = rnn.cuda()
        self.opt = torch.optim.Adam(self.rnn.parameters())
        self.h = None

    def step(self, x, y):
        out, self.h = self.rnn(x.cuda(), self.h)  # <- found: recurrent-state
        loss = torch.nn.functional.cross_entropy(out.transpose(1, 2), y.cuda())
        self.opt.zero_grad()
        loss.backward(retain_graph=True)
        self.opt.step()
        return loss.item()

# case: lstm tuple state carried
import torch

h = torch.zeros(2, 32, 256).cuda()
c = torch.zeros(2, 32, 256).cuda()
for x, y in batches(text):
    out, (h, c) = lstm_model(x.cuda(), (h, c))  # <- found: recurrent-state
    loss = criterion(out, y.cuda())
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()

# case: gradient accumulation counter variable and clipping
import torch

class Trainer:
    def train(self):
        for epoch in range(self.epochs):
            for step, batch in enumerate(self.loader):
                with torch.cuda.amp.autocast():
                    loss = self.model(**batch).loss
                loss = loss / self.args.gradient_accumulation_steps
                self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.optimizer)  # <- found: clipping-every-micro-batch
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # <- found: clipping-every-micro-batch
                if (step + 1) % self.args.gradient_accumulation_steps == 0 or step == len(self.loader) - 1:
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                    self.optimizer.zero_grad()

# case: scheduler steps in every micro-batch
import torch

optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=len(loader) * epochs // accum)
for epoch in range(epochs):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x.cuda()), y.cuda()) / accum
        loss.backward()
        if (i + 1) % accum == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()  # <- found: scheduler-every-micro-batch

# case: accumulation by sum of losses over several batches
import torch

acc_loss = 0
for i, (x, y) in enumerate(loader):
    acc_loss = acc_loss + criterion(model(x.cuda()), y.cuda())  # <- found: summed-loss # missed at first
    if (i + 1) % 8 == 0:
        optimizer.zero_grad()
        (acc_loss / 8).backward()
        optimizer.step()
        acc_loss = 0

# case: accelerate accumulate with zero_grad before backward
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=8)
model, optimizer, dl = accelerator.prepare(model, optimizer, dl)
for batch in dl:
    with accelerator.accumulate(model):
        optimizer.zero_grad()  # <- found: zero-grad-while-accumulating
        out = model(**batch)
        accelerator.backward(out.loss)
        optimizer.step()

# case: dataset class caches everything on the card
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

class Windows(Dataset):
    def __init__(self, path, length):
        arr = np.load(path)
        self.series = torch.from_numpy(arr).float().to("cuda")  # <- found: dataset-on-card
        self.length = length

    def __len__(self):
        return len(self.series) - self.length

    def __getitem__(self, i):
        return self.series[i:i + self.length], self.series[i + self.length]

loader = DataLoader(Windows("x.npy", 48), batch_size=256, shuffle=True)

# case: collate function moves to the card
import torch
from torch.utils.data import DataLoader

def collate(batch):
    xs, ys = zip(*batch)
    return torch.stack(xs).cuda(), torch.tensor(ys).cuda()  # <- found: card-in-dataset

loader = DataLoader(ds, batch_size=32, collate_fn=collate, num_workers=8)

# case: random batches from data fully on the card
import torch

x_all = torch.from_numpy(features).float().cuda()  # <- found: dataset-on-card
y_all = torch.from_numpy(targets).long().cuda()  # <- found: dataset-on-card
for epoch in range(100):
    perm = torch.randperm(len(x_all))
    for i in range(0, len(x_all), 512):
        idx = perm[i:i + 512]
        loss = criterion(net(x_all[idx]), y_all[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: test set in one batch
import torch
from torch.utils.data import DataLoader

test_loader = DataLoader(test_set, batch_size=len(test_set))  # <- found: evaluation-batch-of-everything
model.cuda()
with torch.no_grad():
    for x, y in test_loader:
        acc = (model(x.cuda()).argmax(1) == y.cuda()).float().mean()
print(acc)

# case: generator hook grads of weights kept
import torch

grad_log = []

def save_grad(grad):
    grad_log.append(grad)  # <- found: activations-kept-by-hook # missed at first

model = Net().cuda()
for name, p in model.named_parameters():
    p.register_hook(save_grad)
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: hook with partial and a dict of lists
from collections import defaultdict
from functools import partial
import torch

activations = defaultdict(list)

def keep(name, mod, inp, out):
    activations[name].append(out)  # <- found: activations-kept-by-hook # missed at first

net = VGG().cuda()
for name, m in net.named_modules():
    if isinstance(m, torch.nn.Conv2d):
        m.register_forward_hook(partial(keep, name))
for x, _ in loader:
    net(x.cuda())

# case: module keeps attention in forward
import torch
import torch.nn as nn

class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x):
        w = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1)
        self.last_weights = w  # <- found: output-kept-on-self # missed at first
        return w @ self.v(x)

model = nn.Sequential(Attn(64), nn.Linear(64, 2)).cuda()
opt = torch.optim.Adam(model.parameters())
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x.cuda()).mean(1), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: module appends every attention in forward
import torch
import torch.nn as nn

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, 4)
        self.weights = []

    def forward(self, x):
        y, w = self.attn(x, x, x)
        self.weights.append(w)  # <- found: output-kept-on-self
        return x + y

net = nn.Sequential(Block(64), Block(64)).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in loader:
    loss = net(x.cuda()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: smoke test output left over before training
import torch

model = Net().cuda()
dummy = torch.randn(16, 3, 224, 224).cuda()
out = model(dummy)  # <- found: intermediate-kept-by-name
print("output size", out.size())
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(10):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: fp32 logits of a large vocabulary
import torch
import torch.nn as nn
import torch.nn.functional as F

class LM(nn.Module):
    def __init__(self, dim=1024, vocab=128256):
        super().__init__()
        self.embed = nn.Embedding(128256, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(12))
        self.lm_head = nn.Linear(dim, 128256, bias=False)

    def forward(self, ids, labels):
        h = self.embed(ids)
        for b in self.blocks:
            h = b(h)
        logits = self.lm_head(h).float()  # <- found: full-precision-logits
        return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1))

# case: oom retry by recursion in the handler
import torch

def run(model, batch):
    try:
        return model(batch.cuda()).cpu()
    except RuntimeError as err:
        if "CUDA out of memory" not in str(err):
            raise
        torch.cuda.empty_cache()
        half = len(batch) // 2
        return torch.cat([run(model, batch[:half]), run(model, batch[half:])])  # <- found: recovery-inside-except

# case: validation helper called train(mode=False) through a flag
import torch

def run_epoch(model, loader, criterion, optimizer=None):
    is_train = optimizer is not None
    model.train() if is_train else model.eval()
    total = 0.0
    for x, y in loader:
        out = model(x.cuda())
        loss = criterion(out, y.cuda())
        if is_train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss  # <- found: summed-loss
    return total / len(loader)

for e in range(10):
    print(run_epoch(net, train_dl, crit, opt), run_epoch(net, val_dl, crit))

# case: phase loop of the transfer learning tutorial with a tensor sum
import torch

for epoch in range(num_epochs):
    for phase in ["train", "val"]:
        model.train() if phase == "train" else model.eval()
        running_loss = 0.0
        running_corrects = 0
        for inputs, labels in dataloaders[phase]:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss * inputs.size(0)  # <- found: summed-loss # missed at first
            running_corrects += torch.sum(preds == labels.data)

# case: several components appended through zip
import torch

curves = [[], [], []]
for x, y in loader:
    rec, mu, logvar = vae(x.cuda())
    bce = torch.nn.functional.mse_loss(rec, x.cuda())
    kld = -0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())
    loss = bce + kld
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for curve, value in zip(curves, (loss, bce, kld)):
        curve.append(value)  # <- found: collected-losses

# case: log dict appended to a list
import torch

logs = []
for step, batch in enumerate(loader):
    preds = model(batch["x"].cuda())
    l_main = torch.nn.functional.cross_entropy(preds, batch["y"].cuda())
    l_reg = sum(p.abs().sum() for p in model.parameters()) * 1e-5
    loss = l_main + l_reg
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    logs.append({"step": step, "main": l_main, "reg": l_reg})  # <- found: collected-losses

# case: pandas frame of losses at the end
import pandas as pd
import torch

rows = []
for ep in range(epochs):
    for i, (x, y) in enumerate(loader):
        loss = crit(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        rows.append([ep, i, loss])  # <- found: collected-losses
pd.DataFrame(rows, columns=["ep", "i", "loss"]).to_csv("loss.csv")

# case: mean over tensors with sum() in each epoch
import torch

epoch_means = []
for ep in range(epochs):
    batch_losses = []
    for x, y in loader:
        loss = crit(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        batch_losses.append(loss)  # <- found: collected-losses
    epoch_means.append(sum(batch_losses) / len(batch_losses))

# case: returned from helper in a tuple and stored by the caller
import torch

def train_batch(model, opt, x, y):
    pred = model(x)
    loss = torch.nn.functional.cross_entropy(pred, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    acc = (pred.argmax(1) == y).float().mean().item()
    return loss, acc

losses, accs = [], []
for x, y in loader:
    l, a = train_batch(net, opt, x.cuda(), y.cuda())
    losses.append(l)  # <- found: collected-losses
    accs.append(a)

# case: global history mutated from a method of another class
import torch

class Recorder:
    data = {}

    @classmethod
    def record(cls, key, value):
        cls.data.setdefault(key, []).append(value)

class Learner:
    def __init__(self, net, opt):
        self.net, self.opt = net.cuda(), opt

    def one_batch(self, x, y):
        loss = torch.nn.functional.l1_loss(self.net(x.cuda()), y.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        Recorder.record("loss", loss)  # <- found: logged-loss # missed at first

# case: exponential average through lerp
import torch

ema = None
for x, y in loader:
    loss = crit(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema = loss if ema is None else ema * 0.99 + loss * 0.01  # <- found: summed-loss

# case: notebook function without visible model sums loss with .add
import torch

def train_loop(dataloader, model, loss_fn, optimizer):
    total = torch.zeros(1).cuda()
    for X, y in dataloader:
        loss = loss_fn(model(X.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = total.add(loss)  # <- found: summed-loss
    return total / len(dataloader)

# case: in place add of the loss with graph
import torch

total = torch.zeros(1, device="cuda")
for x, y in dl:
    loss = lossf(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total.add_(loss)  # <- found: summed-loss

# case: prefetcher loader in while loop collects outputs
import torch

prefetcher = DataPrefetcher(val_loader)
model.eval()
images, target = prefetcher.next()
outs = []
while images is not None:
    with torch.no_grad():
        output = model(images.cuda())
    outs.append(output)  # <- found: collected-outputs
    images, target = prefetcher.next()
preds = torch.cat(outs).cpu()

# case: detection evaluation keeps predictions on the card
import torch

@torch.no_grad()
def evaluate(model, loader):
    model.cuda().eval()
    preds, gts = [], []
    for images, targets in loader:
        images = [img.cuda() for img in images]
        outputs = model(images)
        preds.extend(outputs)  # <- found: collected-outputs # missed at first
        gts.extend(targets)
    return compute_map([{k: v.cpu() for k, v in p.items()} for p in preds], gts)

# case: resume loads the checkpoint on the card in a function
import os
import torch

def main(args):
    model = build_model(args).cuda()
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    start_epoch = 0
    if args.resume and os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume)  # <- found: load-without-map-location
        start_epoch = checkpoint["epoch"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    for epoch in range(start_epoch, args.epochs):
        train(loader, model, optimizer, epoch)

# case: model feature bank per epoch as class attribute
import torch

class Prototypes:
    def __init__(self, encoder):
        self.encoder = encoder.cuda()
        self.bank = {}

    def fit_batch(self, x, y):
        z = self.encoder(x.cuda())
        loss = supcon(z, y.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        for c in y.unique().tolist():
            self.bank.setdefault(c, []).append(z[y == c])  # <- found: collected-outputs
