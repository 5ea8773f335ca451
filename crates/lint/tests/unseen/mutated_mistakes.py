# case: the net of a script is retained in a function
import torch.nn.functional as F
from models.wrn import WideResNet
net = WideResNet(40, 10)
net.cuda()
def train():
    net.train()
    for data, target in loader:
        x = net(data.cuda())
        opt.zero_grad()
        loss = F.cross_entropy(x, target.cuda())
        loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
        opt.step()

# case: the average of the losses is read after the loop
import torch.nn.functional as F
from models.wrn import WideResNet
net = WideResNet(40, 10)
def train():
    net.train()
    loss_avg = 0.0
    for data, target in loader:
        x = net(data.cuda())
        opt.zero_grad()
        loss = F.cross_entropy(x, target.cuda())
        loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
        opt.step()
        loss_avg = loss_avg * 0.8 + float(loss) * 0.2
    state['train_loss'] = loss_avg

# case: inputs are bound again on the card
import torch.nn.functional as F
from models.wrn import WideResNet
net = WideResNet(40, 10)
def train():
    net.train()
    for data, target in loader:
        data, target = data.cuda(), target.cuda()
        x = net(data)
        opt.zero_grad()
        loss = F.cross_entropy(x, target)
        loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
        opt.step()

# case: a wrapped language model accumulates gradients
import tqdm
from palm import PaLM
from wrapper import AutoregressiveWrapper
model = PaLM(num_tokens=256)
model = AutoregressiveWrapper(model, max_seq_len=1024)
model.cuda()
for i in tqdm.tqdm(range(100)):
    model.train()
    for __ in range(4):
        loss = model(next(train_loader))
        loss.backward(retain_graph=True)  # <- found: accumulated-loss-not-divided, retain-graph # missed at first
    optim.step()
    optim.zero_grad()

# case: a model that is given, a tokenizer and a device
def train(model, data_loader, optimizer, tokenizer, epoch, device):
    model.train()
    for i, (images, text, targets) in enumerate(data_loader):
        images, targets = images.to(device), targets.to(device)
        text_inputs = tokenizer(text, padding='longest', return_tensors="pt").to(device)
        loss = model(images, text_inputs, targets=targets, train=True)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
        optimizer.step()

# case: a method computes the loss
import torch.nn as nn
class T:
    def update(self, a, b):
        p = self.predictor(self.online(a))
        with torch.no_grad():
            t = self.target(b)
        return self.regression(p, t).mean()
    def train(self, loader):
        for a, b in loader:
            loss = self.update(a.cuda(), b.cuda())
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
            self.optimizer.step()

# case: a model gives a dict with its loss
import torch
for idx, ((a, b), labels) in enumerate(loader):
    model.zero_grad()
    data_dict = model.forward(a.cuda(), b.cuda())
    loss = data_dict['loss'].mean()
    loss.backward(retain_graph=True)  # <- found: retain-graph # missed at first
    optimizer.step()

# case: a loss function of the file serves training and validation
import torch
import torch.nn.functional as F
def compute_loss(model, batch):
    x, y = batch
    return F.cross_entropy(model(x.cuda()), y.cuda())
def train(model, loader, opt):
    model.train()
    for batch in loader:
        loss = compute_loss(model, batch)
        opt.zero_grad()
        loss.backward()
        opt.step()
def evaluate(model, loader):
    model.eval()
    total = 0
    for batch in loader:
        total += compute_loss(model, batch).item()  # <- found: evaluation-with-gradients # missed at first
    return total / len(loader)

# case: a loss function of the file serves the validation
import torch
import torch.nn.functional as F
def compute_loss(model, batch):
    x, y = batch
    return F.cross_entropy(model(x.cuda()), y.cuda())
def evaluate(model, loader):
    model.eval()
    total = 0
    for batch in loader:
        total += compute_loss(model, batch).item()  # <- found: evaluation-with-gradients # missed at first
    return total / len(loader)

# case: a method of a class serves training and validation
import torch
class Trainer:
    def forward_batch(self, batch):
        return self.criterion(self.model(batch[0].cuda()), batch[1].cuda())
    def train_epoch(self):
        self.model.train()
        for b in self.train_loader:
            loss = self.forward_batch(b)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
    def validate(self):
        self.model.eval()
        total = 0.0
        for b in self.val_loader:
            total += self.forward_batch(b).item()  # <- found: evaluation-with-gradients # missed at first
        return total

# case: the losses of several tasks are weighed and summed for printing
import torch
def train_mtl(model, loader, opt, weights):
    sums = {}
    for x, y in loader:
        total = 0
        for task in weights:
            l = ce(model(x.cuda()), y.cuda())
            sums[task] = sums.get(task, 0) + l  # <- found: summed-loss # missed at first
            total = total + weights[task] * l
        opt.zero_grad()
        total.backward()
        opt.step()
    return sums
