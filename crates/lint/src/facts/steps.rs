//! Which loops iterate over the steps of a training, and which over the parts of one step.

use super::Facts;
use super::frameworks::is_of_a_framework;
use super::roles::{sounds_like_environment, sounds_like_evaluation, sounds_like_loader};
use super::structure::{BlockId, BlockKind, Call, UnitId};
use super::value::Kind;
use crate::python::{Expr, ExprCall};
use crate::syntax::{calls, range_count};

/// A loop that counts no further repeats something a few times.
const FEW: i64 = 8;

/// `range(n)`, `reversed(range(n))`, `tqdm(range(n))`.
fn goes_over_range(mut iterated: &Expr) -> bool {
    while let Expr::Call(call) = iterated {
        if calls(iterated, "range") {
            return true;
        }
        match call.arguments.args.first() {
            Some(first) if !calls(iterated, "enumerate") => iterated = first,
            _ => return false,
        }
    }
    false
}

impl<'a> Facts<'a> {
    /// Whether a call is an optimizer's step: on a known optimizer (or a scaler that gets one), or on
    /// something that also has `zero_grad()` called.
    pub fn is_optimizer_step(&self, call: &Call<'a>) -> bool {
        let Some((receiver, "step")) = self.method(call.node) else {
            return false;
        };
        let is_zeroed = |optimizer: &Expr| {
            self.path(optimizer).is_some_and(|path| {
                self.usage(self.structure.unit_of(call.place.block), path)
                    .zero_grad
            })
        };
        match self.value(receiver).kind {
            Kind::Optimizer | Kind::Scaler => true,
            Kind::Unknown => {
                is_zeroed(receiver)
                    // A scaler from elsewhere: `scaler.step(optimizer)`.
                    || matches!(&*call.node.arguments.args, [optimizer]
                        if self.value(optimizer).kind == Kind::Optimizer || is_zeroed(optimizer))
            }
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
            .find(|id| self.is_repeated_for_steps(*id))
            .or_else(|| {
                let is_step = unit != 0
                    && (self.is_one_step(unit)
                        || self.is_batch_hook(unit)
                        || self.is_run_in_steps(unit));
                is_step.then_some(self.structure.units[unit].block)
            })
    }

    /// Whether a loop goes over the steps of a training or of an evaluation.
    pub(super) fn is_repeated_for_steps(&self, rounds: BlockId) -> bool {
        (self.is_step_loop(rounds) || self.calls_one_step(rounds)) && self.goes_over_steps(rounds)
            || self.evaluates_inputs(rounds)
            || self.goes_over_steps_of_a_generator(rounds)
            || self.acts_in_environment(rounds)
            || self.is_loop_of_an_evaluation(rounds)
    }

    /// Whether a loop runs a model on what it goes over, in a function that is named for evaluating and
    /// differentiates nothing: `for batch in data` of `def evaluate(model, data)`.
    fn is_loop_of_an_evaluation(&self, rounds: BlockId) -> bool {
        let unit = self.structure.unit_of(rounds);
        sounds_like_evaluation(self.structure.units[unit].name)
            && self.goes_over_inputs(rounds)
            && !self
                .calls_in_unit(unit)
                .any(|call| self.runs_differentiation(call.node))
    }

    /// Whether a loop is that of an agent: `env.step(action)` in each iteration.
    fn acts_in_environment(&self, rounds: BlockId) -> bool {
        self.calls_inside(rounds).any(|call| {
            matches!(self.method(call.node), Some((receiver, "step"))
                if !call.node.arguments.args.is_empty()
                    && self.path(receiver).is_some_and(sounds_like_environment))
                && self.structure.loop_around(call.place.block) == Some(rounds)
        })
    }

    /// Whether a loop runs a model in evaluation mode on what it goes over.
    fn evaluates_inputs(&self, rounds: BlockId) -> bool {
        self.goes_over_inputs(rounds)
            && (!self.differentiates_anywhere()
                || self
                    .calls_inside(rounds)
                    .any(|call| self.evaluation_at(call).is_some() || self.runs_evaluation(call)))
    }

    /// Whether a call runs a function of the file that runs a model in evaluation mode.
    fn runs_evaluation(&self, call: &Call<'a>) -> bool {
        self.callee_unit(call.node).is_some_and(|unit| {
            self.calls_in_unit(unit)
                .any(|inner| self.evaluation_at(inner).is_some())
        })
    }

    /// Whether the file trains or differentiates anything, itself or by a framework.
    fn differentiates_anywhere(&self) -> bool {
        self.structure
            .calls
            .iter()
            .any(|call| self.differentiates(call.node) || self.is_optimizer_step(call))
            || (1..self.structure.units.len()).any(|unit| self.returns_loss_to_a_framework(unit))
    }

    /// Whether a loop goes over what a generator of the file yields step by step.
    fn goes_over_steps_of_a_generator(&self, rounds: BlockId) -> bool {
        let BlockKind::For(node) = self.structure.blocks[rounds].kind else {
            return false;
        };
        let mut iterated = &*node.iter;
        while let (Expr::Call(call), Kind::Unknown | Kind::Tuple(_)) =
            (iterated, self.value(iterated).kind)
            && let Some(first) = call.arguments.args.first()
        {
            iterated = first;
        }
        let Kind::Generator(unit) = self.value(iterated).kind else {
            return false;
        };
        self.structure.statements.iter().any(|(statement, place)| {
            let mut yields = false;
            if self.structure.unit_of(place.block) == unit {
                self.each_expression_of_statement(statement, &mut |part| {
                    yields |= matches!(part, Expr::Yield(_));
                });
            }
            yields
                && (self.structure.enclosing(place.block)).any(|(id, kind)| {
                    kind.is_loop()
                        && (self.is_step_loop(id) || self.calls_one_step(id))
                        && self.goes_over_steps(id)
                })
        })
    }

    /// Whether a unit runs once per step: it is called in a loop over steps, or by something that is.
    pub fn is_run_in_steps(&self, unit: UnitId) -> bool {
        self.run_in_steps.get_or_init(|| self.units_run_in_steps())[unit]
    }

    fn units_run_in_steps(&self) -> Vec<bool> {
        let mut found = vec![false; self.structure.units.len()];
        let calls: Vec<(UnitId, BlockId, UnitId)> = self
            .structure
            .calls
            .iter()
            .flat_map(|call| {
                let block = call.place.block;
                let from = self.structure.unit_of(block);
                let only = self.callee_unit(call.node);
                let several = self.candidates(call.node).iter().copied();
                only.into_iter()
                    .chain(several)
                    .map(move |callee| (from, block, callee))
            })
            .filter(|(_, _, callee)| self.may_keep_over_steps(*callee))
            .collect();
        let mut open = Vec::new();
        for (from, block, callee) in &calls {
            let in_loop = || {
                self.structure
                    .enclosing(*block)
                    .any(|(id, kind)| kind.is_loop() && self.is_repeated_for_steps(id))
            };
            if !found[*callee]
                && (*from != 0 && (self.is_one_step(*from) || self.is_batch_hook(*from))
                    || in_loop())
            {
                found[*callee] = true;
                open.push(*callee);
            }
        }
        while let Some(unit) = open.pop() {
            for (from, _, callee) in &calls {
                if *from == unit && !found[*callee] {
                    found[*callee] = true;
                    open.push(*callee);
                }
            }
        }
        found
    }

    /// Whether what a unit keeps may be there in the next step: not what a new object keeps, nor a module,
    /// whose users may read and empty it.
    fn may_keep_over_steps(&self, unit: UnitId) -> bool {
        let Some(class) = self.structure.units[unit].class else {
            return true;
        };
        let is_module = self.structure.classes[class].method("forward").is_some()
            && !is_of_a_framework(&self.structure, &self.imports, class);
        let is_made_in_steps = || {
            self.structure.calls.iter().any(|call| {
                self.value(&call.node.func).kind == Kind::Class(class)
                    && self
                        .structure
                        .loop_around(call.place.block)
                        .is_some_and(|id| self.is_step_loop(id))
            })
        };
        self.structure.units[unit].name != "__init__" && !is_module && !is_made_in_steps()
    }

    /// Whether an optimizer gets a function to call: `optimizer.step(closure)`.
    fn is_closure_of_an_optimizer(&self, unit: UnitId) -> bool {
        let own = self.structure.units[unit].name;
        self.structure.calls.iter().any(|call| {
            matches!(self.method(call.node), Some((_, "step")))
                && matches!(&*call.node.arguments.args, [Expr::Name(name)] if name.id.as_str() == own)
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
                && self.is_closure_of_an_optimizer(unit)
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
        let node = match self.structure.blocks[rounds].kind {
            BlockKind::For(node) => node,
            BlockKind::While(_) => return self.makes_inputs(rounds),
            _ => return false,
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
            // A counter of `range` picks the inputs, one of `enumerate` does not.
            if goes_over_range(&node.iter) || !self.is_number(&node.target, path) {
                inputs.extend(self.flows(unit, path));
            }
        });
        let runs_model = |call: &ExprCall| self.called_module(call).is_some();
        self.makes_inputs(rounds)
            || self.calls_inside(rounds).any(|call| {
                inputs.iter().any(|path| self.gives(call.node, path))
                    && self.reaches(call.node, &runs_model)
            })
    }

    /// Whether a loop gets new inputs for a model in every iteration: `batch = jobs.get()`.
    fn makes_inputs(&self, rounds: BlockId) -> bool {
        let unit = self.structure.unit_of(rounds);
        let mut made: Vec<&'a str> = Vec::new();
        for assign in self.assigns_in_unit(unit) {
            if !matches!(assign.value, Expr::Call(_))
                || !self.structure.is_inside(assign.place.block, rounds)
            {
                continue;
            }
            // Not what is computed from an earlier iteration.
            let mut is_new = true;
            super::each_expression(assign.value, &mut |part| {
                is_new &= self
                    .path(part)
                    .is_none_or(|path| !self.is_changed_inside(rounds, path));
            });
            if is_new {
                self.each_target(assign.target, &mut |path| made.push(path));
            }
        }
        !made.is_empty()
            && self.calls_inside(rounds).any(|call| {
                self.called_module(call.node).is_some()
                    && made.iter().any(|path| self.gives(call.node, path))
            })
    }

    /// Whether a call creates PyTorch's `DataLoader`.
    pub fn makes_loader(&self, call: &ExprCall) -> bool {
        self.callee(call).is_some_and(|name| {
            (name.starts_with("torch.utils.data") || name.starts_with("torch_geometric."))
                && name.ends_with("DataLoader")
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
            // `loaders[phase]`
            Expr::Subscript(entry) => {
                value.kind == Kind::Unknown
                    && self.path(&entry.value).is_some_and(sounds_like_loader)
            }
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
            // `for phase in ["train", "val"]` goes over no batches.
            if let BlockKind::For(node) = self.structure.blocks[block].kind
                && range_count(&node.iter).is_none()
                && !matches!(&*node.iter, Expr::List(_) | Expr::Tuple(_))
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
