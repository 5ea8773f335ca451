//! Where a name's value flows: into other names, into a `backward()`, or out of the file.

use super::reads::direct_parts;
use super::structure::{BlockId, BlockKind, UnitId};
use super::usage::{bound_names, class_of, owner_of};
use super::value::Kind;
use super::{Facts, each_expression};
use crate::python::{Expr, ExprCall, Stmt, ast, span};
use crate::syntax::{given, holds, plain_callee};

impl<'a> Facts<'a> {
    /// The paths of a unit that a path's value flows into, the path itself first.
    pub fn flows(&self, unit: UnitId, path: &'a str) -> Vec<&'a str> {
        self.flows_by(unit, path, &|expression, path| {
            self.mentions(expression, path)
        })
    }

    /// The same, but only with the graph: `detach()` and `item()` end it.
    fn graph_flows(&self, unit: UnitId, path: &'a str) -> Vec<&'a str> {
        self.flows_by(unit, path, &|expression, path| {
            self.carries_graph(expression, path)
        })
    }

    fn flows_by(
        &self,
        unit: UnitId,
        path: &'a str,
        mentions: &dyn Fn(&'a Expr, &str) -> bool,
    ) -> Vec<&'a str> {
        let mut reached = vec![path];
        let mut next = 0;
        while next < reached.len() {
            let current = reached[next];
            next += 1;
            let mut add = |target: &'a Expr| {
                self.each_target(target, &mut |target| {
                    if !reached.contains(&target) {
                        reached.push(target);
                    }
                });
            };
            for assign in self.assigns_in_unit(unit) {
                if mentions(assign.value, current) {
                    add(assign.target);
                }
            }
            for (statement, place) in &self.structure.statements {
                if let Stmt::For(node) = statement
                    && self.structure.unit_of(place.block) == unit
                    && mentions(&node.iter, current)
                    // `for name in names_and_values` goes over the keys.
                    && !(self.path(&node.iter) == Some(current) && self.is_dict(unit, current))
                {
                    add(&node.target);
                }
            }
            for call in self.calls_in_unit(unit) {
                if let Some((receiver, "append" | "extend" | "insert" | "update")) =
                    self.method(call.node)
                    && call
                        .node
                        .arguments
                        .args
                        .iter()
                        .any(|each| mentions(each, current))
                    && let Some(receiver) = self.path(receiver)
                    && !reached.contains(&receiver)
                {
                    reached.push(receiver);
                }
            }
        }
        reached
    }

    /// Whether a path is bound to a dict.
    fn is_dict(&self, unit: UnitId, path: &str) -> bool {
        self.units_that_see(unit, path)
            .into_iter()
            .flat_map(|each| self.assigns_in_unit(each))
            .any(|assign| {
                self.path(assign.target) == Some(path)
                    && match assign.value {
                        Expr::Dict(_) | Expr::DictComp(_) => true,
                        Expr::Call(call) => matches!(
                            plain_callee(call),
                            Some("dict" | "defaultdict" | "OrderedDict")
                        ),
                        _ => false,
                    }
            })
    }

    /// Whether the graph of what a path holds may be part of an expression's value.
    pub fn carries_graph(&self, expression: &Expr, path: &str) -> bool {
        if !self.mentions(expression, path) {
            return false;
        }
        if self.path(expression) == Some(path) {
            let value = self.value(expression);
            return !(value.is_tensor() && value.graph.is_no());
        }
        match expression {
            Expr::Compare(_) => false,
            Expr::Call(call) => {
                if matches!(
                    plain_callee(call),
                    Some("len" | "float" | "int" | "bool" | "str" | "range" | "isinstance")
                ) {
                    return false;
                }
                if let Some((receiver, method)) = self.method(call)
                    && cuts_graph(method)
                    && self.mentions(receiver, path)
                {
                    return false;
                }
                self.carries_graph(&call.func, path)
                    || given(call).any(|each| self.carries_graph(each, path))
            }
            Expr::Attribute(attribute) => {
                !matches!(
                    attribute.attr.as_str(),
                    "data" | "shape" | "dtype" | "device"
                ) && self.carries_graph(&attribute.value, path)
            }
            Expr::ListComp(ast::ExprListComp {
                elt, generators, ..
            })
            | Expr::SetComp(ast::ExprSetComp {
                elt, generators, ..
            })
            | Expr::Generator(ast::ExprGenerator {
                elt, generators, ..
            }) => {
                let mut carries = self.carries_graph(elt, path);
                for generator in generators {
                    if self.carries_graph(&generator.iter, path) {
                        let mut targets = Vec::new();
                        each_expression(&generator.target, &mut |part| {
                            targets.extend(self.path(part));
                        });
                        carries |= targets.iter().any(|each| self.carries_graph(elt, each));
                    }
                }
                carries
            }
            _ => {
                let mut parts = Vec::new();
                direct_parts(expression, &mut parts);
                parts.iter().any(|part| self.carries_graph(part, path))
            }
        }
    }

    /// Whether a path's value is backpropagated where the file shows it: in its unit, in the
    /// other methods of its class if it is an attribute of `self`, in the whole file if it is a
    /// module-level name, in functions of the file it is passed to, or by a framework it is returned to.
    pub fn ends_in_backward(&self, unit: UnitId, path: &'a str) -> bool {
        self.units_that_see(unit, path).into_iter().any(|unit| {
            let reached = self.graph_flows(unit, path);
            let names = |expression: &Expr| {
                reached
                    .iter()
                    .any(|path| self.carries_graph(expression, path))
            };
            let returned = reached
                .iter()
                .any(|path| self.is_returned_to_a_framework(unit, path));
            returned
                || self.calls_in_unit(unit).any(|call| {
                    let is_given = given(call.node).any(names);
                    if self.differentiates(call.node) {
                        is_given || names(&call.node.func)
                    } else {
                        is_given && self.runs_differentiation(call.node)
                    }
                })
        })
    }

    /// Whether a path's value escapes: it is returned, yielded, stored in an object, or passed to a
    /// function that is not known to only read it.
    pub fn escapes(&self, unit: UnitId, path: &'a str) -> bool {
        self.units_that_see(unit, path).into_iter().any(|unit| {
            let reached = self.flows(unit, path);
            let names =
                |expression: &Expr| reached.iter().any(|path| self.mentions(expression, path));
            reached
                .iter()
                .any(|each| *each != path && each.contains('.'))
                || reached
                    .iter()
                    .any(|each| self.is_returned_whole(unit, each))
                || self
                    .calls_in_unit(unit)
                    .any(|call| !self.only_reads(call.node) && given(call.node).any(names))
        })
    }

    /// Whether a unit returns what a path holds, or something made of it, not only its length.
    fn is_returned_whole(&self, unit: UnitId, path: &str) -> bool {
        self.structure.statements.iter().any(|(statement, place)| {
            self.structure.unit_of(place.block) == unit
                && matches!(statement, Stmt::Return(node)
                if node.value.as_deref().is_some_and(|value| {
                    let known = self.value(value);
                    // `torch.stack(errors).max().item()`: what was collected ends here.
                    let is_cut_off = known.graph.is_no()
                        && matches!(known.kind, Kind::Number | Kind::Tensor);
                    self.mentions(value, path)
                        && !is_cut_off
                        && !matches!(value, Expr::Call(call)
                            if matches!(plain_callee(call), Some("len" | "float" | "int")))
                }))
        })
    }

    /// Whether everything that is computed from the result of a call is cut off its graph: it is detached
    /// in the same expression, or each use of the name that this is bound to is.
    pub fn is_detached_later(&self, unit: UnitId, call: &ExprCall) -> bool {
        const CUTS: &[&str] = &["detach", "detach_", "item", "argmax", "data"];
        if self.is_put_through(unit, call, CUTS) {
            return true;
        }
        let mut names = Vec::new();
        for assign in self.assigns_in_unit(unit) {
            if holds(assign.value, call) {
                self.each_target(assign.target, &mut |path| names.push(path));
            }
        }
        if names.is_empty() {
            return false;
        }
        let end = span(call).end;
        for (statement, place) in &self.structure.statements {
            if self.structure.unit_of(place.block) != unit || span(*statement).start < end {
                continue;
            }
            let mut is_used_whole = false;
            each_own_value(statement, &mut |value| {
                is_used_whole |= names.iter().any(|path| self.carries_graph(value, path));
            });
            if is_used_whole {
                return false;
            }
            // `output = output.detach()`: from there on it is something else.
            if let Stmt::Assign(assign) = statement {
                names.retain(|path| {
                    !assign
                        .targets
                        .iter()
                        .any(|target| self.targets(target, path))
                });
            }
        }
        true
    }

    /// Whether a call certainly keeps none of its arguments; its result is tracked separately.
    fn only_reads(&self, call: &ExprCall) -> bool {
        if let Some(name) = self.callee(call) {
            let root = name.split('.').next().unwrap_or(&name);
            return matches!(
                root,
                "numpy"
                    | "torch"
                    | "math"
                    | "matplotlib"
                    | "sklearn"
                    | "statistics"
                    | "pandas"
                    | "scipy"
                    | "json"
                    | "pickle"
                    | "seaborn"
                    | "wandb"
                    | "logging"
            );
        }
        match &*call.func {
            Expr::Name(name) => matches!(
                name.id.as_str(),
                "len"
                    | "sum"
                    | "print"
                    | "min"
                    | "max"
                    | "zip"
                    | "enumerate"
                    | "sorted"
                    | "list"
                    | "range"
                    | "float"
                    | "int"
                    | "str"
                    | "tuple"
                    | "set"
                    | "dict"
                    | "abs"
                    | "round"
                    | "reversed"
                    | "format"
                    | "map"
                    | "isinstance"
                    | "type"
            ),
            Expr::Attribute(function) => matches!(
                function.attr.as_str(),
                "append"
                    | "extend"
                    | "insert"
                    | "update"
                    | "format"
                    | "write"
                    | "add_scalar"
                    | "info"
                    | "debug"
                    | "plot"
                    | "mean"
                    | "sum"
                    | "join"
                    | "register_forward_hook"
                    | "register_forward_pre_hook"
                    | "register_full_backward_hook"
                    | "register_hook"
            ),
            _ => false,
        }
    }

    /// The units in which a path of a unit means the same thing.
    pub fn units_that_see(&self, unit: UnitId, path: &str) -> Vec<UnitId> {
        let root = path.split(['.', '[']).next().unwrap_or(path);
        let all = 0..self.structure.units.len();
        if root == "self" {
            let class = class_of(&self.structure, unit);
            return all
                .filter(|each| {
                    *each == unit
                        || class
                            .zip(class_of(&self.structure, *each))
                            .is_some_and(|(one, other)| self.structure.are_related(one, other))
                })
                .collect();
        }
        if let Some(owner) = owner_of(&self.structure, unit, root) {
            // Nested functions see it too.
            return all
                .filter(|each| *each == owner || self.is_written_in(*each, owner))
                .collect();
        }
        all.filter(|each| {
            *each == unit || *each == 0 || !bound_names(&self.structure, *each).contains(&root)
        })
        .collect()
    }

    /// Whether an expression is the loop variable (`for loss in losses`): it was made earlier, and the
    /// others may share its graph.
    pub fn is_handed_out_by(&self, rounds: BlockId, expression: &Expr) -> bool {
        match self.structure.blocks[rounds].kind {
            BlockKind::For(node) => self
                .path(expression)
                .is_some_and(|path| self.targets(&node.target, path)),
            _ => false,
        }
    }

    fn is_written_in(&self, inner: UnitId, outer: UnitId) -> bool {
        let mut next = self.structure.units[inner].parent;
        while let Some(unit) = next {
            if unit == outer {
                return true;
            }
            next = self.structure.units[unit].parent;
        }
        false
    }
}

/// The values that a statement reads, not those of the statements inside it.
fn each_own_value<'a>(statement: &'a Stmt, visit: &mut dyn FnMut(&'a Expr)) {
    match statement {
        Stmt::Assign(node) => visit(&node.value),
        Stmt::AugAssign(node) => {
            visit(&node.value);
            visit(&node.target);
        }
        Stmt::AnnAssign(node) => node.value.iter().for_each(|value| visit(value)),
        Stmt::Expr(node) => visit(&node.value),
        Stmt::Return(node) => node.value.iter().for_each(|value| visit(value)),
        Stmt::For(node) => visit(&node.iter),
        Stmt::If(node) => visit(&node.test),
        _ => {}
    }
}

/// Methods whose result has no graph, whatever they are called on.
fn cuts_graph(method: &str) -> bool {
    matches!(
        method,
        "detach" | "item" | "tolist" | "numpy" | "argmax" | "size" | "dim" | "numel"
    )
}
