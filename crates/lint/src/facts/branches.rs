//! Which places in a function can be reached together.

use super::Facts;
use super::conditions::leaves;
use super::structure::{BlockId, BlockKind, Place};
use crate::python::{Expr, Stmt};

impl<'a> Facts<'a> {
    /// Whether two blocks are in different branches of one `if`: what is in one never runs with
    /// what is in the other.
    pub fn are_exclusive(&self, one: BlockId, other: BlockId) -> bool {
        self.structure.enclosing(one).any(|(mine, kind)| {
            let BlockKind::If { node, .. } = kind else {
                return false;
            };
            self.structure.enclosing(other).any(|(theirs, kind)| {
                mine != theirs
                    && matches!(kind, BlockKind::If { node: same, .. } if std::ptr::eq(node, same))
            })
        })
    }

    /// Whether control can flow from one place to a later one: not into another branch, and not out of
    /// a branch that ends with `return` or `sys.exit()`.
    pub fn leads_to(&self, from: Place, to: Place) -> bool {
        from.order < to.order
            && !self.are_exclusive(from.block, to.block)
            && !self.structure.enclosing(from.block).any(|(block, kind)| {
                matches!(kind, BlockKind::If { .. })
                    && !self.structure.is_inside(to.block, block)
                    && self.ends_by_leaving(block)
            })
    }

    fn ends_by_leaving(&self, block: BlockId) -> bool {
        let last = (self.structure.statements.iter())
            .filter(|(_, place)| place.block == block)
            .max_by_key(|(_, place)| place.order);
        last.is_some_and(|(statement, _)| {
            leaves(statement)
                || matches!(statement, Stmt::Expr(node) if ends_the_process(&node.value))
        })
    }
}

/// `sys.exit()`, `exit()`.
pub fn ends_the_process(expression: &Expr) -> bool {
    matches!(expression, Expr::Call(call) if match &*call.func {
        Expr::Name(name) => matches!(name.id.as_str(), "exit" | "quit"),
        Expr::Attribute(attribute) => matches!(attribute.attr.as_str(), "exit" | "_exit"),
        _ => false,
    })
}
