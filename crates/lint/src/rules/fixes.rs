//! Edits that several rules offer.

use crate::facts::Facts;
use crate::facts::structure::UnitId;
use crate::finding::Edit;
use crate::python::{Expr, ExprCall, Keyword, Stmt, span};

/// Adds `.detach()` to an expression.
pub fn without_graph(facts: &Facts<'_>, expression: &Expr) -> Vec<Edit> {
    with_method(facts, expression, ".detach()")
}

/// Adds a method call to an expression, in parentheses where it needs them.
pub fn with_method(facts: &Facts<'_>, expression: &Expr, method: &str) -> Vec<Edit> {
    let range = span(expression);
    let binds_tightly = matches!(
        expression,
        Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_)
    ) || is_parenthesized(facts, expression);
    if binds_tightly {
        vec![Edit::insert(
            end_with_parentheses(facts, expression),
            method,
        )]
    } else {
        vec![
            Edit::insert(range.start, "("),
            Edit::insert(range.end, format!("){method}")),
        ]
    }
}

/// Decorates a function that does not differentiate.
pub fn decorated(facts: &Facts<'_>, unit: UnitId, decorator: &str) -> Option<Vec<Edit>> {
    let node = facts.structure.units[unit].node?;
    let differentiates = facts
        .calls_in_unit(unit)
        .any(|call| facts.differentiates(call.node));
    if differentiates || !facts.imports.has_plain("torch") {
        return None;
    }
    // The line of the name, not of the first decorator.
    let line = facts.source.whole_lines(&span(&node.name)).start;
    let indent: String = facts.source.text()[line..]
        .chars()
        .take_while(|letter| matches!(letter, ' ' | '\t'))
        .collect();
    Some(vec![Edit::insert(line, format!("{indent}@{decorator}\n"))])
}

fn is_parenthesized(facts: &Facts<'_>, expression: &Expr) -> bool {
    end_with_parentheses(facts, expression) != span(expression).end
}

/// The end of an expression, including its closing parenthesis if it has one.
fn end_with_parentheses(facts: &Facts<'_>, expression: &Expr) -> usize {
    let text = facts.source.text();
    let range = span(expression);
    let before = text[..range.start].trim_end_matches([' ', '\t']);
    let after = &text[range.end..];
    let inner = after.trim_start_matches([' ', '\t']);
    // The parentheses in `f(x)` belong to the call, not to `x`.
    let opens = before.strip_suffix('(').is_some_and(|call| {
        !call.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ')' | ']'))
    });
    if opens && inner.starts_with(')') {
        range.end + (after.len() - inner.len()) + 1
    } else {
        range.end
    }
}

/// Removes the keyword of this name from a call.
pub fn without_argument(facts: &Facts<'_>, call: &ExprCall, name: &str) -> Option<Vec<Edit>> {
    Some(without_keyword(
        facts,
        call,
        call.arguments.find_keyword(name)?,
    ))
}

/// Removes a keyword from a call, with its comma.
pub fn without_keyword(facts: &Facts<'_>, call: &ExprCall, keyword: &Keyword) -> Vec<Edit> {
    let text = facts.source.text();
    let range = span(keyword);
    let before = text[..range.start].trim_end();
    if before.ends_with(',') {
        return vec![Edit::delete(before.len() - 1..range.end)];
    }
    // For the first argument, remove the comma after it.
    let close = span(call).end;
    let after = &text[range.end..close];
    let rest = after.trim_start();
    let end = match rest.strip_prefix(',') {
        Some(next) => close - next.trim_start().len(),
        None => range.end,
    };
    vec![Edit::delete(range.start..end)]
}

/// Adds a keyword after a call's last argument; `None` for a call that is not closed, or whose only
/// argument is an unparenthesized generator.
pub fn with_keyword(facts: &Facts<'_>, call: &ExprCall, keyword: &str) -> Option<Vec<Edit>> {
    let text = facts.source.text();
    let close = span(call).end.checked_sub(1)?;
    if text.as_bytes().get(close) != Some(&b')') {
        return None;
    }
    let arguments = &call.arguments;
    if matches!(&*arguments.args, [Expr::Generator(generator)] if !generator.parenthesized) {
        return None;
    }
    let last = arguments
        .args
        .iter()
        .map(|each| span(each).end)
        .chain(arguments.keywords.iter().map(|each| span(each).end))
        .max();
    Some(match last {
        Some(end) => {
            let behind = end + own_parentheses(text.get(end..close)?);
            vec![Edit::insert(behind, format!(", {keyword}"))]
        }
        None => vec![Edit::insert(close, keyword)],
    })
}

/// The end of the parentheses around an argument, before its comma and comments.
fn own_parentheses(behind: &str) -> usize {
    let mut reached = 0;
    let mut in_comment = false;
    for (at, letter) in behind.char_indices() {
        match letter {
            '\n' => in_comment = false,
            _ if in_comment => {}
            '#' => in_comment = true,
            ')' => reached = at + 1,
            ',' => break,
            _ => {}
        }
    }
    reached
}

/// Deletes a statement that has its line (or lines) to itself; writes `pass` where it is the only one in
/// its block.
pub fn without_statement(facts: &Facts<'_>, statement: &Stmt) -> Option<Vec<Edit>> {
    let text = facts.source.text();
    let range = span(statement);
    let lines = facts.source.whole_lines(&range);
    let before = &text[lines.start..range.start];
    let after = text[range.end..lines.end].trim();
    if !before.trim().is_empty() || !(after.is_empty() || after.starts_with('#')) {
        return None;
    }
    let alone = facts
        .structure
        .statements
        .iter()
        .find(|(other, _)| std::ptr::eq(*other, statement))
        .is_none_or(|(_, place)| {
            facts
                .structure
                .statements
                .iter()
                .filter(|(_, other)| other.block == place.block)
                .count()
                < 2
        });
    Some(vec![if alone {
        Edit::replace(range, "pass")
    } else {
        Edit::delete(lines)
    }])
}
