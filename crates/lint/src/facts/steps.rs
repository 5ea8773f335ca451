//! Which loops iterate over the steps of a training, and which over the parts of one step.

use super::Facts;
use super::roles::sounds_like_loader;
use super::structure::{BlockId, BlockKind, Call, UnitId};
use super::value::Kind;
use crate::python::{Expr, ExprCall};
use crate::syntax::range_count;

/// A loop that counts no further repeats something a few times.
const FEW: i64 = 8;

impl<'a> Facts<'a> {
    /// Whether a call is an optimizer's step: on a known optimizer (or a scaler that gets one), or on
    /// something that also has `zero_grad()` called.
    pub fn is_optimizer_step(&self, call: &Call<'a>) -> bool {
        let Some((receiver, "step")) = self.method(call.node) else {
            return false;
        };
        match self.value(receiver).kind {
            Kind::Optimizer | Kind::Scaler => true,
            Kind::Unknown => self.path(receiver).is_some_and(|path| {
                self.usage(self.structure.unit_of(call.place.block), path)
                    .zero_grad
            }),
            _ => false,
        }
    }

    /// Whether a loop runs once per batch: it backpropagates or steps an optimizer directly in
    /// it (not only in a loop further inside), or iterates over a `DataLoader`.
    pub fn is_step_loop(&self, block: BlockId) -> bool {
        if let BlockKind::For(node) = self.structure.blocks[block].kind
            && self.iterates_loader(&node.iter)
        {
            return true;
        }
        self.calls_inside(block).any(|call| {
            (self.is_backward(call.node) || self.is_optimizer_step(call))
                && self.structure.loop_around(call.place.block) == Some(block)
        })
    }

    /// What is repeated for every batch around a block: the innermost loop over the steps of a training
    /// or an evaluation, or the whole unit if that is one step.
    pub fn steps_around(&self, block: BlockId) -> Option<BlockId> {
        let unit = self.structure.unit_of(block);
        self.structure
            .enclosing(block)
            .filter(|(_, kind)| kind.is_loop())
            .map(|(id, _)| id)
            .find(|id| {
                (self.is_step_loop(*id) || self.calls_one_step(*id)) && self.goes_over_steps(*id)
            })
            .or_else(|| {
                let is_step = unit != 0
                    && self.structure.loop_around(block).is_none()
                    && self.is_one_step(unit);
                is_step.then_some(self.structure.units[unit].block)
            })
    }

    /// Whether a loop calls, directly, a function of the file that does one step.
    fn calls_one_step(&self, rounds: BlockId) -> bool {
        self.calls_inside(rounds).any(|call| {
            self.structure.loop_around(call.place.block) == Some(rounds)
                && self
                    .callee_unit(call.node)
                    .is_some_and(|unit| self.is_one_step(unit))
        })
    }

    /// Whether a unit does one step of a training: it backpropagates and steps an optimizer, neither in
    /// a loop, or a framework calls it for every batch and backpropagates what it returns.
    pub fn is_one_step(&self, unit: UnitId) -> bool {
        let outside_loops = |wanted: &dyn Fn(&Call<'a>) -> bool| {
            self.calls_in_unit(unit)
                .any(|call| self.structure.loop_around(call.place.block).is_none() && wanted(call))
        };
        self.returns_loss_to_a_framework(unit)
            || unit != 0
                && outside_loops(&|call| self.is_backward(call.node))
                && outside_loops(&|call| {
                    matches!(self.method(call.node), Some((receiver, "step"))
                        if self.value(receiver).kind != Kind::Scheduler)
                })
    }

    /// Whether a `for` gives what it goes over to a model, one by one: batches or samples, not the few
    /// entries of a literal.
    pub fn goes_over_inputs(&self, rounds: BlockId) -> bool {
        let BlockKind::For(node) = self.structure.blocks[rounds].kind else {
            return false;
        };
        let is_short = matches!(&*node.iter, Expr::Tuple(_) | Expr::List(_))
            || range_count(&node.iter)
                .and_then(|count| self.constant(count))
                .is_some_and(|count| count <= FEW);
        if is_short {
            return false;
        }
        let unit = self.structure.unit_of(rounds);
        let mut inputs = Vec::new();
        self.each_target(&node.target, &mut |path| {
            if !self.is_number(&node.target, path) {
                inputs.extend(self.flows(unit, path));
            }
        });
        self.calls_inside(rounds).any(|call| {
            self.called_module(call.node).is_some()
                && inputs.iter().any(|path| self.gives(call.node, path))
        })
    }

    /// Whether a call creates PyTorch's `DataLoader`.
    pub fn makes_loader(&self, call: &ExprCall) -> bool {
        self.callee(call).is_some_and(|name| {
            name.starts_with("torch.utils.data") && name.ends_with("DataLoader")
        })
    }

    /// Whether an expression iterates over a loader, also through `enumerate`, `tqdm`, `zip`.
    pub fn iterates_loader(&self, iterated: &Expr) -> bool {
        let value = self.value(iterated);
        if value.kind == Kind::Loader
            || value.kind == Kind::Unknown && self.path(iterated).is_some_and(sounds_like_loader)
        {
            return true;
        }
        match iterated {
            Expr::Call(call) => call
                .arguments
                .args
                .iter()
                .any(|argument| self.iterates_loader(argument)),
            _ => false,
        }
    }

    /// Whether a loop iterates over steps: over a loader, or with an optimizer's step in each iteration. One
    /// that only backpropagates iterates over the parts of one step.
    pub fn goes_over_steps(&self, rounds: BlockId) -> bool {
        if let BlockKind::For(node) = self.structure.blocks[rounds].kind
            && self.iterates_loader(&node.iter)
        {
            return true;
        }
        let is_step = |call: &ExprCall| {
            matches!(self.method(call), Some((receiver, "step" | "train_batch"))
                if self.value(receiver).kind != Kind::Scheduler)
        };
        self.calls_inside(rounds)
            .any(|call| self.reaches(call.node, &is_step))
    }

    /// Whether a path is reset in a loop further out whose batches are used in this one: then this
    /// loop iterates over the parts of one batch (its views, the students that learn from it).
    pub fn is_about_one_batch(&self, rounds: BlockId, path: &str) -> bool {
        if let BlockKind::For(node) = self.structure.blocks[rounds].kind
            && self.iterates_loader(&node.iter)
        {
            return false;
        }
        let mut outer = self.structure.blocks[rounds].parent;
        while let Some(block) = outer.and_then(|block| self.structure.loop_around(block)) {
            if let BlockKind::For(node) = self.structure.blocks[block].kind
                && range_count(&node.iter).is_none()
                && self.is_bound_inside(block, path)
            {
                let mut is_used = false;
                self.each_target(&node.target, &mut |batch| {
                    is_used |= !self.is_number(&node.target, batch)
                        && (self.calls_inside(rounds)).any(|call| self.gives(call.node, batch));
                });
                if is_used {
                    return true;
                }
            }
            outer = self.structure.blocks[block].parent;
        }
        false
    }

    /// Whether the part of a target that binds a path is the counter of `enumerate`.
    fn is_number(&self, target: &'a Expr, path: &str) -> bool {
        let mut found = false;
        super::each_expression(target, &mut |part| {
            found |= self.path(part) == Some(path) && self.value(part).kind == Kind::Number;
        });
        found
    }

    /// Whether an argument of a call mentions a path.
    pub fn gives(&self, call: &'a ExprCall, path: &str) -> bool {
        crate::syntax::given(call).any(|each| self.mentions(each, path))
    }
}
