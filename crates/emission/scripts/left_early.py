import torch
from torch import nn

model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.RMSprop(model.parameters())
loader = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=8)
for x in loader:
    optimizer.zero_grad()
    loss = model(x.cuda()).square().mean()
    if not torch.isfinite(loss):
        continue
    loss.backward()
    optimizer.step()
