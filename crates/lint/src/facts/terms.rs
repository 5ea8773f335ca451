//! The terms of a loss: what is added up, weighed and averaged into what a unit backpropagates.

use super::Facts;
use super::frameworks::returned_losses;
use super::structure::UnitId;
use crate::python::{Expr, Operator};
use crate::syntax::plain_callee;

/// How many functions a loss is followed into.
const DEPTH: usize = 3;
/// How many expressions are followed from a value to a term.
const FAR: usize = 8;

impl<'a> Facts<'a> {
    /// Whether an expression is a term of what its unit backpropagates, a part of one, or made of them:
    /// `kl` of `(reconstruction + beta * kl).backward()`, `value` of
    /// `for value in losses.values()` before `sum(losses.values()).backward()`.
    pub fn is_term_of_a_loss(&self, unit: UnitId, expression: &'a Expr) -> bool {
        let terms = self.terms(unit, DEPTH);
        !terms.is_empty() && self.is_one_of(&terms, unit, expression, FAR)
    }

    fn is_one_of(&self, terms: &[&str], unit: UnitId, expression: &'a Expr, far: usize) -> bool {
        let Some(far) = far.checked_sub(1) else {
            return false;
        };
        if let Some(path) = self.path(expression)
            && terms.contains(&path)
        {
            return true;
        }
        let is_so = |part: &'a Expr| self.is_one_of(terms, unit, part, far);
        match expression {
            Expr::BinOp(operation) => [&*operation.left, &*operation.right]
                .into_iter()
                .any(|part| self.value(part).graph.is_yes() && is_so(part)),
            Expr::UnaryOp(operation) => is_so(&operation.operand),
            Expr::Subscript(subscript) => is_so(&subscript.value),
            // The one that is not a term is a loss, too: `{"kl": kl, "total": loss}`.
            Expr::Dict(dict) => dict.items.iter().any(|item| is_so(&item.value)),
            Expr::Tuple(tuple) => tuple.elts.iter().any(is_so),
            Expr::List(list) => list.elts.iter().any(is_so),
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(function) if keeps_terms(function.attr.as_str()) => {
                    is_so(&function.value)
                }
                _ => {
                    matches!(plain_callee(call), Some("sum" | "list" | "tuple"))
                        && call.arguments.args.first().is_some_and(is_so)
                }
            },
            _ => self
                .path(expression)
                .and_then(|path| self.iterated(unit, path, expression))
                .is_some_and(is_so),
        }
    }

    /// What the innermost loop around an expression goes over, if that binds a path.
    fn iterated(&self, unit: UnitId, path: &str, expression: &Expr) -> Option<&'a Expr> {
        let node = self.loop_that_binds(unit, path, expression)?;
        Some(&*node.iter)
    }

    /// The paths of a unit that are terms of what it backpropagates.
    fn terms(&self, unit: UnitId, depth: usize) -> Vec<&'a str> {
        let mut found: Vec<&'a str> = Vec::new();
        let mut open: Vec<&'a Expr> = Vec::new();
        for call in self.calls_in_unit(unit) {
            if self.is_backward(call.node) {
                open.extend(self.goes_back_from(call.node));
            } else if depth > 1
                && let Some(callee) = self.callee_unit(call.node)
                && callee != unit
                && let Some(node) = self.structure.units[callee].node
                && self.runs_backward(call.node)
            {
                let terms = self.terms(callee, depth - 1);
                for parameter in &node.parameters {
                    let name = parameter.name().as_str();
                    if terms.contains(&name) {
                        open.extend(self.argument_for(call.node, callee, name));
                    }
                }
            }
        }
        if self.returns_loss_to_a_framework(unit) {
            open.extend(returned_losses(&self.structure, unit));
        }
        while let Some(expression) = open.pop() {
            self.each_term(expression, &mut |path, expression| {
                if found.contains(&path) {
                    return;
                }
                found.push(path);
                for assign in self.assigns_in_unit(unit) {
                    self.each_value_bound(assign.target, assign.value, path, &mut |value| {
                        open.push(value);
                    });
                }
                open.extend(self.iterated(unit, path, expression));
            });
        }
        // A container is backpropagated with what it holds.
        if !found.is_empty() {
            for kept in self.kept() {
                if self.structure.unit_of(kept.place.block) == unit
                    && found.contains(&kept.container)
                    && let Some(path) = self.path(kept.value)
                {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Calls `visit` for what an assignment binds a path to, if that shows.
    fn each_value_bound(
        &self,
        target: &'a Expr,
        value: &'a Expr,
        path: &str,
        visit: &mut dyn FnMut(&'a Expr),
    ) {
        match (target, value) {
            (Expr::Tuple(targets), Expr::Tuple(values))
                if targets.elts.len() == values.elts.len() =>
            {
                for (target, value) in targets.elts.iter().zip(&values.elts) {
                    self.each_value_bound(target, value, path, visit);
                }
            }
            _ if self.path(target) == Some(path) => visit(value),
            // An entry of a container: `losses["kl"] = kl`.
            (Expr::Subscript(entry), _) if self.path(&entry.value) == Some(path) => visit(value),
            _ => {}
        }
    }

    /// Calls `visit` for the paths that an expression adds up.
    fn each_term(&self, expression: &'a Expr, visit: &mut dyn FnMut(&'a str, &'a Expr)) {
        if let Some(path) = self.path(expression) {
            visit(path, expression);
            return;
        }
        match expression {
            Expr::BinOp(operation) if operation.op != Operator::Pow => {
                self.each_term(&operation.left, visit);
                self.each_term(&operation.right, visit);
            }
            Expr::UnaryOp(operation) => self.each_term(&operation.operand, visit),
            Expr::If(choice) => {
                self.each_term(&choice.body, visit);
                self.each_term(&choice.orelse, visit);
            }
            Expr::Named(named) => self.each_term(&named.target, visit),
            Expr::Subscript(subscript) => self.each_term(&subscript.value, visit),
            Expr::Tuple(tuple) => tuple
                .elts
                .iter()
                .for_each(|each| self.each_term(each, visit)),
            Expr::List(list) => list
                .elts
                .iter()
                .for_each(|each| self.each_term(each, visit)),
            Expr::Dict(dict) => dict
                .items
                .iter()
                .for_each(|item| self.each_term(&item.value, visit)),
            Expr::ListComp(comprehension) => {
                self.each_term(&comprehension.elt, visit);
                for generator in &comprehension.generators {
                    self.each_term(&generator.iter, visit);
                }
            }
            Expr::Generator(comprehension) => {
                self.each_term(&comprehension.elt, visit);
                for generator in &comprehension.generators {
                    self.each_term(&generator.iter, visit);
                }
            }
            Expr::Call(call) => {
                let sums = match (self.callee(call).as_deref(), plain_callee(call)) {
                    (
                        Some(
                            "torch.stack" | "torch.cat" | "torch.mean" | "torch.sum" | "torch.add"
                            | "torch.mul" | "torch.div" | "math.fsum",
                        ),
                        _,
                    ) => true,
                    (None, Some(name)) => matches!(name, "sum" | "zip" | "list" | "tuple"),
                    _ => false,
                };
                if sums {
                    for each in &call.arguments.args {
                        self.each_term(each, visit);
                    }
                } else if let Some((receiver, name)) = self.method(call)
                    && keeps_terms(name)
                {
                    self.each_term(receiver, visit);
                    if matches!(name, "scale" | "add" | "sub") {
                        for each in &call.arguments.args {
                            self.each_term(each, visit);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// Methods whose result consists of what they are called on.
fn keeps_terms(method: &str) -> bool {
    matches!(
        method,
        "mean"
            | "sum"
            | "values"
            | "items"
            | "float"
            | "squeeze"
            | "add"
            | "sub"
            | "mul"
            | "div"
            | "clone"
            | "to"
            | "cuda"
            | "scale"
            | "view"
            | "reshape"
    )
}
