# case: after a tensor on the card
import os
import torch

x = torch.ones(4, device="cuda")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # <- found

# case: after a device was chosen, in a function
import os
import torch

def main():
    torch.cuda.set_device(0)
    os.environ["PYTORCH_ALLOC_CONF"] = "max_split_size_mb:128"  # <- found

# case: after a model was moved, as a default
import os
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 4).to(device)
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")  # <- found

# case: before the import
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch

x = torch.ones(4, device="cuda")

# case: after the import alone
import os
import torch

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
x = torch.ones(4, device="cuda")

# case: asking whether there is a card starts nothing
import os
import torch

print(torch.cuda.is_available(), torch.cuda.device_count())
torch.manual_seed(0)
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
x = torch.ones(4, device="cuda")

# case: another variable
import os
import torch

x = torch.ones(4, device="cuda")
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# case: a function that is written before, and called after
import os
import torch

def make():
    return torch.ones(4, device="cuda")

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
x = make()

# case: for processes that are started later
import os
import subprocess
import torch

x = torch.ones(4, device="cuda")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
subprocess.run(["python", "train.py"])

# case: after a model of another file was moved
import os
from nets import build

def main():
    model = build().cuda()
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # <- found
    return model

# case: only asked whether there is a card
import os
import torch

if torch.cuda.is_available():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
model = torch.nn.Linear(4, 4).cuda()

# case: the code above runs later
import os
import torch

def train():
    model = torch.nn.Linear(4, 4).cuda()
    return model

if __name__ == "__main__":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
    train()

# case: on the host
import os
import torch

x = torch.zeros(3).to("cpu")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
y = x.cuda()

# case: in the other branch
import os
import torch

def main(args):
    if args.rank >= 0:
        torch.cuda.set_device(args.rank)
    else:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return torch.zeros(3).cuda()
