//! The conditions under which a place is reached, and which of them hold once every n iterations.

use super::Facts;
use super::batches::option_name;
use super::structure::{Assign, BlockId, BlockKind, Call, Place};
use crate::python::{CmpOp, Expr, Number, Operator, Stmt, UnaryOp, ast, span};
use crate::syntax::says_true;

/// A test and whether it held.
#[derive(Debug, Clone, Copy)]
pub struct Condition<'a> {
    pub test: &'a Expr,
    pub holds: bool,
    /// The alternatives of which the test is one (`every or last`).
    pub ways: Option<&'a ast::ExprBoolOp>,
}

/// `counter % count == 0`: holds once every `count` iterations.
#[derive(Debug, Clone, Copy)]
pub struct Every<'a> {
    pub counter: &'a Expr,
    pub count: &'a Expr,
}

impl<'a> Facts<'a> {
    /// The conditions under which a call inside `until` is reached.
    pub fn conditions_of(&self, call: &Call<'a>, until: BlockId) -> Vec<Condition<'a>> {
        self.conditions_at(call.place, span(call.node).start, until)
    }

    /// The conditions under which a place (at this byte) inside `until` is reached: the `if`s
    /// around it, and the `if ...: continue` before it. Names of conditions are followed to
    /// their tests.
    pub fn conditions_at(&self, place: Place, at: usize, until: BlockId) -> Vec<Condition<'a>> {
        let mut found = Vec::new();
        for (test, holds) in self.structure.conditions(place.block, until) {
            self.take_apart(test, holds, None, 0, &mut found);
        }
        let around: Vec<BlockId> = self
            .structure
            .enclosing(place.block)
            .map(|(id, _)| id)
            .take_while(|id| *id != until)
            .chain([until])
            .collect();
        for (statement, other) in &self.structure.statements {
            if other.order >= place.order {
                break;
            }
            if let Stmt::If(node) = statement
                && around.contains(&other.block)
                && node.body.last().is_some_and(leaves)
                // The place may be in that same branch.
                && !span(node).contains(&at)
            {
                self.take_apart(&node.test, false, None, 0, &mut found);
            }
        }
        found
    }

    /// Splits a test into the parts that must all hold.
    fn take_apart(
        &self,
        test: &'a Expr,
        holds: bool,
        ways: Option<&'a ast::ExprBoolOp>,
        depth: usize,
        found: &mut Vec<Condition<'a>>,
    ) {
        match test {
            Expr::UnaryOp(ast::ExprUnaryOp {
                op: UnaryOp::Not,
                operand,
                ..
            }) => self.take_apart(operand, !holds, ways, depth, found),
            Expr::BoolOp(operation) => {
                let all = (operation.op == ast::BoolOp::And) == holds;
                let ways = if all { ways } else { ways.or(Some(operation)) };
                for part in &operation.values {
                    self.take_apart(part, holds, ways, depth, found);
                }
            }
            Expr::Name(name) if depth < 2 => {
                let mut bound = self
                    .structure
                    .assigns
                    .iter()
                    .filter(|assign| self.path(assign.target) == Some(name.id.as_str()));
                match (bound.next(), bound.next()) {
                    (
                        Some(Assign {
                            value,
                            operator: None,
                            ..
                        }),
                        None,
                    ) => self.take_apart(value, holds, ways, depth + 1, found),
                    _ => found.push(Condition { test, holds, ways }),
                }
            }
            _ => found.push(Condition { test, holds, ways }),
        }
    }

    /// Whether a condition around a call is never true: a comparison of constants (`cards = 1`,
    /// `if cards > 1`), or a command-line flag that is always on (`action="store_true", default=True`).
    pub fn is_never_reached(&self, call: &Call<'a>) -> bool {
        let unit = self.structure.unit_of(call.place.block);
        self.conditions_of(call, self.structure.units[unit].block)
            .iter()
            .any(|condition| {
                !condition.holds && self.is_always_on(condition.test)
                    || condition.ways.is_none()
                        && self.is_known(condition.test) == Some(!condition.holds)
            })
    }

    /// The result of comparing two integer constants.
    fn is_known(&self, test: &Expr) -> Option<bool> {
        let Expr::Compare(comparison) = test else {
            return None;
        };
        let ([operator], [right]) = (&*comparison.ops, &*comparison.comparators) else {
            return None;
        };
        let (left, right) = (self.constant(&comparison.left)?, self.constant(right)?);
        match operator {
            CmpOp::Eq => Some(left == right),
            CmpOp::NotEq => Some(left != right),
            CmpOp::Lt => Some(left < right),
            CmpOp::LtE => Some(left <= right),
            CmpOp::Gt => Some(left > right),
            CmpOp::GtE => Some(left >= right),
            _ => None,
        }
    }

    fn is_always_on(&self, test: &Expr) -> bool {
        let Expr::Attribute(attribute) = test else {
            return false;
        };
        self.structure.calls.iter().any(|call| {
            let arguments = &call.node.arguments;
            let text = |expression: &Expr| match expression {
                Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
                _ => None,
            };
            let stores_true = arguments
                .find_keyword("action")
                .is_some_and(|keyword| text(&keyword.value).as_deref() == Some("store_true"));
            let is_named = arguments
                .args
                .iter()
                .filter_map(text)
                .any(|name| option_name(&name) == attribute.attr.as_str());
            stores_true && is_named && says_true(call.node, "default")
        })
    }

    /// Whether a test can change from one iteration of a loop to the next: it names something the loop
    /// binds, or calls something. From one call of a function to the next, any test can.
    pub fn varies_in(&self, rounds: BlockId, test: &Expr) -> bool {
        let mut varies = matches!(self.structure.blocks[rounds].kind, BlockKind::Unit);
        super::each_expression(test, &mut |part| {
            varies |= match part {
                Expr::Call(call) => !self.is_fixed_call(call),
                _ => self
                    .path(part)
                    .is_some_and(|path| self.is_changed_inside(rounds, path)),
            };
        });
        varies
    }

    /// Whether a call returns the same in every iteration: `hasattr(args, "clip")`.
    fn is_fixed_call(&self, call: &ast::ExprCall) -> bool {
        matches!(&*call.func, Expr::Name(name)
            if matches!(name.id.as_str(), "hasattr" | "getattr" | "isinstance" | "len" | "bool"))
            || self
                .callee(call)
                .is_some_and(|name| name.starts_with("torch.cuda.") || name.starts_with("os."))
    }

    /// The count of a condition that holds once every n iterations.
    pub fn every(&self, condition: &Condition<'a>) -> Option<Every<'a>> {
        let remainder = |expression: &'a Expr| match expression {
            Expr::BinOp(operation) if operation.op == Operator::Mod => Some(Every {
                counter: &operation.left,
                count: &operation.right,
            }),
            _ => None,
        };
        let every = match condition.test {
            Expr::Compare(comparison) if self.is_set_back(condition, comparison) => Some(Every {
                counter: &comparison.left,
                count: comparison.comparators.first()?,
            }),
            Expr::Compare(comparison) => {
                let wanted = if condition.holds {
                    CmpOp::Eq
                } else {
                    CmpOp::NotEq
                };
                if *comparison.ops != [wanted] {
                    return None;
                }
                remainder(&comparison.left)
                    .or_else(|| comparison.comparators.first().and_then(remainder))
            }
            test if !condition.holds => remainder(test),
            _ => None,
        }?;
        // `%` on a string is not a remainder, and a count of one is not a window.
        let is_text = matches!(every.counter, Expr::StringLiteral(_) | Expr::FString(_));
        (!is_text && self.constant(every.count) != Some(1)).then_some(every)
    }

    /// `if seen == n: ...; seen = 0` for a counter that goes up by one: holds once every `n` iterations.
    fn is_set_back(&self, condition: &Condition<'a>, comparison: &ast::ExprCompare) -> bool {
        let Some(counter) = self.path(&comparison.left) else {
            return false;
        };
        if !condition.holds || !matches!(*comparison.ops, [CmpOp::Eq] | [CmpOp::GtE]) {
            return false;
        }
        let assigns = || {
            self.structure
                .assigns
                .iter()
                .filter(|assign| self.path(assign.target) == Some(counter))
        };
        let goes_up = assigns()
            .any(|assign| assign.operator == Some(Operator::Add) && is_number(assign.value, 1));
        goes_up
            && assigns().any(|assign| {
                assign.operator.is_none()
                    && is_number(assign.value, 0)
                    && self
                        .structure
                        .enclosing(assign.place.block)
                        .any(|(_, kind)| {
                            matches!(kind, BlockKind::If { test, holds: true, .. }
                                if std::ptr::eq(test, condition.test))
                        })
            })
    }

    /// The integer value of an expression: a literal, or the only value of a variable.
    pub fn constant(&self, expression: &Expr) -> Option<i64> {
        match expression {
            Expr::NumberLiteral(ast::ExprNumberLiteral {
                value: Number::Int(number),
                ..
            }) => number.as_i64(),
            Expr::Attribute(attribute) => self.constant_attribute(attribute.attr.as_str()),
            _ => {
                let path = self.path(expression)?;
                let mut bound = self
                    .structure
                    .assigns
                    .iter()
                    .filter(|assign| self.targets(assign.target, path));
                let only = bound.next()?;
                if bound.next().is_some()
                    || only.operator.is_some()
                    || self.path(only.target) != Some(path)
                    || self.is_parameter(path)
                {
                    return None;
                }
                match only.value {
                    Expr::NumberLiteral(_) | Expr::Attribute(_) => self.constant(only.value),
                    _ => None,
                }
            }
        }
    }

    /// The number of an attribute that only a class body of the file sets: a configuration.
    fn constant_attribute(&self, name: &str) -> Option<i64> {
        let mut bound = self
            .structure
            .assigns
            .iter()
            .filter(|assign| match assign.target {
                Expr::Attribute(target) => target.attr.as_str() == name,
                Expr::Name(target) => {
                    target.id.as_str() == name
                        && matches!(
                            self.structure.blocks[assign.place.block].kind,
                            BlockKind::Class(_)
                        )
                }
                _ => false,
            });
        let only = bound.next()?;
        match only.value {
            Expr::NumberLiteral(_) if bound.next().is_none() && only.operator.is_none() => {
                self.constant(only.value)
            }
            _ => None,
        }
    }

    /// Whether a statement mentions a path, in its own expressions or in nested statements.
    pub fn statement_mentions(&self, statement: &Stmt, path: &str) -> bool {
        let mut found = false;
        super::each_expression_of(statement, &mut |part| {
            found |= self.path(part) == Some(path);
        });
        found
    }

    /// Whether a function in the file has a parameter of this name.
    pub fn is_parameter(&self, name: &str) -> bool {
        self.structure.units.iter().any(|unit| {
            unit.node.is_some_and(|node| {
                node.parameters
                    .iter()
                    .any(|parameter| parameter.name().as_str() == name)
            })
        })
    }
}

fn is_number(expression: &Expr, wanted: u64) -> bool {
    matches!(expression, Expr::NumberLiteral(ast::ExprNumberLiteral {
        value: Number::Int(number),
        ..
    }) if number.as_u64() == Some(wanted))
}

/// Whether control does not continue after a statement.
pub fn leaves(statement: &Stmt) -> bool {
    matches!(
        statement,
        Stmt::Continue(_) | Stmt::Break(_) | Stmt::Return(_) | Stmt::Raise(_)
    )
}
