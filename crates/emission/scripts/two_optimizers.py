import torch
from torch import nn

generator, critic = nn.Linear(8, 8), nn.Linear(8, 1)
of_generator = torch.optim.Adam(generator.parameters())
of_critic = torch.optim.Adam(critic.parameters())
loader = torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=8)
for x in loader:
    of_generator.zero_grad()
    of_critic.zero_grad()
    loss = critic(generator(x)).mean()
    loss.backward()
    of_generator.step()
    of_critic.step()
