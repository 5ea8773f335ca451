//! Blocks that are recomputed in backward.
//!
//! Models of transformers support this themselves. If a model in the file iterates over a list of blocks, its loop calls
//! `checkpoint`. Everything else needs `ghostgpu.fit`: blocks in a library, in a `Sequential`, selected by name, and those
//! with batch norm, whose running averages would be updated twice.

use ghostgpu_lint::Edit;
use ghostgpu_lint::facts::each_expression;
use ghostgpu_lint::facts::structure::{BlockKind, ClassId};
use ghostgpu_lint::facts::value::Kind;
use ghostgpu_lint::python::{Expr, ExprCall, StmtFor, span};
use ghostgpu_tricks::Request;

use super::{fitting, option};
use crate::outcome::{Outcome, Written};
use crate::script::Script;

const CHECKPOINT: &str = "torch.utils.checkpoint.checkpoint";

pub fn write(script: &Script<'_>, request: &Request) -> Outcome {
    if option(request, "keep") != "nothing" {
        return Err("what is kept of a block is decided for each operation as it runs".to_owned());
    }
    let blocks = option(request, "blocks");
    if blocks == "auto" {
        let models = script.transformers_models();
        if !models.is_empty() {
            return by_transformers(script);
        }
        if let Some(written) = in_lists(script)? {
            return Ok(written);
        }
    }
    let value = match blocks.parse::<u64>() {
        Ok(count) => count.to_string(),
        Err(_) => format!("\"{blocks}\""),
    };
    fitting::fitted(script, "checkpoint", &value)
}

fn by_transformers(script: &Script<'_>) -> Outcome {
    let mut edits = Vec::new();
    for model in script.transformers_models() {
        let path = model.path;
        if script
            .text
            .contains(&format!("{path}.gradient_checkpointing_enable("))
        {
            continue;
        }
        // The reentrant variant needs inputs with gradients, which frozen embeddings do not provide.
        let enable = format!(
            "{path}.gradient_checkpointing_enable(gradient_checkpointing_kwargs={{\"use_reentrant\": False}})"
        );
        let indent = script.indent_of(model.statement);
        let lines = format!("{enable}\n{indent}{path}.config.use_cache = False");
        edits.push(script.line_after(model.statement, &lines)?);
    }
    Written::new("`gradient_checkpointing_enable()`", edits)
}

/// Loops over lists of blocks of the file's own classes; `None` if there are none.
fn in_lists(script: &Script<'_>) -> Result<Option<Written>, String> {
    let loops = block_loops(script);
    if loops.is_empty() || has_batch_norm(script) {
        return Ok(None);
    }
    let inner: Vec<ClassId> = loops.iter().flat_map(|it| it.elements.clone()).collect();
    let mut edits = Vec::new();
    let mut count = 0;
    for each in &loops {
        // Blocks inside other blocks are skipped.
        if inner.contains(&each.owner) {
            continue;
        }
        for call in &each.calls {
            count += 1;
            if is_checkpoint(script, call) {
                continue;
            }
            edits.extend(checkpointed(script, call)?);
        }
    }
    if count == 0 {
        return Ok(None);
    }
    if !edits.is_empty() {
        edits.extend(script.import("torch.utils.checkpoint"));
    }
    Written::new("blocks called through `torch.utils.checkpoint`", edits).map(Some)
}

fn is_checkpoint(script: &Script<'_>, call: &ExprCall) -> bool {
    script
        .facts
        .callee(call)
        .is_some_and(|name| name == CHECKPOINT)
}

/// `block(x)` becomes `checkpoint(block, x, use_reentrant=False)`.
fn checkpointed(script: &Script<'_>, call: &ExprCall) -> Result<Vec<Edit>, String> {
    let function = span(&*call.func);
    let open = span(&call.arguments).start;
    let name = &script.text[function.clone()];
    let mut edits = vec![Edit::replace(
        function.start..open + 1,
        format!("{CHECKPOINT}({name}, "),
    )];
    edits.extend(script.keyword(call, "use_reentrant", "False")?);
    Ok(edits)
}

/// A loop over a list of blocks in a model's code.
struct BlockLoop<'a> {
    /// The class whose method has it.
    owner: ClassId,
    /// The classes of its blocks.
    elements: Vec<ClassId>,
    /// The calls of a block, and those that checkpoint one.
    calls: Vec<&'a ExprCall>,
}

fn block_loops<'a>(script: &Script<'a>) -> Vec<BlockLoop<'a>> {
    let structure = &script.facts.structure;
    let mut found = Vec::new();
    for (id, block) in structure.blocks.iter().enumerate() {
        let BlockKind::For(node) = block.kind else {
            continue;
        };
        let Some(owner) = structure.units[block.unit].class else {
            continue;
        };
        let Some((name, list)) = iterated(script, node) else {
            continue;
        };
        let elements = elements(script, owner, list);
        if elements.is_empty() {
            continue;
        }
        let is_name = |expression: &Expr| script.facts.path(expression) == Some(name);
        let calls = script.facts.calls_inside(id).filter(|call| {
            is_name(&call.node.func)
                || is_checkpoint(script, call.node)
                    && call.node.arguments.args.first().is_some_and(is_name)
        });
        let calls: Vec<&'a ExprCall> = calls.map(|call| call.node).collect();
        if !calls.is_empty() {
            found.push(BlockLoop {
                owner,
                elements,
                calls,
            });
        }
    }
    found
}

/// The name of a block and the attribute of the list, of `for block in self.blocks` and of
/// `for i, block in enumerate(self.blocks)`.
fn iterated<'a>(script: &Script<'a>, node: &'a StmtFor) -> Option<(&'a str, &'a str)> {
    let facts = &script.facts;
    let (target, list) = match (&*node.target, &*node.iter) {
        (Expr::Tuple(pair), Expr::Call(call)) => {
            let is_enumerate = matches!(&*call.func, Expr::Name(name) if name.id == "enumerate");
            let target = pair
                .elts
                .get(1)
                .filter(|_| is_enumerate && pair.elts.len() == 2)?;
            (target, call.arguments.args.first()?)
        }
        (target, list) => (target, list),
    };
    let list = facts.path(list)?.strip_prefix("self.")?;
    Some((facts.path(target)?, list))
}

/// The classes of this file whose objects a class puts into a `ModuleList`.
fn elements(script: &Script<'_>, owner: ClassId, list: &str) -> Vec<ClassId> {
    let structure = &script.facts.structure;
    let attribute = format!("self.{list}");
    let mut found = Vec::new();
    for assign in &structure.assigns {
        let unit = structure.unit_of(assign.place.block);
        let is_list = script.facts.path(assign.target) == Some(&attribute)
            && structure.units[unit].class == Some(owner);
        let Expr::Call(call) = assign.value else {
            continue;
        };
        let is_module_list = script
            .facts
            .callee(call)
            .is_some_and(|name| name == "torch.nn.ModuleList");
        if !is_list || !is_module_list {
            continue;
        }
        each_expression(assign.value, &mut |part| {
            if let Expr::Call(made) = part
                && let Kind::Class(class) = script.facts.value(&made.func).kind
                && structure.classes[class].method("forward").is_some()
            {
                found.push(class);
            }
        });
    }
    found
}

/// Whether the script has batch norm, whose running averages could be updated twice.
fn has_batch_norm(script: &Script<'_>) -> bool {
    script.text.contains("BatchNorm") || script.text.contains("InstanceNorm")
}
