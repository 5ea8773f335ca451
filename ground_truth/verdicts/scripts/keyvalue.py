"""hydra-like: `train.batch_size=64 model.width=512` on the command line, defaults in a dict."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

cfg = {"train": {"batch_size": 256, "epochs": 3, "lr": 1e-3}, "model": {"width": 1024, "depth": 6}}
for word in sys.argv[1:]:
    key, value = word.split("=", 1)
    node = cfg
    *path, last = key.split(".")
    for part in path:
        node = node[part]
    node[last] = type(node[last])(value)
w = cfg["model"]["width"]
model = nn.Sequential(
    nn.Linear(64, w),
    *[
        nn.Sequential(nn.Linear(w, w), nn.LayerNorm(w), nn.GELU(), nn.Dropout(0.1))
        for _ in range(cfg["model"]["depth"])
    ],
    nn.Linear(w, 1),
).to("cuda")
opt = torch.optim.AdamW(model.parameters(), lr=cfg["train"]["lr"])
train = TensorDataset(torch.zeros(20_000, 64), torch.zeros(20_000, 1))
for epoch in range(cfg["train"]["epochs"]):
    model.train()
    for x, y in DataLoader(train, batch_size=cfg["train"]["batch_size"], shuffle=True):
        x, y = x.to("cuda"), y.to("cuda")
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(
            epoch,
            nn.functional.mse_loss(model(train.tensors[0].cuda()), train.tensors[1].cuda()).item(),
        )
