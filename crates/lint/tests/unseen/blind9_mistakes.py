# case: sequence labelling with a list of dev losses in a dict per epoch
import torch

log = {}
for epoch in range(10):
    log[epoch] = []
    for words, tags in train_iter:
        loss = tagger(words.cuda(), tags.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log[epoch].append(loss)  # <- found: collected-losses

# case: meter registry with get or create
import torch

class Meters:
    def __init__(self):
        self.all = {}

    def get(self, name):
        if name not in self.all:
            self.all[name] = []
        return self.all[name]

    def push(self, name, value):
        self.get(name).append(value)

meters = Meters()
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meters.push("loss", loss)  # <- found: logged-loss # missed at first

# case: evaluation sums correct and loss in a tuple returned
import torch

def evaluate(model, loader, criterion):
    model.eval()
    loss, correct = 0, 0
    for x, y in loader:
        out = model(x.cuda())  # <- found: evaluation-with-gradients
        loss += criterion(out, y.cuda())  # <- found: summed-loss
        correct += (out.argmax(1).cpu() == y).sum().item()
    return loss / len(loader), correct / len(loader.dataset)

# case: partial sums by key with setdefault
import torch

agg = {}
for batch in loader:
    out = model(batch["x"].cuda())
    parts = {"ce": ce(out, batch["y"].cuda()), "reg": out.pow(2).mean()}
    loss = parts["ce"] + 0.1 * parts["reg"]
    opt.zero_grad()
    loss.backward()
    opt.step()
    for k, v in parts.items():
        agg[k] = agg.setdefault(k, 0) + v  # <- found: summed-loss # missed at first

# case: outputs of validation stored as attribute list by a non-lightning class
import torch

class Evaluator:
    def __init__(self, model):
        self.model = model.cuda().eval()
        self.logits = []

    @torch.no_grad()
    def feed(self, x):
        self.logits.append(self.model(x.cuda()))  # <- found: collected-outputs

    def run(self, loader):
        for x, _ in loader:
            self.feed(x)
        return torch.cat(self.logits).cpu()

# case: anomaly scores per image with graph via extend tolist missing
import torch

ae.eval()
scores = []
for x, _ in test_loader:
    x = x.cuda()
    rec = ae(x)  # <- found: evaluation-with-gradients
    scores.extend(((rec - x) ** 2).mean((1, 2, 3)))  # <- found: collected-outputs
print(max(scores))

# case: curriculum keeps sample losses for sorting
import torch
import torch.nn.functional as F

sample_losses = {}
for idx, x, y in loader:
    out = net(x.cuda())
    l = F.cross_entropy(out, y.cuda(), reduction="none")
    optimizer.zero_grad()
    l.mean().backward()
    optimizer.step()
    for i, v in zip(idx.tolist(), l):
        sample_losses[i] = v  # <- found: collected-outputs

# case: lr warm start experiment in function returning history tensor
import torch

def run(lr):
    net = Net().cuda()
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    hist = []
    for step in range(1000):
        x, y = batch()
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        hist.append(loss)  # <- found: collected-losses
    return torch.stack(hist).detach().cpu()

# case: progressive growing gan with alpha, discriminator sees attached
import torch

class Trainer:
    def __init__(self, G, D):
        self.G, self.D = G.cuda(), D.cuda()
        self.optG = torch.optim.Adam(self.G.parameters())
        self.optD = torch.optim.Adam(self.D.parameters())

    def train_D(self, real, z):
        fake = self.G(z)
        loss = self.D(fake).mean() - self.D(real).mean()  # <- found: fake-not-detached
        self.optD.zero_grad()
        loss.backward()
        self.optD.step()

    def train_G(self, z):
        loss = -self.D(self.G(z)).mean()
        self.optG.zero_grad()
        loss.backward()
        self.optG.step()

    def fit(self, loader):
        for real in loader:
            z = torch.randn(len(real), 512).cuda()
            self.train_D(real.cuda(), z)
            self.train_G(z)

# case: moving average of logits for noisy labels with graph
import torch

targets = {}
for idx, x, y in loader:
    p = torch.softmax(net(x.cuda()), 1)
    for j, i in enumerate(idx.tolist()):
        targets[i] = 0.7 * targets.get(i, 0) + 0.3 * p[j]  # <- found: summed-loss
    loss = -(torch.log(p) * labels_of(idx).cuda()).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: sampler of a vae saves latents of all batches
import torch

vae = VAE().cuda()
opt = torch.optim.Adam(vae.parameters())
zs = []
for x, _ in loader:
    rec, mu, logvar = vae(x.cuda())
    loss = elbo(rec, x.cuda(), mu, logvar)
    opt.zero_grad()
    loss.backward()
    opt.step()
    zs.append(mu)  # <- found: collected-outputs

# case: old style variable and data
import torch
from torch.autograd import Variable

total = 0
for x, y in loader:
    x, y = Variable(x.cuda()), Variable(y.cuda())
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss  # <- found: summed-loss

# case: wrapper object with call as training step
import torch

class Step:
    def __init__(self, net, opt):
        self.net, self.opt, self.past = net.cuda(), opt, []

    def __call__(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x.cuda()), y.cuda())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.past.append(loss)  # <- found: collected-losses

# case: hf loop accumulates predictions without moving
import torch
from transformers import AutoModelForSequenceClassification

model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased").cuda()
model.eval()
logits = []
for batch in eval_dataloader:
    batch = {k: v.cuda() for k, v in batch.items()}
    with torch.no_grad():
        outputs = model(**batch)
    logits.append(outputs.logits)  # <- found: collected-outputs
preds = torch.cat(logits).argmax(-1).cpu()

# case: hf loop loss attribute by index
import torch

tr_loss = 0
for step, batch in enumerate(train_dataloader):
    batch = tuple(t.to(device) for t in batch)
    outputs = model(input_ids=batch[0], labels=batch[1])
    loss = outputs[0]
    loss.backward()
    tr_loss += loss  # <- found: summed-loss
    optimizer.step()
    model.zero_grad()

# case: early stop copies weights in list of checkpoints
import copy
import torch

model.cuda()
checkpoints = []
for epoch in range(50):
    train(model)
    checkpoints.append(copy.deepcopy(model.state_dict()))  # <- found: state-dict-copied-on-card # missed at first

# case: rnn state in a dict carried over
import torch

state = {"h": None}
for x, y in stream:
    out, state["h"] = rnn(x.cuda(), state["h"])  # <- found: recurrent-state
    loss = crit(out, y.cuda())
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()

# case: segmentation eval by calling forward
import torch

net.eval()
with torch.no_grad():
    masks = []
    for i in range(len(dataset)):
        x = dataset[i][0].unsqueeze(0).cuda()
        masks.append(net.forward(x))  # <- found: collected-outputs
out = torch.cat(masks).cpu().numpy()
