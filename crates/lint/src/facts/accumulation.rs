//! Gradient accumulation: loops that backpropagate every micro-batch and step every so many.

use super::conditions::{Condition, Every};
use super::roles::sounds_like_model_optimizer;
use super::structure::{BlockId, BlockKind, Call};
use super::value::Kind;
use super::{Facts, each_expression};
use crate::python::{Expr, Operator, span};

/// A loop that accumulates gradients: every iteration backpropagates, and one in n steps.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a, 'f> {
    /// The loop that takes one micro-batch per iteration; for a function that handles one
    /// micro-batch per call, its body.
    pub rounds: BlockId,
    pub every: Every<'a>,
    /// The step also happens for another reason (`or i + 1 == len(loader)`).
    pub has_alternative: bool,
    pub step: &'f Call<'a>,
    /// The first `backward()` of an iteration.
    pub backward: &'f Call<'a>,
}

/// The body of `with accelerator.accumulate(model):` with more than one micro-batch per step.
#[derive(Debug, Clone, Copy)]
pub struct Accelerated {
    pub block: BlockId,
}

impl<'a> Facts<'a> {
    /// The loops in the file that accumulate gradients by a condition on a counter.
    pub fn windows(&self) -> Vec<Window<'a, '_>> {
        let mut windows: Vec<Window<'a, '_>> = Vec::new();
        for step in &self.structure.calls {
            let Some(rounds) = self.rounds_of(step) else {
                continue;
            };
            if windows.iter().any(|window| window.rounds == rounds) || !self.is_some_step(step) {
                continue;
            }
            if let Some(window) = self.window(step, rounds) {
                windows.push(window);
            }
        }
        windows
    }

    fn window<'f>(&'f self, step: &'f Call<'a>, rounds: BlockId) -> Option<Window<'a, 'f>> {
        let (condition, every) = self.periodic(step, rounds)?;
        if !self.counts_rounds(rounds, every.counter) {
            return None;
        }
        let mut backward = None;
        for call in self.calls_inside(rounds) {
            // The branch without accumulation.
            if self.are_exclusive(call.place.block, step.place.block) {
                continue;
            }
            let is_guarded = || self.periodic(call, rounds).is_some();
            if self.is_backward(call.node) {
                // One optimizer of several that is trained more rarely: no accumulation. (But the other
                // iterations may backpropagate in a branch of their own, without talking to other cards.)
                if is_guarded() && !self.has_counterpart(call, rounds) {
                    return None;
                }
                if self.rounds_of(call) == Some(rounds) && backward.is_none() {
                    backward = Some(call);
                }
            } else if self.is_optimizer_step(call) && !is_guarded() {
                return None;
            }
        }
        Some(Window {
            rounds,
            every,
            has_alternative: self.has_other_way(&condition, rounds),
            step,
            backward: backward?,
        })
    }

    /// Whether the iterations that skip a `backward()` run another one, in the `else`.
    fn has_counterpart(&self, call: &Call<'a>, rounds: BlockId) -> bool {
        self.calls_inside(rounds).any(|other| {
            self.is_backward(other.node)
                && self.are_exclusive(other.place.block, call.place.block)
                && self.same_text(&other.node.func, &call.node.func)
        })
    }

    /// Whether a condition is one of several alternatives, and another of them can become true from
    /// one iteration to the next: `every or last`, but not `every or not accumulating`.
    fn has_other_way(&self, condition: &Condition<'a>, rounds: BlockId) -> bool {
        condition.ways.is_some_and(|operation| {
            let others = operation.values.iter().filter(|way| {
                let mut is_it = std::ptr::eq(*way, condition.test);
                each_expression(way, &mut |part| is_it |= std::ptr::eq(part, condition.test));
                !is_it
            });
            let varying = others.filter(|way| self.varies_in(rounds, way)).count();
            // The condition may have a name, and is then outside the operation.
            let is_inside = span(operation).contains(&span(condition.test).start);
            varying > usize::from(!is_inside)
        })
    }

    /// The loop whose iterations a call runs in; in a function without one, the function itself.
    pub fn rounds_of(&self, call: &Call<'a>) -> Option<BlockId> {
        let unit = self.structure.unit_of(call.place.block);
        self.structure
            .loop_around(call.place.block)
            .or_else(|| (unit != 0).then_some(self.structure.units[unit].block))
    }

    /// The condition that lets a call happen once every n iterations.
    pub fn periodic(&self, call: &Call<'a>, rounds: BlockId) -> Option<(Condition<'a>, Every<'a>)> {
        self.conditions_of(call, rounds)
            .into_iter()
            .find_map(|condition| Some((condition, self.every(&condition)?)))
    }

    /// Whether a call happens in every iteration: no condition around it changes between iterations,
    /// and none depends on the window's length.
    pub fn is_every_round(&self, call: &Call<'a>, window: &Window<'a, '_>) -> bool {
        let count = self.path(window.every.count);
        // A condition that the step shares (`if n > 1:` around all of it) distinguishes no iterations.
        let of_step = self.conditions_of(window.step, window.rounds);
        let shared = |condition: &Condition<'a>| {
            self.every(condition).is_none()
                && of_step.iter().any(|other| {
                    std::ptr::eq(other.test, condition.test) && other.holds == condition.holds
                })
        };
        self.structure.loop_around(call.place.block)
            == self.structure.loop_around(window.step.place.block)
            && !self.are_exclusive(call.place.block, window.step.place.block)
            && !self
                .structure
                .enclosing(call.place.block)
                .take_while(|(block, _)| *block != window.rounds)
                .any(|(_, kind)| {
                    matches!(
                        kind,
                        BlockKind::Handler(_) | BlockKind::Lambda(_) | BlockKind::Comprehension(_)
                    )
                })
            && self
                .conditions_of(call, window.rounds)
                .iter()
                .all(|condition| {
                    shared(condition)
                        || !self.varies_in(window.rounds, condition.test)
                            && !count.is_some_and(|count| self.mentions(condition.test, count))
                })
    }

    /// Whether an expression counts the iterations of a loop: the loop binds or changes it; in a
    /// function, anything but a number may.
    fn counts_rounds(&self, rounds: BlockId, counter: &Expr) -> bool {
        match self.structure.blocks[rounds].kind {
            BlockKind::For(_) | BlockKind::While(_) => self.varies_in(rounds, counter),
            _ => !matches!(counter, Expr::NumberLiteral(_)),
        }
    }

    /// An optimizer's step; the call alone may identify the optimizer.
    fn is_some_step(&self, call: &Call<'a>) -> bool {
        if self.is_optimizer_step(call) {
            return true;
        }
        let Some((receiver, "step")) = self.method(call.node) else {
            return false;
        };
        let is_named = || self.path(receiver).is_some_and(sounds_like_model_optimizer);
        self.value(receiver).kind == Kind::Unknown
            && call.node.arguments.is_empty()
            && (is_named()
                || self.structure.calls.iter().any(|other| {
                    other.place.block == call.place.block
                        && matches!(self.method(other.node), Some((_, "zero_grad")))
                }))
    }

    /// The bodies of `with accelerator.accumulate(...)` where more than one micro-batch makes a
    /// step.
    pub fn accelerated(&self) -> Vec<Accelerated> {
        if !self.accelerator_accumulates() {
            return Vec::new();
        }
        self.structure
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(block, found)| {
                let BlockKind::With(node) = found.kind else {
                    return None;
                };
                node.items
                    .iter()
                    .any(|item| {
                        matches!(&item.context_expr, Expr::Call(call)
                            if matches!(self.method(call), Some((receiver, "accumulate"))
                                if self.value(receiver).kind == Kind::Accelerator))
                    })
                    .then_some(Accelerated { block })
            })
            .collect()
    }

    /// Whether an `Accelerator` in the file accumulates more than one micro-batch.
    fn accelerator_accumulates(&self) -> bool {
        let given = self.structure.calls.iter().any(|call| {
            self.callee(call.node)
                .is_some_and(|name| name == "accelerate.Accelerator")
                && call.node.arguments.keywords.iter().any(|keyword| {
                    keyword.arg.as_ref().is_some_and(|name| {
                        matches!(
                            name.as_str(),
                            "gradient_accumulation_steps" | "gradient_accumulation_plugin"
                        )
                    }) && self.constant(&keyword.value) != Some(1)
                })
        });
        given
            || self.structure.assigns.iter().any(|assign| {
                matches!(assign.target, Expr::Attribute(target)
                    if target.attr.as_str() == "gradient_accumulation_steps"
                        && self.value(&target.value).kind == Kind::Accelerator)
            })
    }

    /// Whether two expressions are written the same, spaces aside.
    pub fn same_text(&self, left: &Expr, right: &Expr) -> bool {
        let plain = |expression: &Expr| {
            self.text(expression)
                .chars()
                .filter(|each| !each.is_whitespace())
                .collect::<String>()
        };
        plain(left) == plain(right)
    }

    /// Whether an expression divides something by what `count` names.
    pub fn divides_by(&self, expression: &Expr, count: &Expr) -> bool {
        let mut found = false;
        each_expression(expression, &mut |part| {
            if let Expr::BinOp(operation) = part
                && operation.op == Operator::Div
            {
                found |= self.same_text(&operation.right, count);
            }
        });
        found
    }
}
