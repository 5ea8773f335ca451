# case: metrics of a language model
from transformers import GPT2LMHeadModel, Trainer, TrainingArguments

def run(train, test, metrics):
    model = GPT2LMHeadModel.from_pretrained("gpt2")
    trainer = Trainer(model, TrainingArguments("out"), train_dataset=train, eval_dataset=test, compute_metrics=metrics)  # <- found
    trainer.train()

# case: metrics of segmentation
from transformers import SegformerForSemanticSegmentation, Trainer, TrainingArguments

model = SegformerForSemanticSegmentation.from_pretrained("nvidia/mit-b0")
args = TrainingArguments("out", eval_strategy="epoch")
trainer = Trainer(model=model, args=args, eval_dataset=test, compute_metrics=metrics)  # <- found

# case: logits go to the host in between
from transformers import GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel.from_pretrained("gpt2")
args = TrainingArguments("out", eval_accumulation_steps=8)
trainer = Trainer(model=model, args=args, eval_dataset=test, compute_metrics=metrics)

# case: logits are reduced first
from transformers import GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel.from_pretrained("gpt2")
trainer = Trainer(
    model=model,
    args=TrainingArguments("out"),
    eval_dataset=test,
    compute_metrics=metrics,
    preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
)

# case: a few logits for each text
from transformers import BertForSequenceClassification, Trainer, TrainingArguments

model = BertForSequenceClassification.from_pretrained("bert-base-uncased")
trainer = Trainer(model=model, args=TrainingArguments("out"), eval_dataset=test, compute_metrics=metrics)

# case: arguments from the command line
from transformers import GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments

args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]
model = GPT2LMHeadModel.from_pretrained("gpt2")
trainer = Trainer(model=model, args=args, eval_dataset=test, compute_metrics=metrics)

# case: no metrics
from transformers import GPT2LMHeadModel, Trainer, TrainingArguments

model = GPT2LMHeadModel.from_pretrained("gpt2")
trainer = Trainer(model=model, args=TrainingArguments("out"), eval_dataset=test, compute_metrics=None)

# case: a trainer of the file weighs its loss
from transformers import AutoModelForMaskedLM, Trainer, TrainingArguments

class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        return (outputs.loss * 2, outputs) if return_outputs else outputs.loss * 2

model = AutoModelForMaskedLM.from_pretrained("roberta-base")
trainer = WeightedTrainer(  # <- found
    model=model, args=TrainingArguments("out"), train_dataset=train, eval_dataset=dev, compute_metrics=metrics
)

# case: a trainer of the file evaluates in its own way
from transformers import AutoModelForMaskedLM, Trainer, TrainingArguments

class SmallTrainer(Trainer):
    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        loss, logits, labels = super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        return loss, logits.argmax(-1), labels

model = AutoModelForMaskedLM.from_pretrained("roberta-base")
trainer = SmallTrainer(
    model=model, args=TrainingArguments("out"), train_dataset=train, eval_dataset=dev, compute_metrics=metrics
)

# case: all arguments are positional
from transformers import AutoModelForMaskedLM, Trainer, TrainingArguments

model = AutoModelForMaskedLM.from_pretrained("bert-base-uncased")
trainer = Trainer(model, TrainingArguments("out"), collator, train, dev, compute_metrics=metrics)  # <- found
