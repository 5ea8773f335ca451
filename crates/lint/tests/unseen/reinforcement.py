# case: a replay buffer keeps the network's outputs
from collections import deque

import torch

buffer = []


def collect(policy, env, steps):
    state = env.reset()
    for _ in range(steps):
        q = policy(torch.as_tensor(state).cuda())
        action = q.argmax().item()
        next_state, reward, done, _ = env.step(action)
        buffer.append((state, q, reward, next_state))  # <- found: collected-outputs
        state = env.reset() if done else next_state

# case: a replay buffer keeps detached outputs on the host
from collections import deque

import torch

buffer = deque(maxlen=100000)


def collect(policy, env, steps):
    state = env.reset()
    for _ in range(steps):
        with torch.no_grad():
            q = policy(torch.as_tensor(state).cuda())
        action = q.argmax().item()
        next_state, reward, done, _ = env.step(action)
        buffer.append((state, action, reward, next_state))
        state = env.reset() if done else next_state

# case: log probabilities of an episode are backpropagated and emptied
import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(4, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return torch.softmax(self.affine(x), dim=1)


policy = Policy().cuda()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    probs = policy(torch.from_numpy(state).float().unsqueeze(0).cuda())
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(returns):
    loss = [-p * r for p, r in zip(policy.saved_log_probs, returns)]
    optimizer.zero_grad()
    torch.cat(loss).sum().backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]

# case: the critic's target records a graph
import copy

import torch
import torch.nn.functional as F


class DDPG:
    def __init__(self, actor, critic):
        self.actor = actor.cuda()
        self.actor_target = copy.deepcopy(self.actor)
        self.critic = critic.cuda()
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters())
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters())

    def train(self, replay_buffer):
        for _ in range(100):
            state, action, next_state, reward, not_done = replay_buffer.sample(256)
            target_q = self.critic_target(next_state, self.actor_target(next_state))  # <- found: copy-with-gradients
            target_q = reward + not_done * 0.99 * target_q
            loss = F.mse_loss(self.critic(state, action), target_q)
            self.critic_optimizer.zero_grad()
            loss.backward()
            self.critic_optimizer.step()
            actor_loss = -self.critic(state, self.actor(state)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()

# case: the critic's target is detached
import copy

import torch
import torch.nn.functional as F


class DDPG:
    def __init__(self, actor, critic):
        self.actor = actor.cuda()
        self.actor_target = copy.deepcopy(self.actor)
        self.critic = critic.cuda()
        self.critic_target = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters())
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters())

    def train(self, replay_buffer):
        for _ in range(100):
            state, action, next_state, reward, not_done = replay_buffer.sample(256)
            target_q = self.critic_target(next_state, self.actor_target(next_state))
            target_q = reward + (not_done * 0.99 * target_q).detach()
            loss = F.mse_loss(self.critic(state, action), target_q)
            self.critic_optimizer.zero_grad()
            loss.backward()
            self.critic_optimizer.step()
            actor_loss = -self.critic(state, self.actor(state)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()

# case: an episode's losses pile up over all episodes
import torch


def reinforce(policy, env, optimizer, episodes):
    all_losses = []
    for episode in range(episodes):
        log_probs, rewards = play(policy, env)
        loss = -(torch.stack(log_probs) * torch.tensor(rewards).cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        all_losses.append(loss)  # <- found: collected-losses
    return all_losses

# case: values of a rollout belong to one update
import torch


def a2c(model, envs, optimizer, updates, horizon):
    obs = envs.reset()
    for update in range(updates):
        values, log_probs, rewards = [], [], []
        for _ in range(horizon):
            dist, value = model(torch.as_tensor(obs).cuda())
            action = dist.sample()
            obs, reward, done, _ = envs.step(action.cpu().numpy())
            values.append(value)
            log_probs.append(dist.log_prob(action))
            rewards.append(torch.as_tensor(reward).cuda())
        returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
        advantage = returns - torch.cat(values)
        loss = -(torch.stack(log_probs) * advantage.detach()).mean() + advantage.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a hidden state of an agent is carried with retain_graph
import torch


def train(agent, batches, optimizer):
    hidden = agent.initial_state()
    for obs, target in batches:
        out, hidden = agent(obs, hidden)  # <- found: recurrent-state
        loss = torch.nn.functional.mse_loss(out, target)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()

# case: a hidden state of an agent is detached
import torch


def train(agent, batches, optimizer):
    hidden = agent.initial_state()
    for obs, target in batches:
        hidden = tuple(h.detach() for h in hidden)
        out, hidden = agent(obs, hidden)
        loss = torch.nn.functional.mse_loss(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
