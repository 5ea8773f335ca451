//! What is on the card, and where names are used later.

use super::Facts;
use super::structure::UnitId;
use super::value::{Kind, Truth};
use crate::python::{Expr, ExprCall};

impl<'a> Facts<'a> {
    /// Whether the file puts anything on the card.
    pub fn uses_card(&self) -> bool {
        self.structure.calls.iter().any(|call| {
            let moves = matches!(&*call.node.func, Expr::Attribute(function)
                if function.attr.as_str() == "cuda" && self.callee(call.node).is_none());
            moves || self.moves_to_card(call.node)
        })
    }

    /// Whether a call puts a tensor or a module on the card: `x.cuda()`, `x.to("cuda")`,
    /// `torch.zeros(3, device="cuda")`.
    pub fn moves_to_card(&self, call: &ExprCall) -> bool {
        let is_card = |device: &Expr| {
            let value = self.value(device);
            matches!(value.kind, Kind::Device | Kind::Text) && value.card.is_yes()
        };
        let named = call
            .arguments
            .find_keyword("device")
            .is_some_and(|keyword| is_card(&keyword.value));
        match self.callee(call) {
            Some(name) => name.starts_with("torch.") && name != "torch.load" && named,
            None => match &*call.func {
                Expr::Attribute(function) => match function.attr.as_str() {
                    "cuda" => true,
                    "to" => named || call.arguments.args.first().is_some_and(is_card),
                    _ => false,
                },
                _ => false,
            },
        }
    }

    /// Whether a module is surely on the card: it was moved there, or runs on tensors that were.
    pub fn module_is_on_card(&self, unit: UnitId, module: &'a Expr) -> bool {
        match self.value(module).card {
            Truth::Yes => true,
            Truth::No => false,
            Truth::Maybe => self.path(module).is_some_and(|path| {
                self.units_that_see(unit, path).into_iter().any(|unit| {
                    self.calls_in_unit(unit).any(|call| {
                        self.called_module(call.node) == Some(path)
                            && call.node.arguments.args.iter().any(|each| {
                                let value = self.value(each);
                                matches!(value.kind, Kind::Tensor | Kind::Unknown)
                                    && value.card.is_yes()
                            })
                    })
                })
            }),
        }
    }

    /// Whether a unit runs a model after a place: itself, in a loop, or through a function of
    /// the file.
    pub fn runs_a_model_after(&self, unit: UnitId, order: usize) -> bool {
        self.calls_in_unit(unit).any(|call| {
            call.place.order > order
                && self.callee_unit(call.node) != Some(unit)
                && self.reaches(call.node, &|each| {
                    self.called_module(each).is_some() || self.is_backward(each)
                })
        })
    }
}
