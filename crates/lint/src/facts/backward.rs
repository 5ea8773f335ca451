//! Backward passes: which calls run one, from which tensor, and whether a name's value reaches one.

use super::Facts;
use super::structure::{BlockId, UnitId};
use crate::python::{Expr, ExprCall, Stmt, StmtWith, span};
use crate::syntax::given;

impl<'a> Facts<'a> {
    /// Whether a call backpropagates: `loss.backward()`, `accelerator.backward(loss)`.
    pub fn is_backward(&self, call: &ExprCall) -> bool {
        matches!(&*call.func, Expr::Attribute(function)
            if matches!(function.attr.as_str(), "backward" | "manual_backward"))
    }

    /// Whether a call differentiates through a graph: `backward()` in any form, `autograd.grad`.
    pub fn differentiates(&self, call: &ExprCall) -> bool {
        self.is_backward(call)
            || self.callee(call).is_some_and(|name| {
                matches!(
                    name.as_str(),
                    "torch.autograd.grad" | "torch.autograd.backward"
                ) || name.starts_with("torch.func.")
                    || name.starts_with("torch.autograd.functional.")
            })
    }

    /// Whether a call backpropagates, itself or in functions of the file that it runs.
    pub fn runs_backward(&self, call: &ExprCall) -> bool {
        self.reaches(call, &|each| self.is_backward(each))
    }

    /// Whether a call differentiates through a graph, itself or in functions of the file that it runs.
    pub fn runs_differentiation(&self, call: &ExprCall) -> bool {
        self.reaches(call, &|each| self.differentiates(each))
    }

    /// The tensor a backward call starts from: `loss` of `loss.backward()`, of
    /// `scaler.scale(loss).backward()`, of Apex's `scale_loss`, and of `accelerator.backward(loss)`.
    pub fn goes_back_from(&self, call: &'a ExprCall) -> Option<&'a Expr> {
        let Expr::Attribute(function) = &*call.func else {
            return None;
        };
        let receiver = &*function.value;
        match (receiver, &*call.arguments.args) {
            // `y.backward(gradient)` starts from `y`.
            (_, [_]) if self.value(receiver).is_tensor() => Some(receiver),
            (_, [loss]) => Some(loss),
            (Expr::Call(scaled), []) => match (&*scaled.func, &*scaled.arguments.args) {
                (Expr::Attribute(scale), [loss]) if scale.attr.as_str() == "scale" => Some(loss),
                _ => Some(receiver),
            },
            (_, []) => Some(self.scaled_by_apex(receiver).unwrap_or(receiver)),
            _ => None,
        }
    }

    /// The same, but `None` where a framework gets the loss, because it may scale it.
    pub fn goes_back_unscaled_from(&self, call: &'a ExprCall) -> Option<&'a Expr> {
        let is_tensors = matches!(&*call.func, Expr::Attribute(function)
            if function.attr.as_str() == "backward" && call.arguments.args.is_empty());
        is_tensors.then(|| self.goes_back_from(call)).flatten()
    }

    /// `loss` of `with amp.scale_loss(loss, optimizer) as scaled:`.
    fn scaled_by_apex(&self, scaled: &Expr) -> Option<&'a Expr> {
        let path = self.path(scaled)?;
        self.structure.statements.iter().find_map(|(statement, _)| {
            let Stmt::With(StmtWith { items, range, .. }) = statement else {
                return None;
            };
            if !crate::python::bytes(*range).contains(&span(scaled).start) {
                return None;
            }
            items.iter().find_map(|item| {
                let target = item.optional_vars.as_deref()?;
                match &item.context_expr {
                    Expr::Call(call)
                        if self.path(target) == Some(path)
                            && matches!(&*call.func, Expr::Attribute(function)
                                if function.attr.as_str() == "scale_loss") =>
                    {
                        call.arguments.args.first()
                    }
                    _ => None,
                }
            })
        })
    }

    /// Whether what a path holds is backpropagated inside a block: `loss.backward()`,
    /// `scaler.scale(loss).backward()`, `accelerator.backward(loss)`.
    pub fn is_backpropagated_inside(&self, block: BlockId, path: &str) -> bool {
        let unit = self.structure.unit_of(block);
        self.is_returned_to_a_framework(unit, path)
            || self.calls_inside(block).any(|call| {
                self.is_backward(call.node)
                    && (self.mentions(&call.node.func, path)
                        || call
                            .node
                            .arguments
                            .args
                            .first()
                            .is_some_and(|loss| self.path(loss) == Some(path)))
            })
    }

    /// Whether what a path holds in a unit ends in a `backward()`, directly or through other
    /// names: `total` of `loss = total / n; loss.backward()`.
    pub fn reaches_backward(&self, unit: UnitId, path: &str) -> bool {
        let mut reached = vec![path];
        let mut next = 0;
        while next < reached.len() {
            let current = reached[next];
            next += 1;
            if self.usage(unit, current).backward.is_some() {
                return true;
            }
            for assign in self.assigns_in_unit(unit) {
                let Some(target) = self.path(assign.target) else {
                    continue;
                };
                if !reached.contains(&target) && self.carries_graph(assign.value, current) {
                    reached.push(target);
                }
            }
        }
        self.calls_in_unit(unit).any(|call| {
            self.is_backward(call.node)
                && reached.iter().any(|path| {
                    self.carries_graph(&call.node.func, path)
                        || given(call.node).any(|each| self.carries_graph(each, path))
                })
        })
    }
}
