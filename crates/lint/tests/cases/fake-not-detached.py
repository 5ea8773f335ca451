# case: the critic's loss goes through the generator
import torch

def train(gen, critic, loader):
    gen_opt = torch.optim.Adam(gen.parameters())
    critic_opt = torch.optim.Adam(critic.parameters())
    for real in loader:
        fake = gen(torch.randn(8, 64))
        loss = critic(fake).mean() - critic(real).mean()  # <- found
        critic_opt.zero_grad()
        loss.backward()
        critic_opt.step()
        gen_loss = -critic(gen(torch.randn(8, 64))).mean()
        gen_opt.zero_grad()
        gen_loss.backward()
        gen_opt.step()

# case: the loss has two parts with names
import torch

def train(gen, disc, loader, bce, ones, zeros):
    opt_g = torch.optim.Adam(gen.parameters())
    opt_d = torch.optim.Adam(disc.parameters())
    for real in loader:
        fake = gen(torch.randn(8, 64))
        real_loss = bce(disc(real), ones)
        fake_loss = bce(disc(fake), zeros)  # <- found
        loss = (real_loss + fake_loss) / 2
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        bce(disc(gen(torch.randn(8, 64))), ones).backward()
        opt_g.step()

# case: it is detached
import torch

def train(gen, critic, loader):
    gen_opt = torch.optim.Adam(gen.parameters())
    critic_opt = torch.optim.Adam(critic.parameters())
    for real in loader:
        fake = gen(torch.randn(8, 64)).detach()
        loss = critic(fake).mean() - critic(real).mean()
        critic_opt.zero_grad()
        loss.backward()
        critic_opt.step()
        gen_loss = -critic(gen(torch.randn(8, 64))).mean()
        gen_opt.zero_grad()
        gen_loss.backward()
        gen_opt.step()

# case: the generator's own step goes through the critic
import torch

def train(gen, critic, loader):
    gen_opt = torch.optim.Adam(gen.parameters())
    critic_opt = torch.optim.Adam(critic.parameters())
    for real in loader:
        loss = critic(gen(real).detach()).mean() - critic(real).mean()
        critic_opt.zero_grad()
        loss.backward()
        critic_opt.step()
        fake = gen(real)
        gen_loss = -critic(fake).mean()
        gen_opt.zero_grad()
        gen_loss.backward()
        gen_opt.step()

# case: both learn from one loss
import torch

def train(encoder, head, loader):
    a = torch.optim.Adam(encoder.parameters())
    b = torch.optim.Adam(head.parameters())
    for x, y in loader:
        loss = head(encoder(x)).mean()
        loss.backward()
        a.step()
        b.step()
        a.zero_grad()
        b.zero_grad()

# case: one optimizer has both
import torch

def train(encoder, head, loader):
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    for x, y in loader:
        loss = head(encoder(x)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: the same run goes into the generator's loss
import torch

def train(gen, critic, loader):
    gen_opt = torch.optim.Adam(gen.parameters())
    critic_opt = torch.optim.Adam(critic.parameters())
    for real in loader:
        fake = gen(torch.randn(8, 64))
        judged = critic(fake)
        loss = judged.mean() - critic(real).mean()
        critic_opt.zero_grad()
        loss.backward(retain_graph=True)
        critic_opt.step()
        gen_loss = -judged.mean()
        gen_opt.zero_grad()
        gen_loss.backward()
        gen_opt.step()

# case: the generator's parameters come through a chain
import itertools
import torch

def train(gen, enc, critic, loader):
    both = itertools.chain(gen.parameters(), enc.parameters())
    gen_opt = torch.optim.Adam(both)
    critic_opt = torch.optim.Adam(critic.parameters())
    for real in loader:
        judged = critic(gen(torch.randn(8, 64)))
        gen_loss = -judged.mean()
        gen_opt.zero_grad()
        gen_loss.backward(retain_graph=True)
        gen_opt.step()
        loss = judged.mean() - critic(real).mean()
        critic_opt.zero_grad()
        loss.backward()
        critic_opt.step()
