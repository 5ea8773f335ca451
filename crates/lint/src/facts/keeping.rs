//! What is put into lists and dicts, how long those live, and where their contents go.

use super::structure::{BlockId, BlockKind, Place, UnitId};
use super::usage::{bound_names, class_of};
use super::value::Kind;
use super::{Facts, each_expression};
use crate::python::{Expr, Operator, Stmt};

/// A value that a container keeps from now on.
pub struct Kept<'a> {
    /// The path of the container.
    pub container: &'a str,
    pub value: &'a Expr,
    pub statement: &'a Stmt,
    pub place: Place,
}

impl<'a> Facts<'a> {
    /// Everything that is added to a container: `a.append(x)`, `a += [x]`, `a[i] = x`.
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
        let reset = prefixes(container).any(|path| self.is_bound_inside(steps, path));
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

    /// The paths of a unit that what a path holds flows into, the path itself first.
    pub fn flows(&self, unit: UnitId, path: &'a str) -> Vec<&'a str> {
        let mut reached = vec![path];
        let mut next = 0;
        while next < reached.len() {
            let current = reached[next];
            next += 1;
            let mut add = |target: &'a Expr| {
                self.each_target(target, &mut |target| {
                    if !reached.contains(&target) {
                        reached.push(target);
                    }
                });
            };
            for assign in self.assigns_in_unit(unit) {
                if self.mentions(assign.value, current) {
                    add(assign.target);
                }
            }
            for (statement, place) in &self.structure.statements {
                if let Stmt::For(node) = statement
                    && self.structure.unit_of(place.block) == unit
                    && self.mentions(&node.iter, current)
                {
                    add(&node.target);
                }
            }
            for call in self.calls_in_unit(unit) {
                if let Some((receiver, "append" | "extend" | "insert" | "update")) =
                    self.method(call.node)
                    && call
                        .node
                        .arguments
                        .args
                        .iter()
                        .any(|each| self.mentions(each, current))
                    && let Some(receiver) = self.path(receiver)
                    && !reached.contains(&receiver)
                {
                    reached.push(receiver);
                }
            }
        }
        reached
    }

    /// Whether what a path holds is backpropagated somewhere it can be seen: in its unit, in the
    /// other methods of its class if it is an attribute of `self`, in the whole file if it is a
    /// name of the file, in functions of the file it is given to.
    pub fn ends_in_backward(&self, unit: UnitId, path: &'a str) -> bool {
        self.units_that_see(unit, path).into_iter().any(|unit| {
            let reached = self.flows(unit, path);
            let names =
                |expression: &Expr| reached.iter().any(|path| self.mentions(expression, path));
            self.calls_in_unit(unit).any(|call| {
                let given = call
                    .node
                    .arguments
                    .args
                    .iter()
                    .chain(call.node.arguments.keywords.iter().map(|each| &each.value));
                if self.differentiates(call.node) {
                    names(&call.node.func) || given.into_iter().any(names)
                } else {
                    given.into_iter().any(names)
                        && self.callee_unit(call.node).is_some_and(|callee| {
                            self.runs(callee, &|call| self.differentiates(call.node))
                        })
                }
            })
        })
    }

    /// Whether what a path holds leaves the code that can be seen: it is returned, yielded, put
    /// into an object, or given to a function that is not known to only read it.
    pub fn escapes(&self, unit: UnitId, path: &'a str) -> bool {
        self.units_that_see(unit, path).into_iter().any(|unit| {
            let reached = self.flows(unit, path);
            let names =
                |expression: &Expr| reached.iter().any(|path| self.mentions(expression, path));
            reached
                .iter()
                .any(|each| *each != path && each.contains('.'))
                || reached.iter().any(|each| self.is_returned(unit, each))
                || self.calls_in_unit(unit).any(|call| {
                    !self.only_reads(call.node)
                        && call
                            .node
                            .arguments
                            .args
                            .iter()
                            .chain(call.node.arguments.keywords.iter().map(|each| &each.value))
                            .any(names)
                })
        })
    }

    /// Whether a call surely keeps nothing of its arguments: what it gives is followed.
    fn only_reads(&self, call: &crate::python::ExprCall) -> bool {
        if let Some(name) = self.callee(call) {
            let root = name.split('.').next().unwrap_or(&name);
            return matches!(
                root,
                "numpy"
                    | "torch"
                    | "math"
                    | "matplotlib"
                    | "sklearn"
                    | "statistics"
                    | "pandas"
                    | "scipy"
                    | "json"
                    | "pickle"
                    | "seaborn"
                    | "wandb"
                    | "logging"
            );
        }
        match &*call.func {
            Expr::Name(name) => matches!(
                name.id.as_str(),
                "len"
                    | "sum"
                    | "print"
                    | "min"
                    | "max"
                    | "zip"
                    | "enumerate"
                    | "sorted"
                    | "list"
                    | "range"
                    | "float"
                    | "int"
                    | "str"
                    | "tuple"
                    | "set"
                    | "dict"
                    | "abs"
                    | "round"
                    | "reversed"
                    | "format"
                    | "map"
                    | "isinstance"
                    | "type"
            ),
            Expr::Attribute(function) => matches!(
                function.attr.as_str(),
                "append"
                    | "extend"
                    | "insert"
                    | "update"
                    | "format"
                    | "write"
                    | "add_scalar"
                    | "info"
                    | "debug"
                    | "plot"
                    | "mean"
                    | "sum"
                    | "join"
                    | "register_forward_hook"
                    | "register_forward_pre_hook"
            ),
            _ => false,
        }
    }

    /// The units in which a path of a unit means the same thing.
    pub fn units_that_see(&self, unit: UnitId, path: &str) -> Vec<UnitId> {
        let root = path.split(['.', '[']).next().unwrap_or(path);
        let all = 0..self.structure.units.len();
        if root == "self" {
            let class = class_of(&self.structure, unit);
            return all
                .filter(|each| {
                    *each == unit || class.is_some() && class_of(&self.structure, *each) == class
                })
                .collect();
        }
        let is_local = unit != 0 && bound_names(&self.structure, unit).contains(&root);
        if is_local {
            // Functions written inside see it, too.
            return all
                .filter(|each| *each == unit || self.is_written_in(*each, unit))
                .collect();
        }
        all.filter(|each| {
            *each == unit || *each == 0 || !bound_names(&self.structure, *each).contains(&root)
        })
        .collect()
    }

    fn is_written_in(&self, inner: UnitId, outer: UnitId) -> bool {
        let mut next = self.structure.units[inner].parent;
        while let Some(unit) = next {
            if unit == outer {
                return true;
            }
            next = self.structure.units[unit].parent;
        }
        false
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
