# case: clipping outside of the condition
from torch.nn.utils import clip_grad_norm_

def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        clip_grad_norm_(model.parameters(), 1.0)  # <- found
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a setting around the clipping is no condition of the window
import torch

def train(model, loader, optimizer, criterion, args):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / args.n).backward()
        if args.clip > 0:
            torch.nn.utils.clip_grad_value_(model.parameters(), args.clip)  # <- found
        if (i + 1) % args.n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: unscaling outside of the condition
import torch

def train(model, loader, optimizer, criterion, n):
    scaler = torch.amp.GradScaler()
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = criterion(model(x), y) / n
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # <- found
        if (i + 1) % n == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

# case: Accelerate clips in every micro-batch, too
from accelerate import Accelerator

def train(model, loader, optimizer, criterion, n):
    accelerator = Accelerator(gradient_accumulation_steps=n)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(x), y))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)  # <- found
            optimizer.step()
            optimizer.zero_grad()

# case: Accelerate clips when gradients are complete
from accelerate import Accelerator

def train(model, loader, optimizer, criterion, n):
    accelerator = Accelerator(gradient_accumulation_steps=n)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(x), y))
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

# case: clipping under the condition of the step
import torch

def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

# case: clipping under a separate condition with the same meaning
import torch

def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: no accumulation
import torch

def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

# case: micro-batches in a separate loop
import torch

def train(model, loader, optimizer, criterion, n):
    for window in loader:
        for x, y in window:
            (criterion(model(x), y) / n).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

# case: a configuration of the file says that the window is one
from accelerate import Accelerator

class Config:
    gradient_accumulation_steps = 1

config = Config()

def train(model, loader, optimizer, criterion):
    accelerator = Accelerator(gradient_accumulation_steps=config.gradient_accumulation_steps)
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(x), y))
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

# case: nothing is clipped, the norm is measured
import torch

def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
        print(norm)
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a discriminator that is clipped and stepped in every iteration
import torch

def train(critic, generator, loader, first, second):
    for i, x in enumerate(loader):
        first.zero_grad()
        critic(x).mean().backward()
        torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)
        first.step()
        if i % 5 == 0:
            second.zero_grad()
            (-critic(generator(x)).mean()).backward()
            second.step()

# case: on the iteration that steps
import torch

def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        last = (i + 1) % 4 == 0 or i + 1 == len(loader)
        if last:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

# case: weights, not gradients
def train(critic, loader, optimizer):
    for i, x in enumerate(loader):
        (critic(x).mean() / 4).backward()
        for p in critic.parameters():
            p.data.clamp_(-0.01, 0.01)
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()

# case: inside the branch for those who accumulate
import torch

def train(model, loader, optimizer, criterion, args):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if args.steps > 1:
            loss = loss / args.steps
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- found
            if (i + 1) % args.steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        else:
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
