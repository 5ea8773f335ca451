//! Methods that a framework calls once per batch: `training_step` of Lightning, `compute_loss` of the
//! Hugging Face `Trainer`. It backpropagates the loss that they return.

use super::Facts;
use super::imports::Imports;
use super::structure::{ClassId, Structure, UnitId};
use crate::python::{Expr, Stmt, ast};

/// Hooks that Lightning calls under `torch.no_grad`.
pub fn is_evaluation_hook(name: &str) -> bool {
    [
        "validation_",
        "test_",
        "predict_",
        "on_validation_",
        "on_test_",
        "on_predict_",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// Whether a class is a module of Lightning or a trainer of a framework, by its bases or its hooks.
pub fn is_of_a_framework(structure: &Structure<'_>, imports: &Imports<'_>, class: ClassId) -> bool {
    let class = &structure.classes[class];
    class.method("training_step").is_some()
        || class.node.bases().iter().any(|base| {
            imports.qualified(base).is_some_and(|name| {
                ["LightningModule", "Trainer", "Callback"]
                    .iter()
                    .any(|end| name.ends_with(end))
            })
        })
}

/// Whether a unit is called once per batch of training, and returns the loss to be backpropagated.
pub fn returns_loss_to_a_framework(
    structure: &Structure<'_>,
    imports: &Imports<'_>,
    unit: UnitId,
) -> bool {
    let unit = &structure.units[unit];
    unit.class.is_some_and(|class| {
        matches!(unit.name, "training_step" | "compute_loss")
            && is_of_a_framework(structure, imports, class)
    })
}

/// Whether a framework calls a unit once per batch, to train or to evaluate.
pub fn is_batch_hook(structure: &Structure<'_>, imports: &Imports<'_>, unit: UnitId) -> bool {
    let found = &structure.units[unit];
    returns_loss_to_a_framework(structure, imports, unit)
        || found.class.is_some_and(|class| {
            is_batch_method(found.name) && is_of_a_framework(structure, imports, class)
        })
}

/// Methods that frameworks call once per batch: steps of modules, and what callbacks do around them.
fn is_batch_method(name: &str) -> bool {
    matches!(
        name,
        "validation_step"
            | "test_step"
            | "predict_step"
            | "prediction_step"
            | "on_step_end"
            | "on_step_begin"
            | "after_batch"
            | "after_loss"
            | "after_pred"
            | "after_step"
    ) || name.starts_with("on_") && (name.ends_with("_batch_end") || name.ends_with("_batch_start"))
}

/// The losses among what such a unit returns: `loss`, `{"loss": loss}`,
/// `(loss, outputs) if return_outputs else loss`.
pub fn returned_losses<'a>(structure: &Structure<'a>, unit: UnitId) -> Vec<&'a Expr> {
    let mut losses = Vec::new();
    for (statement, place) in &structure.statements {
        if structure.unit_of(place.block) == unit
            && let Stmt::Return(ast::StmtReturn {
                value: Some(value), ..
            }) = statement
        {
            each_loss(value, &mut losses);
        }
    }
    losses
}

fn each_loss<'a>(value: &'a Expr, losses: &mut Vec<&'a Expr>) {
    match value {
        Expr::If(choice) => {
            each_loss(&choice.body, losses);
            each_loss(&choice.orelse, losses);
        }
        // The first of several is the loss.
        Expr::Tuple(tuple) => losses.extend(tuple.elts.first()),
        Expr::Dict(dict) => losses.extend(
            dict.items
                .iter()
                .filter(|item| {
                    matches!(&item.key, Some(Expr::StringLiteral(key))
                        if key.value.to_str() == "loss")
                })
                .map(|item| &item.value),
        ),
        _ => losses.push(value),
    }
}

impl<'a> Facts<'a> {
    /// Whether a framework calls a unit once per batch of training, and backpropagates what it returns.
    pub fn returns_loss_to_a_framework(&self, unit: UnitId) -> bool {
        returns_loss_to_a_framework(&self.structure, &self.imports, unit)
    }

    /// Whether a framework calls a unit once per batch, to train or to evaluate.
    pub fn is_batch_hook(&self, unit: UnitId) -> bool {
        is_batch_hook(&self.structure, &self.imports, unit) || self.is_engine_step(unit)
    }

    /// Whether an `Engine` of Ignite runs a unit for every batch, and keeps what it returns until the next.
    pub fn is_engine_step(&self, unit: UnitId) -> bool {
        let name = self.structure.units[unit].name;
        unit != 0
            && self.structure.calls.iter().any(|call| {
                matches!(call.node.arguments.args.first(), Some(Expr::Name(step))
                    if step.id.as_str() == name)
                    && self.callee(call.node).is_some_and(|callee| {
                        callee.starts_with("ignite.") && callee.ends_with(".Engine")
                    })
            })
    }

    /// Whether a framework calls a unit, but not once per batch: `before_fit`, `on_train_start`.
    pub fn is_hook_around_steps(&self, unit: UnitId) -> bool {
        let found = &self.structure.units[unit];
        ["on_", "before_", "begin_", "setup"]
            .iter()
            .any(|begin| found.name.starts_with(begin))
            && !self.is_batch_hook(unit)
            && !found.name.contains("batch")
            && found
                .class
                .is_some_and(|class| is_of_a_framework(&self.structure, &self.imports, class))
    }

    /// Whether a framework backpropagates what a unit returns from this path.
    pub fn is_returned_to_a_framework(&self, unit: UnitId, path: &str) -> bool {
        self.returns_loss_to_a_framework(unit)
            && returned_losses(&self.structure, unit)
                .iter()
                .any(|loss| self.path(loss) == Some(path))
    }
}
