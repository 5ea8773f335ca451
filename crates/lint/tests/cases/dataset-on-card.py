# case: cut into batches
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(model.parameters())
data = torch.from_numpy(load()).float().cuda()  # <- found
for start in range(0, len(data), 64):
    loss = model(data[start:start + 64]).mean()
    loss.backward()
    optimizer.step()

# case: chosen at random
import torch
from torch import nn

device = "cuda"

def train(rows, steps):
    model = nn.Linear(4, 4).to(device)
    x = torch.tensor(rows).to(device)  # <- found
    for step in range(steps):
        chosen = torch.randint(0, len(x), (64,))
        loss = model(x[chosen]).mean()
        loss.backward()

# case: a tensor dataset
import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.tensor(images).cuda()  # <- found
y = torch.tensor(labels).cuda()  # <- found
loader = DataLoader(TensorDataset(x, y), batch_size=32)

# case: moved in a second step
import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.from_numpy(images)
x = x.to("cuda")  # <- found
loader = DataLoader(TensorDataset(x), batch_size=32)

# case: loaded from a file
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
data = torch.load("data.pt", map_location="cpu").cuda()  # <- found
for i in range(1000):
    loss = net(data[i * 32:(i + 1) * 32]).mean()
    loss.backward()

# case: columns are kept
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
table = torch.as_tensor(frame).to("cuda")  # <- found
for i in range(1000):
    batch = table[i * 32:(i + 1) * 32, :4]
    loss = net(batch).mean()
    loss.backward()

# case: each batch is moved
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
data = torch.from_numpy(load())
for start in range(0, len(data), 64):
    loss = net(data[start:start + 64].cuda()).mean()
    loss.backward()

# case: the whole graph at once
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
features = torch.from_numpy(load()).cuda()
train_rows = torch.arange(140).cuda()
for epoch in range(200):
    out = net(features)
    loss = out[train_rows].mean()
    loss.backward()

# case: a fixed choice of rows
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
labels = torch.from_numpy(load()).cuda()
rows = torch.arange(140).cuda()
for epoch in range(200):
    loss = (net(x) - labels[rows]).mean()
    loss.backward()

# case: a few numbers
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
weights = torch.tensor([1.0, 2.0, 3.0]).cuda()
for i in range(3):
    loss = net(x).mean() * weights[i]
    loss.backward()

# case: made at random
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
data = torch.randn(100, 4).cuda()
for i in range(100):
    loss = net(data[i:i + 1]).mean()
    loss.backward()

# case: moved inside the loop
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
for part in parts:
    data = torch.from_numpy(part).cuda()
    for start in range(0, len(data), 64):
        loss = net(data[start:start + 64]).mean()
        loss.backward()

# case: what a function is given
from torch import nn

def train(net, data, steps):
    net.train()
    data = data.cuda()
    for i in range(steps):
        loss = net(data[i * 32:(i + 1) * 32]).mean()
        loss.backward()

# case: one row after the other
import numpy as np
import torch
from torch import nn

net = nn.Linear(4, 4).cuda()
poses = torch.Tensor(read()).cuda()
for step in range(1000):
    chosen = np.random.choice(100)
    pose = poses[chosen, :3]
    loss = net(pose).mean()
    loss.backward()

# case: made on the card
import torch
from torch import nn

device = torch.device("cuda")
net = nn.Linear(4, 4).to(device)
x = torch.tensor(rows, device=device)  # <- found
for start in range(0, len(x), 64):
    loss = net(x[start:start + 64]).mean()
    loss.backward()

# case: converted before
import torch
from torch.utils.data import DataLoader, TensorDataset

x = torch.tensor(rows).float()
x = x.view(-1, 4).cuda()  # <- found
loader = DataLoader(TensorDataset(x), batch_size=32)

# case: what was played since the last update
import torch

class Agent:
    def update(self, optimizer):
        states = torch.tensor(self.states).to("cuda")
        for _ in range(4):
            for index in torch.randperm(len(self.states)).split(64):
                loss = self.policy(states[index]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

# case: a toy set that a library makes
import torch
from sklearn.datasets import load_iris

def train(model, optimizer):
    features, labels = load_iris(return_X_y=True)
    data = torch.from_numpy(features).float().to("cuda")
    for start in range(0, len(data), 32):
        loss = model(data[start:start + 32]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: an option of the script
import torch

def run(model, optimizer, rows, spare, use_cuda):
    if not spare and use_cuda:
        data = torch.from_numpy(rows).float().cuda()
    else:
        data = torch.from_numpy(rows).float()
    for start in range(0, len(data), 32):
        loss = model(data[start:start + 32].cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: moved in the arguments of the dataset
import torch
from torch.utils.data import DataLoader, TensorDataset

inputs = torch.tensor(table.values, dtype=torch.float32)
targets = torch.tensor(labels.values)
dataset = TensorDataset(inputs.cuda(), targets.cuda())  # <- found
for x, y in DataLoader(dataset, batch_size=64):
    train(x, y)

# case: a dataset stacks what it loads on the card
import torch
from torch.utils.data import Dataset

class InMemory(Dataset):
    def __init__(self, files, device="cuda"):
        self.images = torch.stack([load(file) for file in files]).to(device)  # <- found

    def __getitem__(self, index):
        return self.images[index]
