import os
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel
from torch.utils.data import DataLoader

os.environ["TOKENIZERS_PARALLELISM"] = "false"
model = GPT2LMHeadModel(GPT2Config(n_layer=2))
model.cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loader = DataLoader(range(100), batch_size=8)
for batch in loader:
    batch = {name: value.cuda() for name, value in batch.items()}
    loss = model(input_ids=batch["input_ids"], labels=batch["labels"]).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
