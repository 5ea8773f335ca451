//! How large the batches of a loop are, where the file says so.

use super::Facts;
use super::structure::{BlockId, BlockKind, UnitId};
use crate::python::{Expr, ExprCall, span};

/// How many functions a loader is followed through.
const CALLERS: usize = 3;

impl<'a> Facts<'a> {
    /// The batch size of the loader that a loop iterates over: a literal, the only value of a variable,
    /// or the default of a command-line option.
    pub fn batch_size(&self, rounds: BlockId) -> Option<i64> {
        let BlockKind::For(node) = self.structure.blocks[rounds].kind else {
            return None;
        };
        let unit = self.structure.unit_of(rounds);
        let loader = self.loader_of(unit, &node.iter, CALLERS)?;
        let size = loader.arguments.find_argument_value("batch_size", 1)?;
        self.constant(size).or_else(|| self.default_of(size))
    }

    /// The call that creates the loader an expression iterates over, also through `enumerate`.
    fn loader_of(&self, unit: UnitId, iterated: &'a Expr, callers: usize) -> Option<&'a ExprCall> {
        if let Expr::Call(call) = iterated {
            if self.makes_loader(call) {
                return Some(call);
            }
            let mut given = call.arguments.args.iter();
            return given.find_map(|each| self.loader_of(unit, each, callers));
        }
        let path = self.path(iterated)?;
        let at = span(iterated).start;
        let made = self
            .units_that_see(unit, path)
            .into_iter()
            .flat_map(|each| self.assigns_in_unit(each))
            .filter_map(|assign| match assign.value {
                Expr::Call(call)
                    if self.path(assign.target) == Some(path) && self.makes_loader(call) =>
                {
                    Some(call)
                }
                _ => None,
            });
        // The last one before the loop, else (in another function) the last one.
        let bound = made.max_by_key(|call| (span(*call).start < at, span(*call).start));
        bound.or_else(|| {
            let callers = callers.checked_sub(1)?;
            self.callers(unit).find_map(|caller| {
                let given = self.argument_for(caller.node, unit, path)?;
                let around = self.structure.unit_of(caller.place.block);
                self.loader_of(around, given, callers)
            })
        })
    }

    /// The default integer of a command-line option:
    /// `add_argument("--batch-size", default=4)` of `args.batch_size`.
    fn default_of(&self, setting: &Expr) -> Option<i64> {
        let Expr::Attribute(attribute) = setting else {
            return None;
        };
        self.structure.calls.iter().find_map(|call| {
            let is_it = call.node.arguments.args.iter().any(|each| {
                matches!(each, Expr::StringLiteral(name)
                    if option_name(name.value.to_str()) == attribute.attr.as_str())
            });
            let default = call.node.arguments.find_keyword("default")?;
            is_it.then(|| self.constant(&default.value)).flatten()
        })
    }
}

/// `batch_size` of `--batch-size`.
pub fn option_name(option: &str) -> String {
    option.trim_start_matches('-').replace('-', "_")
}
