//! What the parameters of a function are: from its callers, its annotations, its defaults and their use.

use super::{Reader, calls};
use crate::facts::frameworks::is_batch_hook;
use crate::facts::structure::{UnitId, is_decorated};
use crate::facts::value::{Kind, Truth, Value};
use crate::python::Expr;

impl<'a> Reader<'_, 'a> {
    /// The value of a parameter: from calls in the file, else from its use.
    pub(super) fn parameter(&self, id: UnitId, index: usize, name: &'a str) -> Value {
        let unit = &self.structure.units[id];
        if index == 0
            && let Some(class) = unit.class
            && !unit
                .node
                .is_some_and(|node| is_decorated(node, &["staticmethod", "classmethod"]))
        {
            return self.instance(class);
        }
        // A framework moves batches to the card.
        if index > 0
            && matches!(name, "batch" | "inputs")
            && is_batch_hook(self.structure, self.imports, id)
        {
            return Value {
                graph: Truth::No,
                card: Truth::Yes,
                ..Value::UNKNOWN
            };
        }
        let given = self.summaries[id]
            .given
            .get(index)
            .copied()
            .unwrap_or(Value::UNSET);
        let value = match given.kind {
            Kind::Unset => self
                .annotated(id, index)
                .or_else(|| self.default(id, index))
                .unwrap_or(Value::UNKNOWN),
            Kind::Unknown => self.annotated(id, index).unwrap_or(given),
            _ => given,
        };
        self.refined(name, value, 0)
    }

    /// The value that a parameter's annotation tells.
    fn annotated(&self, id: UnitId, index: usize) -> Option<Value> {
        let node = self.structure.units[id].node?;
        let annotation = node.parameters.iter().nth(index)?.annotation()?;
        let plain = match annotation {
            Expr::Name(name) => Some(name.id.as_str()),
            Expr::StringLiteral(text) => Some(text.value.to_str()),
            _ => None,
        };
        let class = (self.structure.classes)
            .iter()
            .position(|class| Some(class.node.name.as_str()) == plain);
        if let Some(class) = class {
            return Some(self.instance(class));
        }
        match plain {
            Some("float" | "int" | "bool") => return Some(Value::number()),
            Some("str") => return Some(Value::plain(Kind::Text)),
            _ => {}
        }
        let name = self.imports.qualified(annotation)?;
        let kind = match name.as_str() {
            "torch.nn.Module" | "torch.nn.modules.module.Module" => Kind::Module(None),
            "torch.utils.data.DataLoader" | "torch.utils.data.dataloader.DataLoader" => {
                Kind::Loader
            }
            "torch.optim.Optimizer" | "torch.optim.optimizer.Optimizer" => Kind::Optimizer,
            _ => return None,
        };
        Some(Value::of(kind))
    }

    /// The value of a parameter that is a number, `"cuda"` or another text unless a caller says otherwise.
    fn default(&self, id: UnitId, index: usize) -> Option<Value> {
        let node = self.structure.units[id].node?;
        match node.parameters.iter().nth(index)?.default()? {
            Expr::StringLiteral(text) => Some(Value {
                card: calls::device_text(text.value.to_str()),
                ..Value::plain(Kind::Text)
            }),
            Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) => Some(Value::number()),
            _ => None,
        }
    }
}
