# case: a hidden state is carried over batches
import torch
from torch import nn

rnn = nn.GRU(64, 256, batch_first=True).cuda()
head = nn.Linear(256, 64).cuda()
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
hidden = None
for x, y in loader:
    out, hidden = rnn(x.cuda(), hidden)  # <- found: recurrent-state
    loss = nn.functional.cross_entropy(head(out).flatten(0, 1), y.cuda().flatten())
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()

# case: a hidden state is detached between batches
import torch
from torch import nn

rnn = nn.GRU(64, 256, batch_first=True).cuda()
head = nn.Linear(256, 64).cuda()
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
hidden = None
for x, y in loader:
    if hidden is not None:
        hidden = hidden.detach()
    out, hidden = rnn(x.cuda(), hidden)
    loss = nn.functional.cross_entropy(head(out).flatten(0, 1), y.cuda().flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: two losses of one graph, the graph is kept for the second
import torch
import torch.nn.functional as F


def step(encoder, a, b, x, y, z, optimizer):
    features = encoder(x)
    loss_a = F.cross_entropy(a(features), y)
    loss_b = F.mse_loss(b(features), z)
    optimizer.zero_grad()
    loss_a.backward(retain_graph=True)
    loss_b.backward()
    optimizer.step()

# case: the graph is kept after the last backward pass of a step
import torch
import torch.nn.functional as F


def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward(retain_graph=True)  # <- found: retain-graph
        optimizer.step()

# case: the fake pictures of a generator reach the discriminator with their graph
import torch
from torch import nn

bce = nn.BCEWithLogitsLoss()
for real in loader:
    real = real.cuda()
    noise = torch.randn(real.size(0), 128, 1, 1, device="cuda")
    fake = G(noise)
    optD.zero_grad()
    d_loss = bce(D(real), torch.ones(real.size(0), 1).cuda()) + bce(
        D(fake),  # <- found: fake-not-detached
        torch.zeros(real.size(0), 1).cuda(),
    )
    d_loss.backward()
    optD.step()
    optG.zero_grad()
    g_loss = bce(D(G(noise)), torch.ones(real.size(0), 1).cuda())
    g_loss.backward()
    optG.step()

# case: the fake pictures of a generator are detached for the discriminator
import torch
from torch import nn

bce = nn.BCEWithLogitsLoss()
for real in loader:
    real = real.cuda()
    noise = torch.randn(real.size(0), 128, 1, 1, device="cuda")
    fake = G(noise)
    optD.zero_grad()
    d_loss = bce(D(real), torch.ones(real.size(0), 1).cuda()) + bce(
        D(fake.detach()),
        torch.zeros(real.size(0), 1).cuda(),
    )
    d_loss.backward()
    optD.step()
    optG.zero_grad()
    g_loss = bce(D(fake), torch.ones(real.size(0), 1).cuda())
    g_loss.backward()
    optG.step()

# case: a teacher in a distillation records a graph
import torch
import torch.nn.functional as F


def distill(student, teacher, loader, optimizer, T=4.0):
    teacher.eval()
    student.train()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        t_logits = teacher(x)  # <- found: frozen-model-with-gradients
        s_logits = student(x)
        kd = F.kl_div(
            F.log_softmax(s_logits / T, dim=1), F.softmax(t_logits / T, dim=1), reduction="batchmean"
        )
        loss = kd * T * T + F.cross_entropy(s_logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a teacher in a distillation without a graph
import torch
import torch.nn.functional as F


def distill(student, teacher, loader, optimizer, T=4.0):
    teacher.eval()
    student.train()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        with torch.no_grad():
            t_logits = teacher(x)
        s_logits = student(x)
        kd = F.kl_div(
            F.log_softmax(s_logits / T, dim=1), F.softmax(t_logits / T, dim=1), reduction="batchmean"
        )
        loss = kd * T * T + F.cross_entropy(s_logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: averaged weights are updated with a graph
import torch

shadow = {name: p.clone() for name, p in model.named_parameters()}


def update_ema(model, decay=0.999):
    for name, p in model.named_parameters():
        shadow[name] = decay * shadow[name] + (1 - decay) * p  # <- found: averaged-weights-with-graph

# case: averaged weights of a module are updated in place
import copy
import torch

ema = copy.deepcopy(model)


@torch.no_grad()
def update_ema(model, ema, decay=0.999):
    for p, q in zip(model.parameters(), ema.parameters()):
        q.mul_(decay).add_(p, alpha=1 - decay)

# case: a target network of Q learning records a graph
import torch
import torch.nn.functional as F


def optimize(policy_net, target_net, memory, optimizer, gamma=0.99):
    states, actions, rewards, next_states, done = memory.sample(256)
    q = policy_net(states).gather(1, actions)
    next_q = target_net(next_states).max(1)[0]  # <- found: frozen-model-with-gradients
    expected = rewards + gamma * next_q * (1 - done)
    loss = F.smooth_l1_loss(q, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a target network of Q learning is detached
import torch
import torch.nn.functional as F


def optimize(policy_net, target_net, memory, optimizer, gamma=0.99):
    states, actions, rewards, next_states, done = memory.sample(256)
    q = policy_net(states).gather(1, actions)
    with torch.no_grad():
        next_q = target_net(next_states).max(1)[0]
    expected = rewards + gamma * next_q * (1 - done)
    loss = F.smooth_l1_loss(q, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a replay buffer keeps outputs of the policy with their graphs
import random
import torch
import torch.nn.functional as F

buffer = []
for state in environment:
    value = critic(state.cuda())
    buffer.append((state, value))  # <- missed: collected-outputs
    if len(buffer) > 64:
        states, values = zip(*random.sample(buffer, 32))
        loss = F.mse_loss(critic(torch.stack(states).cuda()), torch.stack(values).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a replay buffer keeps numbers of the policy
import random
import torch
import torch.nn.functional as F

buffer = []
for state in environment:
    with torch.no_grad():
        value = critic(state.cuda()).item()
    buffer.append((state, value))
    if len(buffer) > 64:
        states, values = zip(*random.sample(buffer, 32))
        loss = F.mse_loss(critic(torch.stack(states).cuda()), torch.tensor(values).cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: log probabilities of one episode are needed for its update
import torch

saved = []
for episode in range(1000):
    state = env.reset()
    rewards = []
    for t in range(200):
        probabilities = policy(torch.as_tensor(state).float().cuda())
        m = torch.distributions.Categorical(probabilities)
        action = m.sample()
        saved.append(m.log_prob(action))
        state, reward, done, _, _ = env.step(action.item())
        rewards.append(reward)
        if done:
            break
    loss = torch.stack([-l * r for l, r in zip(saved, rewards)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    saved = []

# case: the whole training set is moved to the card in a dataset
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, paths):
        self.data = [torch.load(path).cuda() for path in paths]  # <- found: dataset-on-card

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]

# case: a dataset keeps its data on the host
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, paths):
        self.data = [torch.load(path, map_location="cpu") for path in paths]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return self.data[i]

# case: the cache is emptied in every step
import torch
import torch.nn.functional as F

for epoch in range(5):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # <- found: empty-cache-in-loop

# case: the cache is emptied once between training and export
import torch
import torch.nn.functional as F

for epoch in range(5):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
torch.cuda.empty_cache()

# case: a checkpoint is loaded onto the card beside the model
import torch

model = build().cuda()
checkpoint = torch.load("last.pt")  # <- found: load-without-map-location
model.load_state_dict(checkpoint["model"])

# case: a checkpoint is loaded to the host
import torch

model = build().cuda()
checkpoint = torch.load("last.pt", map_location="cpu", weights_only=True)
model.load_state_dict(checkpoint["model"])

# case: the best weights are copied on the card
import copy
import torch

best_accuracy = 0
for epoch in range(30):
    train(model)
    accuracy = evaluate(model)
    if accuracy > best_accuracy:
        best_accuracy = accuracy
        best_weights = copy.deepcopy(model.state_dict())  # <- missed: state-dict-copied-on-card

# case: the best weights are copied to the host
import torch

best_accuracy = 0
for epoch in range(30):
    train(model)
    accuracy = evaluate(model)
    if accuracy > best_accuracy:
        best_accuracy = accuracy
        best_weights = {k: v.cpu().clone() for k, v in model.state_dict().items()}

# case: recovery from a full card inside the handler
import torch


def robust_step(model, x, y, criterion):
    try:
        loss = criterion(model(x), y)
        loss.backward()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        for part_x, part_y in zip(x.chunk(2), y.chunk(2)):
            criterion(model(part_x), part_y).backward()  # <- found: recovery-inside-except

# case: recovery from a full card after the handler
import torch


def robust_step(model, x, y, criterion):
    failed = False
    try:
        loss = criterion(model(x), y)
        loss.backward()
    except torch.cuda.OutOfMemoryError:
        failed = True
    if failed:
        loss = None
        model.zero_grad()
        torch.cuda.empty_cache()
        for part_x, part_y in zip(x.chunk(2), y.chunk(2)):
            (criterion(model(part_x), part_y) / 2).backward()

# case: a hook keeps activations of every batch
import torch

activations = []


def hook(module, inputs, output):
    activations.append(output)  # <- found: activations-kept-by-hook


model.layer4.register_forward_hook(hook)
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

# case: a hook keeps activations on the host and they are cleared
import torch

activations = []


def hook(module, inputs, output):
    activations.append(output.detach().cpu())


model.layer4.register_forward_hook(hook)
for x, y in loader:
    activations.clear()
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

# case: an attention map is kept on the module
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.maps = []

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        a = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        self.maps.append(a)  # <- found: output-kept-on-self
        return a @ v

# case: an attention map is local
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        maps = []
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        a = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        maps.append(a)
        return maps[0] @ v
