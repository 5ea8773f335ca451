//! Where a model is in evaluation mode: after its `eval()`, before its next `train()`.

use super::Facts;
use super::flow::methods::is_pass;
use super::paths::is_part_of;
use super::structure::{BlockId, BlockKind, Call, UnitId};
use super::usage::{class_of, owner_of};
use super::value::{Kind, Truth, Value};
use crate::python::{Expr, ExprCall, Stmt, ast, span};
use crate::syntax::{given, is_true, says_true};

/// How many levels of callers are searched for a model's mode.
const CALLERS: usize = 3;

/// The part of a unit for which a model was put into evaluation mode.
#[derive(Debug, Clone, Copy)]
pub struct Evaluation {
    /// Where `eval()` is called.
    pub from: usize,
    /// Where the next `train()` is called, or past the end.
    pub until: usize,
}

impl Evaluation {
    pub fn covers(self, call: &Call<'_>) -> bool {
        self.from < call.place.order && call.place.order < self.until
    }
}

impl<'a> Facts<'a> {
    /// The evaluation that certainly holds where a model is called, if one does.
    pub fn evaluation_at(&self, call: &Call<'a>) -> Option<Evaluation> {
        let model = self.called_module(call.node)?;
        self.evaluation_of(model, call, CALLERS)
    }

    /// Whether an expression is computed by a model that is certainly in evaluation mode.
    pub fn is_evaluated(&self, unit: UnitId, expression: &'a Expr) -> bool {
        let parts = self.made_of(expression);
        self.calls_in_unit(unit).any(|call| {
            parts.iter().any(|part| span(*part) == span(call.node))
                && self
                    .evaluation_at(call)
                    .or_else(|| Some(self.evaluation_inside(call)?.1))
                    .is_some_and(|evaluation| !self.wants_gradients(unit, evaluation))
        })
    }

    /// The evaluation that holds where a call runs a function of the file, for a model that this runs: one
    /// that it is given, or that both see; and what the model is called here.
    pub fn evaluation_inside(&self, call: &Call<'a>) -> Option<(&'a str, Evaluation)> {
        let callee = self.callee_unit(call.node)?;
        self.calls_in_unit(callee).find_map(|inner| {
            let model = self.called_module(inner.node)?;
            let here = match self.argument_for(call.node, callee, model) {
                Some(given) => self.path(given)?,
                None => model,
            };
            Some((here, self.evaluation_of(here, call, 0)?))
        })
    }

    /// The condition of the phases that a call of a model runs in, one of which only evaluates: `phase == "train"` of
    /// `if phase == "train": model.train() else: model.eval()`, or `training` of `model.train(training)`, where the
    /// same condition decides about the backward pass.
    pub fn phases_at(&self, call: &Call<'a>) -> Option<&'a Expr> {
        let model = self.called_module(call.node)?;
        let unit = self.structure.unit_of(call.place.block);
        let root = self.structure.units[unit].block;
        let tests_of = |other: &Call<'a>| self.structure.conditions(other.place.block, root);
        let own = tests_of(call);
        let is_same = |one: &Expr, other: &Expr| self.text(one) == self.text(other);
        let decides = |test: &'a Expr| {
            let is_of_backward = |other: &Call<'a>| {
                self.is_backward(other.node)
                    && other.place.order > call.place.order
                    && tests_of(other)
                        .into_iter()
                        .any(|(each, holds)| holds && is_same(each, test))
            };
            !own.iter().any(|(each, _)| is_same(each, test))
                && self.calls_in_unit(unit).any(is_of_backward)
                && !self
                    .calls_in_unit(unit)
                    .any(|other| self.is_backward(other.node) && !is_of_backward(other))
        };
        let before = self
            .calls_in_unit(unit)
            .filter(|other| other.place.order < call.place.order && self.is_mode_of(other, model));
        before
            .filter_map(|other| match mode_set(other.node)? {
                // The other branch trains.
                false => tests_of(other)
                    .into_iter()
                    .find_map(|(test, holds)| (!holds).then_some(test)),
                true => other.node.arguments.find_argument_value("mode", 0),
            })
            .find(|test| decides(test))
    }

    /// The evaluation of a model that certainly holds at a call, also by what all callers did.
    fn evaluation_of(&self, model: &str, call: &Call<'a>, callers: usize) -> Option<Evaluation> {
        let unit = self.structure.unit_of(call.place.block);
        let here = call.place;
        let eval = self
            .calls_in_unit(unit)
            .filter(|other| {
                other.place.order < here.order
                    && mode_set(other.node) == Some(false)
                    && self.is_mode_of(other, model)
                    // Not in a branch that excludes this call.
                    && self.structure.is_inside(here.block, other.place.block)
            })
            .max_by_key(|other| other.place.order);
        let Some(eval) = eval else {
            let sets_mode = self
                .calls_in_unit(unit)
                .any(|other| mode_set(other.node).is_some() && self.is_mode_of(other, model));
            let holds = !sets_mode
                && (callers > 0 && self.callers_evaluate(unit, model, callers - 1)
                    || self.class_evaluates(unit, model)
                    || self.file_evaluates(unit, model));
            return holds.then_some(Evaluation {
                from: 0,
                until: usize::MAX,
            });
        };
        let mut until = usize::MAX;
        for other in self.calls_in_unit(unit) {
            if mode_set(other.node) == Some(true) && self.is_mode_of(other, model) {
                let order = other.place.order;
                if eval.place.order < order && order < here.order {
                    return None;
                }
                if order > here.order {
                    until = until.min(order);
                }
                // `train()` later in a loop that does not begin with `eval()` applies to the next
                // iteration.
                if order > here.order
                    && self
                        .loop_of_both(here.block, other.place.block)
                        .is_some_and(|id| !self.structure.is_inside(eval.place.block, id))
                {
                    return None;
                }
            }
        }
        Some(Evaluation {
            from: eval.place.order,
            until,
        })
    }

    /// Whether an object that is no model itself puts its model into evaluation mode when it is made, and
    /// never into training mode: `self.model = model.eval()`.
    fn class_evaluates(&self, unit: UnitId, model: &str) -> bool {
        let Some(class) = class_of(&self.structure, unit) else {
            return false;
        };
        // Whoever has a module may put it and its parts into another mode.
        let is_module = ["forward", "training_step"]
            .iter()
            .any(|method| self.structure.classes[class].method(method).is_some());
        if !model.starts_with("self.") || is_module {
            return false;
        }
        let mut evaluates = false;
        for call in &self.structure.calls {
            let place = self.structure.unit_of(call.place.block);
            let Some(trains) = mode_set(call.node) else {
                continue;
            };
            if class_of(&self.structure, place) != Some(class) || !self.is_mode_of(call, model) {
                continue;
            }
            if trains {
                return false;
            }
            evaluates |= self.structure.units[place].name == "__init__";
        }
        evaluates
    }

    /// Whether a model is a name of the file, which the file puts into evaluation mode and nothing ever puts
    /// into training mode: one that a server runs.
    fn file_evaluates(&self, unit: UnitId, model: &str) -> bool {
        let root = model.split(['.', '[']).next().unwrap_or(model);
        if unit == 0 || root == "self" || owner_of(&self.structure, unit, root).is_some() {
            return false;
        }
        let mut evaluates = false;
        for call in &self.structure.calls {
            if let Some(trains) = mode_set(call.node)
                && self.is_mode_of(call, model)
            {
                if trains {
                    return false;
                }
                evaluates |= call.place.block == self.structure.units[0].block;
            }
        }
        evaluates && !self.is_trained(0, root)
    }

    /// Whether every call of a unit in this file gives it a model in evaluation mode.
    fn callers_evaluate(&self, unit: UnitId, model: &str, callers: usize) -> bool {
        let mut any = false;
        for caller in self.callers(unit) {
            any = true;
            let evaluates = self
                .argument_for(caller.node, unit, model)
                .and_then(|given| self.path(given))
                .or_else(|| self.shared_path(unit, model, caller))
                .and_then(|path| self.evaluation_of(path, caller, callers))
                .is_some_and(|evaluation| {
                    let around = self.structure.unit_of(caller.place.block);
                    !self.wants_gradients(around, evaluation)
                });
            if !evaluates {
                return false;
            }
        }
        any
    }

    /// A path of `self` that means the same where `self.run(x)` calls the unit.
    fn shared_path<'m>(&self, unit: UnitId, model: &'m str, caller: &Call<'a>) -> Option<&'m str> {
        let around = self.structure.unit_of(caller.place.block);
        let is_on_self = matches!(&*caller.node.func, Expr::Attribute(function)
            if self.path(&function.value) == Some("self"));
        let sees = || {
            class_of(&self.structure, unit).is_some()
                && class_of(&self.structure, unit) == class_of(&self.structure, around)
        };
        (model.starts_with("self.") && is_on_self && sees()).then_some(model)
    }

    /// Whether the graph of a model's output during an evaluation may be needed: gradients are computed
    /// or enabled there.
    pub fn wants_gradients(&self, unit: UnitId, evaluation: Evaluation) -> bool {
        let wants = |call: &ExprCall| {
            self.differentiates(call)
                || matches!(&*call.func, Expr::Attribute(function)
                if matches!(
                    function.attr.as_str(),
                    "requires_grad_" | "retain_grad" | "register_hook"
                        | "register_full_backward_hook" | "register_backward_hook"
                ))
                || says_true(call, "requires_grad")
                || self.gives_model_and_loss(call)
        };
        self.calls_in_unit(unit).any(|call| {
            evaluation.covers(call)
                && (wants(call.node)
                    || self.callee_unit(call.node) != Some(unit) && self.reaches(call.node, &wants))
        }) || self.assigns_in_unit(unit).any(|assign| {
            matches!(assign.target, Expr::Attribute(target) if target.attr.as_str() == "requires_grad")
                && is_true(assign.value)
        })
    }

    /// Whether a function of another file gets a model and a loss with its graph, and may differentiate that:
    /// `gradient_update_parameters(model, inner_loss)`.
    fn gives_model_and_loss(&self, call: &ExprCall) -> bool {
        let is_foreign = self.callee(call).is_some_and(|name| {
            !name.starts_with("torch.") && self.result(call).kind != Kind::Module(None)
        });
        let any = |wanted: &dyn Fn(Value) -> bool| given(call).any(|each| wanted(self.value(each)));
        is_foreign
            && any(&|value| matches!(value.kind, Kind::Module(_)))
            && any(&|value| value.is_tensor() && value.graph.is_yes() && value.scalar.is_yes())
    }

    /// Whether a unit passes `volatile=True`, the `no_grad` of PyTorch before 0.4, or tells a function of
    /// another file, in code of that time, that its inputs are for a test.
    pub fn says_volatile(&self, unit: UnitId) -> bool {
        let is_old = || {
            self.imports
                .names()
                .any(|name| name == "torch.autograd.Variable")
                || self.source.text().contains(".data[0]")
        };
        self.calls_in_unit(unit).any(|call| {
            call.node.arguments.find_keyword("volatile").is_some()
                || ["is_test", "test", "evaluation"]
                    .iter()
                    .any(|name| says_true(call.node, name))
                    && self.callee_unit(call.node).is_none()
                    && is_old()
        })
    }

    /// The path of the module that a call runs: `model` of `model(x)` and `model.forward(x)`.
    pub fn called_module(&self, call: &ExprCall) -> Option<&'a str> {
        let module = match &*call.func {
            Expr::Attribute(function)
                if function.attr.as_str() == "forward" || is_pass(function.attr.as_str()) =>
            {
                &*function.value
            }
            other => other,
        };
        match self.value(module).kind {
            Kind::Module(_) => self.path(module),
            _ => None,
        }
    }

    /// Whether a call is `eval()` or `train()` of a model or of what it is a part of, also as
    /// `model.to(device).eval()` and `model = Net().eval()`.
    fn is_mode_of(&self, call: &Call<'a>, model: &str) -> bool {
        let Expr::Attribute(function) = &*call.node.func else {
            return false;
        };
        let mut receiver = &*function.value;
        while let Expr::Call(inner) = receiver
            && let Expr::Attribute(method) = &*inner.func
            && matches!(
                method.attr.as_str(),
                "to" | "cuda" | "cpu" | "half" | "float" | "eval" | "train" | "requires_grad_"
            )
        {
            receiver = &method.value;
        }
        // `self.model = model.eval()` is about both names.
        let bound = || {
            let Stmt::Assign(assign) = call.statement else {
                return None;
            };
            let (whole, part) = (span(&*assign.value), span(call.node));
            (whole.start == part.start && matches!(*assign.targets, [_]))
                .then(|| self.path(&assign.targets[0]))
                .flatten()
        };
        // `model.eval()` applies to `model.module`, and vice versa.
        let is_it = |path: &str| {
            is_part_of(model, path) || is_part_of(path, model) && path.ends_with(".module")
        };
        self.path(receiver).is_some_and(is_it) || bound().is_some_and(is_it)
    }

    /// Whether a caller of this unit may backpropagate the output of a call: it is returned with its
    /// graph outside a loop over data, or a caller in this file does so.
    pub fn hands_on_graph(&self, unit: UnitId, call: &Call<'a>) -> bool {
        let in_data_loop = self
            .structure
            .loop_around(call.place.block)
            .is_some_and(|id| self.is_step_loop(id) || self.goes_over_inputs(id))
            || self.is_comprehended_over_batches(call.place.block);
        let mut outputs = Vec::new();
        for assign in self.assigns_in_unit(unit) {
            if span(assign.value) == span(call.node) {
                self.each_target(assign.target, &mut |target| outputs.push(target));
            }
        }
        let with_graph = |value: &Expr| {
            let known = self.value(value);
            let named = || outputs.iter().any(|path| self.carries_graph(value, path));
            match (known.kind, known.graph) {
                (_, Truth::No) => false,
                (Kind::Tensor | Kind::Container, Truth::Yes) => true,
                (Kind::Tensor | Kind::Container | Kind::Unknown, _) => named(),
                _ => false,
            }
        };
        let returns_graph = self.structure.statements.iter().any(|(statement, place)| {
            self.structure.unit_of(place.block) == unit
                && matches!(statement, Stmt::Return(node)
                if node.value.as_deref().is_some_and(|value| match value {
                    Expr::Tuple(tuple) => tuple.elts.iter().any(with_graph),
                    other => with_graph(other),
                }))
        });
        if !returns_graph || self.is_engine_step(unit) {
            return false;
        }
        // Where only the script itself calls it for every batch, or only methods of the same object do,
        // nothing else can backpropagate it.
        let is_of_script = || {
            let is_own = |caller: &Call<'a>| {
                self.structure.unit_of(caller.place.block) == 0
                    || self.structure.units[unit].name.starts_with('_')
                        && self.shared_path(unit, "self.", caller).is_some()
            };
            let mut callers = self.callers(unit).peekable();
            callers.peek().is_some()
                && callers.all(|caller| {
                    is_own(caller)
                        && (self.structure.loop_around(caller.place.block))
                            .is_some_and(|id| self.is_step_loop(id) || self.goes_over_inputs(id))
                })
        };
        !in_data_loop && !is_of_script()
            || self.callers(unit).any(|caller| {
                let around = self.structure.unit_of(caller.place.block);
                let mut used = false;
                for assign in self.assigns_in_unit(around) {
                    if span(assign.value) == span(caller.node) {
                        self.each_target(assign.target, &mut |target| {
                            used |= self.ends_in_backward(around, target);
                        });
                    }
                }
                used
            })
    }

    /// Whether a block is part of a comprehension over a loader.
    fn is_comprehended_over_batches(&self, block: BlockId) -> bool {
        self.structure.enclosing(block).any(|(_, kind)| match kind {
            BlockKind::Comprehension(
                Expr::ListComp(ast::ExprListComp { generators, .. })
                | Expr::Generator(ast::ExprGenerator { generators, .. }),
            ) => generators
                .iter()
                .any(|generator| self.iterates_loader(&generator.iter)),
            _ => false,
        })
    }

    fn loop_of_both(&self, one: BlockId, other: BlockId) -> Option<BlockId> {
        let mut next = self.structure.loop_around(one);
        while let Some(id) = next {
            if self.structure.is_inside(other, id) {
                return Some(id);
            }
            next = self.structure.blocks[id]
                .parent
                .and_then(|parent| self.structure.loop_around(parent));
        }
        None
    }
}

/// The mode that `x.train()`, `x.train(False)`, `x.eval()` set; `None` if unknown.
fn mode_set(call: &ExprCall) -> Option<bool> {
    let Expr::Attribute(function) = &*call.func else {
        return None;
    };
    match function.attr.as_str() {
        "eval" if call.arguments.is_empty() => Some(false),
        "train" => match call.arguments.find_argument_value("mode", 0) {
            Some(Expr::BooleanLiteral(literal)) => Some(literal.value),
            // With any other argument, evaluation may end here.
            _ => Some(true),
        },
        _ => None,
    }
}
