//! Where a value was created: back through names and size-preserving operations.

use std::cell::Cell;

use super::Facts;
use super::flow::methods::may_be_pass;
use super::roles::sounds_like_activation;
use super::structure::{Assign, UnitId};
use super::torch_names;
use super::value::Kind;
use crate::python::{Expr, ExprCall, Stmt, StmtFor, span};
use crate::syntax::{given, plain_callee};

/// How many names are followed back.
const FAR: usize = 12;
/// How many expressions are looked at on the way.
const LOOKS: usize = 256;

/// Which operations are followed back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// Those whose result is as large as their input.
    Kept,
    /// All that keep the graph.
    Any,
}

impl<'a> Facts<'a> {
    /// The model call that produced an expression: its output, a part of it, or a tensor of the same size
    /// computed from it.
    pub fn model_call(&self, unit: UnitId, expression: &'a Expr) -> Option<&'a ExprCall> {
        self.model_call_within(unit, expression, FAR, Size::Kept, &Cell::new(LOOKS))
    }

    /// The model call whose graph an expression has, whatever was computed from its output since.
    pub fn model_behind(&self, unit: UnitId, expression: &'a Expr) -> Option<&'a ExprCall> {
        self.model_call_within(unit, expression, FAR, Size::Any, &Cell::new(LOOKS))
    }

    fn model_call_within(
        &self,
        unit: UnitId,
        expression: &'a Expr,
        far: usize,
        size: Size,
        looks: &Cell<usize>,
    ) -> Option<&'a ExprCall> {
        let far = far.checked_sub(1)?;
        looks.set(looks.get().checked_sub(1)?);
        if size == Size::Any && !self.value(expression).graph.is_yes() {
            return None;
        }
        let any_part = |mut parts: &mut dyn Iterator<Item = &'a Expr>| {
            Iterator::find_map(&mut parts, |part| {
                self.model_call_within(unit, part, far, size, looks)
            })
        };
        match expression {
            Expr::Call(call) => {
                if self.called_module(call).is_some()
                    || self.runs_model_here(call)
                    || self.runs_part_of_model(call)
                {
                    return Some(call);
                }
                if let Some(collected) = self.joined(unit, call) {
                    return self.model_call_within(unit, collected, far, size, looks);
                }
                if size == Size::Any {
                    let receiver = self.method(call).map(|(receiver, _)| receiver);
                    return self
                        .callee_unit(call)
                        .is_none()
                        .then(|| any_part(&mut receiver.into_iter().chain(given(call))))
                        .flatten();
                }
                if let Some(name) = self.callee(call) {
                    let last = name.rsplit('.').next().unwrap_or(&name);
                    return match call.arguments.args.first() {
                        Some(first) if name.starts_with("torch.") && keeps_size(last) => {
                            self.model_call_within(unit, first, far, size, looks)
                        }
                        _ => None,
                    };
                }
                match (&*call.func, call.arguments.args.first()) {
                    (Expr::Attribute(function), _) if keeps_size(function.attr.as_str()) => {
                        self.model_call_within(unit, &function.value, far, size, looks)
                    }
                    // `accelerator.gather(output)`
                    (Expr::Attribute(function), Some(first))
                        if self.value(&function.value).kind == Kind::Accelerator =>
                    {
                        self.model_call_within(unit, first, far, size, looks)
                    }
                    _ => None,
                }
            }
            Expr::BinOp(operation) if size == Size::Any => {
                any_part(&mut [&*operation.left, &*operation.right].into_iter())
            }
            Expr::UnaryOp(operation) if size == Size::Any => {
                any_part(&mut std::iter::once(&*operation.operand))
            }
            Expr::List(list) if size == Size::Any => any_part(&mut list.elts.iter()),
            Expr::Tuple(tuple) if size == Size::Any => any_part(&mut tuple.elts.iter()),
            Expr::ListComp(comprehension) if size == Size::Any => {
                any_part(&mut std::iter::once(&*comprehension.elt))
            }
            Expr::Attribute(attribute)
                if matches!(
                    attribute.attr.as_str(),
                    "data"
                        | "logits"
                        | "last_hidden_state"
                        | "hidden_states"
                        | "attentions"
                        | "pooler_output"
                ) || size == Size::Any && !self.is_bound_in(unit, expression) =>
            {
                self.model_call_within(unit, &attribute.value, far, size, looks)
            }
            Expr::Subscript(subscript)
                if (size == Size::Any
                    || matches!(
                        *subscript.slice,
                        Expr::StringLiteral(_) | Expr::NumberLiteral(_) | Expr::UnaryOp(_)
                    ))
                    && !self.is_bound_in(unit, expression) =>
            {
                self.model_call_within(unit, &subscript.value, far, size, looks)
            }
            _ => {
                let path = self.path(expression)?;
                if let Some(iterated) = self.handed_out(unit, path, expression) {
                    return self.model_call_within(unit, iterated, far, size, looks);
                }
                let assign = self.last_assign(unit, path, expression)?;
                // Which of several results have a graph shows only in how they are used, unless a
                // function of the file returns them.
                if self.path(assign.target) != Some(path)
                    && self.elements(self.value(assign.value)).is_none()
                    && !self.is_first_result(assign, path)
                    && !sounds_like_activation(path)
                    && !self.is_surely_output(unit, path)
                {
                    return None;
                }
                self.model_call_within(unit, assign.value, far, size, looks)
            }
        }
    }

    /// The model call of which an expression is one of several results.
    pub fn model_of_several(&self, unit: UnitId, expression: &'a Expr) -> Option<&'a ExprCall> {
        let path = self.path(expression)?;
        let assign = self.last_assign(unit, path, expression)?;
        match assign.value {
            Expr::Call(call) if self.called_module(call).is_some() => Some(call),
            _ => None,
        }
    }

    /// Whether a call runs a function of the file that runs a model, and returns tensors.
    fn runs_model_here(&self, call: &ExprCall) -> bool {
        let returns = self.result(call);
        self.is_function(call)
            && (returns.is_tensor() || self.elements(returns).is_some())
            && self.callee_unit(call).is_some_and(|unit| {
                self.runs(unit, &|inner| self.called_module(inner.node).is_some())
            })
    }

    /// Whether a call runs a method of a model that gives tensors: `model.encode(images)`.
    fn runs_part_of_model(&self, call: &ExprCall) -> bool {
        matches!(self.method(call), Some((receiver, name))
            if matches!(self.value(receiver).kind, Kind::Module(_)) && may_be_pass(name))
            && self.callee_unit(call).is_none()
            && self.result(call).is_tensor()
    }

    /// Whether a unit binds the path that an expression names.
    fn is_bound_in(&self, unit: UnitId, expression: &Expr) -> bool {
        self.path(expression).is_some_and(|path| {
            self.assigns_in_unit(unit)
                .any(|assign| self.path(assign.target) == Some(path))
        })
    }

    /// What a loop around an expression goes over to bind a path: `features` of
    /// `for name, feature in zip(names, features)`.
    fn handed_out(&self, unit: UnitId, path: &str, expression: &Expr) -> Option<&'a Expr> {
        let node = self.loop_that_binds(unit, path, expression)?;
        self.part_given_to(&node.target, &node.iter, path)
    }

    /// The innermost loop around an expression that binds a path.
    pub fn loop_that_binds(
        &self,
        unit: UnitId,
        path: &str,
        expression: &Expr,
    ) -> Option<&'a StmtFor> {
        let at = span(expression).start;
        self.structure
            .statements
            .iter()
            .filter_map(|(statement, place)| match statement {
                Stmt::For(node)
                    if self.structure.unit_of(place.block) == unit
                        && span(node).contains(&at)
                        && self.targets(&node.target, path) =>
                {
                    Some(node)
                }
                _ => None,
            })
            .max_by_key(|node| span(*node).start)
    }

    fn part_given_to(&self, target: &Expr, iterated: &'a Expr, path: &str) -> Option<&'a Expr> {
        let (Expr::Call(call), Expr::Tuple(parts)) = (iterated, target) else {
            return (self.path(target) == Some(path)).then_some(iterated);
        };
        match (plain_callee(call)?, &*call.arguments.args) {
            ("zip", given) => {
                let pairs = parts.elts.iter().zip(given);
                pairs
                    .into_iter()
                    .find(|(part, _)| self.targets(part, path))
                    .and_then(|(part, given)| self.part_given_to(part, given, path))
            }
            ("enumerate", [given]) => match &*parts.elts {
                [_, part] => self.part_given_to(part, given, path),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a unit collects and `torch.cat(values)` joins, if that is one thing.
    fn joined(&self, unit: UnitId, call: &'a ExprCall) -> Option<&'a Expr> {
        let name = self.callee(call)?;
        if !matches!(name.as_str(), "torch.cat" | "torch.stack" | "torch.concat") {
            return None;
        }
        let container = self.path(call.arguments.args.first()?)?;
        let mut kept = self.kept().filter(|kept| {
            kept.container == container && self.structure.unit_of(kept.place.block) == unit
        });
        let first = kept.next()?;
        kept.next().is_none().then_some(first.value)
    }

    /// Whether an expression is one of several results of a function from another file: it is unknown
    /// which of them have a graph.
    pub fn is_one_of_several_results(&self, unit: UnitId, expression: &Expr) -> bool {
        self.path(expression).is_some_and(|path| {
            self.last_assign(unit, path, expression)
                .is_some_and(|assign| {
                    matches!(assign.target, Expr::Tuple(_))
                        && matches!(assign.value, Expr::Call(_))
                        && self.elements(self.value(assign.value)).is_none()
                })
        })
    }

    /// Whether a path is bound to the first result of a model, which is its output.
    fn is_first_result(&self, assign: &Assign<'a>, path: &str) -> bool {
        matches!(assign.target, Expr::Tuple(tuple)
            if tuple.elts.first().is_some_and(|first| self.path(first) == Some(path)))
            && matches!(assign.value, Expr::Call(call) if self.called_module(call).is_some())
    }

    /// Whether a unit passes a path to a function of PyTorch, detaches it, or backpropagates what it computes
    /// from it.
    fn is_surely_output(&self, unit: UnitId, path: &'a str) -> bool {
        self.ends_in_backward(unit, path)
            || self.calls_in_unit(unit).any(|call| {
                let is_loss = self.value(&call.node.func).kind == Kind::Criterion
                    || self
                        .callee(call.node)
                        .is_some_and(|name| name.starts_with("torch.nn.functional."));
                let given = call
                    .node
                    .arguments
                    .args
                    .iter()
                    .any(|each| self.path(each) == Some(path));
                let detached = matches!(self.method(call.node), Some((receiver, "detach"))
                if self.path(receiver) == Some(path));
                is_loss && given || detached
            })
    }

    /// Whether a tensor depends on sizes only: masks, positions.
    pub fn is_made_of_sizes(&self, unit: UnitId, expression: &'a Expr) -> bool {
        self.is_made_of_sizes_within(unit, expression, FAR)
    }

    fn is_made_of_sizes_within(&self, unit: UnitId, expression: &'a Expr, far: usize) -> bool {
        let Some(far) = far.checked_sub(1) else {
            return false;
        };
        let is_so = |part: &'a Expr| self.is_made_of_sizes_within(unit, part, far);
        match expression {
            Expr::NumberLiteral(_) => true,
            Expr::Call(call) => match self.callee(call) {
                Some(name) => name.strip_prefix("torch.").is_some_and(|function| {
                    torch_names::fills_tensor(function)
                        || !torch_names::makes_tensor(function)
                            && call.arguments.args.iter().all(is_so)
                }),
                None => match &*call.func {
                    Expr::Attribute(method) => is_so(&method.value),
                    _ => false,
                },
            },
            Expr::Tuple(tuple) => tuple.elts.iter().all(is_so),
            Expr::List(list) => list.elts.iter().all(is_so),
            Expr::BinOp(operation) => is_so(&operation.left) && is_so(&operation.right),
            Expr::UnaryOp(operation) => is_so(&operation.operand),
            Expr::Compare(comparison) => {
                is_so(&comparison.left) && comparison.comparators.iter().all(is_so)
            }
            Expr::Subscript(subscript) => is_so(&subscript.value),
            _ => {
                self.value(expression).kind == Kind::Number
                    || self
                        .path(expression)
                        .and_then(|path| self.last_value(unit, path, expression))
                        .is_some_and(is_so)
            }
        }
    }

    /// Whether a tensor was certainly created on the CPU by PyTorch, and never moved.
    pub fn is_made_on_host(&self, unit: UnitId, expression: &'a Expr) -> bool {
        self.is_made_on_host_within(unit, expression, FAR)
    }

    fn is_made_on_host_within(&self, unit: UnitId, expression: &'a Expr, far: usize) -> bool {
        let Some(far) = far.checked_sub(1) else {
            return false;
        };
        let is_so = |part: &'a Expr| self.is_made_on_host_within(unit, part, far);
        match expression {
            Expr::Call(call) => match (self.callee(call), &*call.func) {
                (Some(name), _) => name.strip_prefix("torch.").is_some_and(|function| {
                    if torch_names::makes_tensor(function) {
                        self.result(call).card.is_no()
                    } else {
                        call.arguments.args.first().is_some_and(is_so)
                    }
                }),
                (None, Expr::Attribute(method)) => {
                    !matches!(method.attr.as_str(), "to" | "cuda") && is_so(&method.value)
                }
                _ => false,
            },
            _ => self
                .path(expression)
                .and_then(|path| self.last_value(unit, path, expression))
                .is_some_and(is_so),
        }
    }

    /// The last value bound to a path before an expression, in the same unit.
    pub fn last_value(&self, unit: UnitId, path: &str, before: &Expr) -> Option<&'a Expr> {
        self.last_assign(unit, path, before)
            .map(|assign| assign.value)
    }

    /// The assignment that last bound a path before an expression, in the same unit.
    fn last_assign(&self, unit: UnitId, path: &str, before: &Expr) -> Option<&Assign<'a>> {
        let at = span(before).start;
        let last = self
            .assigns_in_unit(unit)
            .filter(|assign| span(assign.statement).end <= at && self.targets(assign.target, path))
            .max_by_key(|assign| span(assign.statement).start)?;
        // A loop that binds it after the assignment overrides it.
        let hidden = self.structure.statements.iter().any(|(statement, place)| {
            matches!(statement, Stmt::For(node)
                if self.structure.unit_of(place.block) == unit
                    && self.targets(&node.target, path)
                    && span(node).start > span(last.statement).start
                    && span(node).start < at
                    && at < span(node).end)
        });
        (!hidden && last.operator.is_none()).then_some(last)
    }
}

/// Methods and functions whose result is as large as their input.
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
