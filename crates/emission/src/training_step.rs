//! Forward, backward and step of a plain loop.

use ghostgpu_lint::facts::roles;
use ghostgpu_lint::facts::structure::{BlockId, BlockKind, Call, UnitId};
use ghostgpu_lint::facts::value::Kind;
use ghostgpu_lint::python::{Expr, Stmt, StmtFor, span};

use crate::script::Script;

/// A backward pass, and the statements around it in the same list.
pub struct TrainingStep<'a> {
    pub unit: UnitId,
    pub list: &'a [Stmt],
    /// The index of the backward pass in the list.
    pub at: usize,
    pub backward: Backward<'a>,
}

/// How a script backpropagates.
pub struct Backward<'a> {
    /// The loss: `loss` in `loss.backward()` and in `scaler.scale(loss).backward()`.
    pub loss: &'a Expr,
    /// The receiver of the call: `loss`, or `scaler.scale(loss)`.
    pub receiver: &'a Expr,
    /// `scaler` of `scaler.scale(loss).backward()`.
    pub scaler: Option<&'a str>,
}

/// What a statement does around a backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    ZeroGrad,
    Clip,
    /// `scaler.unscale_(optimizer)`
    Unscale,
    Step,
    /// `scaler.update()`
    Update,
    Scheduler,
}

impl<'a> Script<'a> {
    /// Every backward pass of the file. An error if one is written in a way that cannot be edited.
    pub fn training_steps(&self) -> Result<Vec<TrainingStep<'a>>, String> {
        let mut steps = Vec::new();
        for call in self.calls() {
            if !self.facts.is_backward(call.node) {
                continue;
            }
            let unit = self.unit(call);
            if self.is_inside_a_model(unit) {
                return Err("a model backpropagates inside itself".to_owned());
            }
            steps.push(self.training_step(call, unit)?);
        }
        match steps.is_empty() {
            true => Err(self.why_no_step()),
            false => Ok(steps),
        }
    }

    fn why_no_step(&self) -> String {
        let elsewhere =
            || "there is no backward pass in this file: the loop is in another".to_owned();
        self.in_a_library().unwrap_or_else(elsewhere)
    }

    /// Why no optimizer was found in the file.
    pub fn why_no_optimizer(&self) -> String {
        let is_plain = self
            .calls()
            .iter()
            .any(|call| self.facts.is_backward(call.node));
        let none = || "this file makes no optimizer".to_owned();
        match is_plain {
            true => none(),
            false => self.in_a_library().unwrap_or_else(none),
        }
    }

    fn in_a_library(&self) -> Option<String> {
        let libraries = [
            "transformers",
            "lightning",
            "pytorch_lightning",
            "trl",
            "fastai",
        ];
        let used = libraries.iter().find(|it| self.facts.imports.uses(it))?;
        Some(format!("the loop is in a library ({used})"))
    }

    fn training_step(&self, call: &Call<'a>, unit: UnitId) -> Result<TrainingStep<'a>, String> {
        let line = self.facts.source.row(span(call.node).start) + 1;
        let is_statement = matches!(call.statement, Stmt::Expr(node)
            if span(&*node.value) == span(call.node));
        if !is_statement {
            return Err(format!(
                "the backward pass in line {line} is part of a longer statement"
            ));
        }
        let Expr::Attribute(function) = &*call.node.func else {
            return Err(format!("line {line} backpropagates in an unusual way"));
        };
        let receiver = &*function.value;
        let (list, at) = self
            .list_of(call.statement)
            .ok_or_else(|| format!("line {line} backpropagates inside an expression"))?;
        let is_plain = call.node.arguments.is_empty();
        let loss = is_plain
            .then(|| self.facts.goes_back_from(call.node))
            .flatten();
        let Some(loss) = loss else {
            return Err(match call.node.arguments.args.len() {
                1 => format!("line {line} hands its loss to a library"),
                _ => format!("the backward pass in line {line} has arguments"),
            });
        };
        let scaler = match receiver {
            Expr::Call(scaled) => self
                .facts
                .method(scaled)
                .filter(|(_, name)| *name == "scale")
                .and_then(|(scaler, _)| self.facts.path(scaler)),
            _ => None,
        };
        Ok(TrainingStep {
            unit,
            list,
            at,
            backward: Backward {
                loss,
                receiver,
                scaler,
            },
        })
    }

    /// The `for` loop whose body is this list.
    pub fn loop_of(&self, list: &[Stmt]) -> Option<(&'a StmtFor, BlockId)> {
        let blocks = self.facts.structure.blocks.iter().enumerate();
        blocks.into_iter().find_map(|(id, block)| match block.kind {
            BlockKind::For(node) if std::ptr::eq(node.body.as_ptr(), list.as_ptr()) => {
                Some((node, id))
            }
            _ => None,
        })
    }

    /// The range of statements before the backward pass, from the first that runs a model to the last that affects the
    /// loss.
    pub fn forward_of(&self, step: &TrainingStep<'a>) -> Result<(usize, usize), String> {
        let before = &step.list[..step.at];
        // Statements before an earlier backward pass belong to that one.
        let begin = before.iter().rposition(|statement| {
            self.calls_in(statement)
                .any(|call| self.facts.is_backward(call.node))
        });
        let begin = begin.map_or(0, |other| other + 1);
        let first = before[begin..].iter().position(|statement| {
            self.calls_in(statement)
                .any(|call| self.model_run_by(call).is_some())
        });
        let first = first.map(|first| begin + first);
        let Some(first) = first else {
            let runs = self
                .calls_in(&step.list[step.at])
                .any(|call| self.model_run_by(call).is_some());
            return Err(match runs {
                true => "forward and backward are one statement".to_owned(),
                false => "the forward pass does not stand beside the backward pass".to_owned(),
            });
        };
        let last = before.iter().rposition(|it| self.part(it).is_none());
        Ok((first, last.map_or(first, |last| last.max(first))))
    }

    /// What a statement does around a backward pass; for an `if`, what all statements in it do.
    pub fn part(&self, statement: &'a Stmt) -> Option<Part> {
        match statement {
            Stmt::Expr(node) => match &*node.value {
                Expr::Call(_) => self.part_of_call(&node.value),
                _ => None,
            },
            Stmt::Assign(node) => self
                .part_of_call(&node.value)
                .filter(|part| *part == Part::Clip),
            Stmt::If(node) => {
                let clauses = node.elif_else_clauses.iter().flat_map(|it| it.body.iter());
                let mut parts = node.body.iter().chain(clauses).map(|it| self.part(it));
                let first = parts.next()??;
                parts.all(|part| part.is_some()).then_some(first)
            }
            _ => None,
        }
    }

    fn part_of_call(&self, expression: &'a Expr) -> Option<Part> {
        let range = span(expression);
        let call = self.calls().iter().find(|call| span(call.node) == range)?;
        if let Some(name) = self.facts.callee(call.node)
            && name.starts_with("torch.nn.utils.clip_grad")
        {
            return Some(Part::Clip);
        }
        let (receiver, name) = self.facts.method(call.node)?;
        let kind = self.facts.value(receiver).kind;
        match name {
            "zero_grad" => Some(Part::ZeroGrad),
            "clip_grad_norm_" => Some(Part::Clip),
            "unscale_" => Some(Part::Unscale),
            "update" if kind == Kind::Scaler => Some(Part::Update),
            "step" if kind == Kind::Scheduler => Some(Part::Scheduler),
            "step" if self.facts.is_optimizer_step(call) => Some(Part::Step),
            "step" => {
                let path = self.facts.path(receiver)?;
                let is_scheduler = path.to_ascii_lowercase().contains("sched");
                (roles::sounds_like_optimizer(path) || is_scheduler).then_some(match is_scheduler {
                    true => Part::Scheduler,
                    false => Part::Step,
                })
            }
            _ => None,
        }
    }

    /// The optimizer that a statement steps, also with `scaler.step(optimizer)`.
    pub fn stepped(&self, statement: &'a Stmt) -> Option<&'a str> {
        let call = self
            .calls_in(statement)
            .find(|call| matches!(self.facts.method(call.node), Some((_, "step"))))?;
        let Expr::Attribute(function) = &*call.node.func else {
            return None;
        };
        match call.node.arguments.args.first() {
            Some(optimizer) => self.facts.path(optimizer),
            None => self.facts.path(&function.value),
        }
    }
}
