# case: outputs with their graphs, in evaluation without no_grad
import torch
from torch.utils.data import DataLoader

def predict(model, data):
    model.eval()
    outputs = []
    for x, y in DataLoader(data):
        outputs.append(model(x))  # <- found
    return torch.cat(outputs)

# case: outputs beside training
import torch

def train(model, loader, optimizer, criterion):
    model.train()
    preds = []
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        preds.append(torch.sigmoid(out))  # <- found
    return torch.cat(preds)

# case: on the card, without gradients
import torch
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

@torch.no_grad()
def features(model, data):
    model.eval()
    kept = []
    for x, y in DataLoader(data):
        kept.append(model(x.to(device)))  # <- found
    return torch.cat(kept)

# case: one name on the way
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
all_logits = []
with torch.no_grad():
    for x, y in torch.utils.data.DataLoader(data):
        logits = model(x.cuda())
        probs = logits.softmax(dim=-1)
        all_logits += [probs]  # <- found

# case: the logits of a transformers model
import torch
from transformers import AutoModelForSequenceClassification
from torch.utils.data import DataLoader

model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased").cuda()
model.eval()
predictions = []
for batch in DataLoader(data):
    out = model(batch["input_ids"].cuda())
    predictions.append(out.logits)  # <- found

# case: by the number of the batch
import torch
from torch.utils.data import DataLoader

def run(model, data):
    model.eval()
    results = {}
    with torch.no_grad():
        for i, x in enumerate(DataLoader(data)):
            results[i] = model(x.cuda())  # <- found
    return results

# case: moved away
import torch
from torch.utils.data import DataLoader

@torch.no_grad()
def features(model, data):
    kept, more, arrays = [], [], []
    for x, y in DataLoader(data):
        out = model(x.cuda())
        kept.append(out.cpu())
        more.append(out.to("cpu"))
        arrays.append(out.cpu().numpy())
    return kept, more, arrays

# case: only the classes are kept
import torch
from torch.utils.data import DataLoader

@torch.no_grad()
def classes(model, data):
    kept = []
    for x, y in DataLoader(data):
        kept.append(model(x.cuda()).argmax(1))
    return torch.cat(kept)

# case: steps of a decoder
import torch

def decode(decoder, state, length):
    outputs = []
    for t in range(length):
        out = decoder(state)
        outputs.append(out)
    return torch.stack(outputs)

# case: layers of a module
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        outs = []
        for layer in self.layers:
            x = layer(x)
            outs.append(x)
        return outs

# case: outputs that are backpropagated together
import torch

def step(model, loader, optimizer, criterion, target):
    outs = []
    for x, y in loader:
        outs.append(model(x))
    loss = criterion(torch.cat(outs), target)
    loss.backward()
    optimizer.step()

# case: recreated for every batch
import torch
from torch.utils.data import DataLoader

def ensemble(models, data):
    for x, y in DataLoader(data):
        outs = []
        outs.append(models[0](x.cuda()))
        print(outs)

# case: without gradients and perhaps not on the card
import torch

@torch.no_grad()
def predict(model, loader):
    model.eval()
    kept = []
    for x, y in loader:
        kept.append(model(x))
    return kept

# case: without gradients on a device that is chosen elsewhere
import torch

@torch.no_grad()
def predict(model, loader, device):
    model.eval()
    kept = []
    for x, y in loader:
        kept.append(model(x.to(device)))  # <- found
    return torch.cat(kept).cpu()

# case: collected outputs are compared on the card
import torch

@torch.no_grad()
def predict(model, loader, wanted):
    model.eval()
    kept = []
    for x, y in loader:
        kept.append(model(x.cuda()))
    kept = torch.cat(kept)
    return kept == wanted

# case: in one iteration only
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
kept = []
for step in range(100):
    out = model(torch.randn(8, 4, device="cuda"))
    loss = out.pow(2).mean()
    loss.backward()
    if step == 0:
        kept.append(out.detach())

# case: distances are computed on the card afterwards
import torch
from torch.utils.data import DataLoader

@torch.no_grad()
def nearest(model, data):
    model.eval()
    embeds = []
    for x, y in DataLoader(data):
        embeds.append(model(x.cuda()))
    embeds = torch.cat(embeds, dim=0)
    distances = torch.cdist(embeds, embeds)
    return distances.argmin(1)

# case: joined and then taken to the host
import torch
from torch.utils.data import DataLoader

@torch.no_grad()
def features(model, data):
    model.eval()
    kept = []
    for x, y in DataLoader(data):
        kept.append(model(x.cuda()))  # <- found
    kept = torch.cat(kept, dim=0)
    return kept.detach().cpu()

# case: joined to what there is
import torch

def predict(model, data):
    model.eval()
    everything = None
    for x, y in data.batches():
        out = model(x)
        if everything is None:
            everything = out
        else:
            everything = torch.cat((everything, out))  # <- found
    print(everything.data.cpu().numpy())

# case: joined in every layer of a module
import torch
from torch import nn

class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat((x, layer(x)), dim=1)
        return x

# case: moved away, but with their graphs
import torch
from torch.utils.data import DataLoader

def predict(model, data):
    model.eval()
    outputs = []
    for x, y in DataLoader(data):
        outputs.append(model(x.cuda()).cpu())  # <- found
    return torch.cat(outputs)

# case: in a comprehension
import torch
from torch.utils.data import DataLoader

def predict(model, data):
    model.eval()
    outputs = [model(x) for x, y in DataLoader(data)]  # <- found
    return torch.cat(outputs)

# case: in a comprehension without gradients
import torch
from torch.utils.data import DataLoader

@torch.no_grad()
def predict(model, data):
    model.eval()
    outputs = [model(x) for x, y in DataLoader(data)]
    return torch.cat(outputs)

# case: one of several results
def run(net, support, batches):
    net.eval()
    preds = []
    for x, y in batches:
        loss, pred, correct = net(support, x, y)
        preds.append(pred)

# case: one of several results that goes into a loss
import torch.nn.functional as F

def run(net, batches):
    net.eval()
    kept = []
    for x, y in batches:
        logits, hidden = net(x)
        print(F.cross_entropy(logits, y).item())
        kept.append(logits)  # <- found

# case: the first batches only, for a picture
import torch

@torch.no_grad()
def pictures(model, loader):
    model.eval()
    shown = []
    for i, (x, _) in enumerate(loader):
        out = model(x.cuda())
        if i < 4:
            shown.append(out)
    return torch.cat(shown)

# case: as many as are wanted
import torch

@torch.no_grad()
def samples(model, loader, wanted):
    model.eval()
    shown = []
    for x, _ in loader:
        out = model(x.cuda())
        if len(shown) < 16:
            shown.append(out)
    return torch.cat(shown).cpu()

# case: once in so many steps
import torch
from torch import nn

def train(loader, optimizer, criterion, noise):
    model = nn.Linear(4, 4).cuda()
    pictures = []
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 500 == 0:
            with torch.no_grad():
                pictures.append(model(noise.cuda()))
    return pictures

# case: the most likely class of each sample is small
import torch

@torch.no_grad()
def predict(model, loader):
    model.eval()
    labels = []
    for x, _ in loader:
        labels.append(model(x.cuda()).argmax(1))
    return torch.cat(labels).cpu()

# case: what the loss of the whole is made of
import torch

def train(model, loader, optimizer, criterion, targets):
    for epoch in range(3):
        outputs = []
        for x, _ in loader:
            outputs.append(model(x.cuda()))
        loss = criterion(torch.cat(outputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: moved to the host one by one
import torch

@torch.no_grad()
def embed(model, loader):
    model.eval()
    rows = []
    for x, _ in loader:
        rows.append(model(x.cuda()).cpu())
    return torch.cat(rows)

# case: compared with each other on the card
import torch

@torch.no_grad()
def retrieve(model, loader):
    model.eval()
    rows = []
    for x, _ in loader:
        rows.append(model(x.cuda()))
    rows = torch.cat(rows)
    return (rows @ rows.t()).topk(5).indices.cpu()

# case: the outputs of a batch's chunks, joined after them
import torch

def train(model, loader, optimizer, criterion, accuracy):
    for data, targets in loader:
        optimizer.zero_grad()
        outputs = []
        chunks = data.cuda().chunk(4)
        wanted = targets.cuda().chunk(4)
        for chunk, target in zip(chunks, wanted):
            output = model(chunk)
            outputs.append(output)
            criterion(output, target).backward()
        optimizer.step()
        print(accuracy(torch.cat(outputs), targets))

# case: known to be wrong: a caller computes with the outputs on the card
import torch

def embed(model, loader):
    kept = []
    model.eval()
    for x, _ in loader:
        with torch.no_grad():
            z = model(x.to(model.device))
        kept.append(z)  # <- found
    return torch.cat(kept)

def nearest(query, model, loader):
    return torch.cdist(query, embed(model, loader)).argmin()

# case: outputs are joined on the card and then moved
import torch

@torch.inference_mode()
def embed(model, loader):
    features = torch.cat([model(x.cuda()) for x, _ in loader])  # <- found
    return features.cpu().numpy()

# case: the last attention of each batch
import torch

maps = []
with torch.inference_mode():
    for ids in loader:
        out = model(ids.cuda(), output_attentions=True)
        maps.append(out.attentions[-1])  # <- found
maps = torch.cat(maps).cpu()

# case: indices of codes
import torch

codes = []
with torch.no_grad():
    for x in loader:
        output = model(x.cuda())
        indices = output["indices"]
        codes.append(indices)
torch.save(torch.cat(codes), "codes.pt")

# case: a model decodes step by step
import torch
from torch import nn

class Decoder(nn.Module):
    def decode(self, embedded):
        sentences = torch.zeros(20, 8, 1000, device="cuda")
        state = torch.zeros(8, 64, device="cuda")
        for index in range(20):
            state = self.cell(embedded[:, index], state)
            logits = self.projector(state)
            sentences[index] = logits
        return sentences

    def forward(self, tokens):
        return self.decode(self.embedding(tokens))

model = Decoder().cuda()
model.eval()
print(model.decode(embedded).shape)
