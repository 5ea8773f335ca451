//! Which names hold models whose parameters are frozen.

use super::imports::Imports;
use super::paths::path;
use super::structure::{BlockId, BlockKind, Structure, UnitId};
use super::usage::Usages;
use crate::python::{Expr, ExprCall, Stmt};
use crate::syntax::last_name;

impl<'a> Usages<'a> {
    /// `for p in model.parameters(): p.requires_grad = False`, also as `p.requires_grad_(False)`
    /// and `p.detach_()`.
    pub(super) fn note_frozen(&mut self, text: &'a str, structure: &Structure<'a>) {
        let mut blocks: Vec<BlockId> = Vec::new();
        for assign in &structure.assigns {
            if matches!(assign.target, Expr::Attribute(target) if target.attr.as_str() == "requires_grad")
            {
                blocks.push(assign.place.block);
            }
        }
        for call in &structure.calls {
            if matches!(&*call.node.func, Expr::Attribute(function)
                if matches!(function.attr.as_str(), "requires_grad_" | "detach_"))
            {
                blocks.push(call.place.block);
            }
        }
        for block in blocks {
            for (_, kind) in structure.enclosing(block) {
                let BlockKind::For(node) = kind else { continue };
                let mut iterated = &*node.iter;
                while let Expr::Call(call) = iterated {
                    iterated = match (&*call.func, call.arguments.args.first()) {
                        (Expr::Attribute(function), _) => &function.value,
                        // `enumerate(model.parameters())`
                        (_, Some(first)) => first,
                        _ => break,
                    };
                }
                if let Some(path) = path(text, iterated) {
                    let unit = structure.unit_of(block);
                    self.note(structure, unit, path, |usage| usage.frozen = true);
                }
            }
        }
    }

    /// A model frozen in one function is frozen in those that receive or return it: `freeze(model)`,
    /// `model = load_frozen()`, `evaluate(frozen)`.
    pub(super) fn share_frozen(
        &mut self,
        text: &'a str,
        structure: &Structure<'a>,
        imports: &Imports<'a>,
    ) {
        for assign in &structure.assigns {
            if let (Some(target), Expr::Call(call)) = (path(text, assign.target), assign.value)
                && (imports.qualified(&call.func)).is_some_and(|name| is_made_frozen(&name))
            {
                let unit = structure.unit_of(assign.place.block);
                self.note(structure, unit, target, |usage| usage.frozen = true);
            }
        }
        // Through a helper that calls a helper.
        for _ in 0..2 {
            self.share_frozen_once(text, structure);
        }
    }

    fn share_frozen_once(&mut self, text: &'a str, structure: &Structure<'a>) {
        for call in &structure.calls {
            let unit = structure.unit_of(call.place.block);
            for (index, argument) in call.node.arguments.args.iter().enumerate() {
                let Some(given) = path(text, argument) else {
                    continue;
                };
                let is_frozen = match called(structure, call.node) {
                    Some(callee) => parameter(structure, callee, index)
                        .is_some_and(|name| self.is_frozen(structure, callee, name)),
                    None => sounds_like_freezing(text, call.node),
                };
                if is_frozen {
                    self.note(structure, unit, given, |usage| usage.frozen = true);
                } else if self.is_frozen(structure, unit, given)
                    && let Some(callee) = called(structure, call.node)
                    && let Some(name) = parameter(structure, callee, index)
                {
                    self.note(structure, callee, name, |usage| usage.frozen = true);
                }
            }
            // `model.freeze_encoder()`
            if let Expr::Attribute(function) = &*call.node.func
                && sounds_like_freezing(text, call.node)
                && let Some(receiver) = path(text, &function.value)
            {
                self.note(structure, unit, receiver, |usage| usage.frozen = true);
            }
        }
        for assign in &structure.assigns {
            if let (Some(target), Expr::Call(call)) = (path(text, assign.target), assign.value)
                && let Some(callee) = called(structure, call)
                && self.gives_frozen(text, structure, callee)
            {
                let unit = structure.unit_of(assign.place.block);
                self.note(structure, unit, target, |usage| usage.frozen = true);
            }
        }
    }

    fn gives_frozen(&self, text: &str, structure: &Structure<'_>, unit: UnitId) -> bool {
        structure.statements.iter().any(|(statement, place)| {
            structure.unit_of(place.block) == unit
                && matches!(statement, Stmt::Return(node)
                    if node.value.as_deref().and_then(|value| path(text, value))
                        .is_some_and(|value| self.is_frozen(structure, unit, value)))
        })
    }

    fn is_frozen(&self, structure: &Structure<'_>, unit: UnitId, path: &str) -> bool {
        self.usage(structure, unit, path).frozen
    }
}

/// The network of `pytorch-fid` and its many copies is frozen by default.
fn is_made_frozen(name: &str) -> bool {
    name.ends_with("inception.InceptionV3")
}

/// The function in the file that is called by its name.
fn called(structure: &Structure<'_>, call: &ExprCall) -> Option<UnitId> {
    let Expr::Name(name) = &*call.func else {
        return None;
    };
    structure.units.iter().position(|unit| {
        unit.node.is_some() && unit.class.is_none() && unit.name == name.id.as_str()
    })
}

fn parameter<'a>(structure: &Structure<'a>, unit: UnitId, index: usize) -> Option<&'a str> {
    let node = structure.units[unit].node?;
    node.parameters
        .iter()
        .nth(index)
        .map(|parameter| parameter.name().as_str())
}

/// A function of another file whose name says that it freezes: `freeze(model)`, `set_requires_grad(model,
/// False)`.
fn sounds_like_freezing(text: &str, call: &ExprCall) -> bool {
    let Some(called) = path(text, &call.func) else {
        return false;
    };
    let name = last_name(called).to_ascii_lowercase();
    name.contains("freeze") && !name.contains("unfreeze") || name.contains("requires_grad")
}
