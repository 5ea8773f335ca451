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

# case: a cycle leads back to the generator that learns
import torch

def train(gen_ab, gen_ba, disc_a, disc_b, loader, l1):
    gen_opt = torch.optim.Adam([*gen_ab.parameters(), *gen_ba.parameters()])
    disc_opt = torch.optim.Adam([*disc_a.parameters(), *disc_b.parameters()])
    for real, ones in loader:
        code = disc_a.forward(real).detach()
        fake = gen_ab(code)
        cycled = gen_ba(disc_b(fake))
        loss = l1(cycled, real)
        gen_opt.zero_grad()
        loss.backward()
        gen_opt.step()
        loss = l1(disc_b(gen_ab(code).detach()), ones) + l1(disc_a(real), ones)
        disc_opt.zero_grad()
        loss.backward()
        disc_opt.step()

# case: the discriminator's features of real images are needed by no optimizer of this loss
import torch

def train(gen_ab, gen_ba, disc_a, disc_b, loader, l1):
    gen_opt = torch.optim.Adam([*gen_ab.parameters(), *gen_ba.parameters()])
    disc_opt = torch.optim.Adam([*disc_a.parameters(), *disc_b.parameters()])
    for real, ones in loader:
        loss = l1(disc_b(gen_ab(disc_a(real)).detach()), ones)
        disc_opt.zero_grad()
        loss.backward()
        disc_opt.step()
        code = disc_a(real)
        fake = gen_ab(code)  # <- found
        loss = l1(gen_ba(disc_b(fake)), real)
        gen_opt.zero_grad()
        loss.backward()
        gen_opt.step()

# case: optimizers are named after the first letters of their models
import torch
import torch.nn.functional as F

def train(enhancer, metric_net, loader, opt_e, opt_m):
    for noisy, clean in loader:
        enhanced = enhancer(noisy)
        loss = F.l1_loss(enhanced, clean) - metric_net(enhanced).mean()
        opt_e.zero_grad()
        loss.backward()
        opt_e.step()
        loss = F.mse_loss(metric_net(enhancer(noisy)), clean)  # <- found
        opt_m.zero_grad()
        loss.backward()
        opt_m.step()

# case: each network has a function, and gets its optimizer from the caller
import torch

def d_step(D, G, real, z, opt):
    loss = D(G(z)).mean() - D(real).mean()  # <- found
    opt.zero_grad()
    loss.backward()
    opt.step()

def g_step(D, G, z, opt):
    loss = -D(G(z)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()

def main(loader, D, G):
    d_opt = torch.optim.Adam(D.parameters())
    g_opt = torch.optim.Adam(G.parameters())
    for real in loader:
        z = torch.randn(8, 64)
        d_step(D, G, real, z, d_opt)
        g_step(D, G, z, g_opt)

# case: a model is known by the name of its optimizer
for x, y in loader:
    loss = critic(feat(x.cuda())).mean()  # <- found
    critic_opt.zero_grad()
    loss.backward()
    critic_opt.step()
    loss = head(feat(x.cuda())).mean()
    feat_opt.zero_grad()
    loss.backward()
    feat_opt.step()

# case: an optimizer is named after both models
import torch

def train(G, Q, D, loader, optimizers, criterion):
    optimizer_D, optimizer_QG = optimizers
    for z, c in loader:
        loss = D(G(z)).mean()  # <- found
        optimizer_D.zero_grad()
        loss.backward()
        optimizer_D.step()
        loss = criterion(Q(G(z)), c)
        optimizer_QG.zero_grad()
        loss.backward()
        optimizer_QG.step()

# case: the critic has several outputs
for mel, wav in loader:
    fake = generator(mel.cuda())
    loss = 0
    for real_score, fake_score in zip(critic(wav.cuda()), critic(fake)):  # <- found
        loss = loss + fake_score.mean() - real_score.mean()
    critic_optim.zero_grad()
    loss.backward()
    critic_optim.step()
    loss = -sum(score.mean() for score in critic(generator(mel.cuda())))
    generator_optim.zero_grad()
    loss.backward()
    generator_optim.step()
