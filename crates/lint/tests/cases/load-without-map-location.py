# case: a checkpoint that stays bound while training goes on
import torch
from torch import nn

def main(path, loader):
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = torch.load(path)  # <- found
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()

# case: straight into a model on the card
import torch
from torchvision import models

model = models.resnet18().cuda()
model.load_state_dict(torch.load("best.pt"))  # <- found

# case: a part of the checkpoint
import torch
from torchvision import models

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = models.resnet18().to(device)
model.load_state_dict(torch.load("best.pt")["state_dict"])  # <- found

# case: training runs in another function
import torch
from torchvision import models

def train(model, loader, optimizer):
    for x, y in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()

def main(path, loader):
    model = models.resnet18()
    state = torch.load(path)  # <- found
    model.load_state_dict(state)
    model.cuda()
    train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))

# case: keys are renamed on the way
import torch
from torchvision import models

model = models.resnet18().cuda()
state = torch.load("best.pt", weights_only=True)  # <- found
renamed = {key.replace("module.", ""): value for key, value in state.items()}
model.load_state_dict(renamed)

# case: an attribute
import torch
from torchvision import models

class Solver:
    def __init__(self):
        self.G = models.resnet18().cuda()

    def resume(self, path):
        self.G.load_state_dict(torch.load(path))  # <- found

# case: a place is given
import torch
from torchvision import models

model = models.resnet18().cuda()
model.load_state_dict(torch.load("a.pt", map_location="cpu"))
model.load_state_dict(torch.load("a.pt", "cpu"))
model.load_state_dict(torch.load("a.pt", **options))

# case: into a model on the CPU, and gone at once
import torch
from torchvision import models

model = models.resnet18()
model.load_state_dict(torch.load("a.pt"))
model.cuda()

# case: nothing is on the card
import torch
from torchvision import models

model = models.resnet18()
state = torch.load("a.pt")
model.load_state_dict(state)
print(model(torch.zeros(1, 3, 224, 224)))

# case: data and whole models
import torch

vocabulary, sentences = torch.load("data.pt")
model = torch.load("model.pt")
model.cuda()
print(model(sentences.cuda()))

# case: deleted before training
import torch
from torchvision import models

def main(path, loader):
    model = models.resnet18()
    state = torch.load(path)
    model.load_state_dict(state)
    del state
    model.cuda()
    for x, y in loader:
        model(x.cuda()).sum().backward()

# case: a helper that returns
import torch

def restore(model, path):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    return state["epoch"]

def use(x):
    return x.cuda()

# case: the state of a scheduler
import torch

def main(path, model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    state = torch.load(path)
    scheduler.load_state_dict(state)
    for x, y in loader:
        model(x.cuda()).sum().backward()

# case: only an optimizer takes it
import torch

def main(path, model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    state = torch.load(path)
    optimizer.load_state_dict(state)
    for x, y in loader:
        model(x.cuda()).sum().backward()

# case: saved from the host by the same file
import torch
from torchvision import models

def save(model, path):
    state = model.state_dict()
    for key in state.keys():
        state[key] = state[key].cpu()
    torch.save({"model": state}, path)

def main(path, loader):
    model = models.resnet18().cuda()
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    for x, y in loader:
        model(x.cuda()).sum().backward()
    save(model, path)

# case: published weights for a part of the model
import torch
from torch import nn
from torchvision import models

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.vgg = models.vgg16()

    def forward(self, x):
        return self.vgg(x)

net = Net().cuda()
weights = torch.load("vgg.pth")
net.vgg.load_state_dict(weights)
for x in batches:
    net(x.cuda()).sum().backward()

# case: an optimizer from elsewhere takes it
import torch
from fp16 import FP16_Optimizer

def main(path, model, loader):
    optimizer = torch.optim.Adam(model.parameters())
    optimizer = FP16_Optimizer(optimizer)
    state = torch.load(path)
    optimizer.load_state_dict(state)
    for x, y in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()

# case: published weights for a part of a model from elsewhere
import torch
from nets import build

def main(loader):
    net = build("train")
    weights = torch.load("vgg.pth")
    net.vgg.load_state_dict(weights)
    net.cuda()
    for x, y in loader:
        net(x.cuda()).sum().backward()

# case: written over several lines
import torch
from torchvision import models

model = models.resnet18().cuda()
model.load_state_dict(
    torch.load(  # <- found
        ("best.pt"),  # the best, so far
    )
)
model.load_state_dict(
    torch.load(  # <- found
        f=("best.pt")  # the best, so far
    )
)

# case: a buffer that was just written
import io
import torch
from torchvision import models

def copy(loader):
    model = models.resnet18()
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    state = torch.load(buffer)
    model.load_state_dict(state)
    model.cuda()
    for x in loader:
        model(x.cuda()).sum().backward()

# case: a script that never uses a card
import torch
from torch import nn

model = nn.Linear(4, 4)
model.load_state_dict(torch.load("weights.pt"))
print(model(torch.zeros(1, 4)))

# case: a comment with parentheses after the last argument
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
model.load_state_dict(
    torch.load(  # <- found
        "weights.pt",  # the best (of ten)
    )
)
for x in range(3):
    print(model(torch.zeros(1, 4).cuda()))

# case: a vocabulary, which holds no weights
import torch
from torch import nn

vocabulary = torch.load("vocabulary.pt")
model = nn.Embedding(len(vocabulary), 8).cuda()
print(model(torch.zeros(1, dtype=torch.long).cuda()))

# case: released before anything runs
import torch
from torch import nn

def load(path):
    model = nn.Linear(4, 4)
    state = torch.load(path)
    model.load_state_dict(state)
    del state
    model.cuda()
    return model

# case: the state of a scheduler
import torch

def resume(path, model, scheduler):
    model.cuda()
    state = torch.load(path)
    scheduler.load_state_dict(state)
    for x in range(3):
        model(torch.zeros(1).cuda())

# case: written by the same function from the host
import torch
from torch import nn

def train(loader, criterion):
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        criterion(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
    torch.save({name: value.cpu() for name, value in model.state_dict().items()}, "best.pt")
    model.load_state_dict(torch.load("best.pt"))
    return model(torch.zeros(1, 4).cuda())

# case: the other branch takes a published file
import torch
import torch.utils.model_zoo as model_zoo
from models import Net

def main(args):
    model = Net().cuda()
    if args.start.startswith("http"):
        state = model_zoo.load_url(args.start)
    else:
        state = torch.load(args.start)
    own = model.state_dict().copy()
    for name in state:
        own[name.split(".", 1)[1]] = state[name]
    model.load_state_dict(own)
    for x in range(3):
        print(model(torch.zeros(1).cuda()))

# case: a branch that converts a file and runs nothing
import torch
from models import Net

def main(args, loader):
    model = Net()
    if args.convert:
        state = torch.load(args.path)
        model.load_state_dict(state)
        torch.save(model.state_dict(), args.out)
    else:
        model.cuda()
        for x in loader:
            print(model(x.cuda()).argmax(1))

# case: a name that is rebound to a fresh model
import torch
from models import Net, Tuned

net = Net()
net.cuda()
for x in loader:
    print(net(x.cuda()))
net = Net()
net.load_state_dict(torch.load("weights.pt"))
net = Tuned(net).cuda()

# case: what is saved was moved to the host before
import torch

def train(net, loader, optimizer, criterion):
    net.cuda()
    for x, y in loader:
        criterion(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
    net.eval()
    net.to("cpu")
    torch.save(net.state_dict(), "net.pt")

def main(net, loader, optimizer, criterion):
    train(net, loader, optimizer, criterion)
    state = torch.load("net.pt")
    net.load_state_dict(state)
    for x in loader:
        print(net(x.cuda()))

# case: the files of BasicSR hold host tensors
import torch
from models import Net

net = Net()
checkpoint = torch.load("restored.pth")
net.load_state_dict(checkpoint["params"])
net.cuda()
net.eval()
for x in loader:
    print(net(x.cuda()))

# case: known to be wrong: the script that saved it, another file, had moved the model to the host
import torch
from net import Net

model = Net(ngf=128)
model.cuda()
model.load_state_dict(torch.load("models/21styles.model"))  # <- found
model.eval()
with torch.no_grad():
    show(model(image.cuda()))
