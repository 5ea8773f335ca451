//! Whether what a container collects is used in computations on the card: then it belongs there.

use super::reads::direct_parts;
use super::structure::UnitId;
use super::{Facts, each_expression};
use crate::python::{CmpOp, Expr, ExprCall, ast, deep};

/// Methods whose result is in host memory.
const TO_HOST: &[&str] = &["cpu", "numpy", "tolist", "item"];

impl Facts<'_> {
    /// Whether what a container collects is used in a computation.
    pub fn is_used_on_card(&self, unit: UnitId, container: &str) -> bool {
        self.units_that_see(unit, container)
            .into_iter()
            .any(|unit| is_used_on_card_in(self, unit, container))
    }
}

fn is_used_on_card_in(facts: &Facts<'_>, unit: UnitId, container: &str) -> bool {
    let mut joined = vec![container.to_owned()];
    for assign in facts.assigns_in_unit(unit) {
        if let (Some(target), Expr::Call(call)) = (facts.path(assign.target), assign.value)
            && joins(facts, call)
            && joined.iter().any(|path| facts.mentions(assign.value, path))
        {
            joined.push(target.to_owned());
        }
    }
    let named = |expression: &Expr| {
        joined
            .iter()
            .any(|path| is_mentioned_on_card(facts, expression, path))
    };
    let computes = facts.calls_in_unit(unit).any(|call| {
        let given = call.node.arguments.args.iter().any(named);
        let called_on =
            matches!(&*call.node.func, Expr::Attribute(function) if named(&function.value));
        match facts.callee(call.node) {
            Some(name) => {
                given
                    && name.starts_with("torch.")
                    && !joins(facts, call.node)
                    && name != "torch.save"
                    && !facts.is_put_through(unit, call.node, TO_HOST)
            }
            None => {
                let method = match &*call.node.func {
                    Expr::Attribute(function) => function.attr.as_str(),
                    Expr::Name(name) => name.id.as_str(),
                    _ => "",
                };
                let harmless = matches!(
                    method,
                    "append"
                        | "extend"
                        | "cpu"
                        | "numpy"
                        | "tolist"
                        | "detach"
                        | "size"
                        | "print"
                        | "len"
                        | "view"
                        | "reshape"
                        | "squeeze"
                        | "float"
                        | "items"
                        | "zip"
                        | "enumerate"
                        | "range"
                        | "list"
                        | "data"
                        | "clear"
                );
                (given || called_on) && !harmless && !facts.is_put_through(unit, call.node, TO_HOST)
            }
        }
    });
    let mut operates = false;
    for (statement, place) in &facts.structure.statements {
        if facts.structure.unit_of(place.block) == unit {
            facts.each_expression_of_statement(statement, &mut |part| {
                operates |= match part {
                    Expr::BinOp(operation) => {
                        operands(facts, &joined, [&operation.left, &operation.right])
                    }
                    // `all is None` compares no contents.
                    Expr::Compare(comparison)
                        if matches!(*comparison.ops, [CmpOp::Is | CmpOp::IsNot]) =>
                    {
                        false
                    }
                    Expr::Compare(comparison) => comparison
                        .comparators
                        .iter()
                        .any(|right| operands(facts, &joined, [&comparison.left, right])),
                    _ => false,
                };
            });
        }
    }
    computes || operates
}

/// Whether an expression mentions a path, and not only what is moved to the host: `save(all.cpu())`.
fn is_mentioned_on_card(facts: &Facts<'_>, expression: &Expr, path: &str) -> bool {
    if facts.path(expression) == Some(path) {
        return true;
    }
    let moves = |part: &Expr| {
        matches!(part, Expr::Call(call)
            if matches!(&*call.func, Expr::Attribute(function)
                if TO_HOST.contains(&function.attr.as_str())))
    };
    // `[each.cpu() for each in all]` moves what it goes over.
    let is_moved = match expression {
        Expr::ListComp(ast::ExprListComp { elt, .. })
        | Expr::Generator(ast::ExprGenerator { elt, .. }) => {
            let mut found = false;
            each_expression(elt, &mut |part| found |= moves(part));
            found
        }
        other => moves(other),
    };
    if is_moved {
        return false;
    }
    let mut parts = Vec::new();
    direct_parts(expression, &mut parts);
    deep(|| (parts.into_iter()).any(|part| is_mentioned_on_card(facts, part, path)))
}

/// Whether one of two operands is what was collected, as it is, and the other a tensor too.
fn operands(facts: &Facts<'_>, collected: &[String], both: [&Expr; 2]) -> bool {
    both.iter().enumerate().any(|(index, operand)| {
        let other = both[1 - index];
        facts
            .path(operand)
            .is_some_and(|path| collected.iter().any(|each| each == path))
            && !matches!(other, Expr::List(_) | Expr::NumberLiteral(_))
    })
}

fn joins(facts: &Facts<'_>, call: &ExprCall) -> bool {
    facts.callee(call).is_some_and(|name| {
        matches!(
            name.as_str(),
            "torch.cat" | "torch.stack" | "torch.concat" | "torch.vstack" | "torch.hstack"
        )
    })
}
