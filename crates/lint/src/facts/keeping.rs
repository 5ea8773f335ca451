//! What is put into lists and dicts, how long those live, and where their contents go.

use super::structure::{BlockId, BlockKind, Place};
use super::value::Kind;
use super::{Facts, each_expression};
use crate::python::{Expr, ExprCall, Operator, Stmt};

/// A value that a container keeps from now on.
pub struct Kept<'a> {
    /// The path of the container.
    pub container: &'a str,
    pub value: &'a Expr,
    pub statement: &'a Stmt,
    pub place: Place,
}

impl<'a> Facts<'a> {
    /// Everything that is added to a container: `a.append(x)`, `a += [x]`, `a[i] = x`,
    /// `a = torch.cat((a, x))`.
    pub fn kept(&self) -> Vec<Kept<'a>> {
        let mut all = Vec::new();
        for call in &self.structure.calls {
            let Expr::Attribute(function) = &*call.node.func else {
                continue;
            };
            let value = match (function.attr.as_str(), &*call.node.arguments.args) {
                ("append" | "appendleft" | "extend", [value]) | ("insert", [_, value]) => value,
                _ => continue,
            };
            let held = self.value(&function.value).kind;
            if !matches!(held, Kind::Container | Kind::Unknown | Kind::Tensor) {
                continue;
            }
            if let Some(container) = self.container_path(&function.value) {
                each_part(value, &mut |value| {
                    all.push(Kept {
                        container,
                        value,
                        statement: call.statement,
                        place: call.place,
                    });
                });
            }
        }
        for assign in &self.structure.assigns {
            let added = match (assign.operator, assign.value, assign.target) {
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
                (None, value, Expr::Subscript(target))
                    if self.value(&target.value).kind == Kind::Container
                        && self.changes_with_the_round(&target.slice, assign.place.block) =>
                {
                    self.container_path(&target.value).map(|path| (path, value))
                }
                _ => None,
            };
            if let Some((container, value)) = added {
                each_part(value, &mut |value| {
                    all.push(Kept {
                        container,
                        value,
                        statement: assign.statement,
                        place: assign.place,
                    });
                });
            }
        }
        all
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

    /// The path of a container: of `history[key]` and `history.setdefault(key, [])` that of
    /// `history`.
    pub fn container_path(&self, expression: &'a Expr) -> Option<&'a str> {
        match expression {
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(function) if function.attr.as_str() == "setdefault" => {
                    self.container_path(&function.value)
                }
                _ => None,
            },
            Expr::Subscript(subscript) => self
                .path(expression)
                .or_else(|| self.container_path(&subscript.value)),
            _ => self.path(expression),
        }
    }

    /// Whether a key names what the loop around it counts or goes over.
    fn changes_with_the_round(&self, key: &Expr, block: BlockId) -> bool {
        self.structure
            .loop_around(block)
            .is_some_and(|id| match self.structure.blocks[id].kind {
                BlockKind::For(node) => {
                    let mut named = false;
                    each_expression(key, &mut |part| {
                        named |= self
                            .path(part)
                            .is_some_and(|path| self.targets(&node.target, path));
                    });
                    named
                }
                _ => false,
            })
    }

    /// Whether what a container holds stays over the rounds of a loop: it is not made anew in
    /// the loop, not emptied, and has no fixed length.
    pub fn outlives(&self, steps: BlockId, container: &str) -> bool {
        let unit = self.structure.unit_of(steps);
        let reset = prefixes(container).any(|path| {
            self.is_bound_inside(steps, path) && !self.is_only_begun_inside(steps, path)
        });
        let emptied = self.calls_inside(steps).any(|call| {
            matches!(self.method(call.node), Some((receiver, name))
                if matches!(name, "clear" | "pop" | "popleft" | "popitem" | "reset")
                    && self.path(receiver).is_some_and(|path| prefixes(container).any(|each| each == path)))
        }) || self.structure.statements.iter().any(|(statement, place)| {
            self.structure.is_inside(place.block, steps)
                && matches!(statement, Stmt::Delete(node) if node.targets.iter().any(|target| {
                    matches!(target, Expr::Subscript(part) if self.path(&part.value) == Some(container))
                }))
        });
        let bounded = self.assigns_in_unit(unit).any(|assign| {
            self.path(assign.target) == Some(container)
                && matches!(assign.value, Expr::Call(call) if call.arguments.find_keyword("maxlen").is_some())
        });
        !reset && !emptied && !bounded
    }

    /// Whether a loop binds a path anew only where it holds nothing yet: `if all is None: all = x`.
    fn is_only_begun_inside(&self, steps: BlockId, path: &str) -> bool {
        self.assigns_in_unit(self.structure.unit_of(steps))
            .filter(|assign| {
                self.structure.is_inside(assign.place.block, steps)
                    && self.targets(assign.target, path)
                    && !self.mentions(assign.value, path)
            })
            .all(|assign| {
                self.structure
                    .conditions(assign.place.block, steps)
                    .iter()
                    .any(|(test, _)| self.mentions(test, path))
            })
    }

    /// Calls `visit` for every path that a target binds.
    pub fn each_target(&self, target: &'a Expr, visit: &mut dyn FnMut(&'a str)) {
        match target {
            Expr::Tuple(tuple) => tuple
                .elts
                .iter()
                .for_each(|each| self.each_target(each, visit)),
            Expr::List(list) => list
                .elts
                .iter()
                .for_each(|each| self.each_target(each, visit)),
            Expr::Starred(starred) => self.each_target(&starred.value, visit),
            _ => {
                if let Some(path) = self.container_path(target) {
                    visit(path);
                }
            }
        }
    }
}

/// A path and the shorter ones it begins with: `self.log["loss"]`, `self.log`, `self`.
pub fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices(['.', '['])
        .map(|(end, _)| &path[..end])
        .chain(std::iter::once(path))
}

/// The values of a literal that is put into a container: those of `{"loss": loss, "step": i}`.
fn each_part<'a>(value: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    match value {
        Expr::Dict(dict) => dict
            .items
            .iter()
            .for_each(|item| each_part(&item.value, visit)),
        Expr::List(list) => list.elts.iter().for_each(|each| each_part(each, visit)),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|each| each_part(each, visit)),
        _ => visit(value),
    }
}
