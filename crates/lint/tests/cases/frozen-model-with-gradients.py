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

# case: a teacher that is moved and put into evaluation mode in one go
import torch.nn.functional as F

teacher = ResNet50()
teacher.load_state_dict(weights)
teacher.cuda().eval()
for x, y in loader:
    wanted = teacher(x.cuda())  # <- found
    loss = F.mse_loss(student(x.cuda()), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: the target of Q-learning is an object of a class from elsewhere
import torch
import torch.nn.functional as F

class Agent:
    def __init__(self, actions):
        self.q = QNet(actions).cuda()
        self.target_q = QNet(actions).cuda()
        self.optimizer = torch.optim.Adam(self.q.parameters())

    def learn(self, s, a, r, s2, done):
        best = self.target_q(s2).max(1, keepdim=True)[0]  # <- found
        loss = F.smooth_l1_loss(self.q(s).gather(1, a), r + 0.99 * best * (1 - done))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
