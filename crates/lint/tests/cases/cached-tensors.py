# case: all sizes of a mask
import functools
import torch

@functools.lru_cache(maxsize=None)  # <- found
def mask(length):
    return torch.ones(length, length).tril().cuda()

# case: the newer decorator
from functools import cache
import torch

device = torch.device("cuda")

@cache  # <- found
def table(length):
    return torch.arange(length, device=device)

# case: without arguments
from functools import lru_cache
import torch

@lru_cache  # <- found
def picture(path):
    return torch.tensor(read(path), device="cuda")

# case: outputs of a model
from functools import lru_cache
from torchvision import models

net = models.resnet18()

@lru_cache()  # <- found
def embed(path):
    return net(read(path))

# case: a method
from functools import lru_cache
import torch

class Pictures:
    @lru_cache()  # <- found
    def picture(self, path):
        return torch.from_numpy(self.read(path)).to("cuda")

# case: a dict of the file
import torch

tables = {}

def table(length):
    if length not in tables:
        tables[length] = torch.tensor(rows(length), device="cuda")  # <- found
    return tables[length]

# case: on the CPU
import functools
import torch

@functools.lru_cache(maxsize=None)
def mask(length):
    return torch.ones(length, length).tril()

# case: a small cache
import functools
import torch

@functools.lru_cache(maxsize=2)
def mask(length):
    return torch.ones(length, length).tril().cuda()

# case: one value only
import functools
import torch

@functools.lru_cache()
def constant():
    return torch.ones(3, device="cuda")

# case: no tensor
import functools

@functools.lru_cache(maxsize=None)
def tokens(text):
    return text.split()

# case: a dict that is emptied
import torch

tables = {}

def table(length):
    tables[length] = torch.arange(length, device="cuda")
    return tables[length]

def forget():
    tables.clear()

# case: a dict of the function
import torch

def build(lengths):
    tables = {}
    for length in lengths:
        tables[length] = torch.arange(length, device="cuda")
    return tables

# case: a fixed key
import torch

shared = {}

def start():
    shared["eye"] = torch.eye(4, device="cuda")

# case: methods without an object
import functools
import torch

class Tables:
    @staticmethod
    @functools.lru_cache(None)
    def one():
        return torch.ones(3, device="cuda")

    @staticmethod
    @functools.lru_cache(None)  # <- found
    def many(length):
        return torch.ones(length, device="cuda")

# case: a truth value about tensors
from functools import cache
import torch

@cache
def supported(device: str, dtype: torch.dtype) -> bool:
    x = torch.randn(8, 16, device="cuda").requires_grad_(True)
    x.sum().backward()
    return x.grad is not None and x is not None

# case: a table made of sizes, in a cache with the usual bound
import functools
import torch

@functools.lru_cache()
def positions(length, device):
    return torch.arange(length, device="cuda").unsqueeze(0)

def embed(tokens):
    return positions(tokens.shape[1], tokens.device)

# case: masks by their size
import torch

MASKS = {}

def mask_of(length):
    if length not in MASKS:
        MASKS[length] = torch.tril(torch.ones(length, length, device="cuda"))
    return MASKS[length]

# case: rotary tables by length and device
import torch

CACHE = {}

def rotary(length, width, device):
    key = (length, width, device)
    if key not in CACHE:
        angles = torch.arange(length, device="cuda")[:, None] / torch.arange(1, width, device="cuda")
        CACHE[key] = torch.cat((angles.sin(), angles.cos()), dim=-1)
    return CACHE[key]
