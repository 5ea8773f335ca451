# case: asked for where the model is made
from transformers import AutoModelForCausalLM

def train(loader, optimizer):
    model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=True)  # <- found
    model.gradient_checkpointing_enable()
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()

# case: asked for in the forward pass
from transformers import AutoModelForCausalLM

def train(loader, optimizer):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    model.gradient_checkpointing_enable()
    for batch in loader:
        loss = model(**batch, use_cache=True).loss  # <- found
        loss.backward()
        optimizer.step()

# case: set before the trainer runs
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
model.config.use_cache = True  # <- found
trainer = Trainer(model, TrainingArguments("out", gradient_checkpointing=True))
trainer.train()

# case: disabled
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=False)
trainer = Trainer(model, TrainingArguments("out", gradient_checkpointing=True))
trainer.train()

# case: enabled again after training
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
model.config.use_cache = False
trainer = Trainer(model, TrainingArguments("out", gradient_checkpointing=True))
trainer.train()
model.config.use_cache = True
model.generate(prompt)

# case: no checkpointing
from transformers import AutoModelForCausalLM

def train(loader, optimizer):
    model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=True)
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()

# case: for generating
from transformers import AutoModelForCausalLM

def train(loader, optimizer, prompt):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    model.gradient_checkpointing_enable()
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()
    print(model.generate(prompt, use_cache=True))

# case: nothing is said of the cache
from transformers import AutoModelForCausalLM

def train(loader, optimizer):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    model.gradient_checkpointing_enable()
    for batch in loader:
        model(**batch).loss.backward()
        optimizer.step()

# case: enabled to generate, and off again before the training
from transformers import AutoModelForCausalLM, Trainer

model = AutoModelForCausalLM.from_pretrained("gpt2")
model.gradient_checkpointing_enable()
model.config.use_cache = True
print(model.generate())
model.config.use_cache = False
trainer = Trainer(model=model)
trainer.train()

# case: generating with it
from transformers import AutoModelForCausalLM, Trainer

model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=False)
model.gradient_checkpointing_enable()
trainer = Trainer(model=model)
trainer.train()
model.eval()
print(model.generate(use_cache=True))

# case: the other branch of the switch
from transformers import AutoModelForCausalLM, Trainer

def main(args):
    model = AutoModelForCausalLM.from_pretrained("gpt2")
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
        model.config.use_cache = False
    else:
        model.config.use_cache = True
    trainer = Trainer(model=model)
    trainer.train()

# case: one of two ways to load
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

def main(args):
    if args.gradient_checkpointing:
        model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=False)
        model.gradient_checkpointing_enable()
    else:
        model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=True)
    Trainer(model=model).train()
