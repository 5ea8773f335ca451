from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=16,  # as on the large card
    num_train_epochs=3,
)
trainer = Trainer(model=model, args=arguments, train_dataset=None)
trainer.train()
