# case: at once, where they are made
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(1024, 32000, bias=False)

    def forward(self, x):
        return self.head(x).float()  # <- found

# case: through a name, with the number of words in a configuration
import torch
import torch.nn.functional as F
from dataclasses import dataclass
from torch import nn

@dataclass
class Config:
    width: int = 768
    vocab_size: int = 50304

class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.lm_head = nn.Linear(config.width, config.vocab_size)

    def forward(self, x, y):
        logits = self.lm_head(x)
        logits = logits.to(torch.float32)  # <- found
        return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))

# case: through a constant and a view
import torch
from torch import nn

WORDS = 128256

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4096, WORDS)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x, y):
        scores = self.out(x)
        flat = scores.view(-1, WORDS)
        return self.loss(flat.float(), y.view(-1))  # <- found

# case: a small output
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(1024, 1000)

    def forward(self, x):
        return self.head(x).float()

# case: nothing says how many words there are
from torch import nn

class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.head = nn.Linear(config.width, config.vocab_size)

    def forward(self, x):
        return self.head(x).float()

# case: taken as they are
import torch.nn.functional as F
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(1024, 50257)

    def forward(self, x, y):
        logits = self.head(x)
        return F.cross_entropy(logits.view(-1, 50257), y.view(-1))

# case: something else is made wide
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(1024, 50257)
        self.norm = nn.LayerNorm(1024)

    def forward(self, x):
        return self.head(self.norm(x.float()))

# case: without gradients
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(1024, 50257)

    @torch.no_grad()
    def predict(self, x):
        return self.head(x).float()

# case: the number of words is a parameter's default
from torch import nn

class Model(nn.Module):
    def __init__(self, width=768, words=50257):
        super().__init__()
        self.head = nn.Linear(width, words)

    def forward(self, x):
        logits = self.head(x)
        return logits.float()  # <- found

# case: the number of words is given where the model is made
from torch import nn

WORDS = 151936

class Model(nn.Module):
    def __init__(self, words=1000):
        super().__init__()
        self.head = nn.Linear(768, words)

    def forward(self, x):
        return self.head(x).float()  # <- found

model = Model(WORDS)

# case: the default is not what the model is made with
from torch import nn

class Model(nn.Module):
    def __init__(self, words=50257):
        super().__init__()
        self.head = nn.Linear(768, words)

    def forward(self, x):
        return self.head(x).float()

model = Model(words=100)

# case: a small vocabulary
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(256, 50)

    def forward(self, x):
        return self.head(x).float()

# case: of the last token only
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(256, 50257)

    @torch.no_grad()
    def next_token(self, x):
        logits = self.head(x[:, -1])
        return logits.float().softmax(-1)

# case: autocast takes the loss in full precision itself
import torch
import torch.nn.functional as F
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(768, 50257)

    def forward(self, hidden, targets):
        logits = self.head(hidden)
        logits = logits.float()
        return F.cross_entropy(logits.view(-1, 50257), targets.view(-1))

def train(model, loader, optimizer):
    for x, y in loader:
        with torch.amp.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x, y)
        loss.backward()
        optimizer.step()

# case: one position of each text
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(768, 50257)

    def forward(self, hidden):
        logits = self.head(hidden[:, [-1], :])
        return logits.float()

# case: the head of a script
import torch.nn.functional as F
from torch import nn

head = nn.Linear(2048, 128256, bias=False)
for hidden, labels in loader:
    logits = head(hidden.cuda()).float()  # <- found
    F.cross_entropy(logits.view(-1, 128256), labels.view(-1)).backward()
    optimizer.step()
