//! A `Trainer` that keeps the logits of the whole evaluation on the card.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Call, UnitId};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, span};

pub static RULE: Rule = Rule {
    name: "trainer-keeps-logits",
    family: Family::Evaluation,
    severity: Severity::Warning,
    summary: "a `Trainer` collects the logits of a whole evaluation on the card",
    docs: "\
## What it does
Finds a Hugging Face `Trainer`, or a class of the file that derives from it, with `compute_metrics` for a model with logits for every token or pixel
(causal, masked and sequence-to-sequence language models, semantic segmentation), without
`preprocess_logits_for_metrics` and without `eval_accumulation_steps`.

## Why it costs memory
With `compute_metrics` the trainer collects the logits of every evaluated batch on the card until the
evaluation ends. For each token they are as many numbers as the vocabulary has words: 1,000 texts of
512 tokens of GPT-2 are 98 GiB in float32.

## Example
```python
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

language_model = AutoModelForCausalLM.from_pretrained(\"gpt2\")
trainer = Trainer(
    model=language_model,
    args=TrainingArguments(\"out\"),
    train_dataset=dataset,
    eval_dataset=dataset,
    compute_metrics=compute_metrics,
)
```

## Use instead
```python
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

language_model = AutoModelForCausalLM.from_pretrained(\"gpt2\")
trainer = Trainer(
    model=language_model,
    args=TrainingArguments(\"out\"),
    train_dataset=dataset,
    eval_dataset=dataset,
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(dim=-1),
)
```

## When it is fine
When the evaluation set is tiny. Trainers with `predict_with_generate`, `prediction_loss_only` or
`batch_eval_metrics`, those whose arguments come from elsewhere, and models with a few logits for each
text are not reported.
",
    check,
};

/// Arguments of `TrainingArguments` with which logits are not kept on the card.
const KEEPS_NONE: &[&str] = &[
    "eval_accumulation_steps",
    "predict_with_generate",
    "prediction_loss_only",
    "batch_eval_metrics",
];

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    for call in &facts.structure.calls {
        let arguments = &call.node.arguments;
        let has_metrics = arguments
            .find_keyword("compute_metrics")
            .is_some_and(|metrics| !matches!(metrics.value, Expr::NoneLiteral(_)));
        if !has_metrics
            || !is_trainer(facts, call.node)
            || arguments
                .find_keyword("preprocess_logits_for_metrics")
                .is_some()
            || arguments.find_argument_value("eval_dataset", 4).is_none()
            || arguments.keywords.iter().any(|each| each.arg.is_none())
            || !keeps_logits(facts, call)
        {
            continue;
        }
        let unit = facts.structure.unit_of(call.place.block);
        let is_large = arguments
            .find_argument_value("model", 0)
            .is_some_and(|model| match made(facts, unit, model) {
                Some(made) if is_of_transformers(facts, made) => {
                    has_logits_for_everything(facts, made)
                }
                // Made elsewhere: what kind of model it is shows in what the file imports for it.
                _ => imports_only_such_models(facts),
            });
        if is_large {
            report.add(
                span(call.node),
                "this trainer keeps the logits of the whole evaluation on the card".to_owned(),
                "reduce them first with `preprocess_logits_for_metrics`, or set `eval_accumulation_steps`",
            );
        }
    }
}

/// `Trainer(...)`, or a class of the file that derives from it and leaves its evaluation as it is.
fn is_trainer(facts: &Facts<'_>, call: &ExprCall) -> bool {
    let is_trainer_class = |class: &Expr| {
        facts.imports.qualified(class).is_some_and(|name| {
            name.starts_with("transformers.")
                && matches!(name.rsplit('.').next(), Some("Trainer" | "Seq2SeqTrainer"))
        })
    };
    match facts.value(&call.func).kind {
        Kind::Class(class) => {
            let class = &facts.structure.classes[class];
            let evaluates = ["evaluation_loop", "prediction_step", "evaluate", "__init__"]
                .iter()
                .any(|name| class.method(name).is_some());
            !evaluates && class.node.bases().iter().any(is_trainer_class)
        }
        _ => is_trainer_class(&call.func),
    }
}

/// Whether the trainer's arguments are known, and let it keep logits.
fn keeps_logits<'a>(facts: &Facts<'a>, trainer: &Call<'a>) -> bool {
    let unit = facts.structure.unit_of(trainer.place.block);
    match trainer.node.arguments.find_argument_value("args", 1) {
        None => true,
        Some(arguments) => made(facts, unit, arguments).is_some_and(|made| {
            facts
                .callee(made)
                .is_some_and(|name| name.ends_with("TrainingArguments"))
                && made.arguments.keywords.iter().all(|each| {
                    each.arg
                        .as_ref()
                        .is_some_and(|name| !KEEPS_NONE.contains(&name.as_str()))
                })
        }),
    }
}

/// The call that made what an expression is.
fn made<'a>(facts: &Facts<'a>, unit: UnitId, expression: &'a Expr) -> Option<&'a ExprCall> {
    match expression {
        Expr::Call(call) => match facts.method(call) {
            Some((receiver, "to" | "cuda")) => made(facts, unit, receiver),
            // What peft returns has the outputs of the model it got.
            None if facts
                .callee(call)
                .is_some_and(|name| name.starts_with("peft.")) =>
            {
                call.arguments
                    .args
                    .first()
                    .and_then(|wrapped| made(facts, unit, wrapped))
            }
            _ => Some(call),
        },
        _ => {
            let path = facts.path(expression)?;
            let local = facts.last_value(unit, path, expression);
            let value = local.or_else(|| {
                facts
                    .assigns_in_unit(0)
                    .filter(|assign| facts.path(assign.target) == Some(path))
                    .last()
                    .map(|assign| assign.value)
            })?;
            match value {
                Expr::Call(_) => made(facts, unit, value),
                _ => None,
            }
        }
    }
}

fn is_of_transformers(facts: &Facts<'_>, made: &ExprCall) -> bool {
    facts
        .callee(made)
        .is_some_and(|name| name.starts_with("transformers."))
}

/// Whether a model has logits for every token or pixel.
fn has_logits_for_everything(facts: &Facts<'_>, made: &ExprCall) -> bool {
    facts.callee(made).is_some_and(|name| is_large_kind(&name))
}

/// Whether all models that a file imports from transformers have logits for every token or pixel.
fn imports_only_such_models(facts: &Facts<'_>) -> bool {
    let mut models = facts
        .imports
        .names()
        .filter(|name| {
            let last = name.rsplit('.').next().unwrap_or(name);
            name.starts_with("transformers.")
                && (last.contains("For") || last.ends_with("LMHeadModel"))
                && !last.starts_with("DataCollator")
        })
        .peekable();
    models.peek().is_some() && models.all(is_large_kind)
}

fn is_large_kind(name: &str) -> bool {
    name.starts_with("transformers.")
        && [
            "CausalLM",
            "LMHeadModel",
            "MaskedLM",
            "Seq2SeqLM",
            "ConditionalGeneration",
            "SemanticSegmentation",
        ]
        .iter()
        .any(|kind| name.contains(kind))
}
