# case: a separate name for each step
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.out = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        a = self.conv(x)
        b = self.norm(a)
        c = F.relu(b)  # <- found
        return self.out(c)

# case: a module that could be told so
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.act = nn.ReLU()
        self.two = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.one(x)
        active = self.act(hidden)  # <- found
        return self.two(active)

# case: with an argument
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.one(x)
        active = F.leaky_relu(hidden, 0.2)  # <- found
        return self.two(active)

# case: the name is bound again at once
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)

    def forward(self, x):
        x = self.one(x)
        x = F.relu(x)
        return self.two(x)

# case: used by a residual
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.one(x)
        active = F.relu(hidden)
        return self.two(active) + hidden

# case: the layer before needs its output for backward
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Sigmoid()
        self.two = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.gate(x)
        active = F.relu(hidden)
        return self.two(active)

# case: already in place
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.one(x)
        active = F.relu(hidden, inplace=True)
        return self.two(active)

# case: an activation that cannot work in place
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.two = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.one(x)
        active = F.gelu(hidden)
        return self.two(active)

# case: nothing comes after it
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)

    def forward(self, x):
        hidden = self.one(x)
        active = F.relu(hidden)
        return active

# case: both are needed
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.second = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        before = self.first(x)
        after = F.relu(before)
        return self.second(after) + before

# case: the input of a layer that needs it for backward
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sigmoid()
        self.second = nn.Linear(4, 4)

    def forward(self, x):
        before = self.first(x)
        after = F.relu(before)
        return self.second(after)
