# case: a model on all cards
import torch

model = torch.nn.DataParallel(model).cuda()  # <- found
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()

# case: on the cards that are there, trained by another function; one report per function
import torch
from torch import nn

def train(model, loader, optimizer):
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

def main(model, gpus, loader):
    if len(gpus) > 1:
        model = nn.DataParallel(model, device_ids=gpus)  # <- found
    else:
        model = nn.DataParallel(model)
    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))
    train(model, loader, optimizer)

# case: an attribute, trained by another method
import torch
from torch.nn.parallel import DataParallel

class Trainer:
    def __init__(self, model):
        self.model = DataParallel(model)  # <- found
        self.optimizer = torch.optim.SGD(self.model.module.parameters(), lr=0.1)

    def step(self, x):
        self.model(x).mean().backward()
        self.optimizer.step()

# case: asked for, not made
from torch import nn

def unwrap(model):
    return model.module if isinstance(model, nn.DataParallel) else model

# case: on one card
import torch

model = torch.nn.DataParallel(model, device_ids=[0])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()

# case: the other branch is distributed
import torch
from torch import nn

def main(model, distributed, loader):
    if distributed:
        model = nn.parallel.DistributedDataParallel(model)
    else:
        model = nn.DataParallel(model).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

# case: only evaluated
import torch
from torch import nn

def test(model, loader):
    model = nn.DataParallel(model).cuda()
    model.eval()
    for x in loader:
        print(model(x))

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

# case: a teacher that no optimizer knows
import torch
from torch import nn

def distil(student, teacher, loader):
    teacher = nn.DataParallel(teacher).cuda()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for x in loader:
        nn.functional.mse_loss(student(x), teacher(x)).backward()
        optimizer.step()

# case: the branch for machines without a card
import torch
from torch import nn

def main(model, loader):
    if torch.cuda.is_available():
        model = model.cuda()
    else:
        model = nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

# case: wrapped for its state alone
import torch
from torch import nn

net = nn.DataParallel(net, device_ids=range(4))
torch.save({"model": net.state_dict()}, "net.pt")

# case: another library's class of that name
from mmcv.parallel import DataParallel

model = DataParallel(model)

# case: made by a function, trained by its caller
import torch
from torch import nn

def create(build):
    model = build()
    model = nn.DataParallel(model).cuda()  # <- found
    return model

def main(build, loader):
    model = create(build)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

# case: a part of a model, passed to a function that trains the whole
from torch import nn
from util import make_optimizer

def create(build):
    model = build()
    model.encoder = nn.DataParallel(model.encoder)  # <- found
    return model, nn.MSELoss()

def train(loader, model, criterion, optimizer):
    model.train()
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()

def main(build, loader):
    model, criterion = create(build)
    train(loader, model, criterion, make_optimizer(model))

# case: an optimizer of unknown make
from torch import nn
from util import find

def main(model, loader, criterion, name):
    model = nn.DataParallel(model)  # <- found
    optimizer = find(name)(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

# case: made by a function, evaluated by its caller
import torch
from torch import nn

def create(build):
    return_model = nn.DataParallel(build()).cuda()
    return return_model

def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

def main(build, loader):
    teacher = create(build)
    teacher.eval()
    for x in loader:
        print(teacher(x))

# case: a loop for both, given no optimizer, only evaluates
import torch

def run(kind, loader, model, optimizer):
    if kind == "train":
        model.train()
    else:
        model.eval()
    for x, y in loader:
        loss = model(x).sum()
        if kind == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

def evaluate(model, loader):
    model = torch.nn.DataParallel(model).cuda()
    run("val", loader, model, None)

# case: a frozen encoder below a head that is trained
import torch
from torch import nn

def set_model(opt):
    encoder, head = make_encoder(opt), make_head(opt)
    if torch.cuda.device_count() > 1:
        encoder.body = torch.nn.DataParallel(encoder.body)
    return encoder.cuda(), head.cuda()

def train(loader, encoder, head, criterion, optimizer):
    encoder.eval()
    head.train()
    for x, y in loader:
        with torch.no_grad():
            features = encoder.body(x.cuda())
        loss = criterion(head(features.detach()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def main(opt, loader, criterion):
    encoder, head = set_model(opt)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    train(loader, encoder, head, criterion, optimizer)

# case: a script that evaluates unless it is told otherwise
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--evaluate", dest="evaluate", default=True, action="store_true")
args = parser.parse_args()

def train(loader, model, criterion, optimizer):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def validate(loader, model):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            print((model(x).argmax(1) == y).sum())

def main(net, train_loader, val_loader, criterion):
    model = nn.DataParallel(net).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.evaluate:
        validate(val_loader, model)
        return
    train(train_loader, model, criterion, optimizer)

# case: the cards are named by a number
import torch
from torch import nn

def train(net, loader, criterion):
    model = nn.DataParallel(net, device_ids=[0]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()

# case: frozen parts of a loss
import torch
from torch import nn
from lpips import LPIPS

def train(model, loader, optimizer):
    perceptual = nn.DataParallel(LPIPS()).cuda()
    for x in loader:
        out = model(x)
        loss = perceptual(out, x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: several processes by Horovod are the other way
import horovod.torch as hvd
import torch
from torch import nn

def train(net, loader, criterion, use_horovod):
    if use_horovod:
        hvd.init()
        model = net.cuda()
    else:
        model = nn.DataParallel(net).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

# case: one card is visible
import os
import torch
from torch import nn

os.environ["CUDA_VISIBLE_DEVICES"] = "0"

def train(net, loader, criterion):
    model = nn.DataParallel(net).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

# case: several cards are visible
import os
import torch
from torch import nn

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"

def train(net, loader, criterion):
    model = nn.DataParallel(net).cuda()  # <- found
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

# case: processes of a group are started for several cards
import torch
import torch.distributed as dist
from torch import nn
from parallel import wrap

def train(net, loader, criterion, ranks):
    if ranks > 1:
        dist.init_process_group("nccl")
        model = wrap(net)
    else:
        model = nn.DataParallel(net).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

# case: a branch that tests and ends the program
import sys
import torch
from torch import nn

def main(args, net, loader, criterion):
    if args.test:
        net = nn.DataParallel(net).cuda()
        net.eval()
        with torch.no_grad():
            for x, y in loader:
                print((net(x).argmax(1) == y).sum().item())
        sys.exit(0)
    net = nn.DataParallel(net).cuda()  # <- found
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()

# case: a number of cards that is one
import torch
from torch import nn

ngpu = 1
device = torch.device("cuda:0" if torch.cuda.is_available() and ngpu > 0 else "cpu")
net = nn.Linear(4, 4).to(device)
if device.type == "cuda" and ngpu > 1:
    net = nn.DataParallel(net, list(range(ngpu)))
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader:
    net.zero_grad()
    criterion(net(x), y).backward()
    optimizer.step()

# case: as many cards as the command line says, one unless told
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--ngpu", type=int, default=1)
args = parser.parse_args()
net = nn.Linear(4, 4).cuda()
if args.ngpu > 1:
    net = nn.DataParallel(net, list(range(args.ngpu)))  # <- found
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader:
    net.zero_grad()
    criterion(net(x), y).backward()
    optimizer.step()

# case: a script that wraps its optimizer, too, ends at the first step with several cards
import torch
from torch import nn, optim

class Experiment:
    def __init__(self, model, cards):
        self.model = model
        if cards > 1:
            self.model = nn.DataParallel(self.model)
        self.model.to("cuda")
        self.optimizer = optim.Adam(self.model.parameters())
        if cards > 1:
            self.optimizer = nn.DataParallel(self.optimizer)

    def train(self, loader, criterion):
        for x, y in loader:
            loss = criterion(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

# case: known to be wrong: with several cards the script ends at `torch.device("cuda:0,1")`
import torch
from torch import nn

device = torch.device("cuda:" + args.gpu if torch.cuda.is_available() else "cpu")
gpus = [int(gpu) for gpu in args.gpu.split(",")]
model = Network()
if len(gpus) > 1:
    model = nn.parallel.DataParallel(model, device_ids=gpus)  # <- found
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: known to be wrong: the wrapper that only validates, beside the one that trains
import torch
from torch import nn

def train(loader, distiller, optimizer):
    for x, y in loader:
        loss = distiller(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def validate(loader, net):
    net.eval()
    with torch.no_grad():
        for x, y in loader:
            net(x.cuda())

def main(teacher, student, distiller, loader):
    student = nn.DataParallel(student).cuda()  # <- found
    distiller = nn.DataParallel(distiller).cuda()
    optimizer = torch.optim.SGD(list(student.parameters()) + list(distiller.module.connectors.parameters()), lr=0.1)
    for epoch in range(100):
        train(loader, distiller, optimizer)
        validate(loader, student)
