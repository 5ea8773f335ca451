# case: student project with global lists and functions without arguments
import torch
import matplotlib.pyplot as plt

train_hist = []
val_hist = []

def train_one_epoch():
    net.train()
    for imgs, lbls in trainloader:
        opt.zero_grad()
        l = lossfn(net(imgs.to(dev)), lbls.to(dev))
        l.backward()
        opt.step()
        train_hist.append(l)  # <- found: collected-losses

def validate():
    net.eval()
    for imgs, lbls in valloader:
        l = lossfn(net(imgs.to(dev)), lbls.to(dev))  # <- found: evaluation-with-gradients
        val_hist.append(l)  # <- found: collected-losses # missed at first

for e in range(20):
    train_one_epoch()
    validate()
plt.plot([float(v) for v in train_hist])

# case: runner with hooks list and stored last outputs by key
import torch

class Runner:
    def __init__(self, model, optimizer):
        self.model = model.cuda()
        self.optimizer = optimizer
        self.outputs = {"pred": [], "target": []}

    def run_iter(self, batch):
        x, y = batch[0].cuda(), batch[1].cuda()
        pred = self.model(x)
        loss = torch.nn.functional.smooth_l1_loss(pred, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.outputs["pred"].append(pred)  # <- found: collected-outputs
        self.outputs["target"].append(y.cpu())

    def run_epoch(self, loader):
        for batch in loader:
            self.run_iter(batch)

# case: pose estimation with two networks summed in place
import torch

total_pose = torch.zeros((), device="cuda")
for frames, poses in loader:
    pred = pose_net(frames.cuda())
    loss_rot = (pred[:, :3] - poses[:, :3].cuda()).abs().mean()
    loss_tr = (pred[:, 3:] - poses[:, 3:].cuda()).abs().mean()
    loss = 10 * loss_rot + loss_tr
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total_pose += loss_rot  # <- found: summed-loss

# case: nerf evaluation renders all rays and keeps them
import torch

def render_image(model, rays_loader):
    colors = []
    with torch.no_grad():
        for rays in rays_loader:
            rgb = model(rays.to("cuda"))
            colors.append(rgb)  # <- found: collected-outputs
    return torch.cat(colors, 0).reshape(800, 800, 3).cpu().numpy()

# case: gan notebook, d loss helper on attached images, optimizers by name
import torch
import torch.nn.functional as F

def d_loss_fn(real_logit, fake_logit):
    return F.softplus(-real_logit).mean() + F.softplus(fake_logit).mean()

for epoch in range(100):
    for real in loader:
        z = torch.randn(len(real), 128).cuda()
        fake = generator(z)
        loss_d = d_loss_fn(discriminator(real.cuda()), discriminator(fake))  # <- found: fake-not-detached
        opt_discriminator.zero_grad()
        loss_d.backward()
        opt_discriminator.step()
        loss_g = F.softplus(-discriminator(generator(z))).mean()
        opt_generator.zero_grad()
        loss_g.backward()
        opt_generator.step()

# case: knowledge distillation with a list of teachers
import torch
import torch.nn.functional as F

for t in teachers:
    t.cuda().eval()
teacher = teachers[0]
teacher.eval()
for x, y in loader:
    x = x.cuda()
    soft = F.softmax(teacher(x) / 4, dim=1)  # <- found: frozen-model-with-gradients
    out = student(x)
    loss = F.kl_div(F.log_softmax(out / 4, dim=1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: ema class with parameter list arithmetic
import torch

class Averager:
    def __init__(self, params, beta=0.999):
        self.params = list(params)
        self.beta = beta
        self.avg = [p.detach().clone() for p in self.params]

    def step(self):
        self.avg = [self.beta * a + (1 - self.beta) * p for a, p in zip(self.avg, self.params)]  # <- missed: averaged-weights-with-graph

model = Net().cuda()
averager = Averager(model.parameters())
for x, y in loader:
    loss = crit(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    averager.step()

# case: keeps the best batch output only when it improves but list grows
import torch

worst = []
for x, y in loader:
    out = model(x.cuda())
    losses = torch.nn.functional.cross_entropy(out, y.cuda(), reduction="none")
    loss = losses.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    worst.append(losses.max())  # <- found: collected-losses

# case: validation in the middle of training function without no_grad
import torch

def fit(net, train_dl, val_dl, opt, crit, epochs):
    for ep in range(epochs):
        net.train()
        for x, y in train_dl:
            opt.zero_grad()
            loss = crit(net(x.cuda()), y.cuda())
            loss.backward()
            opt.step()
        net.eval()
        val = 0.0
        for x, y in val_dl:
            val += crit(net(x.cuda()), y.cuda())  # <- found: evaluation-with-gradients, summed-loss
        print(ep, val / len(val_dl))

# case: named tuple step results
from typing import NamedTuple
import torch

class StepOut(NamedTuple):
    loss: torch.Tensor
    n: int

def step(batch):
    x, y = batch
    loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return StepOut(loss, len(x))

results = []
for batch in loader:
    results.append(step(batch))  # <- found: collected-losses # missed at first

# case: starred unpacking of multiple losses into trackers
import torch

trackers = {"total": 0, "l1": 0, "ssim": 0}
for x, y in loader:
    pred = net(x.cuda())
    l1 = (pred - y.cuda()).abs().mean()
    ssim_loss = 1 - ssim(pred, y.cuda())
    total = l1 + 0.2 * ssim_loss
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    for key, val in {"total": total, "l1": l1, "ssim": ssim_loss}.items():
        trackers[key] += val  # <- found: summed-loss

# case: queue.Queue of predictions in inference thread
import torch

def worker(model, in_q, results):
    model.eval()
    while True:
        item = in_q.get()
        if item is None:
            break
        with torch.no_grad():
            results.append(model(item.cuda()))  # <- found: collected-outputs # missed at first

# case: chinese comments, cumulated loss across epochs
import torch
# 训练
sum_loss = 0
for epoch in range(EPOCH):
    for step, (b_x, b_y) in enumerate(train_loader):
        output = cnn(b_x.cuda())[0]
        loss = loss_func(output, b_y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sum_loss = sum_loss + loss  # <- found: summed-loss
        if step % 50 == 0:
            print("轮次:", epoch, "损失:", sum_loss / (step + 1))

# case: chinese comments, testing accumulates outputs for the roc curve
import torch
from sklearn.metrics import roc_auc_score

cnn.eval()
scores = []
for b_x, b_y in test_loader:
    out = cnn(b_x.cuda())  # <- found: evaluation-with-gradients
    scores.append(out)  # <- found: collected-outputs
print(roc_auc_score(labels, torch.cat(scores).detach().cpu().numpy()))

# case: argparse main with resume and eval flag
import argparse
import torch

def main():
    args = argparse.ArgumentParser().parse_args()
    model = build(args.arch)
    model = model.cuda()
    ckpt = torch.load(args.resume)  # <- found: load-without-map-location
    model.load_state_dict(ckpt["model"])
    for epoch in range(ckpt["epoch"], 100):
        train(model)

# case: deepcopy of the best model itself
import copy
import torch

best_model, best = None, 0.0
model = Net().to("cuda")
for epoch in range(100):
    train(model, optimizer)
    acc = test(model)
    if acc > best:
        best = acc
        best_state = copy.deepcopy(model.state_dict())  # <- found: state-dict-copied-on-card
torch.save(best_state, "best.pt")

# case: micro batches, clip outside of the window condition
import torch

for i, batch in enumerate(loader):
    loss = model(**batch).loss / grad_accum
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- found: clipping-every-micro-batch
    if (i + 1) % grad_accum == 0 or i == len(loader) - 1:
        optimizer.step()
        optimizer.zero_grad()

# case: window without a last step
import torch

optimizer.zero_grad()
for epoch in range(epochs):
    for i, (x, y) in enumerate(loader):
        loss = crit(model(x.cuda()), y.cuda()) / 16
        loss.backward()
        if (i + 1) % 16 == 0:
            optimizer.step()  # <- found: last-window-forgotten
            optimizer.zero_grad()

# case: dataset getitem on the card through helper
import torch
from torch.utils.data import DataLoader, Dataset

class Audio(Dataset):
    def __init__(self, files, device="cuda"):
        self.files, self.device = files, device

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        wav = load_wav(self.files[i])
        return torch.tensor(wav).to(self.device)  # <- found: card-in-dataset

dl = DataLoader(Audio(files), batch_size=8, num_workers=2)

# case: hook closure list inside function with training
import torch

def collect(net, loader, opt, crit):
    acts = []
    net.layer2.register_forward_hook(lambda m, i, o: acts.append(o))  # <- found: activations-kept-by-hook
    for x, y in loader:
        opt.zero_grad()
        crit(net(x.cuda()), y.cuda()).backward()
        opt.step()
    print(len(acts))

# case: retained graph with gradient accumulation of two steps
import torch
import torchvision

net = torchvision.models.resnet18(num_classes=10).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    opt.zero_grad()
    out = net(x.cuda())
    loss = torch.nn.functional.cross_entropy(out, y.cuda())
    loss.backward(retain_graph=True)  # <- found: retain-graph
    opt.step()

# case: feature cache module level filled by function under no_grad
import torch

FEATURES = {}

@torch.no_grad()
def feature_of(key, image, net):
    if key in FEATURES:
        return FEATURES[key]
    f = net(image.cuda())
    FEATURES[key] = f  # <- found: cached-tensors
    return f

# case: test loader as one giant batch
import torch
from torch.utils.data import DataLoader

loader = DataLoader(test_ds, batch_size=len(test_ds), shuffle=False)  # <- found: evaluation-batch-of-everything
xs, ys = next(iter(loader))
model.to("cuda").eval()
with torch.no_grad():
    pred = model(xs.to("cuda")).argmax(1).cpu()
print((pred == ys).float().mean())

# case: segmentation metric sum on tensors with graph in training
import torch

iou_total = 0
for x, m in loader:
    out = torch.sigmoid(unet(x.cuda()))
    inter = (out * m.cuda()).sum()
    union = out.sum() + m.cuda().sum() - inter
    iou = (inter + 1) / (union + 1)
    loss = 1 - iou
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    iou_total += iou  # <- found: summed-loss

# case: language model evaluation sums in a method called by another method
import torch

class LMTrainer:
    def __init__(self, lm, opt):
        self.lm, self.opt = lm.cuda(), opt

    def loss_of(self, batch):
        return self.lm(batch["ids"].cuda(), labels=batch["ids"].cuda()).loss

    def evaluate(self, loader):
        self.lm.eval()
        total = 0
        for b in loader:
            total += self.loss_of(b)  # <- found: summed-loss, evaluation-with-gradients # missed at first
        self.lm.train()
        return float(total / len(loader))

    def train(self, loader, val):
        for b in loader:
            loss = self.loss_of(b)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        print(self.evaluate(val))
