# case: the model is in an earlier cell
import torch
from torch import nn
# %%
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).cuda()
opt = torch.optim.Adam(net.parameters())
crit = nn.CrossEntropyLoss()
# %%
losses = []
for x, y in loader:
    loss = crit(net(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss)  # <- found: collected-losses
# %%
import matplotlib.pyplot as plt
plt.plot([l.item() for l in losses])

# case: no model is visible, but it is put into evaluation mode
%load_ext autoreload
# %%
model.eval()
all_preds = []
for xb, yb in valid_dl:
    out = model(xb.to(device))  # <- found: evaluation-with-gradients
    all_preds.append(out)  # <- found: collected-outputs
# %%
preds = torch.cat(all_preds)

# case: no model is visible and the loop is under no_grad
%load_ext autoreload
# %%
model.eval()
all_preds = []
with torch.no_grad():
    for xb, yb in valid_dl:
        out = model(xb.to(device))
        all_preds.append(out.cpu())
# %%
preds = torch.cat(all_preds)

# case: a total in a cell without imports
total_loss = 0
for epoch in range(5):
    for xb, yb in train_dl:
        pred = model(xb)
        loss = loss_fn(pred, yb)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total_loss += loss  # <- found: summed-loss
    print(epoch, total_loss)

# case: a total of numbers in a cell without imports
total_loss = 0
for epoch in range(5):
    for xb, yb in train_dl:
        pred = model(xb)
        loss = loss_fn(pred, yb)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total_loss += loss.item()
    print(epoch, total_loss)

# case: a function of one cell runs under no_grad in another
def valid(model, dl):
    model.eval()
    total = 0
    for x, y in dl:
        total += (model(x.cuda()).argmax(1) == y.cuda()).float().mean().item()
    return total / len(dl)
# %%
import torch
with torch.no_grad():
    print(valid(net, valid_dl))

# case: losses are collected over cells and plotted
import torch
import torch.nn as nn
%matplotlib inline
# %%
model = nn.Sequential(nn.Linear(28*28, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
loss_list = []
# %%
for epoch in range(5):
    for images, labels in train_loader:
        out = model(images.view(-1, 784).cuda())
        loss = nn.CrossEntropyLoss()(out, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_list.append(loss)  # <- found: collected-losses
# %%
plt.plot([l.cpu().detach() for l in loss_list])
# %%
model.eval()
all_out = []
for images, labels in test_loader:
    o = model(images.view(-1, 784).cuda())  # <- found: evaluation-with-gradients
    all_out.append(o)  # <- found: collected-outputs

# case: numbers are collected over cells, and accuracy is printed without gradients
import torch
!pip install timm
# %%
loss_list = []
for epoch in range(5):
    for images, labels in train_loader:
        loss = criterion(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_list.append(loss.item())
# %%
model.eval()
with torch.no_grad():
    for images, labels in test_loader:
        print((model(images.cuda()).argmax(1).cpu() == labels).float().mean())
