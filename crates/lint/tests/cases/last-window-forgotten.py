# case: only full windows make a step
def train(model, loader, optimizer, criterion, n):
    for epoch in range(10):
        for i, (x, y) in enumerate(loader):
            (criterion(model(x), y) / n).backward()
            if (i + 1) % n == 0:
                optimizer.step()  # <- found
                optimizer.zero_grad()

# case: an epoch begins with zero_grad, inside a progress bar
from tqdm import tqdm

def train_epoch(model, loader, optimizer, criterion, args):
    optimizer.zero_grad()
    for step, (x, y) in tqdm(enumerate(loader), total=len(loader)):
        (criterion(model(x), y) / args.n).backward()
        if (step + 1) % args.n == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: the window ends at its last index
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if i % n == n - 1:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: the last iteration makes a step, too
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0 or i == len(loader) - 1:
            optimizer.step()
            optimizer.zero_grad()

# case: a step after the loop
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()
    if (i + 1) % n != 0:
        optimizer.step()
        optimizer.zero_grad()

# case: a counter that goes on over epochs
def train(model, loader, optimizer, criterion, n):
    seen = 0
    for epoch in range(10):
        for x, y in loader:
            (criterion(model(x), y) / n).backward()
            seen += 1
            if seen % n == 0:
                optimizer.step()
                optimizer.zero_grad()

# case: a loader that drops the last batch
from torch.utils.data import DataLoader

def train(model, data, optimizer, criterion, n):
    loader = DataLoader(data, batch_size=8, drop_last=True)
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: a loop of a chosen length
def train(model, batch, optimizer, criterion, n, steps):
    for i, _ in enumerate(range(steps)):
        x, y = batch()
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: batches without end
def train(model, stream, optimizer, criterion, n):
    i = 0
    while True:
        x, y = next(stream)
        (criterion(model(x), y) / n).backward()
        i += 1
        if i % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: the condition has a name and another way
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        full = (i + 1) % n == 0
        last = i + 1 == len(loader)
        if full or last:
            optimizer.step()
            optimizer.zero_grad()

# case: the first iteration makes a step, the last ones do not
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / n).backward()
        if i % n == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: counted through the length of the data
def train(model, samples, size, optimizer, n):
    for epoch in range(3):
        for step in range(len(samples) // size):
            x = samples[step * size : (step + 1) * size]
            (model(x)[0] / n).backward()
            if (step + 1) % n == 0:
                optimizer.step()  # <- found
                optimizer.zero_grad()

# case: counted through a multiple of the window
def train(model, samples, optimizer, n):
    for step in range(len(samples) // n * n):
        (model(samples[step])[0] / n).backward()
        if (step + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: the other way is a setting, and enumerate counts from one
def train(model, loader, optimizer, criterion, accumulate, n):
    for i, (x, y) in enumerate(loader, start=1):
        (criterion(model(x), y) / n).backward()
        if not accumulate or i % n == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: a loader that loops forever
def forever(loader):
    while True:
        for batch in loader:
            yield batch

def train(model, loader, optimizer, criterion, n):
    stream = forever(loader)
    for i, (x, y) in enumerate(stream):
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: every iteration discards what the others left
def train(model, loader, optimizer, criterion, n):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        (criterion(model(x), y) / n).backward()
        if (i + 1) % n == 0:
            optimizer.step()

# case: the counter goes on over the epochs
def train(model, loader, optimizer, criterion):
    seen = 0
    for epoch in range(3):
        for x, y in loader:
            (criterion(model(x), y) / 4).backward()
            seen += 1
            if seen % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()

# case: one step for all batches of an epoch
def train(model, loader, optimizer, criterion):
    for epoch in range(3):
        for x, y in loader:
            (criterion(model(x), y) / len(loader)).backward()
        optimizer.step()
        optimizer.zero_grad()

# case: the rest is stepped by a function in the file
def finish(optimizer):
    optimizer.step()
    optimizer.zero_grad()

def train(model, loader, optimizer, criterion):
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    finish(optimizer)

# case: only whole windows are run
def train(model, loader, optimizer, criterion, count):
    usable = len(loader) // count * count
    for i, (x, y) in enumerate(loader):
        if i >= usable:
            break
        (criterion(model(x), y) / count).backward()
        if (i + 1) % count == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: what would not fill a window is skipped
def train(model, loader, optimizer, criterion, count, steps):
    for i, (x, y) in enumerate(loader):
        step = i // count
        if step >= steps:
            continue
        (criterion(model(x), y) / count).backward()
        if (i + 1) % count == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: one loop that ends when enough steps were made
completed = 0
for step, (x, y) in enumerate(loader, start=1):
    loss = criterion(model(x), y) / count
    loss.backward()
    if step % count == 0:
        optimizer.step()
        optimizer.zero_grad()
        completed += 1
    if completed >= most:
        break

# case: the first iterations are skipped, the last ones are not
def train(model, loader, optimizer, criterion, count, start):
    for i, (x, y) in enumerate(loader):
        if i < start:
            continue
        (criterion(model(x), y) / count).backward()
        if (i + 1) % count == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()

# case: left when the whole windows are done
def train(model, loader, optimizer, criterion, count, whole):
    for i, (x, y) in enumerate(loader):
        if i == whole:
            break
        (criterion(model(x), y) / count).backward()
        if (i + 1) % count == 0:
            optimizer.step()
            optimizer.zero_grad()

# case: the progress bar has a name
from tqdm import tqdm

for epoch in range(3):
    bar = tqdm(enumerate(loader), total=len(loader))
    for i, (x, y) in bar:
        loss = criterion(model(x), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()  # <- found
            optimizer.zero_grad()
        bar.set_postfix(loss=loss.item())
