//! How long containers live: what creates, empties and bounds them.

use super::Facts;
use super::conditions::Condition;
use super::structure::{BlockId, Place, UnitId};
use super::usage::owner_of;
use super::value::Kind;
use crate::python::{CmpOp, Expr, ExprCall, Number, Stmt, UnaryOp};
use crate::syntax::plain_callee;

impl<'a> Facts<'a> {
    /// The path of a container: `history` for `history[key]` and `history.setdefault(key, [])`.
    pub fn container_path(&self, expression: &'a Expr) -> Option<&'a str> {
        match expression {
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(function) if function.attr.as_str() == "setdefault" => {
                    self.container_path(&function.value)
                }
                // `self.get(name)` that returns `self.all[name]`
                Expr::Attribute(function) if self.path(&function.value) == Some("self") => self
                    .callee_unit(call)
                    .and_then(|unit| self.returned(unit).find_map(|it| self.own_container(it))),
                _ => None,
            },
            Expr::Subscript(subscript) => self
                .path(expression)
                .or_else(|| self.container_path(&subscript.value)),
            _ => self.path(expression),
        }
    }

    /// The path of a container on `self`, or of an entry of one.
    fn own_container(&self, expression: &'a Expr) -> Option<&'a str> {
        let container = match expression {
            Expr::Subscript(entry) => &*entry.value,
            other => other,
        };
        self.path(container)
            .filter(|path| path.starts_with("self."))
    }

    /// Whether a container's contents survive the iterations of a loop: it is not recreated in the loop,
    /// not emptied, and has no fixed length.
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
        let bounded = self
            .makers(unit, container)
            .any(|made| matches!(made, Expr::Call(call) if is_bounded(call)));
        !reset && !emptied && !bounded
    }

    /// Whether what a path holds survives from one step to the next: of a loop, see [`Self::outlives`]; of
    /// a unit that is one step, it is not the unit's own, and nothing resets it but the end of an epoch.
    pub fn outlives_step(&self, steps: BlockId, path: &'a str) -> bool {
        if self.structure.blocks[steps].kind.is_loop() {
            return self.outlives(steps, path);
        }
        let unit = self.structure.unit_of(steps);
        let root = path.split(['.', '[']).next().unwrap_or(path);
        // `engine.state.losses` of a function's `engine` is there in the next step too.
        let is_given =
            root.len() < path.len() && self.is_parameter_of(unit, root) && !sounds_like_batch(root);
        let is_own =
            root != "self" && owner_of(&self.structure, unit, root) == Some(unit) && !is_given;
        !is_own
            && self.outlives(steps, path)
            && self.units_that_see(unit, path).into_iter().all(|each| {
                let name = self.structure.units[each].name;
                each == unit
                    || name == "__init__"
                    || name.contains("epoch")
                    || !self.resets(each, path)
                    || self.is_called_but_not_in_steps(each)
                    || self.is_hook_around_steps(each)
                    || self.resets_around_steps(each, path, unit)
            })
    }

    /// Whether a unit that runs another one in a loop over steps resets a path only outside of such loops.
    fn resets_around_steps(&self, unit: UnitId, path: &str, step: UnitId) -> bool {
        let steps_around = |place: Place| {
            (self.structure.enclosing(place.block))
                .any(|(id, kind)| kind.is_loop() && self.is_repeated_for_steps(id))
        };
        let runs_step = |call: &ExprCall| {
            self.callee_unit(call) == Some(step) || self.candidates(call).contains(&step)
        };
        self.calls_in_unit(unit)
            .any(|call| steps_around(call.place) && self.reaches(call.node, &runs_step))
            && !(self.resetting(unit, path).into_iter()).any(steps_around)
    }

    /// Whether the file calls a unit, but never in a step: before training, between epochs.
    fn is_called_but_not_in_steps(&self, unit: UnitId) -> bool {
        let is_called = self.structure.calls.iter().any(|call| {
            self.callee_unit(call.node) == Some(unit) || self.candidates(call.node).contains(&unit)
        });
        unit != 0 && is_called && !self.is_run_in_steps(unit)
    }

    /// Whether a unit that runs in every step empties a container or binds it anew.
    pub fn is_reset_in_steps(&self, unit: UnitId, path: &str) -> bool {
        self.units_that_see(unit, path)
            .into_iter()
            .any(|each| self.is_run_in_steps(each) && self.resets(each, path))
    }

    /// Whether a unit empties a container or binds it anew; the file itself only in a loop.
    fn resets(&self, unit: UnitId, path: &str) -> bool {
        !self.resetting(unit, path).is_empty()
    }

    /// Where a unit empties a container or binds it anew; the file itself only in a loop.
    fn resetting(&self, unit: UnitId, path: &str) -> Vec<Place> {
        let own = self.structure.units[unit].block;
        // The unit that a name belongs to makes it once, unless in a loop.
        let root = path.split(['.', '[']).next().unwrap_or(path);
        let is_owner = root != "self" && owner_of(&self.structure, unit, root).unwrap_or(0) == unit;
        let is_repeated =
            |place: Place| !is_owner || self.structure.loop_around(place.block).is_some();
        let bound = self.assigns_in_unit(unit).filter(|assign| {
            is_repeated(assign.place)
                && assign.operator.is_none()
                && prefixes(path).any(|each| {
                    self.targets(assign.target, each) && !self.mentions(assign.value, each)
                })
        });
        let emptied = self.calls_in_unit(unit).filter(|call| {
            matches!(self.method(call.node), Some((receiver, name))
                if matches!(name, "clear" | "pop" | "popleft" | "popitem" | "reset" | "zero_")
                    && self.path(receiver).is_some_and(|each| prefixes(path).any(|it| it == each)))
        });
        let deleted = self
            .structure
            .statements
            .iter()
            .filter(|(statement, place)| {
                self.structure.is_inside(place.block, own)
                    && matches!(statement, Stmt::Delete(node)
                    if node.targets.iter().any(|target| self.mentions(target, path)))
            });
        bound
            .map(|assign| assign.place)
            .chain(emptied.map(|call| call.place))
            .chain(deleted.map(|(_, place)| *place))
            .collect()
    }

    /// Everything that a path is bound to in the file.
    fn makers(&self, unit: UnitId, path: &str) -> impl Iterator<Item = &'a Expr> {
        self.units_that_see(unit, path)
            .into_iter()
            .flat_map(move |each| self.assigns_in_unit(each))
            .filter(move |assign| self.path(assign.target) == Some(path))
            .map(|assign| assign.value)
    }

    /// Whether a path is bound to an object of a class from another file, which may do anything with its
    /// arguments: `losses = Meter()`.
    pub(super) fn is_of_another_make(&self, unit: UnitId, path: &str) -> bool {
        self.makers(unit, path).any(|made| match made {
            Expr::Call(call) => {
                let name = self.callee(call);
                let is_collection = name
                    .as_deref()
                    .is_some_and(|name| name.starts_with("collections."));
                name.is_some() && !is_collection && self.result(call).kind == Kind::Unknown
            }
            _ => false,
        })
    }

    /// Whether a loop rebinds a path only while it is empty: `if all is None: all = x`.
    pub fn is_only_begun_inside(&self, steps: BlockId, path: &str) -> bool {
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
                    .any(|(test, holds)| self.asks_whether_empty(test, *holds, path))
            })
    }

    /// Whether a test is true while a path is empty: `all is None`, `not all`, `len(all) == 0`.
    fn asks_whether_empty(&self, test: &Expr, holds: bool, path: &str) -> bool {
        let is_it = |expression: &Expr| {
            self.path(expression) == Some(path)
                || matches!(expression, Expr::Call(call)
                    if plain_callee(call) == Some("len") && self.gives(call, path))
        };
        match test {
            Expr::UnaryOp(not) if not.op == UnaryOp::Not => {
                holds && is_it(&not.operand) || self.asks_whether_empty(&not.operand, !holds, path)
            }
            Expr::Compare(comparison) => {
                let (is, is_not) = match *comparison.ops {
                    [CmpOp::Is | CmpOp::Eq] => (true, false),
                    [CmpOp::IsNot | CmpOp::NotEq | CmpOp::Gt] => (false, true),
                    _ => (false, false),
                };
                let with_nothing = comparison.comparators.first().is_some_and(is_nothing);
                with_nothing && is_it(&comparison.left) && (holds && is || !holds && is_not)
            }
            _ => !holds && is_it(test),
        }
    }

    /// Whether a condition only distinguishes the iteration that creates a container from later ones.
    pub fn asks_whether_begun(&self, condition: &Condition<'a>, path: &str) -> bool {
        self.asks_whether_empty(condition.test, !condition.holds, path)
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

/// What a function is given anew for every step.
fn sounds_like_batch(name: &str) -> bool {
    [
        "batch", "data", "input", "output", "sample", "result", "state",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// A path and its prefixes: `self.log["loss"]`, `self.log`, `self`.
pub fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices(['.', '['])
        .map(|(end, _)| &path[..end])
        .chain(std::iter::once(path))
}

/// `None`, `[]`, `0`.
fn is_nothing(expression: &Expr) -> bool {
    match expression {
        Expr::NoneLiteral(_) => true,
        Expr::List(list) => list.elts.is_empty(),
        Expr::NumberLiteral(number) => {
            matches!(&number.value, Number::Int(number) if number.as_u64() == Some(0))
        }
        _ => false,
    }
}

/// `deque(maxlen=8)`, `deque([], 8)`: not what may hold thousands, such as the memory of an agent.
fn is_bounded(call: &ExprCall) -> bool {
    const FEW: u64 = 1000;
    let is_deque = matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "deque")
        || matches!(&*call.func, Expr::Attribute(function) if function.attr.as_str() == "deque");
    let named = call
        .arguments
        .find_keyword("maxlen")
        .map(|each| &each.value);
    let bound = named.or(call.arguments.args.get(1).filter(|_| is_deque));
    bound.is_some_and(|bound| {
        let many = matches!(bound, Expr::NumberLiteral(number)
            if matches!(&number.value, Number::Int(number) if number.as_u64() > Some(FEW)));
        !many
    })
}
