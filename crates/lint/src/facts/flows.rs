//! Where a name's value flows: into other names, into a `backward()`, or out of the file.

use super::Facts;
use super::structure::{BlockId, BlockKind, UnitId};
use super::usage::{bound_names, class_of};
use crate::python::{Expr, ExprCall, Stmt};
use crate::syntax::given;

impl<'a> Facts<'a> {
    /// The paths of a unit that a path's value flows into, the path itself first.
    pub fn flows(&self, unit: UnitId, path: &'a str) -> Vec<&'a str> {
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
                if self.mentions(assign.value, current) {
                    add(assign.target);
                }
            }
            for (statement, place) in &self.structure.statements {
                if let Stmt::For(node) = statement
                    && self.structure.unit_of(place.block) == unit
                    && self.mentions(&node.iter, current)
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
                        .any(|each| self.mentions(each, current))
                    && let Some(receiver) = self.path(receiver)
                    && !reached.contains(&receiver)
                {
                    reached.push(receiver);
                }
            }
        }
        reached
    }

    /// Whether a path's value is backpropagated where the file shows it: in its unit, in the
    /// other methods of its class if it is an attribute of `self`, in the whole file if it is a
    /// module-level name, in functions of the file it is passed to.
    pub fn ends_in_backward(&self, unit: UnitId, path: &'a str) -> bool {
        self.units_that_see(unit, path).into_iter().any(|unit| {
            let reached = self.flows(unit, path);
            let names =
                |expression: &Expr| reached.iter().any(|path| self.mentions(expression, path));
            self.calls_in_unit(unit).any(|call| {
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
                || reached.iter().any(|each| self.is_returned(unit, each))
                || self
                    .calls_in_unit(unit)
                    .any(|call| !self.only_reads(call.node) && given(call.node).any(names))
        })
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
                    *each == unit || class.is_some() && class_of(&self.structure, *each) == class
                })
                .collect();
        }
        let is_local = unit != 0 && bound_names(&self.structure, unit).contains(&root);
        if is_local {
            // Nested functions see it too.
            return all
                .filter(|each| *each == unit || self.is_written_in(*each, unit))
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
