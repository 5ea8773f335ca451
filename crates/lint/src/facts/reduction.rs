//! How a loss was reduced: a plain mean over its batch, or scaled by something.

use super::structure::{BlockId, UnitId};
use super::value::Kind;
use super::{Facts, torch_names};
use crate::python::{Expr, ExprCall, Operator, Stmt};
use crate::syntax::is_true;

/// What a loss is relative to the mean over its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The mean, PyTorch's default.
    Mean,
    /// Divided or multiplied by something.
    Scaled,
    /// Not known.
    Open,
}

impl Reduction {
    /// The reduction of a sum of two losses.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Scaled, _) | (_, Self::Scaled) => Self::Scaled,
            (Self::Mean, Self::Mean) => Self::Mean,
            _ => Self::Open,
        }
    }
}

/// How many names and calls are followed.
const DEPTH: usize = 6;

impl<'a> Facts<'a> {
    /// How a loss was reduced, as far as the file shows: follows names to their values inside `rounds`,
    /// and functions of the file to their return values.
    pub fn reduction(&self, rounds: BlockId, loss: &'a Expr) -> Reduction {
        self.reduction_of(rounds, loss, DEPTH)
    }

    fn reduction_of(&self, rounds: BlockId, loss: &'a Expr, depth: usize) -> Reduction {
        if depth == 0 {
            return Reduction::Open;
        }
        match loss {
            Expr::BinOp(operation) => match operation.op {
                Operator::Add | Operator::Sub => {
                    let left = self.term(rounds, &operation.left, depth);
                    left.and(self.term(rounds, &operation.right, depth))
                }
                _ => Reduction::Scaled,
            },
            Expr::UnaryOp(operation) => {
                self.reduction_of(rounds, &operation.operand, depth.saturating_sub(1))
            }
            Expr::Call(call) => self.reduction_of_call(rounds, call, depth),
            // `model(...).loss`, `model(...)[0]`
            Expr::Attribute(attribute)
                if attribute.attr.as_str() == "loss"
                    && self.is_output(rounds, &attribute.value) =>
            {
                Reduction::Mean
            }
            Expr::Subscript(subscript) if self.is_output(rounds, &subscript.value) => {
                Reduction::Mean
            }
            _ => match self.path(loss) {
                Some(path) => self.reduction_of_path(rounds, path, depth),
                None => Reduction::Open,
            },
        }
    }

    /// A term of a sum: its weight does not make the sum a mean over more.
    fn term(&self, rounds: BlockId, term: &'a Expr, depth: usize) -> Reduction {
        match term {
            Expr::BinOp(operation) if operation.op == Operator::Mult => {
                let is_weight = |side: &Expr| self.value(side).kind == Kind::Number;
                match (is_weight(&operation.left), is_weight(&operation.right)) {
                    (true, false) => {
                        self.reduction_of(rounds, &operation.right, depth.saturating_sub(1))
                    }
                    (false, true) => {
                        self.reduction_of(rounds, &operation.left, depth.saturating_sub(1))
                    }
                    _ => Reduction::Open,
                }
            }
            _ => self.reduction_of(rounds, term, depth.saturating_sub(1)),
        }
    }

    fn reduction_of_path(&self, rounds: BlockId, path: &str, depth: usize) -> Reduction {
        let unit = self.structure.unit_of(rounds);
        let mut all: Option<Reduction> = None;
        for assign in self.assigns_in_unit(unit) {
            if !self.structure.is_inside(assign.place.block, rounds)
                || !self.targets(assign.target, path)
            {
                continue;
            }
            let one = match assign.operator {
                // `loss = loss.mean()`, `loss = loss.cuda()`: the earlier value counts.
                None if self.is_only_itself(assign.value, path) => continue,
                None if self.mentions(assign.value, path) => match assign.value {
                    Expr::BinOp(operation) if operation.op != Operator::Add => Reduction::Scaled,
                    _ => Reduction::Open,
                },
                // One of several results of a call: the reduction is known only for the first
                // result of a model.
                None if self.path(assign.target).is_none() => match assign.value {
                    Expr::Call(call) if self.is_model(&call.func) => Reduction::Mean,
                    _ => Reduction::Open,
                },
                None => self.reduction_of(rounds, assign.value, depth.saturating_sub(1)),
                Some(Operator::Add) => self.term(rounds, assign.value, depth.saturating_sub(1)),
                Some(_) => Reduction::Scaled,
            };
            all = Some(all.map_or(one, |before| before.and(one)));
        }
        all.unwrap_or(Reduction::Open)
    }

    /// `loss.mean()`, `loss.to(device)` of `loss` itself.
    fn is_only_itself(&self, value: &Expr, path: &str) -> bool {
        match value {
            Expr::Call(call) => matches!(self.method(call), Some((receiver, method))
                if self.path(receiver) == Some(path)
                    && matches!(method, "mean" | "to" | "cuda" | "float" | "squeeze")),
            _ => false,
        }
    }

    fn reduction_of_call(&self, rounds: BlockId, call: &'a ExprCall, depth: usize) -> Reduction {
        if let Some(name) = self.callee(call) {
            return if torch_names::is_loss_function(&name) {
                Reduction::Mean
            } else {
                Reduction::Open
            };
        }
        if let Some((receiver, method)) = self.method(call)
            && self.value(receiver).is_tensor()
        {
            return match method {
                "mean" => Reduction::Mean,
                "div" | "div_" | "mul" | "mul_" => Reduction::Scaled,
                "to" | "cuda" | "float" | "squeeze" => {
                    self.reduction_of(rounds, receiver, depth.saturating_sub(1))
                }
                _ => Reduction::Open,
            };
        }
        match self.value(&call.func).kind {
            Kind::Criterion => Reduction::Mean,
            Kind::Module(None) => Reduction::Mean,
            Kind::Module(Some(class)) => match self.structure.classes[class].method("forward") {
                Some(unit) => self.reduction_of_returned(unit, depth),
                None => Reduction::Open,
            },
            Kind::Function(unit) => self.reduction_of_returned(unit, depth),
            // A criterion that is passed in.
            Kind::Unknown if self.is_handed_in(rounds, &call.func) => Reduction::Mean,
            _ => Reduction::Open,
        }
    }

    fn reduction_of_returned(&self, unit: UnitId, depth: usize) -> Reduction {
        let block = self.structure.units[unit].block;
        let mut all: Option<Reduction> = None;
        for (statement, place) in &self.structure.statements {
            if self.structure.unit_of(place.block) != unit {
                continue;
            }
            if let Stmt::Return(node) = statement
                && let Some(value) = &node.value
            {
                let one = self.reduction_of(block, value, depth.saturating_sub(1));
                all = Some(all.map_or(one, |before| before.and(one)));
            }
        }
        all.unwrap_or(Reduction::Open)
    }

    /// Whether an expression is what a model returned.
    fn is_output(&self, rounds: BlockId, expression: &Expr) -> bool {
        match expression {
            Expr::Call(call) => self.is_model(&call.func),
            _ => {
                let Some(path) = self.path(expression) else {
                    return false;
                };
                let mut bound = self
                    .assigns_in_unit(self.structure.unit_of(rounds))
                    .filter(|assign| {
                        self.structure.is_inside(assign.place.block, rounds)
                            && self.path(assign.target) == Some(path)
                    })
                    .peekable();
                bound.peek().is_some()
                    && bound.all(|assign| {
                        matches!(assign.value, Expr::Call(call) if self.is_model(&call.func))
                    })
            }
        }
    }

    /// A model from another file: its loss has the usual reduction.
    fn is_model(&self, called: &Expr) -> bool {
        self.value(called).kind == Kind::Module(None)
    }

    /// Whether a name is a parameter of the enclosing function.
    fn is_handed_in(&self, rounds: BlockId, called: &Expr) -> bool {
        let unit = self.structure.unit_of(rounds);
        match (called, self.structure.units[unit].node) {
            (Expr::Name(name), Some(node)) => node
                .parameters
                .iter()
                .any(|parameter| parameter.name().as_str() == name.id.as_str()),
            _ => false,
        }
    }

    /// Whether a loss in the file sums instead of averaging.
    pub fn sums_losses(&self) -> bool {
        self.structure.calls.iter().any(|call| {
            call.node.arguments.keywords.iter().any(|keyword| {
                keyword
                    .arg
                    .as_ref()
                    .is_some_and(|name| match name.as_str() {
                        "reduction" => !matches!(&keyword.value, Expr::StringLiteral(text)
                        if text.value.to_str() == "mean"),
                        "size_average" => !is_true(&keyword.value),
                        _ => false,
                    })
            })
        })
    }
}
