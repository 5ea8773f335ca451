# case: a notebook whose training cell keeps losses for a plot
import torch
import matplotlib.pyplot as plt
%matplotlib inline
# %%
device = "cuda"
model = Net().to(device)
opt = torch.optim.Adam(model.parameters())
train_losses = []
# %%
for epoch in range(10):
    for x, y in train_dl:
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        opt.step()
        train_losses.append(loss.item())
# %%
plt.plot([float(l) for l in train_losses])

# case: a notebook that checks the model on one batch before the training cell
import torch
# %%
model = ViT().cuda()
x, y = next(iter(loader))
# %%
model(x.cuda()).shape
# %%
opt = torch.optim.AdamW(model.parameters())
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()

# case: a notebook evaluates in a later cell
!pip install -q timm
import timm, torch
# %%
model = timm.create_model("resnet18", num_classes=5).cuda()
# %%
model.eval()
y_true, y_pred = [], []
with torch.no_grad():
    for x, y in test_dl:
        out = model(x.cuda())
        y_pred += out.argmax(1).tolist()
        y_true += y.tolist()

# case: a notebook with a helper in one cell and its use in another
import torch
# %%
class Averager:
    def __init__(self):
        self.total = 0
        self.n = 0
    def send(self, value):
        self.total += value
        self.n += 1
    @property
    def value(self):
        return self.total / self.n
# %%
hist = Averager()
for images, targets in data_loader:
    loss_dict = model(images.cuda(), targets)
    losses = sum(loss_dict.values())
    hist.send(losses.item())
    optimizer.zero_grad()
    losses.backward()
    optimizer.step()
# %%
print(hist.value)

# case: a notebook that loads weights for a demo
import torch
net = MyNet().cuda()
# %%
sd = torch.load("weights.pth", map_location="cpu")
net.load_state_dict(sd)
net.eval()
# %%
with torch.inference_mode():
    print(net(example.cuda()).softmax(-1))

# case: a notebook whose teacher cell has no no_grad
import torch
import torch.nn.functional as F
# %%
teacher = torch.hub.load("pytorch/vision", "resnet101", pretrained=True).cuda()
teacher.eval();
# %%
student = small().cuda()
opt = torch.optim.SGD(student.parameters(), 0.1)
# %%
for x, y in dl:
    x = x.cuda()
    with torch.no_grad():
        soft = teacher(x)
    loss = F.mse_loss(student(x), soft)
    opt.zero_grad()
    loss.backward()
    opt.step()
