//! Where a value was made: back through names and through what does not change its size.

use super::Facts;
use super::structure::UnitId;
use crate::python::{Expr, ExprCall, Stmt, span};

/// How far back names are followed.
const FAR: usize = 12;

impl<'a> Facts<'a> {
    /// The call of a model whose output (or a part of it, or as many numbers made of it) an
    /// expression is.
    pub fn model_call(&self, unit: UnitId, expression: &'a Expr) -> Option<&'a ExprCall> {
        self.model_call_within(unit, expression, FAR)
    }

    fn model_call_within(
        &self,
        unit: UnitId,
        expression: &'a Expr,
        far: usize,
    ) -> Option<&'a ExprCall> {
        let far = far.checked_sub(1)?;
        match expression {
            Expr::Call(call) => {
                if self.called_module(call).is_some() {
                    return Some(call);
                }
                if let Some(name) = self.callee(call) {
                    let last = name.rsplit('.').next().unwrap_or(&name);
                    return match call.arguments.args.first() {
                        Some(first) if name.starts_with("torch.") && keeps_size(last) => {
                            self.model_call_within(unit, first, far)
                        }
                        _ => None,
                    };
                }
                match &*call.func {
                    Expr::Attribute(function) if keeps_size(function.attr.as_str()) => {
                        self.model_call_within(unit, &function.value, far)
                    }
                    _ => None,
                }
            }
            Expr::Attribute(attribute)
                if matches!(
                    attribute.attr.as_str(),
                    "data" | "logits" | "last_hidden_state"
                ) =>
            {
                self.model_call_within(unit, &attribute.value, far)
            }
            Expr::Subscript(subscript)
                if matches!(
                    *subscript.slice,
                    Expr::StringLiteral(_) | Expr::NumberLiteral(_)
                ) && self.path(expression).is_some_and(|path| {
                    !self
                        .assigns_in_unit(unit)
                        .any(|assign| self.path(assign.target) == Some(path))
                }) =>
            {
                self.model_call_within(unit, &subscript.value, far)
            }
            _ => {
                let path = self.path(expression)?;
                self.model_call_within(unit, self.last_value(unit, path, expression)?, far)
            }
        }
    }

    /// What a path was last given before an expression, in the same unit.
    pub fn last_value(&self, unit: UnitId, path: &str, before: &Expr) -> Option<&'a Expr> {
        let at = span(before).start;
        let last = self
            .assigns_in_unit(unit)
            .filter(|assign| span(assign.statement).end <= at && self.targets(assign.target, path))
            .max_by_key(|assign| span(assign.statement).start)?;
        // A loop that binds it later than the assignment hides that.
        let hidden = self.structure.statements.iter().any(|(statement, place)| {
            matches!(statement, Stmt::For(node)
                if self.structure.unit_of(place.block) == unit
                    && self.targets(&node.target, path)
                    && span(node).start > span(last.statement).start
                    && span(node).start < at
                    && at < span(node).end)
        });
        (!hidden && last.operator.is_none()).then_some(last.value)
    }
}

/// Methods and functions whose result is as large as what they are given.
fn keeps_size(name: &str) -> bool {
    matches!(
        name,
        "softmax"
            | "log_softmax"
            | "sigmoid"
            | "tanh"
            | "relu"
            | "exp"
            | "log"
            | "float"
            | "half"
            | "double"
            | "detach"
            | "data"
            | "cpu"
            | "cuda"
            | "to"
            | "view"
            | "reshape"
            | "squeeze"
            | "unsqueeze"
            | "flatten"
            | "permute"
            | "transpose"
            | "contiguous"
            | "clone"
            | "normalize"
            | "clamp"
            | "abs"
            | "sqrt"
            | "type"
            | "numpy"
            | "t"
    )
}
