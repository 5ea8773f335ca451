# case: a model on all cards
import torch

model = torch.nn.DataParallel(model).cuda()  # <- found

# case: from its module, on the cards that are there
from torch import nn

def build(model, gpus):
    if len(gpus) > 1:
        model = nn.DataParallel(model, device_ids=gpus)  # <- found
    return model

# case: imported from where it lives
from torch.nn.parallel import DataParallel

class Trainer:
    def __init__(self, model):
        self.model = DataParallel(model)  # <- found

# case: asked for, not made
from torch import nn

def unwrap(model):
    return model.module if isinstance(model, nn.DataParallel) else model

# case: on one card
import torch

model = torch.nn.DataParallel(model, device_ids=[0])

# case: distributed
import torch

model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])

# case: another library's class of that name
from mmcv.parallel import DataParallel

model = DataParallel(model)

# case: a class that derives from it
import torch

class Wrapped(torch.nn.DataParallel):
    def forward(self, x):
        return super().forward(x)
