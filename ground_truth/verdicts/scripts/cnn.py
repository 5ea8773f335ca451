"""An image classifier of torchvision: two epochs, evaluation after each, the best weights saved."""

import argparse

import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet18")
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--eval-batch-size", type=int, default=256)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--samples", type=int, default=1000)
parser.add_argument("--optimizer", default="sgd", choices=("sgd", "adamw"))
parser.add_argument("--amp", action="store_true")
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--eval-with-grad", action="store_true")
args = parser.parse_args()

images = torch.randn(args.samples, 3, args.size, args.size)
labels = torch.randint(0, 10, (args.samples,))
train_loader = DataLoader(TensorDataset(images, labels), args.batch_size, shuffle=True)
eval_loader = DataLoader(
    TensorDataset(images[: args.samples // 2], labels[: args.samples // 2]), args.eval_batch_size
)

model = torchvision.models.get_model(args.model, num_classes=10).cuda()
if args.channels_last:
    model = model.to(memory_format=torch.channels_last)
if args.optimizer == "sgd":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def evaluate():
    model.eval()
    correct = 0
    with torch.set_grad_enabled(args.eval_with_grad):
        for x, y in eval_loader:
            x, y = x.cuda(), y.cuda()
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(eval_loader.dataset)


for epoch in range(2):
    model.train()
    for x, y in train_loader:
        x, y = x.cuda(), y.cuda()
        if args.channels_last:
            x = x.to(memory_format=torch.channels_last)
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=args.amp):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {evaluate():.3f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "cnn.pt")
