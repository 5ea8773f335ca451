import torch
from torch import nn

generator = nn.Linear(8, 8).cuda()
critic = nn.Linear(8, 1).cuda()
criterion = nn.BCEWithLogitsLoss()
of_critic = torch.optim.Adam(critic.parameters())
of_generator = torch.optim.Adam(generator.parameters(), amsgrad=True)
for (real, _) in torch.utils.data.DataLoader(torch.randn(64, 2, 8), batch_size=8):
    # the critic
    of_critic.zero_grad()
    errors = criterion(critic(real), torch.ones(8, 1))
    errors.backward()
    fake = generator(torch.randn(8, 8))
    errors = criterion(critic(fake.detach()), torch.zeros(8, 1))
    errors.backward()
    of_critic.step()
    # the generator
    of_generator.zero_grad()
    errors = criterion(critic(fake), torch.ones(8, 1))
    errors.backward()
    of_generator.step()
