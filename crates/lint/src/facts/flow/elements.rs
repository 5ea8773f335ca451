//! Evaluates what a value holds: its entries, its parts, and what a loop over it gives.

use super::Reader;
use crate::facts::paths::path;
use crate::facts::value::{Kind, Truth, Value};
use crate::python::{Expr, ast, span};

impl<'a> Reader<'_, 'a> {
    /// Binds what the loops of a comprehension go over.
    pub(super) fn generators(&mut self, generators: &'a [ast::Comprehension]) {
        for generator in generators {
            let element = self.element_of(&generator.iter);
            self.assign(&generator.target, element, span(generator).start);
            for condition in &generator.ifs {
                self.eval(condition);
            }
        }
    }

    pub(super) fn subscript(
        &mut self,
        expression: &'a Expr,
        subscript: &'a ast::ExprSubscript,
    ) -> Value {
        let held = self.eval(&subscript.value);
        self.eval(&subscript.slice);
        if let Some(path) = path(self.text, expression)
            && let Some(value) = self.get(path)
        {
            return value;
        }
        if let (Some(elements), Some(index)) =
            (self.flow.elements(held), constant_index(&subscript.slice))
        {
            let length = isize::try_from(elements.len()).unwrap_or(isize::MAX);
            let index = if index < 0 { index + length } else { index };
            if let Some(value) = usize::try_from(index)
                .ok()
                .and_then(|index| elements.get(index))
            {
                return *value;
            }
        }
        self.part_of(held)
    }

    /// One element of a value that has several.
    pub(super) fn part_of(&self, value: Value) -> Value {
        match value.kind {
            // It is unknown which part of a model's output is the loss.
            Kind::Tensor => Value {
                scalar: Truth::Maybe,
                ..value
            },
            Kind::Loader => Value::tensor(Truth::No, Truth::No, Truth::No),
            Kind::Generator(unit) => match self.summaries[unit].yields {
                Value {
                    kind: Kind::Unset, ..
                } => Value::UNKNOWN,
                yielded => yielded,
            },
            Kind::StateDict => Value::tensor(Truth::No, value.card, Truth::Maybe),
            Kind::Parameters => Value::tensor(Truth::Maybe, Truth::Maybe, Truth::No),
            Kind::Number => Value::number(),
            Kind::Text => Value::plain(Kind::Text),
            Kind::Container | Kind::Tuple(_) => Value {
                kind: if value.graph.is_yes() {
                    Kind::Tensor
                } else {
                    Kind::Unknown
                },
                scalar: Truth::Maybe,
                ..value
            },
            // A part of a batch is where the batch is.
            Kind::Unknown => Value {
                graph: value.graph,
                card: value.card,
                ..Value::UNKNOWN
            },
            _ => Value::UNKNOWN,
        }
    }

    /// What a loop over an expression yields in each iteration.
    pub(super) fn element_of(&mut self, iterated: &'a Expr) -> Value {
        if let Expr::Call(call) = iterated {
            let arguments = &call.arguments.args;
            let name = match &*call.func {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "",
            };
            match (name, arguments.first()) {
                ("enumerate", Some(first)) => {
                    self.eval(iterated);
                    let element = self.element_of(first);
                    return self.tuple(vec![Value::number(), element]);
                }
                ("zip", Some(_)) => {
                    self.eval(iterated);
                    let elements = arguments.iter().map(|each| self.element_of(each)).collect();
                    return self.tuple(elements);
                }
                (
                    "tqdm" | "trange" | "track" | "reversed" | "iter" | "list" | "islice"
                    | "sorted",
                    Some(first),
                ) if !matches!(first, Expr::NumberLiteral(_)) => {
                    self.eval(iterated);
                    return self.element_of(first);
                }
                ("items", None) => {
                    let held = self.eval(iterated);
                    let element = self.part_of(held);
                    return self.tuple(vec![Value::plain(Kind::Text), element]);
                }
                ("range", Some(_)) => {
                    self.eval(iterated);
                    return Value::number();
                }
                _ => {}
            }
        }
        let value = self.eval(iterated);
        // `for name, loss in (("a", a), ("b", b))`
        if let Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) =
            iterated
            && !elts.iter().any(Expr::is_starred_expr)
        {
            let mut joined = Value::UNSET;
            for each in elts {
                let value = self.flow.value(each);
                joined = self.join(joined, value);
            }
            if joined.kind != Kind::Unset {
                return joined;
            }
        }
        self.part_of(value)
    }
}

/// The value of a constant index (`x[0]`, `x[-1]`).
fn constant_index(slice: &Expr) -> Option<isize> {
    match slice {
        Expr::NumberLiteral(ast::ExprNumberLiteral {
            value: ast::Number::Int(number),
            ..
        }) => number
            .as_u64()
            .and_then(|number| isize::try_from(number).ok()),
        Expr::UnaryOp(ast::ExprUnaryOp {
            op: ast::UnaryOp::USub,
            operand,
            ..
        }) => constant_index(operand).map(|number| -number),
        _ => None,
    }
}
