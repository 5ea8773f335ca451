# case: a Lightning module keeps the losses of training_step
import lightning as L
import torch
import torch.nn.functional as F


class Classifier(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.train_losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.train_losses.append(loss)  # <- found: collected-losses
        return loss

    def on_train_epoch_end(self):
        self.log("train_loss", torch.stack(self.train_losses).mean())

# case: a Lightning module empties the losses at the end of an epoch
import lightning as L
import torch
import torch.nn.functional as F


class Classifier(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.train_losses = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.train_losses.append(loss.detach())
        return loss

    def on_train_epoch_end(self):
        self.log("train_loss", torch.stack(self.train_losses).mean())
        self.train_losses.clear()

# case: a Lightning module with plain names imported
import torch
from torch import nn
from pytorch_lightning import LightningModule


class Regressor(LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
        self.criterion = nn.MSELoss()
        self.running = 0.0

    def forward(self, x):
        return self.body(x)

    def training_step(self, batch, idx):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.running = 0.95 * self.running + 0.05 * loss  # <- found: summed-loss
        return {"loss": loss}

# case: a Lightning module with a number
import torch
from torch import nn
from pytorch_lightning import LightningModule


class Regressor(LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
        self.criterion = nn.MSELoss()
        self.running = 0.0

    def forward(self, x):
        return self.body(x)

    def training_step(self, batch, idx):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.running = 0.95 * self.running + 0.05 * loss.item()
        return {"loss": loss}

# case: validation outputs of a Lightning module stay on the card
import lightning.pytorch as pl
import torch


class Tagger(pl.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.validation_step_outputs = []

    def training_step(self, batch, batch_idx):
        return self.model(**batch).loss

    def validation_step(self, batch, batch_idx):
        out = self.model(**batch)
        self.validation_step_outputs.append(out.logits)  # <- found: collected-outputs
        return out.loss

    def on_validation_epoch_end(self):
        logits = torch.cat(self.validation_step_outputs).cpu().numpy()
        self.report(logits)
        self.validation_step_outputs.clear()

# case: validation outputs of a Lightning module on the host
import lightning.pytorch as pl
import torch


class Tagger(pl.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.validation_step_outputs = []

    def training_step(self, batch, batch_idx):
        return self.model(**batch).loss

    def validation_step(self, batch, batch_idx):
        out = self.model(**batch)
        self.validation_step_outputs.append(out.logits.argmax(-1).cpu())
        return out.loss

    def on_validation_epoch_end(self):
        self.report(torch.cat(self.validation_step_outputs).numpy())
        self.validation_step_outputs.clear()

# case: training_step keeps its outputs for the epoch
import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class Lit(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.preds = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        self.preds.append(logits)  # <- found: collected-outputs
        return F.cross_entropy(logits, y)

    def on_train_epoch_end(self):
        print(torch.cat(self.preds).shape)
        self.preds = []

# case: training_step returns outputs that training_epoch_end gets
import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class Lit(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        return {"loss": loss, "logits": logits}  # <- missed: collected-outputs

    def training_epoch_end(self, outputs):
        logits = torch.cat([o["logits"] for o in outputs])
        self.log("norm", logits.norm())

# case: training_step returns detached outputs
import pytorch_lightning as pl
import torch
import torch.nn.functional as F


class Lit(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        return {"loss": loss, "hits": (logits.argmax(1) == y).sum().detach()}

    def training_epoch_end(self, outputs):
        self.log("acc", torch.stack([o["hits"] for o in outputs]).sum())

# case: a Trainer for a language model computes metrics of all logits
import numpy as np
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")


def compute_metrics(pred):
    logits, labels = pred
    predictions = np.argmax(logits, axis=-1)
    mask = labels != -100
    return {"accuracy": (predictions[mask] == labels[mask]).mean()}


args = TrainingArguments(output_dir="out", per_device_eval_batch_size=8)
trainer = Trainer(  # <- found: trainer-keeps-logits
    model=model,
    args=args,
    train_dataset=train_ds,
    eval_dataset=eval_ds,
    compute_metrics=compute_metrics,
)
trainer.train()

# case: a Trainer for a language model reduces logits first
import numpy as np
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")


def preprocess(logits, labels):
    return logits.argmax(dim=-1)


def compute_metrics(pred):
    predictions, labels = pred
    mask = labels != -100
    return {"accuracy": (predictions[mask] == labels[mask]).mean()}


trainer = Trainer(
    model=model,
    args=TrainingArguments(output_dir="out"),
    train_dataset=train_ds,
    eval_dataset=eval_ds,
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=preprocess,
)
trainer.train()

# case: a Trainer for masked language modelling
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)


def main():
    tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
    model = AutoModelForMaskedLM.from_pretrained("bert-base-uncased")
    training_args = TrainingArguments("out", evaluation_strategy="epoch")
    trainer = Trainer(model, training_args, data_collator=DataCollatorForLanguageModeling(tokenizer), train_dataset=load("train"), eval_dataset=load("validation"), compute_metrics=lambda p: {"acc": (p.predictions.argmax(-1) == p.label_ids).mean()})  # <- found: trainer-keeps-logits
    trainer.train()
    trainer.evaluate()

# case: a Trainer for classification has few logits
import numpy as np
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-base-cased", num_labels=2)


def compute_metrics(p):
    return {"accuracy": (np.argmax(p.predictions, axis=1) == p.label_ids).mean()}


trainer = Trainer(
    model=model,
    args=TrainingArguments("out", evaluation_strategy="epoch"),
    train_dataset=train_ds,
    eval_dataset=eval_ds,
    compute_metrics=compute_metrics,
)
trainer.train()

# case: a Trainer for translation without generation
import evaluate
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

metric = evaluate.load("sacrebleu")
model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
args = Seq2SeqTrainingArguments("out", evaluation_strategy="epoch")
trainer = Seq2SeqTrainer(  # <- found: trainer-keeps-logits
    model,
    args,
    train_dataset=train_ds,
    eval_dataset=eval_ds,
    compute_metrics=lambda p: metric.compute(predictions=p.predictions[0].argmax(-1), references=p.label_ids),
)
trainer.train()

# case: a Trainer for translation that generates
import evaluate
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

metric = evaluate.load("sacrebleu")
model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
args = Seq2SeqTrainingArguments("out", evaluation_strategy="epoch", predict_with_generate=True)
trainer = Seq2SeqTrainer(
    model,
    args,
    train_dataset=train_ds,
    eval_dataset=eval_ds,
    compute_metrics=lambda p: metric.compute(predictions=p.predictions, references=p.label_ids),
)
trainer.train()

# case: a Trainer for a language model without metrics
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
trainer = Trainer(
    model=model,
    args=TrainingArguments(output_dir="out", evaluation_strategy="steps"),
    train_dataset=train_ds,
    eval_dataset=eval_ds,
)
trainer.train()
print(trainer.evaluate())

# case: a subclass of Trainer keeps the losses
import torch
from transformers import Trainer


class WeightedTrainer(Trainer):
    def __init__(self, *args, weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.weights = weights
        self.seen = []

    def compute_loss(self, model, inputs, return_outputs=False):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels, weight=self.weights)
        self.seen.append(loss)  # <- found: collected-losses
        return (loss, outputs) if return_outputs else loss

# case: a subclass of Trainer keeps numbers
import torch
from transformers import Trainer


class WeightedTrainer(Trainer):
    def __init__(self, *args, weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.weights = weights
        self.seen = []

    def compute_loss(self, model, inputs, return_outputs=False):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels, weight=self.weights)
        self.seen.append(loss.item())
        return (loss, outputs) if return_outputs else loss

# case: a distilling Trainer runs its teacher with a graph
import torch
import torch.nn.functional as F
from transformers import AutoModelForSequenceClassification, Trainer


class DistillTrainer(Trainer):
    def __init__(self, *args, teacher_name, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = AutoModelForSequenceClassification.from_pretrained(teacher_name).cuda()
        self.teacher.eval()

    def compute_loss(self, model, inputs, return_outputs=False):
        student = model(**inputs)
        teacher = self.teacher(**inputs)  # <- found: frozen-model-with-gradients
        kl = F.kl_div(student.logits.log_softmax(-1), teacher.logits.softmax(-1), reduction="batchmean")
        loss = student.loss + kl
        return (loss, student) if return_outputs else loss

# case: a distilling Trainer runs its teacher without a graph
import torch
import torch.nn.functional as F
from transformers import AutoModelForSequenceClassification, Trainer


class DistillTrainer(Trainer):
    def __init__(self, *args, teacher_name, **kwargs):
        super().__init__(*args, **kwargs)
        self.teacher = AutoModelForSequenceClassification.from_pretrained(teacher_name).cuda()
        self.teacher.eval()

    def compute_loss(self, model, inputs, return_outputs=False):
        student = model(**inputs)
        with torch.no_grad():
            teacher = self.teacher(**inputs)
        kl = F.kl_div(student.logits.log_softmax(-1), teacher.logits.softmax(-1), reduction="batchmean")
        loss = student.loss + kl
        return (loss, student) if return_outputs else loss

# case: a Lightning test step that logs
import lightning as L
import torch.nn.functional as F


class Lit(L.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_loss", F.mse_loss(self.net(x), y))

# case: manual optimization keeps both losses
import lightning as L
import torch


class Gan(L.LightningModule):
    def __init__(self, g, d):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d = g, d
        self.log_g, self.log_d = [], []

    def training_step(self, real):
        g_opt, d_opt = self.optimizers()
        z = torch.randn(real.size(0), 64, device=self.device)
        fake = self.g(z)
        d_loss = (self.d(fake.detach()) - self.d(real)).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        g_loss = -self.d(fake).mean()
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()
        self.log_g.append(g_loss)  # <- found: collected-losses
        self.log_d.append(d_loss.item())
