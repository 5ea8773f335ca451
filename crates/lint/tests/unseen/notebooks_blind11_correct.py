# case: a notebook with a fit function in one cell and a call in the next
import torch
from tqdm.notebook import tqdm
# %%
def fit(model, dl, opt, loss_fn, epochs):
    hist = {"loss": [], "acc": []}
    for e in range(epochs):
        for xb, yb in tqdm(dl):
            out = model(xb.cuda())
            loss = loss_fn(out, yb.cuda())
            opt.zero_grad(); loss.backward(); opt.step()
            hist["loss"].append(loss.item())
            hist["acc"].append((out.argmax(1).cpu() == yb).float().mean().item())
    return hist
# %%
h = fit(net.cuda(), train_dl, torch.optim.Adam(net.parameters()), torch.nn.CrossEntropyLoss(), 3)

# case: a notebook that predicts for a submission
%load_ext autoreload
import torch, pandas as pd
# %%
model.eval()
preds = []
# %%
with torch.no_grad():
    for x in test_dl:
        preds.append(model(x.cuda()).cpu())
# %%
sub["target"] = torch.cat(preds).detach().cpu().numpy().argmax(1)

# case: a notebook that averages a running loss in a cell of its own
import torch
# %%
running = 0
# %%
for i, (x, y) in enumerate(train_loader):
    loss = criterion(model(x.to(device)), y.to(device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    running += loss.item()
    if i % 10 == 9:
        print(running / i)

# case: a notebook with hooks registered in an earlier cell
import torch
feats = []
# %%
h = model.backbone.register_forward_hook(lambda m, i, o: feats.append(o.detach().mean().item()))
# %%
opt = torch.optim.Adam(model.parameters())
for x, y in dl:
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
