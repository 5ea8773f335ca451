# case: a validation function
def validate(model, loader, criterion):
    model.eval()
    total = 0.0
    for x, y in loader:
        output = model(x)  # <- found
        total += criterion(output, y).item()
    return total / len(loader)

# case: after the batches of an epoch
def fit(model, loader, held_out, optimizer, criterion):
    for epoch in range(10):
        model.train()
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        for x, y in held_out:
            print(criterion(model(x), y).item())  # <- found

# case: a model in an attribute
class Runner:
    def __init__(self, model):
        self.model = model

    def test(self, loader):
        self.model.eval()
        correct = 0
        for x, y in loader:
            correct += (self.model(x).argmax(1) == y).sum().item()  # <- found
        return correct

    def run(self, loader):
        print(self.test(loader))

# case: a method that only other files call
from torch import nn

class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def sample(self, batches):
        self.body.eval()
        for x in batches:
            print(self.body(x).tolist())

# case: the step it calls is decorated
import torch

class Trainer:
    def __init__(self, model):
        self.model = model
        self.model.train()

    @torch.no_grad()
    def step(self, x):
        print(self.model(x).argmax(1))

    def epoch(self, loader):
        self.model.eval()
        for x in loader:
            self.step(x)

    def run(self, loader):
        self.epoch(loader)

# case: a script that only predicts
from torchvision import models

net = models.resnet18(pretrained=True).cuda()
net.eval()
for image in images:
    print(net(image.cuda()).argmax(1).item())  # <- found

# case: the mode is set by train(False)
def predict(model, loader):
    model.train(False)
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()  # <- found
    return hits

# case: one loop with and one without
import torch

def test(model, first, second):
    model.eval()
    with torch.no_grad():
        for x, y in first:
            print(model(x).argmax(1).tolist())
    for x, y in second:
        print(model(x).argmax(1).tolist())  # <- found

# case: under no_grad
import torch

def validate(model, loader):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            print(model(x).argmax(1))

# case: a decorated function
import torch

@torch.inference_mode()
def validate(model, loader):
    model.eval()
    for x, y in loader:
        print(model(x).argmax(1))

# case: all callers run it under no_grad
import torch

def score(model, loader):
    model.eval()
    for x, y in loader:
        print(model(x).argmax(1))

def main(model, loader):
    with torch.no_grad():
        score(model, loader)

# case: an adversarial example
def attack(model, loader, criterion, step):
    model.eval()
    for x, y in loader:
        x.requires_grad_(True)
        loss = criterion(model(x), y)
        loss.backward()
        x = x + step * x.grad.sign()

# case: an attack in another function
import torch

def perturb(model, x, y, criterion):
    x = x.clone().requires_grad_(True)
    grad, = torch.autograd.grad(criterion(model(x), y), x)
    return x + 0.1 * grad.sign()

def robust_accuracy(model, loader, criterion):
    model.eval()
    for x, y in loader:
        adversarial = perturb(model, x, y, criterion)
        print(model(adversarial).argmax(1))

# case: a function that passes on its output
def features(model, x):
    model.eval()
    return model(x)

# case: training again
def probe(model, x):
    model.eval()
    model.train()
    out = model(x)
    print(out.argmax(1))

# case: fine-tuning with frozen batch norm
def train(model, loader, optimizer, criterion):
    model.eval()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

# case: the gradient mode depends on the phase
import torch

def run(model, loader, phase):
    if phase == "train":
        model.train()
    else:
        model.eval()
    for x, y in loader:
        with torch.set_grad_enabled(phase == "train"):
            out = model(x)
        print(out.argmax(1))

# case: frozen weights
def embed(model, loader):
    for p in model.parameters():
        p.requires_grad = False
    model.eval()
    for x, y in loader:
        print(model(x).argmax(1))

# case: a validation step of Lightning
import lightning as L

class Lit(L.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def validation_step(self, batch, index):
        x, y = batch
        self.model.eval()
        print(self.model(x).argmax(1))

# case: a volatile input, as before PyTorch 0.4
from torch.autograd import Variable

def test(model, loader, criterion):
    model.eval()
    total = 0
    for x, y in loader:
        output = model(Variable(x, volatile=True))
        total += criterion(output, Variable(y)).data[0]
    return total

# case: a model that hides the module it came from
import model

model = model.build(100)
print(sum(p.numel() for p in model.parameters()))

def evaluate(source):
    model.eval()
    total = 0
    for i in range(0, len(source)):
        output, hidden = model(source[i])  # <- found
        total += output.sum().item()
    return total

print(evaluate(source))

# case: numbers made of the outputs are returned
import math

def evaluate(model, data):
    model.eval()
    total = 0
    for x, y in data.batches():
        output = model(x)  # <- found
        total += (output - y).abs().sum().item()
    return math.sqrt(total), total / data.size

# case: the caller put the model into evaluation mode
from torchvision import models

def features(model, images):
    for image in images:
        output = model(image)  # <- found
        print(output.argmax(1).tolist())

def score(model, images):
    features(model, images)

net = models.resnet18().cuda()
net.eval()
score(net, images)

# case: one caller trains
from torchvision import models

def run(model, images):
    for image in images:
        print(model(image).argmax(1).tolist())

net = models.resnet18()
net.eval()
run(net, images)
net.train()
run(net, images)

# case: a whole model from a file
import torch

def evaluate(loader):
    model.eval()
    for x, y in loader:
        print(model(x).argmax(1).tolist())  # <- found

model = torch.load("model.pt")
evaluate(held_out)

# case: a number divided by something unknown is returned
from torch import nn

def evaluate(data, model, measure):
    model.eval()
    total = 0
    for x, y in data.batches():
        output = model(x)  # <- found
        total += measure(output, y).data
    return total / data.scale

print(evaluate(data, model, nn.MSELoss()))

# case: a decorator of the script's own
from tools import smart_inference_mode

@smart_inference_mode()
def run(model, loader):
    model.eval()
    for x, y in loader:
        print(model(x).argmax(1).tolist())

# case: a context that is chosen before
import contextlib
import torch

def run(model, loader, test):
    model.eval()
    context = torch.no_grad() if test else contextlib.nullcontext()
    for x, y in loader:
        with context:
            out = model(x)
        print(out.argmax(1).tolist())

# case: moved and put into evaluation mode at once
def test(model, loader, device):
    model.to(device).eval()
    for x, y in loader:
        print(model(x.to(device)).argmax(1).tolist())  # <- found

# case: made in evaluation mode
from torchvision import models

net = models.resnet18().cuda().eval()
for x in batches:
    print(net(x.cuda()).argmax(1).tolist())  # <- found

# case: in a comprehension
def test(model, loader):
    model.eval()
    print([model(x).argmax(1).tolist() for x, y in loader])  # <- found

# case: frozen by the method
def embed(model, loader):
    for p in model.parameters():
        p.requires_grad_(False)
    model.eval()
    for x, y in loader:
        print(model(x).argmax(1).tolist())

# case: one run whose output is unused
import torch

def calibrate(model, x):
    model.eval()
    model(x)
    torch.quantization.convert(model, inplace=True)

# case: frozen by TorchScript
import torch
from torchvision import models

net = models.resnet18()
net = torch.jit.freeze(torch.jit.script(net.eval()))
net.eval()
for x in batches:
    print(net(x).argmax(1).tolist())

# case: the graph is what the forward is for
import torch

def trace(model, example):
    model = model.cuda()
    model.eval()
    seen = {}

    def note(module, inputs, outputs):
        seen[outputs.grad_fn] = module

    hooks = [each.register_forward_hook(note) for each in model.modules()]
    out = model(example)
    return walk(out)

# case: the way out of a forward that needs gradients
import torch

def evaluate(model, loader):
    model = model.cuda()
    model.eval()
    for x in loader:
        try:
            with torch.no_grad():
                out = model(x)
        except RuntimeError:
            out = model(x)
        print(out.shape)

# case: nothing goes to a card
import torch
from torch import nn

if __name__ == "__main__":
    m = nn.Linear(4, 4)
    m.eval()
    print(m(torch.randn(1, 4)))

# case: gradients are disabled for the whole file
import torch

torch.set_grad_enabled(False)

def predict(model, loader, device):
    model.eval()
    for x in loader:
        print(model(x.to(device)).argmax(1))

# case: frozen by a function in the file
def freeze(network):
    for p in network.parameters():
        p.requires_grad = False

def evaluate(model, loader, device):
    freeze(model)
    model.eval()
    for x, y in loader:
        print((model(x.to(device)).argmax(1) == y).sum().item())

# case: frozen where it is made
import torch
from models import build

def load(path):
    net = build()
    net.load_state_dict(torch.load(path))
    for p in net.parameters():
        p.requires_grad_(False)
    return net

def evaluate(loader, device):
    model = load("best.pt")
    model.eval()
    for x, y in loader:
        print((model(x.to(device)).argmax(1) == y).sum().item())

# case: entered through a stack of contexts
import contextlib
import torch

def evaluate(model, loader, device):
    model.eval()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for x, y in loader:
            print((model(x.to(device)).argmax(1) == y).sum().item())

# case: a trial run for an export
import torch

def export(model, device):
    model.eval()
    example = torch.randn(1, 3, 224, 224, device=device)
    expected = model(example)
    torch.onnx.export(model, example, "model.onnx")
    print(expected.shape)

# case: weights in eight bits
import torch

def evaluate(net, loader):
    model = torch.ao.quantization.quantize_dynamic(net, {torch.nn.Linear}, dtype=torch.qint8)
    model.eval()
    for x, y in loader:
        print((model(x).argmax(1) == y).sum().item())

# case: a library that goes back through the outputs
import torch
from torchcam.methods import SmoothGradCAMpp

def explain(model, loader, device):
    model.eval()
    extractor = SmoothGradCAMpp(model)
    for x, y in loader:
        out = model(x.to(device))
        print(extractor(out.squeeze(0).argmax().item(), out))

# case: another framework
import paddle

def evaluate(model, loader):
    model.eval()
    for x, y in loader:
        print((model(x).argmax(1) == y).sum().item())

# case: words in a comment are no devices
import torch
from torch import nn

# the device is cuda, but not here: x.to("cuda") comes later
model = nn.Linear(4, 2)
model.eval()
for _ in range(3):
    print(model(torch.randn(1, 4)))

# case: a text about grad_fn is no use of it
import torch

def evaluate(model, loader, device):
    """Prints accuracies, not out.grad_fn."""
    model.eval()
    for x, y in loader:
        print((model(x.to(device)).argmax(1) == y).sum().item())  # <- found

# case: a main function without a device
import torch
from torch import nn

def main():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model.eval()
    for _ in range(3):
        print(model(torch.randn(1, 4)))

main()

# case: wrapped after its definition
import torch

def evaluate(model, loader, device):
    model.eval()
    for x, y in loader:
        print((model(x.to(device)).argmax(1) == y).sum().item())

evaluate = torch.no_grad()(evaluate)

# case: a module that records nothing itself
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    @torch.no_grad()
    def forward(self, x):
        return self.body(x)

def evaluate(loader, device):
    model = Encoder().to(device)
    model.eval()
    for x, y in loader:
        print((model(x.to(device)).argmax(1) == y).sum().item())

# case: a function inside one that records nothing
import torch

@torch.no_grad()
def evaluate(model, loader, device, run):
    def score(batch):
        model.eval()
        x, y = batch
        for part in x.split(8):
            print(model(part.to(device)).argmax(1))
    return run(score, loader)

# case: a unit test looks at the shape
import torch
from models import Net

def test_shape_of_output():
    device = torch.device("cuda")
    model = Net().to(device)
    model.eval()
    for size in (32, 64):
        out = model(torch.zeros(1, 3, size, size, device=device))
        assert out.shape == (1, 10)

# case: the weights of a torchvision model are frozen one by one
import torch
from torchvision import models

def features(loader, device):
    net = models.vgg16().features.to(device).eval()
    for index, weight in enumerate(net.parameters()):
        weight.requires_grad = False
    for x in loader:
        print(net(x.to(device)).mean().item())

# case: one function for both, told apart by a flag
import torch

def run(model, loader, criterion, device, optimizer=None):
    if optimizer is None:
        model.eval()
    else:
        model.train()
    for x, y in loader:
        loss = criterion(model(x.to(device)), y.to(device))
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

# case: saliency by a hook on the input
import torch

def saliency(model, x):
    model.eval()
    x.requires_grad = True
    score = model(x).max()
    score.backward()
    return x.grad.abs()

# case: the network of the Fréchet distance is made frozen
from inception import InceptionV3

def activations(files, model, device):
    model.eval()
    for batch in files:
        pred = model(batch.to(device))[0]
        print(pred.mean().item())

def main(files, device):
    model = InceptionV3([3])
    model.to(device)
    activations(files, model, device)

# case: moved to the host for one sample
import torch
from models import Classifier

def predict(text, classifier, vectorizer):
    vector = torch.tensor(vectorizer(text))
    result = classifier(vector.view(1, -1))
    return torch.sigmoid(result).item()

classifier = Classifier().cuda()
classifier.eval()
classifier = classifier.cpu()
print(predict("a good book", classifier, str))

# case: what is made on the host runs on the host
import torch
from torch import nn

def move(x):
    return torch.zeros(1).to(x.device)

if __name__ == "__main__":
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Conv2d(1, 3, 2)

        def forward(self, x):
            return self.body(x)

    net = Net()
    net.eval()
    example = torch.randn(1, 1, 3, 3)
    print(net(example))
    if example.dtype != torch.float64:
        example = torch.flip(example, [2])
    print(net(example))

# case: passed on, and run without gradients there
import functools
import torch

def evaluate(model, loader, device):
    model.eval()
    for x, y in loader:
        print((model(x.to(device)).argmax(1) == y).sum().item())

def main(model, loader, device):
    run = functools.partial(evaluate, model)
    with torch.no_grad():
        run(loader, device)

# case: without gradients by a switch with a name
import torch

def evaluate(model, loader, device):
    model.eval()
    with torch.set_grad_enabled(mode=False):
        for x, y in loader:
            print((model(x.to(device)).argmax(1) == y).sum().item())

# case: a policy that is asked by others
import torch

class Policy:
    def __init__(self, net, device):
        self.net = net.to(device)
        self.net.eval()

    def act(self, state):
        return self.net(state)

# case: a run that only counts
import torch

def count(model, example):
    model.eval()
    model.start_flops_count()
    _ = model(example)
    return model.compute_flops()

# case: what becomes an array at once is in host memory
def show(model, loader, plot):
    model.eval()
    for x in loader:
        out = model(x)
        plot(out.data.numpy())

# case: known to be wrong: the model of another file is one linear layer, of which autograd keeps nothing more
import torch
from probes import LogisticRegression

def test(loader, model, criterion):
    model.eval()
    total = 0
    for x, y in loader:
        x, y = x.to("cuda"), y.to("cuda")
        output = model(x)  # <- found
        loss = criterion(output, y)
        total += loss.item()
    return total

model = LogisticRegression(512, 10).to("cuda")
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
for x, y in train_loader:
    loss = criterion(model(x.to("cuda")), y.to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
test(test_loader, model, criterion)

# case: known to be wrong: a toy on the host, whose output goes to `numpy()` in another function
import torch
from flows import MAF

def show(data, axes):
    axes.scatter(data[:, 0].data.numpy(), data[:, 1].data.numpy())

def plot(model, target, axes):
    model.eval()
    data = target.sample((2000,))
    noise, _ = model(data)  # <- found
    show(noise, axes)

model = MAF(n_blocks=5).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
for step in range(1000):
    loss = -model.log_prob(target.sample((100,)).to("cuda")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        plot(model, target, axes)

# case: a function of another library gets the model and its loss
import torch
from torchmeta.utils import gradient_update_parameters

def test(model, tasks, criterion, device):
    model.eval()
    total = 0.0
    for x, y, query, target in tasks:
        loss = criterion(model(x.to(device)), y.to(device))
        params = gradient_update_parameters(model, loss, step_size=0.01)
        total += criterion(model(query.to(device), params=params), target.to(device)).item()
    return total

# case: a method that only the evaluation of the same object calls for every batch
class Evaluator:
    def __init__(self, model, loader, device):
        self.model, self.loader, self.device = model, loader, device

    def _predict(self, images):
        return self.model(images.to(self.device))  # <- found

    def run(self):
        self.model.eval()
        hits = 0
        for images, labels in self.loader:
            hits += (self._predict(images).argmax(1).cpu() == labels).sum().item()
        return hits

# case: the same method is used for training too: its call in the evaluation is meant
class Runner:
    def __init__(self, model, loader, device, optimizer):
        self.model, self.loader, self.device = model, loader, device
        self.optimizer = optimizer

    def _predict(self, images):
        return self.model(images.to(self.device))

    def evaluate(self):
        self.model.eval()
        hits = 0
        for images, labels in self.loader:
            hits += (self._predict(images).argmax(1).cpu() == labels).sum().item()  # <- found
        return hits

    def train(self, criterion):
        self.model.train()
        for images, labels in self.loader:
            loss = criterion(self._predict(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

# case: the caller decides about gradients
def test(net, x, without_gradients=True):
    net.eval()
    if without_gradients:
        with torch.no_grad():
            y = net(x.cuda())
    else:
        y = net(x.cuda())
    return y.argmax(1)

# case: code of PyTorch 0.3 tells a function of another file that its inputs are for a test
from torch.autograd import Variable
from utils import get_batch

def test(model, loader):
    model.eval()
    hits = 0
    for batch in loader:
        x, y = get_batch(batch, is_test=True)
        hits += (model(x).data.max(1)[1] == y.data).sum()
    return hits

# case: a web page runs a function
import gradio
import torch

net = load("net.pt").to("cuda")
net.eval()

def segment(image):
    mask = net(prepare(image).to("cuda"))[0].argmax(0)  # <- found
    return mask.cpu().numpy()

gradio.Interface(segment, "image", "image").launch()

# case: outputs become arrays right away, on the CPU
import numpy as np
import torch
import torch.nn.functional as F

device = "cuda"

def inception(model, loader):
    model.eval()
    return [F.softmax(model(x)).detach().numpy() for x in loader]

def score(model, loader):
    model.eval()
    scores = []
    for x, y in loader:
        scores.append(iou(np.array(model(x)["out"].squeeze(0).argmax(0)), y))
    return scores

# case: a shape at the end of a cell
model.eval()
model(x.cuda())["out"].argmax(0).shape

# case: a web service returns a number
import torch
from flask import Flask, jsonify, request

app = Flask(__name__)
model = torch.load("classifier.pth", map_location="cuda")
model.eval()

@app.route("/predict", methods=["POST"])
def predict():
    y = model(decode(request.data).to("cuda"))  # <- found
    return jsonify(label=int(y.argmax()))

# case: phases of one loop, always with gradients
import torch
for epoch in range(10):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        for x, y in loaders[phase]:
            opt.zero_grad()
            out = model(x.cuda())  # <- found
            loss = criterion(out, y.cuda())
            if phase == "train":
                loss.backward()
                opt.step()

# case: phases of one loop that switch gradients
import torch
for epoch in range(10):
    for phase in ["train", "val"]:
        if phase == "train":
            model.train()
        else:
            model.eval()
        for x, y in loaders[phase]:
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                if phase == "train":
                    loss.backward()
                    opt.step()

# case: a flag trains or evaluates, always with gradients
import torch
def run_epoch(model, loader, opt, train=True):
    model.train(train)
    total = 0.0
    for x, y in loader:
        out = model(x.cuda())  # <- found
        loss = torch.nn.functional.cross_entropy(out, y.cuda())
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item()
    return total

# case: a flag that switches gradients for all
import torch
def run_epoch(model, loader, opt, train=True):
    model.train(train)
    torch.set_grad_enabled(train)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()

# case: a method with a flag, always with gradients
import torch
class R:
    def run(self, loader, is_train):
        if is_train:
            self.model.train()
        else:
            self.model.eval()
        for x, y in loader:
            out = self.model(x.cuda())  # <- found
            loss = self.criterion(out, y.cuda())
            if is_train:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()

# case: the caller switches gradients off for the flag
import torch
def run_epoch(model, loader, opt, train):
    model.train(train)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
def main():
    run_epoch(model, a, opt, True)
    with torch.no_grad():
        run_epoch(model, b, opt, False)

# case: a flag for evaluation that switches gradients
import torch
def run_epoch(model, loader, opt, evaluate):
    if not evaluate:
        model.train()
    else:
        model.eval()
    for x, y in loader:
        with torch.set_grad_enabled(not evaluate):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        if not evaluate:
            opt.zero_grad()
            loss.backward()
            opt.step()

# case: one step of a framework, which switches gradients itself
import torch

class Configs:
    def step(self, batch, index):
        self.model.train(self.mode.is_train)
        loss = self.loss(self.model(batch[0].cuda()), batch[1].cuda())
        if self.mode.is_train:
            loss.backward()
            self.optimizer.step()
