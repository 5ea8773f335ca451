import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=8)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for x in loader:
    optimizer.zero_grad()
    loss = model(x).square().mean()
    accelerator.backward(loss)
    optimizer.step()
