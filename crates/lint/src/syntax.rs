//! Small syntactic helpers.

use crate::python::{Expr, ExprCall, Ranged, span};

/// All arguments of a call, positional and keyword.
pub fn given(call: &ExprCall) -> impl Iterator<Item = &Expr> {
    let named = call.arguments.keywords.iter().map(|each| &each.value);
    call.arguments.args.iter().chain(named)
}

pub fn is_true(expression: &Expr) -> bool {
    matches!(expression, Expr::BooleanLiteral(literal) if literal.value)
}

pub fn is_false(expression: &Expr) -> bool {
    matches!(expression, Expr::BooleanLiteral(literal) if !literal.value)
}

/// Whether a call passes `name=True`.
pub fn says_true(call: &ExprCall, name: &str) -> bool {
    call.arguments
        .find_keyword(name)
        .is_some_and(|keyword| is_true(&keyword.value))
}

/// The name of a function that is called by a plain name: `len` of `len(x)`.
pub fn plain_callee(call: &ExprCall) -> Option<&str> {
    match &*call.func {
        Expr::Name(name) => Some(name.id.as_str()),
        _ => None,
    }
}

/// Whether an expression calls a function by this plain name.
pub fn calls(expression: &Expr, name: &str) -> bool {
    matches!(expression, Expr::Call(call) if plain_callee(call) == Some(name))
}

/// `count` of `range(count)`.
pub fn range_count(iterated: &Expr) -> Option<&Expr> {
    match iterated {
        Expr::Call(call) if plain_callee(call) == Some("range") => match &*call.arguments.args {
            [count] => Some(count),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a node is another or inside it.
pub fn holds(outer: &impl Ranged, inner: &impl Ranged) -> bool {
    let (outer, inner) = (span(outer), span(inner));
    outer.start <= inner.start && inner.end <= outer.end
}

/// The last name of a path: `count` of `args.count`.
pub fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}
