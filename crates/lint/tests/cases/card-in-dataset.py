# case: a sample is moved
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        image = self.images[index]
        return image.cuda(), self.labels[index]  # <- found

# case: to a device of the file
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class Rows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        row = torch.tensor(self.rows[index])
        return row.to(device)  # <- found

# case: made on the card
import torch
from torch.utils import data

class Noise(data.Dataset):
    def __getitem__(self, index):
        return torch.randn(3, 32, 32, device="cuda")  # <- found

# case: with workers in the same file
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self, images):
        self.images = images

    def __getitem__(self, index):
        return self.images[index].to("cuda")  # <- found

loader = DataLoader(Images(images), batch_size=4, num_workers=4)

# case: a collate function
import torch
from torch.utils.data import DataLoader

def collate(samples):
    return torch.stack(samples).cuda()  # <- found

loader = DataLoader(samples, batch_size=4, num_workers=2, collate_fn=collate)

# case: through a helper
from torch.utils.data import Dataset

def to_card(x):
    return x.cuda()  # <- found

class Images(Dataset):
    def __getitem__(self, index):
        return to_card(self.images[index])

# case: an iterable dataset
from torch.utils.data import IterableDataset

class Stream(IterableDataset):
    def __iter__(self):
        for x in self.source:
            yield x.cuda()  # <- found

# case: in the loop
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index]

for x in DataLoader(Images(), num_workers=4):
    x = x.cuda()

# case: no workers
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index].cuda()

loader = DataLoader(Images(), batch_size=4)
other = DataLoader(Images(), batch_size=4, num_workers=0)

# case: the device may be the host
from torch.utils.data import Dataset

class Images(Dataset):
    def __init__(self, images, device):
        self.images = images
        self.device = device

    def __getitem__(self, index):
        return self.images[index].to(self.device)

# case: not a dataset
class Store:
    def __getitem__(self, index):
        return self.rows[index].cuda()

# case: another method
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index]

    def preview(self, index):
        return self.images[index].cuda()

# case: a collate function without workers
import torch
from torch.utils.data import DataLoader

def collate(samples):
    return torch.stack(samples).cuda()

loader = DataLoader(samples, batch_size=4, collate_fn=collate)

# case: moved to a type
import torch
from torch.utils.data import Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index].to(torch.float32)

# case: the whole set is on the card, and the loader has no workers
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows):
        self.rows = torch.tensor(rows).cuda()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

loader = DataLoader(Rows([[1.0]]), batch_size=4, shuffle=True)

# case: moved by a method that the loop calls
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __getitem__(self, index):
        return torch.zeros(3)

    def to_card(self, batch):
        return batch.cuda()

rows = Rows()
for batch in DataLoader(rows, num_workers=4):
    print(rows.to_card(batch))

# case: a collator is an object
import torch
from torch.utils.data import DataLoader

class Collate:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        encoded = self.tokenizer(rows, return_tensors="pt")
        return {k: v.cuda() for k, v in encoded.items()}  # <- found

loader = DataLoader(rows, batch_size=16, collate_fn=Collate(tokenizer), num_workers=4)
