//! What is added to containers, one by one: by methods, by subscripts, by joining tensors.

use super::structure::{BlockId, BlockKind, Place, UnitId};
use super::value::Kind;
use super::{Facts, each_expression};
use crate::python::{Expr, ExprCall, Operator, Stmt, StmtClassDef};
use crate::syntax::{given, plain_callee};

/// A value added to a container.
#[derive(Clone, Copy)]
pub struct Kept<'a> {
    /// The path of the container.
    pub container: &'a str,
    pub value: &'a Expr,
    pub statement: &'a Stmt,
    pub place: Place,
    /// Whether it becomes a part of a tensor, and has to be on the same device: `torch.cat((a, x))`.
    pub is_joined: bool,
}

impl<'a> Facts<'a> {
    /// Everything that is added to a container: `a.append(x)`, `a += [x]`, `a[i] = x`,
    /// `a = torch.cat((a, x))`.
    pub fn kept(&self) -> impl Iterator<Item = Kept<'a>> {
        self.kept.iter().copied()
    }

    pub(super) fn all_kept(&self) -> Vec<Kept<'a>> {
        let mut all = Vec::new();
        for call in &self.structure.calls {
            let Some((into, value)) = self.added_by(call.node) else {
                continue;
            };
            let held = self.value(into).kind;
            if !matches!(held, Kind::Container | Kind::Unknown | Kind::Tensor) {
                continue;
            }
            let unit = self.structure.unit_of(call.place.block);
            if let Some(container) = self.container_path(into)
                && !self.is_of_another_make(unit, container)
            {
                self.each_part(value, &mut |value| {
                    all.push(Kept {
                        container,
                        value,
                        statement: call.statement,
                        place: call.place,
                        is_joined: false,
                    });
                });
            }
        }
        for assign in &self.structure.assigns {
            // `all = x if all is None else torch.cat((all, x))` adds in all iterations but the first.
            let bound = match assign.value {
                Expr::If(choice) => [&*choice.body, &*choice.orelse]
                    .into_iter()
                    .find(|branch| matches!(branch, Expr::Call(_)))
                    .unwrap_or(assign.value),
                value => value,
            };
            let added = match (assign.operator, bound, assign.target) {
                (Some(Operator::Add), Expr::List(_), target) => {
                    self.path(target).map(|path| (path, assign.value))
                }
                (None, Expr::BinOp(sum), target) if sum.op == Operator::Add => {
                    match (self.path(target), &*sum.right) {
                        (Some(path), Expr::List(_)) if self.path(&sum.left) == Some(path) => {
                            Some((path, &*sum.right))
                        }
                        _ => None,
                    }
                }
                (None, Expr::Call(call), target @ (Expr::Name(_) | Expr::Attribute(_))) => self
                    .path(target)
                    .and_then(|path| Some((path, self.joined_to(call, path)?))),
                // Into a tensor, only what has a graph adds to what it holds.
                (None, value, Expr::Subscript(target))
                    if (self.value(&target.value).kind == Kind::Container
                        || self.value(&target.value).is_tensor()
                            && self.value(value).graph.is_yes())
                        && self.changes_with_the_round(&target.slice, assign.place.block) =>
                {
                    self.container_path(&target.value).map(|path| (path, value))
                }
                _ => None,
            };
            if let Some((container, value)) = added {
                self.each_part(value, &mut |value| {
                    all.push(Kept {
                        container,
                        value,
                        statement: assign.statement,
                        place: assign.place,
                        is_joined: matches!(bound, Expr::Call(_)),
                    });
                });
            }
        }
        all
    }

    /// The container and the value of a call that adds one: `a.append(x)`, `heappush(a, x)`.
    fn added_by(&self, call: &'a ExprCall) -> Option<(&'a Expr, &'a Expr)> {
        let arguments = &*call.arguments.args;
        if self.callee(call).as_deref() == Some("heapq.heappush") {
            return match arguments {
                [into, value] => Some((into, value)),
                _ => None,
            };
        }
        let called = match &*call.func {
            // `push = history.append` and then `push(loss)`
            Expr::Name(name) => self.bound_method(name.id.as_str())?,
            other => other,
        };
        let Expr::Attribute(function) = called else {
            return None;
        };
        let is_container = || self.value(&function.value).kind == Kind::Container;
        match (function.attr.as_str(), arguments) {
            ("append" | "appendleft" | "extend", [value]) | ("insert", [_, value]) => {
                Some((&function.value, value))
            }
            ("add", [value]) if is_container() => Some((&function.value, value)),
            // `history.update({step: loss})`
            ("update", [value @ Expr::Dict(dict)])
                if is_container()
                    && dict
                        .items
                        .iter()
                        .any(|item| !matches!(item.key, Some(Expr::StringLiteral(_)) | None)) =>
            {
                Some((&function.value, value))
            }
            _ => None,
        }
    }

    /// The method that a name is bound to, if it is bound once.
    fn bound_method(&self, name: &str) -> Option<&'a Expr> {
        let mut bound = (self.structure.assigns.iter())
            .filter(|assign| self.targets(assign.target, name))
            .map(|assign| assign.value);
        match (bound.next(), bound.next()) {
            (Some(method @ Expr::Attribute(_)), None) => Some(method),
            _ => None,
        }
    }

    /// The values of a literal or a record that is put into a container: those of
    /// `{"loss": loss, "step": i}` and of `Result(loss, i)`.
    fn each_part(&self, value: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
        match value {
            Expr::Dict(dict) => dict
                .items
                .iter()
                .for_each(|item| self.each_part(&item.value, visit)),
            Expr::List(list) => list
                .elts
                .iter()
                .for_each(|each| self.each_part(each, visit)),
            Expr::Tuple(tuple) => tuple
                .elts
                .iter()
                .for_each(|each| self.each_part(each, visit)),
            // `[*others]`: unknown elements.
            Expr::Starred(_) => {}
            Expr::Call(call)
                if let Kind::Class(class) = self.value(&call.func).kind
                    && let Some(init) = self.structure.classes[class].method("__init__") =>
            {
                let stored = self.arguments(call, init);
                for (name, each) in stored {
                    if self.stores_on_self(init, name) {
                        self.each_part(each, visit);
                    }
                }
            }
            Expr::Call(call) if self.makes_record(call) => {
                given(call).for_each(|each| match each {
                    Expr::Starred(all) => visit(&all.value),
                    _ => self.each_part(each, visit),
                });
            }
            Expr::Call(call) if plain_callee(call) == Some("dict") => {
                let named = call.arguments.keywords.iter();
                named.for_each(|keyword| self.each_part(&keyword.value, visit));
            }
            _ => visit(value),
        }
    }

    /// Whether a constructor stores a parameter as it is: `self.loss = loss`.
    fn stores_on_self(&self, init: UnitId, parameter: &str) -> bool {
        self.assigns_in_unit(init).any(|assign| {
            assign.operator.is_none()
                && self.path(assign.value) == Some(parameter)
                && self
                    .path(assign.target)
                    .is_some_and(|path| path.starts_with("self."))
        })
    }

    /// Whether a call makes a named tuple or a data class, which only hold what they are given.
    fn makes_record(&self, call: &ExprCall) -> bool {
        let Some(name) = plain_callee(call) else {
            return false;
        };
        match self.value(&call.func).kind {
            Kind::Class(class) => {
                let class = &self.structure.classes[class];
                let is_data = is_record(class.node);
                is_data && class.method("__init__").is_none()
            }
            _ => self.structure.assigns.iter().any(|assign| {
                self.path(assign.target) == Some(name)
                    && matches!(assign.value, Expr::Call(made)
                    if self.callee(made).is_some_and(|made| {
                        made.ends_with("namedtuple") || made.ends_with("NamedTuple")
                    }))
            }),
        }
    }

    /// What `torch.cat((a, x))` adds to `a`.
    fn joined_to(&self, call: &'a ExprCall, path: &str) -> Option<&'a Expr> {
        let parts = match call.arguments.args.first()? {
            Expr::Tuple(tuple) => &tuple.elts,
            Expr::List(list) => &list.elts,
            _ => return None,
        };
        let name = self.callee(call)?;
        match (name.as_str(), &**parts) {
            ("torch.cat" | "torch.concat" | "torch.vstack" | "torch.hstack", [first, added])
                if self.path(first) == Some(path) =>
            {
                Some(added)
            }
            _ => None,
        }
    }

    /// Whether a key is a counter or variable of the loop around it, or an argument that is one for the
    /// caller.
    fn changes_with_the_round(&self, key: &'a Expr, block: BlockId) -> bool {
        self.changes_with_a_loop(key, block) || self.changes_with_the_caller(key, block)
    }

    fn changes_with_the_caller(&self, key: &'a Expr, block: BlockId) -> bool {
        let unit = self.structure.unit_of(block);
        let Expr::Name(name) = key else {
            return false;
        };
        let name = name.id.as_str();
        self.is_parameter_of(unit, name)
            && self.structure.calls.iter().any(|call| {
                let runs_it = || {
                    self.callee_unit(call.node) == Some(unit)
                        || self.candidates(call.node).contains(&unit)
                };
                self.structure.loop_around(call.place.block).is_some()
                    && runs_it()
                    && self
                        .argument_for(call.node, unit, name)
                        .is_some_and(|given| self.changes_with_a_loop(given, call.place.block))
            })
    }

    fn changes_with_a_loop(&self, key: &Expr, block: BlockId) -> bool {
        self.structure
            .enclosing(block)
            .any(|(id, kind)| match kind {
                BlockKind::For(_) | BlockKind::While(_) => {
                    let mut named = false;
                    each_expression(key, &mut |part| {
                        named |= self
                            .path(part)
                            .is_some_and(|path| self.changes_in(id, kind, path));
                    });
                    named
                }
                _ => false,
            })
    }

    /// Whether a loop gives a path another value in every iteration: as its target, or as a counter.
    fn changes_in(&self, rounds: BlockId, kind: BlockKind<'a>, path: &str) -> bool {
        let is_target = matches!(kind, BlockKind::For(node) if self.targets(&node.target, path));
        is_target
            || self
                .assigns_in_unit(self.structure.unit_of(rounds))
                .any(|assign| {
                    assign.operator == Some(Operator::Add)
                        && self.structure.is_inside(assign.place.block, rounds)
                        && self.path(assign.target) == Some(path)
                })
    }
}

/// `class Result(NamedTuple)`, `@dataclass class Result`.
pub(super) fn is_record(class: &StmtClassDef) -> bool {
    let is_named = |expression: &Expr, name: &str| match expression {
        Expr::Name(found) => found.id.as_str() == name,
        Expr::Attribute(found) => found.attr.as_str() == name,
        _ => false,
    };
    class
        .bases()
        .iter()
        .any(|base| is_named(base, "NamedTuple"))
        || class.decorator_list.iter().any(|decorator| {
            let called = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            is_named(called, "dataclass")
        })
}
