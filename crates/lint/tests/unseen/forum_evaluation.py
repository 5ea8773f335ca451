# case: predictions of a whole test set are stacked with their graphs
import torch


def predict(model, test_loader):
    model.eval()
    predictions = []
    for batch in test_loader:
        output = model(batch["input_ids"].cuda(), attention_mask=batch["attention_mask"].cuda())  # <- found: evaluation-with-gradients
        predictions.append(output.logits)  # <- found: collected-outputs
    return torch.cat(predictions)

# case: predictions of a whole test set as numpy arrays
import numpy as np
import torch


@torch.inference_mode()
def predict(model, test_loader):
    model.eval()
    predictions = []
    for batch in test_loader:
        output = model(batch["input_ids"].cuda(), attention_mask=batch["attention_mask"].cuda())
        predictions.append(output.logits.cpu().numpy())
    return np.concatenate(predictions)

# case: features are extracted without no_grad and copied to the host with their graph
import torch
import torchvision

backbone = torchvision.models.resnet50(weights=None)
backbone.fc = torch.nn.Identity()
backbone = backbone.cuda().eval()

features = []
for images, _ in loader:
    f = backbone(images.cuda())  # <- found: evaluation-with-gradients
    features.append(f.cpu())  # <- found: collected-outputs

# case: features are extracted under inference mode
import torch
import torchvision

backbone = torchvision.models.resnet50(weights=None)
backbone.fc = torch.nn.Identity()
backbone = backbone.cuda().eval()

features = []
with torch.inference_mode():
    for images, _ in loader:
        f = backbone(images.cuda())
        features.append(f.cpu())

# case: embeddings are written into a dictionary by id
import torch


def embed(model, dataset):
    table = {}
    with torch.no_grad():
        for name, clip in dataset:
            table[name] = model(clip.unsqueeze(0).cuda())  # <- found: collected-outputs
    return table

# case: embeddings are moved to the host as they come
import torch


def embed(model, dataset):
    table = {}
    with torch.no_grad():
        for name, clip in dataset:
            table[name] = model(clip.unsqueeze(0).cuda()).cpu()
    return table

# case: a test loop that only calls eval
import torch


def test(net, testloader, device):
    net.eval()
    correct = 0
    total = 0
    for inputs, targets in testloader:
        inputs, targets = inputs.to(device), targets.to(device)
        outputs = net(inputs)  # <- found: evaluation-with-gradients
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    return 100.0 * correct / total

# case: a test loop with a decorator
import torch


@torch.no_grad()
def test(net, testloader, device):
    net.eval()
    correct = 0
    total = 0
    for inputs, targets in testloader:
        inputs, targets = inputs.to(device), targets.to(device)
        outputs = net(inputs)
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    return 100.0 * correct / total

# case: gradients are switched off for the whole process
import torch

torch.set_grad_enabled(False)
model = torch.hub.load("pytorch/vision", "resnet18").cuda().eval()
for images in loader:
    probabilities = model(images.cuda()).softmax(-1)
    print(probabilities.max(dim=-1))

# case: an adversarial attack needs gradients in evaluation
import torch
import torch.nn.functional as F


def fgsm(model, loader, epsilon):
    model.eval()
    correct = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        x.requires_grad_(True)
        loss = F.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        adversarial = (x + epsilon * x.grad.sign()).detach()
        with torch.no_grad():
            correct += (model(adversarial).argmax(1) == y).sum().item()
    return correct

# case: outputs of all batches are concatenated inside the loop on the card
import torch


def collect(model, loader):
    model.eval()
    everything = None
    with torch.no_grad():
        for x in loader:
            out = model(x.cuda())
            everything = out if everything is None else torch.cat((everything, out))  # <- found: collected-outputs
    return everything.cpu()

# case: outputs of all batches are concatenated on the host
import torch


def collect(model, loader):
    model.eval()
    everything = None
    with torch.no_grad():
        for x in loader:
            out = model(x.cuda()).cpu()
            everything = out if everything is None else torch.cat((everything, out))
    return everything

# case: a whole validation set in one forward pass
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(10, 2).cuda()
val_loader = DataLoader(val_set, batch_size=len(val_set))  # <- found: evaluation-batch-of-everything
with torch.no_grad():
    for x, y in val_loader:
        print((model(x.cuda()).argmax(1) == y.cuda()).float().mean())

# case: a validation set in ordinary batches
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(10, 2).cuda()
val_loader = DataLoader(val_set, batch_size=256)
right = 0
with torch.no_grad():
    for x, y in val_loader:
        right += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()

# case: outputs extended into a list
import torch

outs = []
model.eval()
with torch.no_grad():
    for x in loader:
        outs.extend(model(x.to("cuda")))  # <- found: collected-outputs

# case: labels extended into a list of numbers
import torch

outs = []
model.eval()
with torch.no_grad():
    for x in loader:
        outs.extend(model(x.to("cuda")).argmax(-1).tolist())

# case: hidden states of every layer are kept for each sentence
import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
bert = AutoModel.from_pretrained("bert-base-uncased").to("cuda")
bert.eval()
vectors = []
for sentence in sentences:
    encoded = tokenizer(sentence, return_tensors="pt").to("cuda")
    hidden = bert(**encoded).last_hidden_state  # <- found: evaluation-with-gradients
    vectors.append(hidden.mean(dim=1))  # <- found: collected-outputs

# case: hidden states go to the host as arrays
import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
bert = AutoModel.from_pretrained("bert-base-uncased").to("cuda")
bert.eval()
vectors = []
for sentence in sentences:
    encoded = tokenizer(sentence, return_tensors="pt").to("cuda")
    with torch.no_grad():
        hidden = bert(**encoded).last_hidden_state
    vectors.append(hidden.mean(dim=1).squeeze(0).cpu().numpy())

# case: a class that predicts in a method without no_grad
import torch


class Predictor:
    def __init__(self, model):
        self.model = model.eval().cuda()
        self.results = []

    def run(self, frames):
        for frame in frames:
            scores = self.model(frame.cuda())
            self.results.append(scores)  # <- found: collected-outputs

# case: a class that predicts in a method and keeps numbers
import torch


class Predictor:
    def __init__(self, model):
        self.model = model.eval().cuda()
        self.results = []

    @torch.no_grad()
    def run(self, frames):
        for frame in frames:
            scores = self.model(frame.cuda())
            self.results.append(scores.argmax().item())
