//! What is on the card, and where names are used later.

use super::Facts;
use super::structure::{Call, Place, UnitId};
use super::value::{Kind, Truth};
use crate::python::{Expr, ExprCall, Stmt};

/// How many levels of callers a model is followed through.
const CALLERS: usize = 3;

impl<'a> Facts<'a> {
    /// Whether the file moves anything to the card.
    pub fn uses_card(&self) -> bool {
        self.structure.calls.iter().any(|call| {
            let moves = matches!(&*call.node.func, Expr::Attribute(function)
                if function.attr.as_str() == "cuda" && !self.imports.knows(&call.node.func));
            moves || self.moves_to_card(call.node)
        })
    }

    /// Whether anything in the file can be on a card: it names devices, or a framework moves tensors.
    pub fn knows_devices(&self) -> bool {
        const FRAMEWORKS: &[&str] = &["accelerate", "lightning", "pytorch_lightning", "deepspeed"];
        let moves = self.structure.calls.iter().any(|call| {
            matches!(&*call.node.func, Expr::Attribute(function)
                if matches!(function.attr.as_str(), "cuda" | "to" | "device"))
                || call.node.arguments.keywords.iter().any(|keyword| {
                    keyword
                        .arg
                        .as_ref()
                        .is_some_and(|name| name.as_str().starts_with("device"))
                })
        });
        moves
            || FRAMEWORKS.iter().any(|each| self.imports.uses(each))
            || self.imports.names().any(|name| name.ends_with("Trainer"))
    }

    /// Whether a model certainly stays on the CPU: the file names no devices, and creates the model that
    /// its functions receive.
    pub fn is_surely_on_host(&self, unit: UnitId, path: &str) -> bool {
        !self.knows_devices() && (unit == 0 || self.is_made_here(unit, path, CALLERS))
    }

    /// Whether a model is created from classes of the file or of PyTorch; for a parameter, whether all
    /// callers pass such a model.
    fn is_made_here(&self, unit: UnitId, path: &str, callers: usize) -> bool {
        let is_given = self.structure.units[unit].node.is_some_and(|node| {
            (node.parameters.iter()).any(|parameter| parameter.name().as_str() == path)
        });
        if is_given {
            let mut given = self.callers(unit).peekable();
            return given.peek().is_some()
                && given.all(|caller| {
                    let around = self.structure.unit_of(caller.place.block);
                    self.argument_for(caller.node, unit, path)
                        .and_then(|given| self.path(given))
                        .zip(callers.checked_sub(1))
                        .is_some_and(|(given, left)| self.is_made_here(around, given, left))
                });
        }
        let is_known = |made: &Expr| {
            matches!(made, Expr::Call(call)
                if matches!(self.value(&call.func).kind, Kind::Class(_))
                    || self.callee(call).is_some_and(|name| name.starts_with("torch.nn.")))
        };
        let made: Vec<&Expr> = (self.units_that_see(unit, path).into_iter())
            .flat_map(|each| self.assigns_in_unit(each))
            .filter(|assign| self.path(assign.target) == Some(path))
            .map(|assign| assign.value)
            .collect();
        made.iter().any(|each| is_known(each))
            && made
                .iter()
                .all(|each| is_known(each) || self.mentions(each, path))
    }

    /// Whether a call moves a tensor or module to the card: `x.cuda()`, `x.to("cuda")`,
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

    /// Whether a module is certainly on the card: it was moved there, or runs on tensors that were.
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

    /// Whether a module is moved to the card in place and never back: `model.cuda()` as a statement.
    pub fn is_moved_in_place(&self, unit: UnitId, path: &str) -> bool {
        let is_its = |call: &Call<'a>| {
            matches!(self.method(call.node), Some((receiver, _))
                if self.path(receiver) == Some(path))
        };
        let units = self.units_that_see(unit, path);
        let calls = || units.iter().flat_map(|each| self.calls_in_unit(*each));
        calls().any(|call| {
            is_its(call) && self.moves_to_card(call.node) && matches!(call.statement, Stmt::Expr(_))
        }) && !calls()
            .any(|call| is_its(call) && matches!(self.method(call.node), Some((_, "cpu"))))
    }

    /// Whether a unit runs a model after a place: itself, in a loop, or through a function of
    /// the file.
    pub fn runs_a_model_after(&self, unit: UnitId, place: Place) -> bool {
        self.calls_in_unit(unit).any(|call| {
            self.leads_to(place, call.place)
                && self.callee_unit(call.node) != Some(unit)
                && self.reaches(call.node, &|each| {
                    self.called_module(each).is_some() || self.is_backward(each)
                })
        })
    }
}
