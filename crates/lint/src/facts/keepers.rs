//! Functions of the file that keep what they are given: meters, histories, buffers.

use super::reads::generators;
use super::structure::UnitId;
use super::usage::owner_of;
use super::value::Kind;
use super::{Facts, each_expression};
use crate::python::{Expr, ExprCall, Operator, Stmt};
use crate::syntax::{given, plain_callee};

/// How many functions an argument is followed through.
const DEPTH: usize = 3;

/// Where a function keeps an argument.
#[derive(Clone, Copy)]
pub struct Keeper<'a> {
    /// The path there: `self.sum`, `history`.
    pub container: &'a str,
    pub unit: UnitId,
}

impl<'a> Facts<'a> {
    /// Where a function adds a parameter, as it was given, to something that outlives it: an attribute, a
    /// container of the file, a container that it is given too.
    pub fn keeper(&self, unit: UnitId, parameter: &'a str) -> Option<Keeper<'a>> {
        self.keeper_within(unit, parameter, DEPTH)
    }

    fn keeper_within(&self, unit: UnitId, parameter: &'a str, depth: usize) -> Option<Keeper<'a>> {
        let depth = depth.checked_sub(1)?;
        let names = self.names_of_parameter(unit, parameter)?;
        let as_given = |value: &Expr| {
            names.iter().any(|name| self.mentions(value, name))
                && !self.value(value).graph.is_no()
                && is_passed_whole(self, value)
        };
        let found = |container: &'a str| Keeper { container, unit };
        let summed = self.assigns_in_unit(unit).find_map(|assign| {
            let target = self.container_path(assign.target)?;
            if self.gradients_at(assign.statement).is_no() || !self.is_of_others(unit, target) {
                return None;
            }
            let adds = match (assign.operator, assign.value) {
                // `+=` extends a list.
                (Some(Operator::Add), value) => {
                    as_given(value) && self.value(assign.target).kind != Kind::Container
                }
                // `self.history = self.history + [value]` is a list too.
                (None, value) => self
                    .added_to(assign.target, value)
                    .is_some_and(|added| added.into_iter().any(as_given)),
                _ => false,
            };
            adds.then_some(found(target))
        });
        let kept = || {
            self.kept()
                .find(|kept| {
                    self.structure.unit_of(kept.place.block) == unit
                        && self.is_of_others(unit, kept.container)
                        && as_given(kept.value)
                })
                .map(|kept| found(kept.container))
        };
        let handed_on = || {
            self.calls_in_unit(unit).find_map(|call| {
                let callee = self
                    .callee_unit(call.node)
                    .filter(|callee| *callee != unit)?;
                let inner = self
                    .arguments(call.node, callee)
                    .into_iter()
                    .filter(|(_, value)| as_given(value))
                    .find_map(|(name, _)| self.keeper_within(callee, name, depth))?;
                let container = self.seen_from(call.node, inner)?;
                self.is_of_others(unit, container)
                    .then_some(found(container))
            })
        };
        summed.or_else(kept).or_else(handed_on)
    }

    /// What the caller of a function calls the place where that keeps something.
    fn seen_from(&self, call: &'a ExprCall, keeper: Keeper<'a>) -> Option<&'a str> {
        let root = keeper.container.split(['.', '[']).next()?;
        let place = if root == "self" {
            match &*call.func {
                Expr::Attribute(function) => match &*function.value {
                    Expr::Name(name) if name.id.as_str() == "self" => {
                        return Some(keeper.container);
                    }
                    other => other,
                },
                other => other,
            }
        } else if self.is_parameter_of(keeper.unit, root) {
            self.argument_for(call, keeper.unit, root)?
        } else {
            return Some(keeper.container);
        };
        self.container_path(place)
    }

    /// A parameter and the names that a unit gives to it or to its parts; `None` if one of them is bound
    /// to something else (`value = value.item()`).
    fn names_of_parameter(&self, unit: UnitId, parameter: &'a str) -> Option<Vec<&'a str>> {
        let mut names = vec![parameter];
        for (statement, place) in &self.structure.statements {
            if let Stmt::For(node) = statement
                && self.structure.unit_of(place.block) == unit
                && is_passed_whole(self, &node.iter)
                && names.iter().any(|name| self.mentions(&node.iter, name))
            {
                self.each_target(&node.target, &mut |path| names.push(path));
            }
        }
        for assign in self.assigns_in_unit(unit) {
            for generator in generators(assign.value) {
                if is_passed_whole(self, &generator.iter)
                    && names
                        .iter()
                        .any(|name| self.mentions(&generator.iter, name))
                {
                    self.each_target(&generator.target, &mut |path| names.push(path));
                }
            }
        }
        let rebound = self.assigns_in_unit(unit).any(|assign| {
            names.iter().any(|name| self.targets(assign.target, name))
                && !keeps_graph(assign.value, &names)
        });
        (!rebound).then_some(names)
    }

    /// Whether a path is not a unit's own: an attribute, a name of another unit, something it is given.
    fn is_of_others(&self, unit: UnitId, path: &str) -> bool {
        let root = path.split(['.', '[']).next().unwrap_or(path);
        root == "self"
            || owner_of(&self.structure, unit, root) != Some(unit)
            || self.is_parameter_of(unit, root)
    }

    /// Whether a name is a parameter of a unit.
    pub fn is_parameter_of(&self, unit: UnitId, name: &str) -> bool {
        self.structure.units[unit].node.is_some_and(|node| {
            node.parameters
                .iter()
                .any(|parameter| parameter.name().as_str() == name)
        })
    }

    /// Whether what has a graph in an expression is an argument of its unit, which the file calls: then it is
    /// up to the callers not to give it.
    pub fn is_left_to_callers(&self, unit: UnitId, value: &Expr) -> bool {
        if unit == 0 || self.is_one_step(unit) || self.is_batch_hook(unit) {
            return false;
        }
        let mut with_graph: Vec<&str> = Vec::new();
        each_expression(value, &mut |part| {
            if let Expr::Name(name) = part
                && self.value(part).graph.is_yes()
            {
                with_graph.push(name.id.as_str());
            }
        });
        if with_graph.is_empty() {
            return false;
        }
        let parameters = self.structure.units[unit].node.into_iter();
        let is_given = parameters
            .flat_map(|node| node.parameters.iter())
            .any(|parameter| {
                let name = parameter.name().as_str();
                with_graph.contains(&name)
                    || (self.names_of_parameter(unit, name).into_iter().flatten())
                        .any(|part| with_graph.contains(&part))
            });
        is_given
            && self.structure.calls.iter().any(|call| {
                self.callee_unit(call.node) == Some(unit)
                    || self.candidates(call.node).contains(&unit)
            })
    }

    /// The arguments of a call with the names of the parameters that get them.
    pub fn arguments(&self, call: &'a ExprCall, unit: UnitId) -> Vec<(&'a str, &'a Expr)> {
        let Some(node) = self.structure.units[unit].node else {
            return Vec::new();
        };
        let names: Vec<&'a str> = node
            .parameters
            .iter()
            .map(|parameter| parameter.name().as_str())
            .collect();
        let rest = node
            .parameters
            .vararg
            .as_ref()
            .map(|rest| rest.name.as_str());
        let others = node
            .parameters
            .kwarg
            .as_ref()
            .map(|rest| rest.name.as_str());
        let rest_index = rest.and_then(|rest| names.iter().position(|name| *name == rest));
        let skipped = usize::from(self.structure.takes_object(unit));
        let positional = call
            .arguments
            .args
            .iter()
            .enumerate()
            .filter_map(|(index, value)| {
                let index = index + skipped;
                let index = rest_index.map_or(index, |rest| rest.min(index));
                Some((*names.get(index)?, value))
            });
        let named = call.arguments.keywords.iter().filter_map(|keyword| {
            let name = keyword.arg.as_ref()?.as_str();
            let name = if names.contains(&name) { name } else { others? };
            Some((name, &keyword.value))
        });
        positional.chain(named).collect()
    }
}

/// Whether an expression is what it mentions, weighed or put into an object: no call can have detached it.
fn is_passed_whole(facts: &Facts<'_>, value: &Expr) -> bool {
    let is_so = |part: &Expr| is_passed_whole(facts, part);
    match value {
        Expr::BinOp(operation) => is_so(&operation.left) && is_so(&operation.right),
        Expr::Name(_) | Expr::NumberLiteral(_) | Expr::StringLiteral(_) => true,
        Expr::Attribute(attribute) => {
            // `self.data` is an attribute of the file's own.
            let is_own = facts.path(&attribute.value) == Some("self");
            (is_own || !matches!(attribute.attr.as_str(), "data" | "shape" | "grad"))
                && is_so(&attribute.value)
        }
        // `values["loss"]` of a function's `**values`
        Expr::Subscript(entry) => is_so(&entry.value),
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_so),
        Expr::List(list) => list.elts.iter().all(is_so),
        Expr::Dict(dict) => dict.items.iter().all(|item| is_so(&item.value)),
        Expr::Starred(starred) => is_so(&starred.value),
        Expr::Call(call) => {
            let of_parts = matches!(&*call.func, Expr::Attribute(function)
                if matches!(function.attr.as_str(), "items" | "values") && is_so(&function.value));
            // `Transition(state, action, value)`
            let makes_record = plain_callee(call)
                .is_some_and(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
                && facts.callee(call).is_none()
                && given(call).all(is_so);
            of_parts
                || makes_record
                || matches!(plain_callee(call), Some("zip" | "enumerate"))
                    && call.arguments.args.iter().all(is_so)
        }
        _ => false,
    }
}

/// Whether an expression is one of these names, in another shape.
fn keeps_graph(value: &Expr, names: &[&str]) -> bool {
    match value {
        Expr::Name(name) => names.contains(&name.id.as_str()),
        Expr::Call(call) => matches!(&*call.func, Expr::Attribute(function)
            if matches!(function.attr.as_str(),
                "unsqueeze" | "squeeze" | "view" | "reshape" | "flatten" | "mean" | "sum" | "float"
                | "clone" | "to" | "cuda")
                && keeps_graph(&function.value, names)),
        _ => false,
    }
}
