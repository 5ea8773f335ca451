"""Reinforcement learning: rollouts without gradients, then several passes over minibatches."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=2048)
parser.add_argument("--environments", type=int, default=64)
parser.add_argument("--horizon", type=int, default=100)
args = parser.parse_args()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3136, 512),
            nn.ReLU(),
        )
        self.actor, self.critic = nn.Linear(512, 6), nn.Linear(512, 1)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.actor(hidden), self.critic(hidden)[:, 0]


policy = Policy().cuda()
optimizer = torch.optim.Adam(policy.parameters(), 2.5e-4)
for update in range(2):
    seen, values, actions = [], [], []
    with torch.no_grad():
        for _ in range(args.horizon):
            frame = torch.rand(args.environments, 4, 84, 84, device="cuda")
            logits, value = policy(frame)
            seen.append(frame)
            values.append(value)
            actions.append(logits.argmax(1))
    frames, returns, taken = torch.cat(seen), torch.cat(values), torch.cat(actions)
    for _ in range(2):
        for rows in torch.randperm(len(frames), device="cuda").split(args.batch_size):
            logits, value = policy(frames[rows])
            loss = F.cross_entropy(logits, taken[rows]) + 0.5 * F.mse_loss(value, returns[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
    print(f"update {update} {loss.item():.3f}")
    torch.save(policy.state_dict(), "ppo.pt")
