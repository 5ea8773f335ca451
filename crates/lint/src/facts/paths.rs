//! Access paths: `loss`, `self.model`, `history["loss"]`. The text as written is the key.

use crate::python::{Expr, span};

/// The path of an expression, if it is one: a name, its attributes, constant subscripts.
pub fn path<'a>(text: &'a str, expression: &Expr) -> Option<&'a str> {
    is_path(expression).then(|| &text[span(expression)])
}

fn is_path(expression: &Expr) -> bool {
    match expression {
        Expr::Name(_) => true,
        Expr::Attribute(attribute) => is_path(&attribute.value),
        Expr::Subscript(subscript) => {
            matches!(
                *subscript.slice,
                Expr::StringLiteral(_) | Expr::NumberLiteral(_)
            ) && is_path(&subscript.value)
        }
        _ => false,
    }
}

/// The first name of a path expression: `self` of `self.model.head`.
pub fn root(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => root(&attribute.value),
        Expr::Subscript(subscript) => root(&subscript.value),
        Expr::Call(call) => root(&call.func),
        _ => None,
    }
}

/// The attribute of `self` that a path begins with: `model` of `self.model.head`.
pub fn attribute_of_self(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("self.")?;
    Some(rest.split(['.', '[']).next().unwrap_or(rest))
}

/// Whether a path equals another or begins with it: `model.head` of `model`.
pub fn is_part_of(part: &str, whole: &str) -> bool {
    part.strip_prefix(whole)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
