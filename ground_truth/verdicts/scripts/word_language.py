"""A word language model over one long text: windows of it, without a DataLoader."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=160)
parser.add_argument("--eval-batch-size", type=int, default=40)
parser.add_argument("--window", type=int, default=70)
parser.add_argument("--words", type=int, default=10_000)
parser.add_argument("--width", type=int, default=400)
parser.add_argument("--tokens", type=int, default=120_000)
args = parser.parse_args()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Embedding(args.words, args.width)
        self.lstm = nn.LSTM(args.width, args.width, 2, dropout=0.2)
        self.leave = nn.Linear(args.width, args.words)

    def forward(self, tokens, state):
        output, state = self.lstm(self.enter(tokens), state)
        return torch.log_softmax(self.leave(output).view(-1, args.words), 1), state


def batchify(text, batch):
    rows = text.size(0) // batch
    return text.narrow(0, 0, rows * batch).view(batch, -1).t().contiguous().cuda()


def window(source, start):
    length = min(args.window, len(source) - 1 - start)
    return source[start : start + length], source[start + 1 : start + 1 + length].view(-1)


text = torch.randint(0, args.words, (args.tokens,))
train_data, test_data = batchify(text, args.batch_size), batchify(text, args.eval_batch_size)
model = Model().cuda()
criterion = nn.NLLLoss()


def evaluate(source):
    model.eval()
    total, state = 0.0, None
    with torch.no_grad():
        for start in range(0, source.size(0) - 1, args.window):
            tokens, targets = window(source, start)
            output, state = model(tokens, state)
            total += len(tokens) * criterion(output, targets).item()
    return total / (len(source) - 1)


for epoch in range(3):
    model.train()
    state = None
    for start in range(0, train_data.size(0) - 1, args.window):
        tokens, targets = window(train_data, start)
        model.zero_grad()
        if state is not None:
            state = tuple(each.detach() for each in state)
        output, state = model(tokens, state)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-20)
    print(f"epoch {epoch} {evaluate(test_data):.2f}")
    torch.save(model, "words.pt")
