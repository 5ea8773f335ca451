//! Totals that grow: values computed from their last value and something else.

use super::structure::Place;
use super::{Facts, each_expression};
use crate::python::{Expr, Operator, Stmt, ast, span};
use crate::syntax::plain_callee;

/// A total that is computed from its last value and something else.
pub struct Grown<'a> {
    pub total: &'a str,
    pub target: &'a Expr,
    pub added: Vec<&'a Expr>,
    pub statement: &'a Stmt,
    pub place: Place,
}

impl<'a> Facts<'a> {
    /// Every total that grows where gradients may be enabled: `total += x`, `total = 0.9 * total + 0.1 * x`,
    /// `total = torch.add(total, x)`, `total.add_(x)`, `sums = [s + x for s, x in zip(sums, xs)]`.
    pub fn grown(&self) -> Vec<Grown<'a>> {
        let mut all = Vec::new();
        for assign in &self.structure.assigns {
            // `sums[name]` is an entry of `sums`.
            let Some(total) = self.container_path(assign.target) else {
                continue;
            };
            if self.gradients_at(assign.statement).is_no() {
                continue;
            }
            let added = match assign.operator {
                Some(Operator::Add | Operator::Sub) => Some(vec![assign.value]),
                Some(_) => None,
                None => self.added_to(assign.target, assign.value),
            };
            if let Some(added) = added {
                all.push(Grown {
                    total,
                    target: assign.target,
                    added,
                    statement: assign.statement,
                    place: assign.place,
                });
            }
        }
        for call in &self.structure.calls {
            if let Some((receiver, "add_" | "sub_")) = self.method(call.node)
                && matches!(call.statement, Stmt::Expr(node) if span(&*node.value) == span(call.node))
                && let Some(total) = self.path(receiver)
                && self.value(receiver).is_tensor()
                && !self.gradients_at(call.node).is_no()
            {
                all.push(Grown {
                    total,
                    target: receiver,
                    added: call.node.arguments.args.iter().take(1).collect(),
                    statement: call.statement,
                    place: call.place,
                });
            }
        }
        all
    }

    /// What a value adds to the target it is bound to; `None` if it is not computed from that.
    pub fn added_to(&self, target: &'a Expr, value: &'a Expr) -> Option<Vec<&'a Expr>> {
        let mut parts = Parts::default();
        match value {
            Expr::ListComp(ast::ExprListComp {
                elt, generators, ..
            }) => {
                let elements = self.elements_of_itself(target, generators);
                parts.of(self, elt, &|part| self.is_element(part, target, &elements));
            }
            Expr::DictComp(comprehension) => {
                let elements = self.elements_of_itself(target, &comprehension.generators);
                parts.of(self, &comprehension.value, &|part| {
                    self.is_element(part, target, &elements)
                });
            }
            // `total, n = sums[name]` and then `sums[name] = (total + x, n + 1)`
            Expr::Tuple(tuple) if matches!(target, Expr::Subscript(_)) => {
                let names = self.parts_of_entry(target);
                for each in &tuple.elts {
                    let mut part = Parts::default();
                    part.of(self, each, &|part| {
                        self.path(part).is_some_and(|path| names.contains(&path))
                    });
                    if part.has_total {
                        parts.has_total = true;
                        parts.others.append(&mut part.others);
                    }
                }
            }
            // `sums = (sums[0] + x, sums[1] + y)`
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. })
                if elts.iter().any(|each| has_part_of(self, each, target)) =>
            {
                for each in elts {
                    parts.of(self, each, &|part| is_part(self, part, target));
                }
            }
            _ => parts.of(self, value, &|part| {
                self.same_text(part, target) || is_entry(self, part, target)
            }),
        }
        parts.has_total.then_some(parts.others)
    }

    /// The names for the parts of an entry: `total` and `n` of `total, n = sums[name]`.
    fn parts_of_entry(&self, target: &Expr) -> Vec<&'a str> {
        let mut names = Vec::new();
        for assign in &self.structure.assigns {
            if matches!(assign.target, Expr::Tuple(_))
                && (self.same_text(assign.value, target) || is_entry(self, assign.value, target))
            {
                self.each_target(assign.target, &mut |path| names.push(path));
            }
        }
        names
    }

    /// The names that the loops of a comprehension give to the elements of what the comprehension is
    /// bound to: `s` of `[s + x for s, x in zip(sums, xs)]`.
    fn elements_of_itself(
        &self,
        target: &Expr,
        generators: &'a [ast::Comprehension],
    ) -> Vec<&'a str> {
        let mut elements = Vec::new();
        let is_it = |part: &Expr| self.same_text(part, target);
        for generator in generators {
            let named = match (&generator.iter, &generator.target) {
                (iterated, name) if is_it(iterated) => Some(name),
                (Expr::Call(call), Expr::Tuple(names)) => match &*call.func {
                    // `for name, sum in sums.items()`
                    Expr::Attribute(function)
                        if function.attr.as_str() == "items" && is_it(&function.value) =>
                    {
                        names.elts.get(1)
                    }
                    _ if plain_callee(call) == Some("zip") => {
                        let position = call.arguments.args.iter().position(is_it);
                        position.and_then(|position| names.elts.get(position))
                    }
                    _ if plain_callee(call) == Some("enumerate") => {
                        let first = call.arguments.args.first();
                        first.filter(|it| is_it(it)).and(names.elts.get(1))
                    }
                    _ => None,
                },
                _ => None,
            };
            elements.extend(named.and_then(|name| self.path(name)));
        }
        elements
    }

    /// Whether an expression is an element of what a comprehension is bound to: one of these names, or
    /// `sums[name]`.
    fn is_element(&self, part: &Expr, target: &Expr, names: &[&str]) -> bool {
        self.path(part).is_some_and(|path| names.contains(&path))
            || matches!(part, Expr::Subscript(entry) if self.same_text(&entry.value, target))
    }
}

/// The summands of an expression, apart from the total itself.
#[derive(Default)]
struct Parts<'a> {
    has_total: bool,
    others: Vec<&'a Expr>,
}

impl<'a> Parts<'a> {
    fn of(&mut self, facts: &Facts<'a>, value: &'a Expr, is_total: &dyn Fn(&Expr) -> bool) {
        if is_total(value) {
            self.has_total = true;
            return;
        }
        match value {
            Expr::BinOp(operation)
                if matches!(operation.op, Operator::Add | Operator::Sub)
                    || has(value, is_total) =>
            {
                self.of(facts, &operation.left, is_total);
                self.of(facts, &operation.right, is_total);
            }
            // `loss if total is None else ...`
            Expr::If(choice) => {
                self.of(facts, &choice.body, is_total);
                self.of(facts, &choice.orelse, is_total);
            }
            Expr::Call(call) => match facts.callee(call).as_deref() {
                Some("torch.add" | "torch.lerp" | "torch.sub") => {
                    for each in &call.arguments.args {
                        self.of(facts, each, is_total);
                    }
                }
                Some(_) => self.others.push(value),
                None => match facts.method(call) {
                    Some((receiver, "add" | "add_" | "sub" | "mul" | "lerp" | "div"))
                        if has(receiver, is_total) =>
                    {
                        self.of(facts, receiver, is_total);
                        for each in &call.arguments.args {
                            self.of(facts, each, is_total);
                        }
                    }
                    _ => self.others.push(value),
                },
            },
            _ => self.others.push(value),
        }
    }
}

/// Whether an expression has the total in it.
fn has(value: &Expr, is_total: &dyn Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    each_expression(value, &mut |part| found |= is_total(part));
    found
}

/// `sums[0]` of `sums`.
fn is_part(facts: &Facts<'_>, part: &Expr, whole: &Expr) -> bool {
    matches!(part, Expr::Subscript(entry) if facts.same_text(&entry.value, whole))
}

fn has_part_of(facts: &Facts<'_>, value: &Expr, whole: &Expr) -> bool {
    matches!(value, Expr::BinOp(_)) && has(value, &|part| is_part(facts, part, whole))
}

/// `sums.get(name, 0)` and `sums.setdefault(name, 0)` are `sums[name]`.
fn is_entry(facts: &Facts<'_>, value: &Expr, total: &Expr) -> bool {
    let (Expr::Call(call), Expr::Subscript(entry)) = (value, total) else {
        return false;
    };
    matches!(&*call.func, Expr::Attribute(function)
        if matches!(function.attr.as_str(), "get" | "setdefault") && facts.same_text(&function.value, &entry.value))
        && call
            .arguments
            .args
            .first()
            .is_some_and(|key| facts.same_text(key, &entry.slice))
}
