"""A language model with a recurrent net; batches have the lengths of their longest sentence."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--cell", default="LSTM", choices=("LSTM", "GRU", "RNN"))
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--hidden", type=int, default=512)
parser.add_argument("--vocabulary", type=int, default=20000)
parser.add_argument("--samples", type=int, default=1000)
parser.add_argument("--longest", type=int, default=120)
parser.add_argument("--clip", type=float, default=1.0)
args = parser.parse_args()
order = torch.Generator().manual_seed(0)

random.seed(0)
torch.manual_seed(0)
lengths = [20, 40, 60, 80, 100, 120]
lengths = [min(each, args.longest) for each in lengths]
sentences = [
    torch.randint(1, args.vocabulary, (random.choice(lengths),)) for _ in range(args.samples)
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(args.vocabulary, args.hidden)
        self.rnn = getattr(nn, args.cell)(
            args.hidden, args.hidden, 2, batch_first=True, dropout=0.1
        )
        self.head = nn.Linear(args.hidden, args.vocabulary)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def collate(batch):
    return pad_sequence(batch, batch_first=True)


def loss_of(model, tokens):
    logits = model(tokens[:, :-1])
    return F.cross_entropy(
        logits.reshape(-1, args.vocabulary), tokens[:, 1:].reshape(-1), ignore_index=0
    )


train = DataLoader(sentences, args.batch_size, shuffle=True, collate_fn=collate, generator=order)
test = DataLoader(sentences[: args.samples // 5], args.batch_size, collate_fn=collate)
model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    model.train()
    for tokens in train:
        loss = loss_of(model, tokens.cuda())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        held_out = sum(loss_of(model, tokens.cuda()).item() for tokens in test) / len(test)
    print(f"epoch {epoch} loss {loss.item():.3f} held out {held_out:.3f}")
    torch.save(model.state_dict(), "lstm.pt")
