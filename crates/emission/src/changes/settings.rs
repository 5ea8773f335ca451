//! Single lines that set or unset something for the whole process.

use ghostgpu_lint::Edit;
use ghostgpu_lint::python::{Stmt, span};

use crate::outcome::{Outcome, Written};
use crate::rewriting::Top;
use crate::script::Script;

const FRACTION: &str = "set_per_process_memory_fraction";

/// `torch.backends.cudnn.benchmark = False`.
pub fn no_benchmark(script: &Script<'_>) -> Outcome {
    let assigns = script.facts.structure.assigns.iter();
    let switched = assigns.filter(|assign| {
        let name = script.facts.imports.qualified(assign.target);
        name.is_some_and(|name| name == "torch.backends.cudnn.benchmark")
    });
    let mut found = false;
    let mut edits = Vec::new();
    for assign in switched {
        found = true;
        if &script.text[span(assign.value)] != "False" {
            edits.push(Edit::replace(span(assign.value), "False"));
        }
    }
    match found {
        true => Written::new("`torch.backends.cudnn.benchmark = False`", edits),
        false => Err("this file does not switch the search on".to_owned()),
    }
}

/// Limits PyTorch to nine tenths of the card.
pub fn leave_room(script: &Script<'_>) -> Outcome {
    let what = "PyTorch may use nine tenths of the card";
    if script
        .calls_of(|name| name.ends_with(FRACTION))
        .next()
        .is_some()
    {
        return Err("the script sets a limit of its own".to_owned());
    }
    let chooses_card = script
        .calls_of(|name| name == "torch.cuda.set_device")
        .next()
        .is_some();
    let uses = |package: &str| script.facts.imports.uses(package);
    if chooses_card
        || uses("torch.distributed")
        || uses("torch.multiprocessing")
        || uses("multiprocessing")
    {
        return Err("which card a process uses is decided later in the script".to_owned());
    }
    let mut edits = script.import("torch");
    let line = format!("torch.cuda.{FRACTION}(0.9)");
    edits.push(script.top_line(&line, Top::BehindImports));
    Written::new(what, edits)
}

/// Removes the script's own limit.
pub fn no_limit(script: &Script<'_>) -> Outcome {
    let mut edits = Vec::new();
    for (call, _) in script.calls_of(|name| name.ends_with(FRACTION)) {
        if !matches!(call.statement, Stmt::Expr(_)) {
            return Err("the limit is set inside a longer statement".to_owned());
        }
        edits.extend(script.without(call.statement)?);
    }
    match edits.is_empty() {
        true => Err("this file sets no limit".to_owned()),
        false => Written::new("the limit of the script removed", edits),
    }
}
