"""Speech recognition: spectrograms of different lengths, convolutions, a GRU, CTC loss."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=24)
parser.add_argument("--hidden", type=int, default=512)
parser.add_argument("--samples", type=int, default=200)
args = parser.parse_args()
order = torch.Generator().manual_seed(0)
random.seed(4)
clips = []
for _ in range(args.samples):
    frames = random.choice([200, 400, 600, 900])
    clips.append((torch.randn(frames, 80), torch.randint(1, 30, (frames // 20,))))


def collate(batch):
    sounds = pad_sequence([clip for clip, _ in batch], batch_first=True)
    texts = pad_sequence([text for _, text in batch], batch_first=True)
    return sounds, texts, [len(clip) // 4 for clip, _ in batch], [len(text) for _, text in batch]


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.GELU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.BatchNorm2d(64),
            nn.GELU(),
        )
        self.gru = nn.GRU(64 * 20, args.hidden, 3, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * args.hidden, 30)

    def forward(self, sounds):
        x = self.front(sounds[:, None])
        x = x.permute(0, 2, 1, 3).flatten(2)
        return self.head(self.gru(x)[0])


model = Recogniser().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
loader = DataLoader(clips, args.batch_size, shuffle=True, collate_fn=collate, generator=order)
for epoch in range(2):
    model.train()
    for sounds, texts, lengths, text_lengths in loader:
        scores = model(sounds.cuda()).log_softmax(-1).transpose(0, 1)
        loss = F.ctc_loss(scores, texts.cuda(), lengths, text_lengths, zero_infinity=True)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        for sounds, *_ in DataLoader(clips[:30], 10, collate_fn=collate):
            best = model(sounds.cuda()).argmax(-1).cpu()
    print(f"epoch {epoch} {loss.item():.3f} {best.float().mean():.2f}")
    torch.save(model.state_dict(), "speech.pt")
