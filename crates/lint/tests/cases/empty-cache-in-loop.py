# case: in every step of training
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        torch.cuda.empty_cache()  # <- found

# case: in every batch of evaluation, the only statement under a setting
import torch
from torch.utils.data import DataLoader

def evaluate(model, data, device):
    with torch.no_grad():
        for x, y in DataLoader(data):
            model(x.to(device))
            if device.type == "cuda":
                torch.cuda.empty_cache()  # <- found

# case: in a function that makes one step
import torch
from torch.utils.data import DataLoader

def step(model, x, y, optimizer, criterion):
    criterion(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.empty_cache()  # <- found

def train(model, data, optimizer, criterion):
    for x, y in DataLoader(data):
        step(model, x, y, optimizer, criterion)

# case: once per epoch
import torch

def train(model, loader, optimizer, criterion):
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        torch.cuda.empty_cache()

# case: after an out-of-memory error
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()

# case: now and then
import torch

def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        if i % 1000 == 0:
            torch.cuda.empty_cache()

# case: between training and evaluation
import torch

def run(model, train, evaluate):
    train(model)
    torch.cuda.empty_cache()
    evaluate(model)

# case: a loop over models, not over batches
import torch

def compare(names, build, measure):
    for name in names:
        measure(build(name))
        torch.cuda.empty_cache()

# case: now and then in a function that makes one step
import torch
from torch.utils.data import DataLoader

def step(model, i, x, y, optimizer, criterion):
    criterion(model(x), y).backward()
    optimizer.step()
    if i % 100 == 0:
        torch.cuda.empty_cache()

def train(model, data, optimizer, criterion):
    for i, (x, y) in enumerate(DataLoader(data)):
        step(model, i, x, y, optimizer, criterion)

# case: a loop that runs one model, without gradients
import torch

def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        for x in loader:
            print(model(x).argmax())
            torch.cuda.empty_cache()  # <- found

# case: a loop over models that it makes
import torch
from torchvision import models

def compare(names, x):
    for name in names:
        model = models.get_model(name).cuda()
        print(model(x).shape)
        del model
        torch.cuda.empty_cache()

# case: after each model of several
import torch

def compare(paths, loader, build):
    for path in paths:
        model = build(path).cuda()
        with torch.no_grad():
            for x in loader:
                print(model(x.cuda()).argmax(1))
        del model
        torch.cuda.empty_cache()

# case: once per epoch
import torch

def train(model, loader, optimizer, criterion):
    for epoch in range(10):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.cuda.empty_cache()

# case: another engine on the same card takes the memory in turn
import torch
from vllm import LLM

def train(model, prompts, optimizer, engine: LLM):
    for batch in prompts:
        texts = engine.generate(batch)
        loss = model(texts).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()

# case: when the error comes
import torch

def train(model, loader, optimizer, criterion):
    for x, y in loader:
        try:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()

# case: before each evaluation
import torch

def train(model, loader, optimizer, criterion, evaluate):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        if i % 1000 == 0:
            torch.cuda.empty_cache()
            evaluate(model)

# case: a function that cleans up is called for every batch
import gc
import torch

def free():
    gc.collect()
    torch.cuda.empty_cache()

for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    free()  # <- found

# case: a function that cleans up is called between epochs
import gc
import torch

def free():
    gc.collect()
    torch.cuda.empty_cache()

for epoch in range(3):
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    free()
