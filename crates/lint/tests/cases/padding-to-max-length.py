# case: batches padded to the longest length allowed
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

def train(model, loader, optimizer):
    for texts, y in loader:
        x = tokenizer(texts, padding="max_length", max_length=512, truncation=True)  # <- found
        model(**x, labels=y).loss.backward()
        optimizer.step()

# case: in a function that prepares a dataset for the trainer
from transformers import AutoTokenizer, Trainer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

def prepare(examples):
    return tokenizer(
        examples["text"],
        padding="max_length",  # <- found
        truncation=True,
    )

trainer = Trainer(model=model, train_dataset=data.map(prepare, batched=True))
trainer.train()

# case: the old form, of a tokenizer that is passed in
def encode(self, text):
    return self.tokenizer.encode_plus(
        text,
        max_length=self.length,
        pad_to_max_length=True,  # <- found
    )

def train(model, loader, optimizer):
    for x, y in loader:
        model(x, labels=y)[0].backward()
        optimizer.step()

# case: padded to the longest of the batch
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

def train(model, loader, optimizer):
    for texts, y in loader:
        x = tokenizer(texts, padding=True, truncation=True)
        model(**x, labels=y).loss.backward()
        optimizer.step()

# case: short texts
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

def train(model, loader, optimizer):
    for texts, y in loader:
        x = tokenizer(texts, padding="max_length", max_length=32, truncation=True)
        model(**x, labels=y).loss.backward()
        optimizer.step()

# case: a compiled model wants fixed shapes
import torch
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

def train(model, loader, optimizer):
    model = torch.compile(model)
    for texts, y in loader:
        x = tokenizer(texts, padding="max_length", truncation=True)
        model(**x, labels=y).loss.backward()
        optimizer.step()

# case: no training here
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

def embed(model, texts):
    return model(**tokenizer(texts, padding="max_length", truncation=True))

# case: something else that pads
from torch import nn

def build(x, loader, optimizer):
    conv = nn.Conv2d(3, 8, 3, padding="same")
    conv(x).mean().backward()
    optimizer.step()

# case: one sentence after training, and a function that embeds without gradients
import torch
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

def train(model, loader, optimizer):
    for x, y in loader:
        model(x, labels=y).loss.backward()
        optimizer.step()

def embed(model, texts):
    x = tokenizer.batch_encode_plus(texts, max_length=128, pad_to_max_length=True)
    with torch.no_grad():
        return model(x)

inputs = tokenizer("one sentence", padding="max_length", truncation=True)

# case: a diffusion model is conditioned on all tokens, padding among them
from diffusers import UNet2DConditionModel
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("text-encoder")

def train(unet, encoder, loader, optimizer):
    for texts, y in loader:
        x = tokenizer(texts, padding="max_length", truncation=True)
        unet(y, encoder(x)).mean().backward()
        optimizer.step()

# case: to the longest of the batch
from transformers import AutoTokenizer, Trainer

tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")

def encode(batch):
    return tokenizer(batch["text"], padding="longest", truncation=True, max_length=512)

Trainer(model=None, train_dataset=map(encode, []))

# case: one question at a time, after the training
from transformers import AutoTokenizer, Trainer

tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
trainer = Trainer(model=None)
trainer.train()
inputs = tokenizer("Who?", padding="max_length", max_length=384, return_tensors="pt")

# case: a function that asks the trained model about one text
from transformers import AutoTokenizer, Trainer

tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")

def ask(model, text):
    inputs = tokenizer(text, padding="max_length", max_length=256, return_tensors="pt")
    model.eval()
    return model(**inputs).logits.argmax().item()

trainer = Trainer(model=None)
trainer.train()

# case: on processors that want one shape
from accelerate import Accelerator, DistributedType
from transformers import AutoTokenizer, Trainer

tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
accelerator = Accelerator()

def encode(batch):
    if accelerator.distributed_type == DistributedType.TPU:
        return tokenizer(batch["text"], padding="max_length", max_length=128, truncation=True)
    return tokenizer(batch["text"], padding="longest", truncation=True)

Trainer(model=None, train_dataset=map(encode, []))

# case: texts of forty tokens at most
from transformers import Trainer, ViltProcessor

processor = ViltProcessor.from_pretrained("dandelin/vilt-b32-mlm")

def encode(image, text):
    return processor(image, text, padding="max_length", truncation=True, return_tensors="pt")

Trainer(model=None, train_dataset=map(encode, []))

# case: a script encodes all texts for a dataset
import torch
from transformers import BertTokenizerFast, BertForSequenceClassification

tokenizer = BertTokenizerFast.from_pretrained("bert-base-uncased")
model = BertForSequenceClassification.from_pretrained("bert-base-uncased").cuda()
encoded = tokenizer(texts, padding="max_length", truncation=True, return_tensors="pt")  # <- found
dataset = torch.utils.data.TensorDataset(encoded["input_ids"], torch.tensor(labels))
for ids, y in torch.utils.data.DataLoader(dataset, batch_size=16):
    loss = model(ids.cuda(), labels=y.cuda()).loss
    loss.backward()
    optimizer.step()
