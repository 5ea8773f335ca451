"""Distillation: a teacher without gradients, a student, temperature, test-time augmentation."""

import argparse

import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=160)
parser.add_argument("--eval-batch-size", type=int, default=200)
parser.add_argument("--samples", type=int, default=1300)
args = parser.parse_args()
teacher = torchvision.models.resnet50(num_classes=100).cuda().eval().requires_grad_(False)
student = torchvision.models.mobilenet_v2(num_classes=100).cuda()
optimizer = torch.optim.SGD(student.parameters(), 0.05, momentum=0.9, nesterov=True)
scaler = torch.amp.GradScaler("cuda")
data = TensorDataset(torch.randn(args.samples, 3, 64, 64), torch.randint(0, 100, (args.samples,)))
loader = DataLoader(data, args.batch_size, shuffle=True)
for epoch in range(3):
    student.train()
    for images, labels in loader:
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.float16):
            with torch.no_grad():
                wanted = teacher(images)
            given = student(images)
            loss = F.cross_entropy(given, labels) + 4 * F.kl_div(
                F.log_softmax(given / 2, 1), F.softmax(wanted / 2, 1), reduction="batchmean"
            )
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    student.eval()
    right = 0
    with torch.inference_mode():
        for images, labels in DataLoader(data, args.eval_batch_size):
            images = images.cuda()
            both = torch.cat([images, images.flip(3)])
            scores = student(both).softmax(1).view(2, len(images), -1).mean(0)
            right += (scores.argmax(1).cpu() == labels).sum().item()
    print(f"epoch {epoch} {right}")
torch.save(student.state_dict(), "student.pt")
