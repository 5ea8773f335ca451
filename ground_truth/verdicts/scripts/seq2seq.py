"""Translation with nn.Transformer: batches of similar lengths, teacher forcing, greedy decoding."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=48)
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--vocabulary", type=int, default=16000)
parser.add_argument("--samples", type=int, default=700)
args = parser.parse_args()
random.seed(3)
torch.manual_seed(3)
pairs = []
for _ in range(args.samples):
    length = random.randint(10, 90)
    pairs.append(
        (
            torch.randint(3, args.vocabulary, (length,)),
            torch.randint(3, args.vocabulary, (length + random.randint(0, 10),)),
        )
    )
pairs.sort(key=lambda pair: len(pair[0]))
batches = [
    pairs[start : start + args.batch_size] for start in range(0, len(pairs), args.batch_size)
]


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(args.vocabulary, args.width)
        self.transformer = nn.Transformer(
            args.width, 8, args.layers, args.layers, 4 * args.width, batch_first=True
        )
        self.head = nn.Linear(args.width, args.vocabulary)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=source.device)
        hidden = self.transformer(
            self.embed(source), self.embed(target), tgt_mask=mask, src_key_padding_mask=source == 0
        )
        return self.head(hidden)


model = Translator().cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
for epoch in range(2):
    model.train()
    random.shuffle(batches)
    for batch in batches:
        source = pad_sequence([pair[0] for pair in batch], batch_first=True).cuda()
        target = pad_sequence([pair[1] for pair in batch], batch_first=True).cuda()
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        source = pad_sequence([pair[0] for pair in pairs[-32:]], batch_first=True).cuda()
        output = torch.ones(len(source), 1, dtype=torch.long, device="cuda")
        for _ in range(30):
            step = model(source, output)[:, -1].argmax(-1, keepdim=True)
            output = torch.cat([output, step], 1)
    print(f"epoch {epoch} {loss.item():.3f} {output.shape[1]}")
    torch.save(model.state_dict(), "seq2seq.pt")
