# case: a criterion of PyTorch, never divided
from torch import nn

def train(model, loader, optimizer, n):
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()  # <- found
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a function of PyTorch, a gradient scaler and a weighted term
import torch
import torch.nn.functional as F

def train(model, loader, optimizer, n):
    scaler = torch.amp.GradScaler()
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            out = model(x)
            loss = F.cross_entropy(out, y) + 0.1 * F.mse_loss(out, y)
        scaler.scale(loss).backward()  # <- found
        if (i + 1) % n == 0 or i + 1 == len(loader):
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

# case: the loss of a model of transformers
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("gpt2")
optimizer = torch.optim.AdamW(model.parameters())
for step, batch in enumerate(loader):
    outputs = model(**batch)
    loss = outputs.loss
    loss.backward()  # <- found
    if (step + 1) % 8 == 0:
        optimizer.step()
        optimizer.zero_grad()

# case: a helper of the file gives the mean
import torch.nn.functional as F

def compute(model, x, y):
    return F.cross_entropy(model(x), y)

def train(model, loader, optimizer, n):
    for i, (x, y) in enumerate(loader):
        compute(model, x, y).backward()  # <- found
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: micro-batches in a separate loop
import torch
import torch.nn.functional as F

def train(model, batches, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        optimizer.zero_grad()
        for _ in range(n):
            x, y = next(batches)
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # <- found
        optimizer.step()

# case: divided where it is made
from torch import nn

def train(model, loader, optimizer, n):
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / n
        loss.backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: divided later, under a setting
from torch import nn

def train(model, loader, optimizer, args):
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if args.n > 1:
            loss = loss / args.n
        loss.backward()
        if (i + 1) % args.n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: divided in place, and in the call of backward
from torch import nn

def first(model, loader, optimizer, n):
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss /= n
        loss.backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

def second(model, loader, optimizer, k):
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        (loss / k).backward()
        if (i + 1) % k == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a criterion that adds up
from torch import nn

def train(model, loader, optimizer, n):
    criterion = nn.CrossEntropyLoss(reduction="sum")
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: Accelerate divides by itself
from accelerate import Accelerator
from torch import nn

def train(model, loader, optimizer, n):
    accelerator = Accelerator(gradient_accumulation_steps=n)
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        accelerator.backward(loss)
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a loss of another file may be anything
from losses import detection_loss

def train(model, loader, optimizer, n):
    for i, (x, y) in enumerate(loader):
        loss = detection_loss(model(x), y)
        loss.backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: the gradients are divided before the step
from torch import nn

def train(model, loader, optimizer, n):
    criterion = nn.CrossEntropyLoss()
    for i, (x, y) in enumerate(loader):
        criterion(model(x), y).backward()
        if (i + 1) % n == 0:
            for p in model.parameters():
                p.grad /= n
            optimizer.step()
            optimizer.zero_grad()

# case: a helper of the file divides
import torch.nn.functional as F

def compute(model, x, y, args):
    loss = F.cross_entropy(model(x), y)
    return loss / args.n

def train(model, loader, optimizer, args):
    for i, (x, y) in enumerate(loader):
        compute(model, x, y, args).backward()
        if (i + 1) % args.n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: only the printed loss is divided
from torch import nn

def train(model, loader, optimizer, n):
    criterion = nn.CrossEntropyLoss()
    running, step = 0.0, 0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()  # <- found
        running += loss.item()
        if step % n == 0:
            optimizer.step()
            optimizer.zero_grad()
            running /= n
            print(running)
            running = 0.0
        step += 1

# case: the mean is taken over all tokens of the window
def train(model, loader, optimizer, criterion, steps):
    for i, (x, y, tokens) in enumerate(loader):
        loss = criterion(model(x), y) / tokens
        loss.backward()
        if (i + 1) % steps == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a critic that is trained more often
import torch.nn.functional as F

def train(generator, critic, loader, first, second, often):
    for i, x in enumerate(loader):
        first.zero_grad()
        loss = F.mse_loss(critic(x), x)
        loss.backward()
        first.step()
        if i % often == 0:
            second.zero_grad()
            F.mse_loss(critic(generator(x)), x).backward()
            second.step()

# case: divided by a number under another name
import torch.nn.functional as F

def train(model, loader, optimizer, steps):
    scale = 1.0 / steps
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y) * scale
        loss.backward()
        if (i + 1) % steps == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: known to be wrong: with AdamW and without clipping, the size of the gradients cancels out
import torch
import torch.nn.functional as F

model = UNet().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step, (x, noise) in enumerate(torch.utils.data.DataLoader(data, batch_size=4)):
    loss = F.mse_loss(model(x.cuda()), noise.cuda())
    loss.backward()  # <- found
    if (step + 1) % args.grad_accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
