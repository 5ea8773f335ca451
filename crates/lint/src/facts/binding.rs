//! Where names are bound, rebound and deleted.

use super::Facts;
use super::structure::{BlockId, BlockKind, Place, UnitId};
use crate::python::{Expr, Stmt};

impl<'a> Facts<'a> {
    /// Whether a target binds a path, by itself or as a part.
    pub fn targets(&self, target: &Expr, path: &str) -> bool {
        match target {
            Expr::Tuple(tuple) => tuple.elts.iter().any(|each| self.targets(each, path)),
            Expr::List(list) => list.elts.iter().any(|each| self.targets(each, path)),
            Expr::Starred(starred) => self.targets(&starred.value, path),
            _ => self.path(target) == Some(path),
        }
    }

    /// Whether a path is rebound inside a block: not by `+=`, not by `x = x + y`.
    pub fn is_bound_inside(&self, block: BlockId, path: &str) -> bool {
        let unit = self.structure.unit_of(block);
        self.assigns_in_unit(unit).any(|assign| {
            assign.operator.is_none()
                && self.structure.is_inside(assign.place.block, block)
                && self.targets(assign.target, path)
                && !self.mentions(assign.value, path)
        }) || self.structure.statements.iter().any(|(statement, place)| {
            self.structure.is_inside(place.block, block)
                && match statement {
                    Stmt::For(node) => self.targets(&node.target, path),
                    _ => self.deletes(statement, path),
                }
        })
    }

    /// Whether a path gets another value inside a block in any way, also by `+=`.
    pub fn is_changed_inside(&self, block: BlockId, path: &str) -> bool {
        let unit = self.structure.unit_of(block);
        self.assigns_in_unit(unit).any(|assign| {
            self.structure.is_inside(assign.place.block, block) && self.targets(assign.target, path)
        }) || self.structure.blocks.iter().enumerate().any(|(id, other)| {
            matches!(other.kind, BlockKind::For(node)
                if self.targets(&node.target, path) && self.structure.is_inside(id, block))
        })
    }

    /// The places where a unit deletes a path.
    pub fn deletions(&self, unit: UnitId, path: &str) -> impl Iterator<Item = Place> {
        self.structure
            .statements
            .iter()
            .filter(move |(statement, place)| {
                self.structure.unit_of(place.block) == unit && self.deletes(statement, path)
            })
            .map(|(_, place)| *place)
    }

    fn deletes(&self, statement: &Stmt, path: &str) -> bool {
        matches!(statement, Stmt::Delete(node)
            if node.targets.iter().any(|each| self.targets(each, path)))
    }

    /// Whether a unit deletes a path, or binds it to something else, after a place.
    pub fn is_let_go_after(&self, unit: UnitId, path: &str, order: usize) -> bool {
        self.assigns_in_unit(unit).any(|assign| {
            assign.place.order > order
                && self.targets(assign.target, path)
                && !self.mentions(assign.value, path)
        }) || self.deletions(unit, path).any(|place| place.order > order)
    }

    /// Whether the contents of a container are released anywhere in the file: it is emptied, or bound
    /// a second time, or in a loop.
    pub fn is_ever_emptied(&self, unit: UnitId, container: &str) -> bool {
        let mut made = 0;
        for each in self.units_that_see(unit, container) {
            for assign in self.assigns_in_unit(each) {
                if self.targets(assign.target, container) {
                    made += 1;
                    if self.structure.loop_around(assign.place.block).is_some() {
                        return true;
                    }
                }
            }
            let emptied = self.calls_in_unit(each).any(|call| {
                matches!(self.method(call.node), Some((receiver, "clear" | "pop" | "popleft" | "popitem"))
                    if self.path(receiver) == Some(container))
            });
            if emptied {
                return true;
            }
        }
        let deleted = self.structure.statements.iter().any(|(statement, _)| {
            matches!(statement, Stmt::Delete(node)
                if node.targets.iter().any(|target| self.mentions(target, container)))
        });
        deleted || made > 1
    }
}
