import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config()).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loader = torch.utils.data.DataLoader(torch.zeros(64, 128, dtype=torch.long), batch_size=4)
for number, tokens in enumerate(loader, start=1):
    tokens = tokens.cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    (loss / 4).backward()
    if number % 4 == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
