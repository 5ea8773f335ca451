# case: a Trainer evaluates with metrics and keeps all logits
import numpy as np
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def compute_metrics(prediction):
    logits, labels = prediction
    return {"accuracy": (np.argmax(logits, -1) == labels).mean()}


args = TrainingArguments(output_dir="out", per_device_train_batch_size=4, eval_strategy="epoch")
trainer = Trainer(  # <- found: trainer-keeps-logits
    model=model, args=args, train_dataset=train, eval_dataset=test, compute_metrics=compute_metrics
)
trainer.train()

# case: a Trainer reduces logits before it keeps them
import numpy as np
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def compute_metrics(prediction):
    predicted, labels = prediction
    return {"accuracy": (predicted == labels).mean()}


args = TrainingArguments(
    output_dir="out", per_device_train_batch_size=4, eval_strategy="epoch", eval_accumulation_steps=8
)
trainer = Trainer(
    model=model,
    args=args,
    train_dataset=train,
    eval_dataset=test,
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
)
trainer.train()

# case: validation_step returns logits that the epoch's end concatenates
import torch
import pytorch_lightning as pl


class Tagger(pl.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.outputs = []

    def validation_step(self, batch, batch_idx):
        logits = self.model(batch["x"])
        self.outputs.append({"logits": logits, "y": batch["y"]})  # <- found: collected-outputs

    def on_validation_epoch_end(self):
        logits = torch.cat([o["logits"] for o in self.outputs])
        self.outputs.clear()

# case: validation_step keeps predicted classes on the host
import torch
import pytorch_lightning as pl


class Tagger(pl.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.outputs = []

    def validation_step(self, batch, batch_idx):
        logits = self.model(batch["x"])
        self.outputs.append({"logits": logits.argmax(-1).cpu(), "y": batch["y"].cpu()})

    def on_validation_epoch_end(self):
        logits = torch.cat([o["logits"] for o in self.outputs])
        self.outputs.clear()

# case: a loop with Accelerate sums the loss
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
total_loss = 0
for batch in loader:
    with accelerator.accumulate(model):
        outputs = model(**batch)
        loss = outputs.loss
        total_loss += loss  # <- found: summed-loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

# case: a loop with Accelerate sums detached losses
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
total_loss = 0
for batch in loader:
    with accelerator.accumulate(model):
        outputs = model(**batch)
        loss = outputs.loss
        total_loss += loss.detach().float()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

# case: texts are padded to the model's longest length
from datasets import load_dataset
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("roberta-base")


def tokenize(batch):
    return tokenizer(batch["text"], padding="max_length", truncation=True)  # <- missed: padding-to-max-length


data = load_dataset("imdb").map(tokenize, batched=True)

# case: texts are padded in each batch
from datasets import load_dataset
from transformers import AutoTokenizer, DataCollatorWithPadding

tokenizer = AutoTokenizer.from_pretrained("roberta-base")


def tokenize(batch):
    return tokenizer(batch["text"], truncation=True, max_length=256)


data = load_dataset("imdb").map(tokenize, batched=True)
collator = DataCollatorWithPadding(tokenizer)

# case: checkpointing is on and so is the cache of keys and values
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=True)  # <- found: checkpointing-with-cache
model.gradient_checkpointing_enable()
model.cuda().train()

# case: checkpointing is on and the cache is off
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=False)
model.gradient_checkpointing_enable()
model.cuda().train()

# case: a mixed precision loop steps with every micro batch
import torch

scaler = torch.amp.GradScaler("cuda")
accumulation_steps = 4
for i, (x, y) in enumerate(loader):
    with torch.autocast("cuda"):
        loss = criterion(model(x.cuda()), y.cuda()) / accumulation_steps
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # <- found: step-every-micro-batch
    scaler.update()
    if (i + 1) % accumulation_steps == 0:
        optimizer.zero_grad()

# case: a mixed precision loop steps once in a window
import torch

scaler = torch.amp.GradScaler("cuda")
accumulation_steps = 4
for i, (x, y) in enumerate(loader):
    with torch.autocast("cuda"):
        loss = criterion(model(x.cuda()), y.cuda()) / accumulation_steps
    scaler.scale(loss).backward()
    if (i + 1) % accumulation_steps == 0 or i + 1 == len(loader):
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

# case: the allocator's variable is set after the card is in use
import torch

model = torch.nn.Linear(10, 10).cuda()
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # <- found: allocator-variable-too-late

# case: the allocator's variable is set first
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch

model = torch.nn.Linear(10, 10).cuda()

# case: TensorBoard gets the loss as it is
import torch
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter()
running_loss = 0.0
for step, (x, y) in enumerate(loader):
    loss = criterion(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running_loss += loss.data
    writer.add_scalar("loss", loss, step)

# case: wandb logs a table of outputs kept in a list
import torch
import wandb

samples = []
for step, batch in enumerate(loader):
    generated = generator(batch.cuda())
    loss = criterion(generated, batch.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    samples.append(generated)  # <- found: collected-outputs
wandb.log({"samples": [wandb.Image(sample) for sample in samples]})

# case: wandb logs a few pictures of each epoch from the host
import torch
import wandb

samples = []
for step, batch in enumerate(loader):
    generated = generator(batch.cuda())
    loss = criterion(generated, batch.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        samples.append(generated[0].detach().cpu())
wandb.log({"samples": [wandb.Image(sample) for sample in samples]})

# case: a graph of the gradients that nothing differentiates, with an optimizer of unknown make
import torch
import torch.nn.functional as F

for x, y in loader:
    loss = F.mse_loss(model(x.cuda()), y.cuda())
    loss.backward(create_graph=True)  # <- missed: create-graph
    optimizer.step()
    optimizer.zero_grad()

# case: a gradient penalty needs create_graph
import torch

for real in loader:
    real = real.cuda().requires_grad_(True)
    score = critic(real)
    (gradient,) = torch.autograd.grad(score.sum(), real, create_graph=True)
    penalty = ((gradient.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
    loss = -score.mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# case: a batch that does not fit is skipped with its gradients
import torch

for x, y in loader:
    try:
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except RuntimeError as error:  # <- found: oom-skipped-with-gradients
        if "out of memory" in str(error):
            print("skipped")
            continue
        raise

# case: a batch that does not fit is skipped and its gradients go
import torch

for x, y in loader:
    try:
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        print("skipped")
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
