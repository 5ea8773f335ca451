"""Weight averaging that begins after the first epoch, and batch statistics renewed at the end."""

import argparse

import torch
import torch.nn.functional as F
import torchvision
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=100)
parser.add_argument("--samples", type=int, default=650)
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()
data = TensorDataset(torch.randn(args.samples, 3, 64, 64), torch.randint(0, 50, (args.samples,)))
loader = DataLoader(data, args.batch_size, shuffle=True, drop_last=True)
model = torchvision.models.wide_resnet50_2(num_classes=50).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
averaged = schedule = None
for epoch in range(args.epochs):
    if epoch == 1:
        averaged, schedule = AveragedModel(model), SWALR(optimizer, swa_lr=0.05)
    model.train()
    for images, labels in loader:
        loss = F.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if averaged is not None:
        averaged.update_parameters(model)
        schedule.step()
    print(f"epoch {epoch} {loss.item():.3f}")
update_bn(loader, averaged, device="cuda")
averaged.eval()
with torch.no_grad():
    for images, _ in DataLoader(data, 400):
        averaged(images.cuda())
torch.save(averaged.module.state_dict(), "averaged.pt")
