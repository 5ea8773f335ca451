# case: gradients are set to zero once per window, the step is in every micro-batch
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / n
        loss.backward()
        optimizer.step()  # <- found
        if (i + 1) % n == 0:
            optimizer.zero_grad()

# case: of the model, at the beginning of the window
import torch

def train(model, loader, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        if i % 4 == 0:
            model.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()  # <- found

# case: divided for a window that only the scheduler knows
import torch

def train(model, loader, criterion, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss = loss / args.accumulate
        loss.backward()
        optimizer.step()  # <- found
        optimizer.zero_grad()
        if (i + 1) % args.accumulate == 0:
            scheduler.step()

# case: micro-batches in a separate loop, and the step inside
import torch

def train(model, batches, criterion, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        for _ in range(n):
            x, y = next(batches)
            loss = criterion(model(x), y)
            loss /= n
            loss.backward()
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: a window as it should be
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / n
        loss.backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: micro-batches in a separate loop, the step after it
import torch

def train(model, batches, criterion, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        for _ in range(n):
            x, y = next(batches)
            (criterion(model(x), y) / n).backward()
        optimizer.step()
        optimizer.zero_grad()

# case: a loss divided by its number of samples
import torch

def train(model, loader, criterion, batch_size):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / batch_size
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(loss.item())

# case: two optimizers, one of them more rarely
import torch

def train(G, D, loader, n_critic):
    opt_g = torch.optim.Adam(G.parameters())
    opt_d = torch.optim.Adam(D.parameters())
    for i, x in enumerate(loader):
        opt_d.zero_grad()
        D(x).mean().backward()
        opt_d.step()
        if i % n_critic == 0:
            opt_g.zero_grad()
            (-D(G(x)).mean()).backward()
            opt_g.step()

# case: a loop over epochs that logs the mean
import torch

def fit(model, x, y, criterion, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0:
            print(loss.item() / epochs)

# case: the mean over the samples of one batch
def train(model, loader, optimizer, criterion):
    for x, y in loader:
        size = len(x)
        loss = criterion(model(x), y).sum() / size
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# case: a report once in so many steps, and a loss divided by something else
def train(model, loader, optimizer, criterion, often, heads):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / heads
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % often == 0:
            print(loss.item())

# case: the branch for those who do not accumulate
def train(model, loader, optimizer, criterion, scaler, args):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        if args.steps > 1:
            loss = loss / args.steps
            scaler.scale(loss).backward()
            if (i + 1) % args.steps == 0:
                scaler.step(optimizer)
                optimizer.zero_grad()
        else:
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)

# case: a separate branch without a window
def train(model, loader, optimizer, criterion, scaler, args):
    for i, (x, y) in enumerate(loader):
        if args.mixed:
            loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            optimizer.zero_grad()
        else:
            loss = criterion(model(x), y)
            loss = loss / args.steps
            loss.backward()
            if (i + 1) % args.steps == 0:
                optimizer.step()
                optimizer.zero_grad()

# case: a weight for each of several steps
def refine(model, x, y, optimizer, criterion, rounds):
    for k in range(rounds):
        optimizer.zero_grad()
        loss = criterion(model(x), y) / rounds
        loss.backward()
        optimizer.step()
