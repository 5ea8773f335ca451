# case: a function that appends
from torchvision import models

net = models.resnet18()
kept = []

def hook(module, inputs, output):
    kept.append(output)  # <- found

net.layer4.register_forward_hook(hook)
for x in batches:
    net(x)

# case: a lambda
from torchvision import models

net = models.resnet18()
kept = []
net.fc.register_forward_hook(lambda module, inputs, output: kept.append(output))  # <- found
for x in batches:
    net(x)

# case: the inputs of the layer
from torchvision import models

net = models.resnet18()
kept = []

def hook(module, inputs, output):
    kept.append(inputs[0])  # <- found

net.fc.register_forward_hook(hook)
for x in batches:
    net(x)

# case: a method of an extractor
from torchvision import models

class Extractor:
    def __init__(self):
        self.features = []
        self.net = models.resnet18()
        self.net.layer4.register_forward_hook(self.hook)

    def hook(self, module, inputs, output):
        self.features.append(output)  # <- found

    def run(self, loader):
        for x in loader:
            self.net(x)

# case: moved, but with its graph
from torchvision import models

net = models.resnet18()
kept = []

def hook(module, inputs, output):
    kept.append(output.cpu())  # <- found

net.layer4.register_forward_hook(hook)
for x in batches:
    net(x)

# case: made by a function
from torchvision import models

net = models.resnet18()
kept = []

def keeper():
    def hook(module, inputs, output):
        kept.append(output)  # <- found
    return hook

net.layer4.register_forward_hook(keeper())
for x in batches:
    net(x)

# case: detached
from torchvision import models

net = models.resnet18()
kept = []

def hook(module, inputs, output):
    kept.append(output.detach().cpu())

net.layer4.register_forward_hook(hook)
for x in batches:
    net(x)

# case: emptied after every batch
from torchvision import models

net = models.resnet18()
kept = []

def hook(module, inputs, output):
    kept.append(output)

net.layer4.register_forward_hook(hook)
for x in batches:
    net(x)
    print(len(kept))
    kept.clear()

# case: the features go into a loss
from torchvision import models

net = models.resnet18()
kept = []

def hook(module, inputs, output):
    kept.append(output)

net.layer4.register_forward_hook(hook)
for x in batches:
    net(x)
    loss = sum(each.pow(2).mean() for each in kept)
    loss.backward()

# case: one picture
from torchvision import models

net = models.resnet18()
kept = []
net.layer4.register_forward_hook(lambda module, inputs, output: kept.append(output))
net(image)
print(kept[0].shape)

# case: overwritten in every pass
from torchvision import models

net = models.resnet18()
last = {}

def hook(module, inputs, output):
    last["layer4"] = output

net.layer4.register_forward_hook(hook)
for x in batches:
    net(x)

# case: without gradients
import torch
from torchvision import models

net = models.resnet18()
kept = []
net.layer4.register_forward_hook(lambda module, inputs, output: kept.append(output))
with torch.no_grad():
    for x in batches:
        net(x)

# case: sizes
from torchvision import models

net = models.resnet18()
sizes = []

def hook(module, inputs, output):
    sizes.append(output.shape)

net.layer4.register_forward_hook(hook)
for x in batches:
    net(x)

# case: a hook for one pass, taken off again before the training
import torch
from torch import nn

def width_of(model, layer, device):
    outputs = []
    handle = layer.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    model(torch.zeros(1, 3, 224, 224, device=device))
    handle.remove()
    return outputs[0].shape[1]

def train(loader, optimizer, criterion, device):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.LazyLinear(10)).to(device)
    head = nn.Linear(width_of(model, model[0], device), 10).to(device)
    for x, y in loader:
        loss = criterion(head(model(x.to(device))), y.to(device))
        loss.backward()
        optimizer.step()

# case: the last activation of each layer, under its name
import torch

activations = {}

def keep(name):
    def hook(module, inputs, output):
        activations[name] = output
    return hook

def train(model, loader, optimizer, criterion):
    model.layer4.register_forward_hook(keep("layer4"))
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

# case: features that a loss is made of
import torch
import torch.nn.functional as F

class Perceptual:
    def __init__(self, net):
        self.net = net
        self.features = []
        for layer in net.children():
            layer.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.features.append(output)

    def loss(self, image, target):
        self.features.clear()
        self.net(image)
        return sum(F.mse_loss(feature, wanted) for feature, wanted in zip(self.features, target))

def fit(image, target, net, optimizer):
    perceptual = Perceptual(net)
    for _ in range(100):
        loss = perceptual.loss(image, target)
        loss.backward()
        optimizer.step()
        net(image)

# case: only numbers of each activation
import torch

means = []

def hook(module, inputs, output):
    means.append(output.detach().mean().item())

def train(model, loader, optimizer, criterion):
    model.layer.register_forward_hook(hook)
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: the hook is for the evaluation, which records nothing
import torch

features = []

def hook(module, inputs, output):
    features.append(output)

@torch.no_grad()
def extract(model, loader):
    model.layer.register_forward_hook(hook)
    for x, y in loader:
        model(x)
    return features

# case: registered when the training is over
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
outputs = []

def hook(module, inputs, output):
    outputs.append(output)

model[1].register_forward_hook(hook)
model(x)
print(outputs)

# case: an object that registers its own method runs the model
class Extractor:
    def __init__(self, net):
        self.net = net
        self.outputs = []
        net.layer.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.outputs.append(output)  # <- found

    def __call__(self, x):
        return self.net(x)

extractor = Extractor(net.cuda())
for x, y in loader:
    loss = criterion(extractor(x.cuda()), y.cuda())
    loss.backward()

# case: a hook of a tensor, in the loop
gradients = []
for x, y in loader:
    hidden = encoder(x.cuda())
    hidden.register_hook(lambda gradient: gradients.append(gradient))  # <- found
    loss = criterion(head(hidden), y.cuda())
    loss.backward()
    optimizer.step()
