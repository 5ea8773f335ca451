//! Padding every batch to the longest length allowed.

use super::{Family, Report, Rule};
use crate::facts::structure::Call;
use crate::facts::value::Kind;
use crate::facts::{Facts, each_expression_of};
use crate::finding::Severity;
use crate::python::{Expr, ExprCall, Keyword, Stmt, span};
use crate::syntax::is_true;

pub static RULE: Rule = Rule {
    name: "padding-to-max-length",
    family: Family::NeedlessMemory,
    severity: Severity::Note,
    summary: "texts are padded to the maximum length instead of the longest in their batch",
    docs: "\
## What it does
Finds a tokenizer that pads to `max_length` in a file that trains.

## Why it costs memory
Activations grow with the sequence length, attention scores with its square. Padding to `max_length`
makes every batch as large as the largest possible one.

## Example
```python
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(\"bert-base-uncased\")
for texts, targets in loader:
    inputs = tokenizer(texts, padding=\"max_length\", truncation=True, return_tensors=\"pt\")
    loss = model(**inputs.to(device), labels=targets).loss
    loss.backward()
    optimizer.step()
```

## Use instead
```python
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(\"bert-base-uncased\")
for texts, targets in loader:
    inputs = tokenizer(texts, padding=True, truncation=True, return_tensors=\"pt\")
    loss = model(**inputs.to(device), labels=targets).loss
    loss.backward()
    optimizer.step()
```

## When it is fine
When shapes must not change: CUDA graphs, `torch.compile`, TPUs, the text encoders of diffusion
models. Where a dataset pads texts one by one, pad in a collator (`DataCollatorWithPadding`) instead.
Lengths up to 64 are not reported.
",
    check,
};

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    if needs_fixed_shapes(facts) || !trains(facts) {
        return;
    }
    for call in &facts.structure.calls {
        if !is_tokenizer(facts, call) || is_short(facts, call.node) || !is_for_training(facts, call)
        {
            continue;
        }
        if let Some(keyword) = call.node.arguments.keywords.iter().find(|each| pads(each)) {
            report.add(
                span(keyword),
                "every text is padded to the maximum length".to_owned(),
                "pad each batch to its longest text: `padding=True`, or a padding collator",
            );
        }
    }
}

/// A tokenizer call: on a tokenizer created in this file, or to a method that only tokenizers have.
fn is_tokenizer(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    if facts.value(&call.node.func).kind == Kind::Tokenizer {
        return true;
    }
    match facts.method(call.node) {
        Some((_, "encode_plus" | "batch_encode_plus")) => true,
        // A parameter: nothing else is called with both `padding` and `truncation`.
        _ => {
            facts.value(&call.node.func).kind == Kind::Unknown
                && facts.path(&call.node.func).is_some()
                && !facts.imports.knows(&call.node.func)
                && call.node.arguments.find_keyword("truncation").is_some()
        }
    }
}

/// A function that prepares batches, or a loop: not a single text at module level, and not a function
/// that runs a model without gradients.
fn is_for_training(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let unit = facts.structure.unit_of(call.place.block);
    let evaluates = facts
        .calls_in_unit(unit)
        .any(|other| facts.gradients_at(other.node).is_no());
    // A function that runs a model and does not train queries it about a text.
    let asks = facts.calls_in_unit(unit).any(|other| {
        facts.called_module(other.node).is_some() && !facts.gradients_at(other.node).is_no()
    }) && !facts
        .calls_in_unit(unit)
        .any(|other| facts.runs_backward(other.node));
    match unit {
        0 => {
            facts.structure.loop_around(call.place.block).is_some()
                || goes_into_a_dataset(facts, call)
        }
        _ => !asks && !evaluates,
    }
}

/// Whether a script makes a dataset of what a tokenizer gives: `TensorDataset(encoded["input_ids"], ...)`.
fn goes_into_a_dataset(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    let bound = facts
        .assigns_in_unit(0)
        .find(|assign| span(assign.value) == span(call.node))
        .and_then(|assign| facts.path(assign.target));
    bound.is_some_and(|path| {
        facts.calls_in_unit(0).any(|other| {
            let makes_dataset = match &*other.node.func {
                Expr::Name(name) => name.id.ends_with("Dataset"),
                Expr::Attribute(name) => name.attr.ends_with("Dataset"),
                _ => false,
            };
            makes_dataset && facts.gives(other.node, path)
        })
    })
}

/// `padding="max_length"`, and its old form.
fn pads(keyword: &Keyword) -> bool {
    match keyword.arg.as_ref().map(|name| name.as_str()) {
        Some("padding") => matches!(&keyword.value, Expr::StringLiteral(text)
            if text.value.to_str() == "max_length"),
        Some("pad_to_max_length") => is_true(&keyword.value),
        _ => false,
    }
}

fn is_short(facts: &Facts<'_>, call: &ExprCall) -> bool {
    call.arguments
        .find_keyword("max_length")
        .and_then(|keyword| facts.constant(&keyword.value))
        .is_some_and(|length| length <= 64)
}

fn needs_fixed_shapes(facts: &Facts<'_>) -> bool {
    // Diffusion models are conditioned on a fixed number of tokens, including padding.
    facts.imports.uses("torch_xla")
        || facts.imports.uses("diffusers")
        || facts.imports.names().any(|name| {
            name.strip_prefix("transformers.")
                .is_some_and(takes_fixed_texts)
        })
        || runs_on_tpu(facts)
        || facts.structure.calls.iter().any(|call| {
            facts.callee(call.node).is_some_and(|name| {
                matches!(
                    name.as_str(),
                    "torch.compile"
                        | "torch.cuda.CUDAGraph"
                        | "torch.cuda.graph"
                        | "torch.jit.trace"
                )
            })
        })
}

/// Whether the file trains, itself or through a trainer.
fn trains(facts: &Facts<'_>) -> bool {
    facts.structure.calls.iter().any(|call| {
        facts.is_backward(call.node)
            || facts.callee(call.node).is_some_and(|name| {
                let last = name.rsplit('.').next().unwrap_or(&name);
                last.ends_with("Trainer")
            })
    })
}

/// Tokenizers and processors of models whose texts have one short length (40 to 77 tokens), or that were
/// trained with the padding.
fn takes_fixed_texts(name: &str) -> bool {
    [
        "CLIP",
        "ChineseCLIP",
        "Siglip",
        "Vilt",
        "Owl",
        "XCLIP",
        "AltCLIP",
    ]
    .iter()
    .any(|model| name.starts_with(model))
        && (name.contains("Tokenizer") || name.contains("Processor"))
}

/// `DistributedType.TPU`, and notebooks that install `torch_xla`: they compile every new shape.
fn runs_on_tpu(facts: &Facts<'_>) -> bool {
    let installs = facts.structure.statements.iter().any(|(statement, _)| {
        matches!(statement, Stmt::IpyEscapeCommand(command)
            if command.value.contains("torch_xla") || command.value.contains("cloud-tpu"))
    });
    let mut named = false;
    for statement in facts.tree.body() {
        each_expression_of(statement, &mut |part| {
            named |= matches!(part, Expr::Attribute(attribute)
                if matches!(attribute.attr.as_str(), "TPU" | "XLA"));
        });
    }
    installs || named
}
