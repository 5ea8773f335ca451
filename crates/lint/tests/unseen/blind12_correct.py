# case: a word level language model logs cross entropies by length bucket
import torch
import torch.nn.functional as F

buckets = {64: [], 128: [], 256: []}
for ids in loader:
    ids = ids.cuda()
    loss = F.cross_entropy(lm(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    buckets[min(b for b in buckets if b >= ids.size(1))].append(loss.item())

# case: an active learning loop remembers the loss of every acquisition
import torch

class ActiveLearner:
    def __init__(self, net, pool):
        self.net, self.pool = net.cuda(), pool
        self.opt = torch.optim.Adam(self.net.parameters())
        self.curve = []

    def fit_round(self, batches):
        for x, y in batches:
            logits = self.net(x.cuda())
            loss = torch.nn.functional.cross_entropy(logits, y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.curve.append({"round": len(self.pool), "loss": loss.item()})

# case: a deepspeed engine loop
import deepspeed
import torch

engine, _, loader, _ = deepspeed.initialize(model=net, config="ds.json", training_data=data)
losses = []
for batch in loader:
    loss = engine(batch["ids"].to(engine.device), labels=batch["labels"].to(engine.device))
    engine.backward(loss)
    engine.step()
    losses.append(loss.item())

# case: a trainer callback of transformers keeps what compute_loss saw
import torch
from transformers import Trainer

class LoggedTrainer(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = []

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        loss = outputs.loss
        self.seen.append(loss.detach().cpu())
        return (loss, outputs) if return_outputs else loss

# case: two running means in one tuple
import torch

totals = (0.0, 0.0)
for x, y in loader:
    rec, kl = vae_losses(vae(x.cuda()), y.cuda())
    loss = rec + 0.5 * kl
    opt.zero_grad()
    loss.backward()
    opt.step()
    totals = (totals[0] + rec.item(), totals[1] + kl.item())

# case: the dice score of a training epoch is averaged with its graph
import torch

def dice(p, t):
    return 2 * (p * t).sum() / (p.sum() + t.sum() + 1e-6)

def epoch(model, loader, opt):
    total = 0
    for img, mask in loader:
        pred = model(img.cuda()).sigmoid()
        loss = 1 - dice(pred, mask.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += dice(pred, mask.cuda()).item()
    return float(total / len(loader))

# case: the episode loss of an actor critic is summed for a print
import torch

total_loss = torch.tensor(0.0).cuda()
for episode in range(2000):
    log_probs, values, rewards = run_episode(env, net)
    returns = discount(rewards)
    adv = returns - values
    loss = -(log_probs * adv.detach()).sum() + adv.pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    total_loss = total_loss + loss.detach()
    if episode % 100 == 0:
        print(total_loss.item() / (episode + 1))

# case: a moving average class with a momentum
import torch

class Smooth:
    def __init__(self, beta=0.98):
        self.beta, self.value, self.t = beta, 0.0, 0

    def __call__(self, x):
        self.t += 1
        self.value = self.beta * self.value + (1 - self.beta) * x
        return self.value / (1 - self.beta ** self.t)

smooth = Smooth()
for x, y in loader:
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(smooth(loss.item()))

# case: a summary object with a method per kind of value
import torch

class Summary:
    def __init__(self):
        self.scalars = {}
        self.images = []

    def scalar(self, tag, value, step):
        self.scalars.setdefault(tag, {})[step] = value

    def image(self, img):
        self.images.append(img)

summary = Summary()
for step, (x, y) in enumerate(loader):
    out = net(x.cuda())
    loss = torch.nn.functional.l1_loss(out, y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    summary.scalar("loss", loss.item(), step)

# case: rollout storage gets values with a graph
import torch

class Rollout:
    def __init__(self):
        self.obs, self.values = [], []

    def add(self, obs, value):
        self.obs.append(obs)
        self.values.append(value)

rollout = Rollout()
obs = env.reset()
for t in range(100000):
    value = critic(torch.as_tensor(obs).float().cuda())
    action = act(obs)
    rollout.add(obs, value.item())
    obs, reward, done, info = env.step(action)

# case: speaker embeddings of an evaluation list
import torch

def extract(model, loader):
    model.eval()
    table = {}
    with torch.no_grad():
        for wav, utt in loader:
            emb = model(wav.cuda())
            for e, u in zip(emb, utt):
                table[u] = e.cpu()
    return {k: v.cpu().numpy() for k, v in table.items()}

# case: a segmentation script keeps every mask before saving
import torch

masks = []
net.eval()
with torch.inference_mode():
    for tile in tiles:
        out = net(tile.cuda())
        masks.append(torch.softmax(out, 1).cpu())
full = torch.cat(masks).cpu().numpy()

# case: predictions of a trainer class kept for an epoch metric on self
import torch
from sklearn.metrics import f1_score

class Fit:
    def __init__(self, model, opt, crit):
        self.model, self.opt, self.crit = model.cuda(), opt, crit

    def train(self, loader):
        preds, trues = [], []
        for x, y in loader:
            o = self.model(x.cuda())
            l = self.crit(o, y.cuda())
            self.opt.zero_grad()
            l.backward()
            self.opt.step()
            preds.append(o.detach().cpu())
            trues.append(y)
        return f1_score(torch.cat(trues), torch.cat(preds).detach().cpu().argmax(1), average="macro")

# case: a stylegan discriminator step with accelerate
import torch
import torch.nn.functional as F
from accelerate import Accelerator

acc = Accelerator()
gen, disc, g_opt, d_opt, loader = acc.prepare(gen, disc, torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters()), loader)
for real in loader:
    z = torch.randn(real.size(0), 512, device=acc.device)
    fake = gen(z)
    d_loss = F.softplus(disc(fake.detach())).mean() + F.softplus(-disc(real)).mean()
    d_opt.zero_grad()
    acc.backward(d_loss)
    d_opt.step()
    g_loss = F.softplus(-disc(gen(z))).mean()
    g_opt.zero_grad()
    acc.backward(g_loss)
    g_opt.step()

# case: a domain critic gets features with a graph
import torch

for (xs, ys), (xt, _) in zip(source, target):
    fs, ft = feat(xs.cuda()), feat(xt.cuda())
    critic_loss = critic(ft.detach()).mean() - critic(fs.detach()).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    fs, ft = feat(xs.cuda()), feat(xt.cuda())
    loss = torch.nn.functional.cross_entropy(clf(fs), ys.cuda()) + critic(fs).mean() - critic(ft).mean()
    feat_opt.zero_grad()
    loss.backward()
    feat_opt.step()

# case: attention rollout by hooks on a vision transformer in an evaluation loop
import timm
import torch

vit = timm.create_model("vit_base_patch16_224", pretrained=True).cuda().eval()
attn = []
for blk in vit.blocks:
    blk.attn.attn_drop.register_forward_hook(lambda m, i, o: attn.append(o.detach().mean().item()))
with torch.no_grad():
    for x in loader:
        y = vit(x.cuda())
        print(y.argmax(1).tolist())

# case: ema of a generator in a function called after each step
import torch

def accumulate(avg, net, decay=0.999):
    par = dict(net.named_parameters())
    for k in avg:
        avg[k] = avg[k] * decay + par[k].data * (1 - decay)

G = Generator().cuda()
avg = {k: p.data.clone() for k, p in G.named_parameters()}
g_opt = torch.optim.Adam(G.parameters())
for i in range(100000):
    loss = -D(G(torch.randn(16, 512).cuda())).mean()
    g_opt.zero_grad()
    loss.backward()
    g_opt.step()
    accumulate(avg, G)

# case: a style encoder runs frozen but recorded
import torch
import torch.nn.functional as F

class Trainer:
    def __init__(self, net, style_net):
        self.net = net.cuda()
        self.style_net = style_net.cuda()
        self.style_net.eval()
        self.opt = torch.optim.Adam(self.net.parameters())

    def step(self, content, style, target):
        content, style, target = content.cuda(), style.cuda(), target.cuda()
        with torch.no_grad():
            code = self.style_net(style)
        loss = F.l1_loss(self.net(content, code), target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

# case: double DQN's target network in a function
import torch
import torch.nn.functional as F

def td_loss(batch, online, target_net, gamma=0.99):
    s, a, r, s2, d = (t.cuda() for t in batch)
    q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        nxt = target_net(s2).max(1)[0]
    return F.mse_loss(q, r + gamma * nxt * (1 - d))

def train(buffer, online, target_net, opt):
    for _ in range(10000):
        loss = td_loss(buffer.sample(32), online, target_net)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: old weights for elastic distillation
import copy
import torch

for task, loader in enumerate(tasks):
    old = copy.deepcopy(model)
    for x, y in loader:
        out = model(x.cuda())
        loss = torch.nn.functional.cross_entropy(out, y.cuda())
        if task > 0:
            with torch.no_grad():
                prev = old(x.cuda())
            loss = loss + torch.nn.functional.mse_loss(out, prev)
        opt.zero_grad()
        loss.backward()
        opt.step()

# case: a forecasting script evaluates in the same function that trains
import torch

def run(model, train_dl, val_dl, epochs=20):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    mse = torch.nn.MSELoss()
    for ep in range(epochs):
        model.train()
        for x, y in train_dl:
            opt.zero_grad()
            mse(model(x.cuda()), y.cuda()).backward()
            opt.step()
        model.eval()
        errs = []
        with torch.no_grad():
            for x, y in val_dl:
                errs.append(mse(model(x.cuda()), y.cuda()).item())
        print(ep, sum(errs) / len(errs))

# case: beam search over an eval model
import torch

def beam_search(decoder, memory, bos, eos, k=5, max_len=50):
    decoder.eval()
    beams = [([bos], 0.0)]
    for _ in range(max_len):
        cand = []
        for seq, score in beams:
            ids = torch.tensor([seq]).cuda()
            with torch.no_grad():
                logp = decoder(ids, memory)[0, -1].log_softmax(-1)
            top, idx = logp.topk(k)
            cand += [(seq + [i], score + s) for s, i in zip(top.tolist(), idx.tolist())]
        beams = sorted(cand, key=lambda b: -b[1])[:k]
    return beams[0][0]

# case: a Question answering trainer with a custom metric and no reduction
from transformers import AutoModelForMaskedLM, AutoTokenizer, DataCollatorForLanguageModeling, Trainer, TrainingArguments

tok = AutoTokenizer.from_pretrained("bert-base-uncased")
model = AutoModelForMaskedLM.from_pretrained("bert-base-uncased")
trainer = Trainer(
    model,
    TrainingArguments("o", evaluation_strategy="epoch"),
    DataCollatorForLanguageModeling(tok),
    train,
    dev,
    compute_metrics=masked_accuracy,
    preprocess_logits_for_metrics=lambda l, y: l.argmax(-1),
)
trainer.train()

# case: images of a dataset are cached on the card in init
import torch
from torch.utils.data import Dataset, DataLoader

class InMemory(Dataset):
    def __init__(self, files, device="cuda"):
        self.images = torch.stack([load(f) for f in files])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i]

loader = DataLoader(InMemory(files), batch_size=64, shuffle=True)

# case: resume in the middle of main with a function for checkpoints
import torch

def load_checkpoint(path, model, opt):
    ckpt = torch.load(path, map_location="cpu")
    model.load_state_dict(ckpt["model"])
    opt.load_state_dict(ckpt["opt"])
    return ckpt["epoch"]

def main():
    model = Net().cuda()
    opt = torch.optim.Adam(model.parameters())
    start = load_checkpoint("last.pt", model, opt)
    for epoch in range(start, 100):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()

# case: best state in a dict of results
import torch

def train_epoch(model, loader, optimizer):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

result = {"acc": 0.0, "state": None}
for epoch in range(50):
    train_epoch(model, loader, optimizer)
    acc = evaluate(model)
    if acc > result["acc"]:
        result["acc"] = acc
        result["state"] = {k: v.cpu().clone() for k, v in model.state_dict().items()}
model.load_state_dict(result["state"])

# case: a sweep keeps deep copies of models' weights
from copy import deepcopy
import torch

best = {}
for seed in range(5):
    net = Net().cuda()
    opt = torch.optim.Adam(net.parameters())
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
        opt.step()
    best[seed] = {k: v.cpu() for k, v in net.state_dict().items()}
torch.save(best, "seeds.pt")

# case: retain_graph in an adversarial training loop
import torch

for x, y in loader:
    x, y = x.cuda(), y.cuda()
    delta = torch.zeros_like(x, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(model(x + delta), y)
    grad, = torch.autograd.grad(loss, delta)
    adv = (x + 8 / 255 * grad.sign()).clamp(0, 1).detach()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(adv), y)
    loss.backward()
    optimizer.step()

# case: gradient accumulation with clipping outside in a trainer
import torch

class T:
    def epoch(self, loader):
        for i, b in enumerate(loader):
            with torch.autocast("cuda"):
                loss = self.model(**b).loss / self.accum
            self.scaler.scale(loss).backward()
            if (i + 1) % self.accum == 0 or i + 1 == len(loader):
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()

# case: the scheduler follows micro batches of a fixed plan
import torch

optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1000)
for step, (x, y) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda()) / 4
    loss.backward()
    if (step + 1) % 4 == 0 or step + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()

# case: empty cache after each validation batch
import torch

@torch.no_grad()
def validate(model, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).item()
    return total / len(loader)

# case: a batch halves itself in the handler of a predict function
import torch

def predict(model, batch):
    ok = False
    try:
        with torch.no_grad():
            out = model(batch.cuda()).cpu()
        ok = True
    except RuntimeError as e:
        if "out of memory" not in str(e):
            raise
    if not ok:
        torch.cuda.empty_cache()
        a, b = batch.chunk(2)
        out = torch.cat([predict(model, a), predict(model, b)])
    return out

# case: padding to the model maximum in a summarization script
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, Seq2SeqTrainer, Seq2SeqTrainingArguments, DataCollatorForSeq2Seq

tok = AutoTokenizer.from_pretrained("t5-small")
model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")

def encode(row):
    x = tok("summarize: " + row["text"], max_length=1024, truncation=True)
    x["labels"] = tok(text_target=row["summary"], max_length=128, truncation=True)["input_ids"]
    return x

trainer = Seq2SeqTrainer(model=model, args=Seq2SeqTrainingArguments("o"), train_dataset=raw.map(encode), data_collator=DataCollatorForSeq2Seq(tok, model))
trainer.train()

# case: a dry run of the generator before adversarial training
import torch

G, D = Gen().cuda(), Disc().cuda()
z = torch.randn(64, 100, device="cuda")
with torch.no_grad():
    img = G(z)
    print(img.shape, D(img).shape)
g_opt = torch.optim.Adam(G.parameters())
for step in range(10000):
    loss = -D(G(torch.randn(64, 100, device="cuda"))).mean()
    g_opt.zero_grad()
    loss.backward()
    g_opt.step()

# case: a char model carries its state over a whole corpus
import torch

h = None
for xb, yb in stream:
    out, h = gru(xb.cuda(), h)
    h = h.detach()
    loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), yb.flatten().cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
