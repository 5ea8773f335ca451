//! The allocator reads its settings when CUDA is initialized; later changes have no effect.

use super::{Family, Report, Rule};
use crate::facts::Facts;
use crate::facts::structure::{Call, Place};
use crate::facts::value::Kind;
use crate::finding::Severity;
use crate::python::{Expr, span};

pub static RULE: Rule = Rule {
    name: "allocator-variable-too-late",
    family: Family::NeedlessMemory,
    severity: Severity::Warning,
    summary: "the allocator's settings are changed after CUDA is initialized",
    docs: "\
## What it does
Finds an assignment to `os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"]` (or `PYTORCH_ALLOC_CONF`) after
something in the same function or module has already initialized CUDA.

## Why it costs memory
PyTorch reads the variable once, when the process initializes CUDA. Set later, it has no effect, and
the fragmentation it was meant to prevent remains.

## Example
```python
def main():
    weights = torch.zeros(1024, device=\"cuda\")
    os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"expandable_segments:True\"
```

## Use instead
```python
def main():
    os.environ[\"PYTORCH_CUDA_ALLOC_CONF\"] = \"expandable_segments:True\"
    weights = torch.zeros(1024, device=\"cuda\")
```

## When it is fine
After `import torch`, `torch.cuda.is_available()` or `torch.cuda.device_count()` it still takes
effect, and it always does in processes that are started later.
",
    check,
};

const VARIABLES: &[&str] = &[
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
];

fn check(facts: &Facts<'_>, report: &mut Report<'_>) {
    let mut settings: Vec<(Place, std::ops::Range<usize>, &str)> = Vec::new();
    for assign in &facts.structure.assigns {
        if let Expr::Subscript(target) = assign.target
            && is_environment(facts, &target.value)
            && let Some(name) = variable(&target.slice)
        {
            settings.push((assign.place, span(assign.statement), name));
        }
    }
    for call in &facts.structure.calls {
        let sets = matches!(
            facts.callee(call.node).as_deref(),
            Some("os.environ.setdefault" | "os.putenv")
        );
        if sets && let Some(name) = call.node.arguments.args.first().and_then(variable) {
            settings.push((call.place, span(call.node), name));
        }
    }
    if settings.is_empty() || starts_processes(facts) {
        return;
    }
    for (place, range, name) in settings {
        let unit = facts.structure.unit_of(place.block);
        let started = facts
            .calls_in_unit(unit)
            .take_while(|call| call.place.order < place.order)
            .find(|call| starts_cuda(facts, call) && facts.leads_to(call.place, place));
        if let Some(call) = started {
            report.add(
                range,
                format!(
                    "`{name}` is set after `{}` has initialized CUDA: it has no effect",
                    facts.text(&*call.node.func)
                ),
                "set it before the first use of CUDA, preferably before `import torch`",
            );
        }
    }
}

fn is_environment(facts: &Facts<'_>, expression: &Expr) -> bool {
    facts
        .imports
        .qualified(expression)
        .is_some_and(|name| name == "os.environ")
}

fn variable(expression: &Expr) -> Option<&'static str> {
    match expression {
        Expr::StringLiteral(text) => VARIABLES
            .iter()
            .copied()
            .find(|name| text.value.to_str() == *name),
        _ => None,
    }
}

/// Whether a call certainly initializes CUDA. Each was verified on the virtual card.
fn starts_cuda(facts: &Facts<'_>, call: &Call<'_>) -> bool {
    if let Some(name) = facts.callee(call.node) {
        if let Some(function) = name.strip_prefix("torch.cuda.") {
            return matches!(
                function,
                "init"
                    | "set_device"
                    | "current_device"
                    | "get_device_name"
                    | "get_device_properties"
                    | "get_device_capability"
                    | "mem_get_info"
                    | "is_bf16_supported"
                    | "reset_peak_memory_stats"
                    | "set_per_process_memory_fraction"
                    | "synchronize"
            );
        }
        // `torch.zeros(..., device="cuda")`
        return name.starts_with("torch.")
            && call
                .node
                .arguments
                .find_keyword("device")
                .is_some_and(|keyword| {
                    matches!(&keyword.value, Expr::StringLiteral(device)
                    if device.value.to_str().starts_with("cuda"))
                });
    }
    let Some((receiver, method)) = facts.method(call.node) else {
        return false;
    };
    let held = facts.value(receiver);
    // Only PyTorch's objects have a method `cuda`.
    if !(held.is_tensor() || matches!(held.kind, Kind::Module(_) | Kind::Unknown)) {
        return false;
    }
    match method {
        "cuda" => true,
        "to" => call
            .node
            .arguments
            .args
            .first()
            .is_some_and(|device| facts.value(device).card.is_yes()),
        _ => false,
    }
}

/// Processes that the file starts read the variable at that time.
fn starts_processes(facts: &Facts<'_>) -> bool {
    facts.imports.uses("subprocess")
        || facts.imports.uses("multiprocessing")
        || facts.imports.uses("torch.multiprocessing")
        || facts.structure.calls.iter().any(|call| {
            facts
                .callee(call.node)
                .is_some_and(|name| name.starts_with("os.exec") || name == "os.system")
        })
}
