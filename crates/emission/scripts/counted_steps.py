import torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask=None):
        return x + self.mlp(x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(64) for _ in range(6)])

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x, mask=None)  # residual inside
        return x

def main():
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(8):
        x = torch.randn(32, 64, device="cuda")
        query = """
        left as it is
        """
        out = model(x)
        loss = F.mse_loss(
            out,
            x,
        )

        # gradients
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

if __name__ == "__main__":
    main()
