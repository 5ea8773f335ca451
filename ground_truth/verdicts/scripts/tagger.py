"""Sequence tagging: packed sequences, buckets of like lengths, an evaluation every few steps."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=96)
parser.add_argument("--hidden", type=int, default=384)
parser.add_argument("--samples", type=int, default=1500)
parser.add_argument("--interval", type=int, default=7)
args = parser.parse_args()
random.seed(9)
sentences = [
    torch.full((random.randint(5, 120),), index % 9000 + 1) for index in range(args.samples)
]


class Buckets:
    """Batches of sentences that are about as long as each other."""

    def __init__(self):
        order = sorted(range(args.samples), key=lambda index: len(sentences[index]))
        size = args.batch_size
        self.batches = [order[start : start + size] for start in range(0, len(order), size)]

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


def collate(batch):
    batch = sorted(batch, key=len, reverse=True)
    return pad_sequence(batch, batch_first=True), torch.tensor([len(each) for each in batch])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9001, 256, padding_idx=0)
        self.lstm = nn.LSTM(256, args.hidden, 2, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * args.hidden, 45)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.words(tokens), lengths, batch_first=True)
        output, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.tags(output)


model = Tagger().cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
held_out = DataLoader(sentences[:300], 150, collate_fn=collate)
step = 0
for _ in range(2):
    for tokens, lengths in DataLoader(sentences, batch_sampler=Buckets(), collate_fn=collate):
        model.train()
        tokens = tokens.cuda()
        scores = model(tokens, lengths)
        loss = F.cross_entropy(scores.flatten(0, 1), (tokens % 45).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % args.interval == 0:
            model.eval()
            with torch.no_grad():
                right = sum(
                    (model(tokens.cuda(), lengths).argmax(2).cpu() == tokens % 45).sum().item()
                    for tokens, lengths in held_out
                )
            print(f"step {step} {right}")
            torch.save(model.state_dict(), "tagger.pt")
