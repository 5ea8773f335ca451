//! Which models are trained in this file: an optimizer has their parameters, or a function that
//! backpropagates runs them in training mode.

use super::paths::is_part_of;
use super::structure::{Call, UnitId};
use super::usage::class_of;
use super::value::Kind;
use super::{Facts, each_expression};
use crate::python::{Expr, Stmt};
use crate::syntax::{given, is_false};

/// How many functions a model is followed through.
const DEPTH: usize = 3;

impl<'a> Facts<'a> {
    /// Whether a model is trained: in its unit, in the methods that share it, in a function it is passed
    /// to, or by a caller it is returned to.
    pub fn is_trained(&self, unit: UnitId, path: &str) -> bool {
        self.is_trained_within(unit, path, DEPTH)
    }

    fn is_trained_within(&self, unit: UnitId, path: &str, depth: usize) -> bool {
        depth > 0
            && (self.is_optimized(unit, path)
                || self.is_handed_to_training(unit, path)
                || self.is_given_away_to_training(unit, path, depth))
    }

    /// Whether an optimizer is created with the path's parameters.
    fn is_optimized(&self, unit: UnitId, path: &str) -> bool {
        let made = self.structure.calls.iter().any(|call| {
            self.shares_path(unit, path, call)
                && self.result(call.node).kind == Kind::Optimizer
                && given(call.node).any(|argument| self.gives_parameters(argument, path))
        });
        // An unknown optimizer is recognised by its use.
        made || self.structure.assigns.iter().any(|assign| {
            self.structure.unit_of(assign.place.block) == unit
                && self.value(assign.target).kind == Kind::Optimizer
                && self.gives_parameters(assign.value, path)
        })
    }

    /// Whether a path means the same at a call: in the same unit, for a name of the file
    /// everywhere, for an attribute in the methods of the class.
    fn shares_path(&self, unit: UnitId, path: &str, call: &Call<'a>) -> bool {
        let place = self.structure.unit_of(call.place.block);
        let class = class_of(&self.structure, unit);
        place == unit
            || unit == 0
            || path.starts_with("self.") && class_of(&self.structure, place) == class
    }

    /// `model.parameters()`, `model.module.parameters()`, also inside a list or a filter.
    fn gives_parameters(&self, argument: &Expr, path: &str) -> bool {
        let mut found = false;
        each_expression(argument, &mut |part| {
            if let Expr::Call(call) = part
                && let Some((receiver, "parameters" | "named_parameters")) = self.method(call)
            {
                found |= self
                    .path(receiver)
                    .is_some_and(|model| is_part_of(model, path));
            }
        });
        found
    }

    /// Whether a function in the file gets the path, puts it into training mode and
    /// backpropagates.
    fn is_handed_to_training(&self, unit: UnitId, path: &str) -> bool {
        self.structure.calls.iter().any(|call| {
            let Kind::Function(called) = self.value(&call.node.func).kind else {
                return false;
            };
            let Some(node) = self.structure.units[called].node else {
                return false;
            };
            // A function that gets `None` for its optimizer only evaluates.
            let is_without_optimizer =
                given(call.node).any(|argument| matches!(argument, Expr::NoneLiteral(_)));
            if is_without_optimizer
                || self.is_never_reached(call)
                || !self.shares_path(unit, path, call)
                || !self
                    .calls_in_unit(called)
                    .any(|inner| self.is_backward(inner.node))
            {
                return false;
            }
            // The parameter that receives the path.
            node.parameters.iter().any(|parameter| {
                let name = parameter.name().as_str();
                self.argument_for(call.node, called, name)
                    .is_some_and(|given| self.path(given) == Some(path))
                    && self.is_put_into_training(called, name)
            })
        })
    }

    /// The parts of a target that receive a returned path: of several results, those at the same
    /// position.
    fn receivers(&self, unit: UnitId, path: &str, target: &'a Expr) -> Vec<&'a Expr> {
        let Expr::Tuple(targets) = target else {
            return vec![target];
        };
        let mut found = Vec::new();
        for (statement, place) in &self.structure.statements {
            let Stmt::Return(node) = statement else {
                continue;
            };
            if self.structure.unit_of(place.block) != unit {
                continue;
            }
            match node.value.as_deref() {
                Some(Expr::Tuple(given)) if given.elts.len() == targets.elts.len() => {
                    let pairs = given.elts.iter().zip(&targets.elts);
                    found.extend(
                        pairs
                            .filter(|(each, _)| self.mentions(each, path))
                            .map(|(_, target)| target),
                    );
                }
                Some(_) => found.extend(&targets.elts),
                None => {}
            }
        }
        found
    }

    /// `model.train()`, `model.train(True)`.
    fn is_put_into_training(&self, unit: UnitId, name: &str) -> bool {
        self.calls_in_unit(unit).any(|call| {
            matches!(self.method(call.node), Some((receiver, "train"))
            if self.path(receiver) == Some(name)
                && !call.node.arguments.args.first().is_some_and(is_false))
        })
    }

    /// Whether a function returns the path, and one of its callers trains it.
    fn is_given_away_to_training(&self, unit: UnitId, path: &str, depth: usize) -> bool {
        let root = path.split('.').next().unwrap_or(path);
        unit != 0
            && self.is_returned(unit, root)
            && self.structure.assigns.iter().any(|assign| {
                let Expr::Call(call) = assign.value else {
                    return false;
                };
                if self.value(&call.func).kind != Kind::Function(unit) {
                    return false;
                }
                let caller = self.structure.unit_of(assign.place.block);
                self.receivers(unit, root, assign.target)
                    .into_iter()
                    .filter_map(|target| self.path(target))
                    .any(|target| self.is_trained_within(caller, target, depth.saturating_sub(1)))
            })
    }
}
