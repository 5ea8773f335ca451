# case: a model that was moved to the card
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(model.parameters())  # <- found

# case: on the device that is there, with options over several lines
import torch
from torch import nn
from torch.optim import AdamW

def build():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model.to(device)
    model = model.to(device)
    return model, AdamW(  # <- found
        model.parameters(),
        lr=1e-3,
    )

# case: passed to a function in the file
import torch
from torch import nn

def optimizer_for(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3)  # <- found

optimizer = optimizer_for(nn.Linear(4, 4).to("cuda"))

# case: fused
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(model.parameters(), fused=True)

# case: another form was chosen
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(model.parameters(), foreach=False)

# case: not known where the model is
import torch

def build(model):
    return torch.optim.Adam(model.parameters())

# case: on the processor
import torch
from torch import nn

model = nn.Linear(4, 4).to("cpu")
optimizer = torch.optim.Adam(model.parameters())

# case: options from elsewhere
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(model.parameters(), **options)

# case: a model on the host
import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

# case: another optimizer
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.1)
