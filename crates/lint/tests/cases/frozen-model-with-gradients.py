# case: a teacher of a function beside its student
import torch.nn.functional as F

def distill(student, teacher, loader, optimizer):
    teacher.eval()
    for x, y in loader:
        wanted = teacher(x)  # <- found
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: an extractor made in evaluation mode
import timm
import torch

extractor = timm.create_model("resnet50", pretrained=True).cuda().eval()
head = torch.nn.Linear(1000, 10).cuda()
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for x, y in loader:
    loss = head(extractor(x.cuda())).mean()  # <- found
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: its output is detached
import torch.nn.functional as F

def distill(student, teacher, loader, optimizer):
    teacher.eval()
    for x, y in loader:
        wanted = teacher(x)
        loss = F.mse_loss(student(x), wanted.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: its output is detached in a second line
import torch.nn.functional as F

def distill(student, teacher, loader, optimizer):
    teacher.eval()
    for x, y in loader:
        wanted = teacher(x)
        wanted = wanted.detach()
        loss = F.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: it is trained as well
import torch
import torch.nn.functional as F

def distill(student, teacher, loader):
    optimizer = torch.optim.SGD([*student.parameters(), *teacher.parameters()], lr=0.1)
    teacher.eval()
    for x, y in loader:
        loss = F.mse_loss(student(x), teacher(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: its parameters are frozen
import torch.nn.functional as F

def distill(student, teacher, loader, optimizer):
    teacher.eval()
    teacher.requires_grad_(False)
    for x, y in loader:
        loss = F.mse_loss(student(x), teacher(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a function of another file may freeze it
import torch.nn.functional as F
from engine import freeze

def distill(student, teacher, loader, optimizer):
    teacher.eval()
    freeze(teacher)
    for x, y in loader:
        loss = F.mse_loss(student(x), teacher(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: it goes back to training mode
import torch.nn.functional as F

def alternate(student, model, loader, optimizer):
    model.eval()
    for x, y in loader:
        loss = F.mse_loss(student(x), model(x))
        loss.backward()
        optimizer.step()
    model.train()

# case: gradients flow through it
def perceptual(vgg, net, loader, optimizer):
    vgg.eval()
    for x, y in loader:
        out = net(x)
        loss = vgg(out).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: it is the only model
def saliency(model, loader):
    model.eval()
    for x, y in loader:
        x.requires_grad_(True)
        model(x).sum().backward()
        print(x.grad.abs().mean())
