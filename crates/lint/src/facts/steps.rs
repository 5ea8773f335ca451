//! Which loops iterate over the steps of a training, and which over the parts of one step.

use super::Facts;
use super::structure::{BlockId, BlockKind, Call};
use super::value::Kind;
use crate::python::{Expr, ExprCall};
use crate::syntax::range_count;

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

    /// Whether a call creates PyTorch's `DataLoader`.
    pub fn makes_loader(&self, call: &ExprCall) -> bool {
        self.callee(call).is_some_and(|name| {
            name.starts_with("torch.utils.data") && name.ends_with("DataLoader")
        })
    }

    /// Whether an expression iterates over a loader, also through `enumerate`, `tqdm`, `zip`.
    pub fn iterates_loader(&self, iterated: &Expr) -> bool {
        if self.value(iterated).kind == Kind::Loader {
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
