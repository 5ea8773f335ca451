//! `ghostgpu.fit(...)`, for tricks that need more than a few plain lines.

use ghostgpu_lint::Edit;
use ghostgpu_tricks::{Request, bytes_of_size};

use super::option;
use crate::outcome::{Outcome, Written};
use crate::script::Script;

pub fn write(script: &Script<'_>, request: &Request) -> Outcome {
    let (name, value) = match request.name.as_str() {
        "chunking" => ("chunks", option(request, "chunks").to_owned()),
        "evaluation-chunks" => ("evaluation_chunks", option(request, "chunks").to_owned()),
        "surviving-oom" => ("survive_oom", "True".to_owned()),
        "offload-activations" => {
            let threshold = option(request, "threshold");
            let bytes =
                bytes_of_size(threshold).ok_or_else(|| format!("`{threshold}` is no size"))?;
            ("offload_activations", bytes.to_string())
        }
        "optimizer-in-backward" => ("step_in_backward", "True".to_owned()),
        _ => ("offload_optimizer", "True".to_owned()),
    };
    fitted(script, name, &value)
}

/// `ghostgpu.fit` with one more option.
pub fn fitted(script: &Script<'_>, name: &str, value: &str) -> Outcome {
    let what = format!("`ghostgpu.fit(..., {name}={value})`");
    let mut calls = script.calls_of(|name| name == "ghostgpu.fit");
    if let Some((call, _)) = calls.next() {
        return Written::new(what, script.keyword(call.node, name, value)?);
    }
    let optimizers = script.optimizers();
    let [optimizer] = &*optimizers else {
        return Err(match optimizers.len() {
            0 => script.why_no_optimizer(),
            _ => "this file makes several optimizers".to_owned(),
        });
    };
    let model = script
        .model_of(optimizer)
        .ok_or("the model is not named where its optimizer is made")?;
    let (path, fresh) = (optimizer.path, script.import("ghostgpu"));
    let line = format!("{model}, {path} = ghostgpu.fit({model}, {path}, {name}={value})");
    let mut edits: Vec<Edit> = fresh;
    edits.push(script.line_after(optimizer.statement, &line)?);
    Written::new(what, edits)
}
