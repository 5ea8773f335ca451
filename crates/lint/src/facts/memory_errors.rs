//! Handlers that catch an out-of-memory error.

use super::branches::ends_the_process;
use super::structure::{BlockId, BlockKind};
use super::{Facts, each_expression};
use crate::python::{Expr, Stmt, StmtTry, ast, span};

/// A handler that catches an out-of-memory error, with its `try`.
#[derive(Debug, Clone, Copy)]
pub struct Rescue<'a> {
    pub handler: &'a ast::ExceptHandlerExceptHandler,
    pub block: BlockId,
    /// The body of the `try`.
    pub tried: BlockId,
}

impl<'a> Facts<'a> {
    /// The handlers meant for out-of-memory errors: by the class they catch, by the text they search the
    /// message for, or because they empty the cache.
    pub fn rescues(&self) -> Vec<Rescue<'a>> {
        let mut found = Vec::new();
        for (block, each) in self.structure.blocks.iter().enumerate() {
            let BlockKind::Handler(handler) = each.kind else {
                continue;
            };
            let may_be = self.may_be_memory(handler) && self.frees_memory(block);
            if !self.is_for_memory(handler) && !may_be {
                continue;
            }
            let tried = self.structure.blocks.iter().position(|other| {
                other.parent == each.parent
                    && matches!(other.kind, BlockKind::Try(node) if has_handler(node, handler))
            });
            if let Some(tried) = tried {
                found.push(Rescue {
                    handler,
                    block,
                    tried,
                });
            }
        }
        found
    }

    fn is_for_memory(&self, handler: &ast::ExceptHandlerExceptHandler) -> bool {
        let named = handler.type_.as_deref().is_some_and(|caught| {
            let mut found = false;
            each_expression(caught, &mut |part| {
                found |= self.imports.qualified(part).is_some_and(|name| {
                    name.starts_with("torch.") && name.ends_with(".OutOfMemoryError")
                });
            });
            found
        });
        named || self.asks_for_memory(handler)
    }

    /// Whether the handler can catch an out-of-memory error.
    fn may_be_memory(&self, handler: &ast::ExceptHandlerExceptHandler) -> bool {
        handler.type_.as_deref().is_none_or(|caught| {
            let mut found = false;
            each_expression(caught, &mut |part| {
                found |= matches!(part, Expr::Name(name)
                    if matches!(name.id.as_str(), "RuntimeError" | "Exception" | "BaseException"));
            });
            found
        })
    }

    /// Whether a handler empties the allocator's cache, whatever error it caught.
    fn frees_memory(&self, block: BlockId) -> bool {
        self.calls_inside(block).any(|call| {
            self.callee(call.node)
                .is_some_and(|name| name == "torch.cuda.empty_cache")
        })
    }

    /// `if "out of memory" in str(e):`
    fn asks_for_memory(&self, handler: &ast::ExceptHandlerExceptHandler) -> bool {
        let asks = |test: &Expr| {
            let mut found = false;
            each_expression(test, &mut |part| {
                if let Expr::StringLiteral(text) = part {
                    let text = text.value.to_str().to_ascii_lowercase();
                    found |= text.contains("out of memory");
                }
            });
            found
        };
        let inside = span(handler);
        self.structure.statements.iter().any(|(statement, _)| {
            matches!(statement, Stmt::If(node)
                if inside.contains(&span(*statement).start)
                    && (asks(&node.test)
                        || node
                            .elif_else_clauses
                            .iter()
                            .any(|clause| clause.test.as_ref().is_some_and(asks))))
        })
    }
}

fn has_handler(node: &StmtTry, handler: &ast::ExceptHandlerExceptHandler) -> bool {
    node.handlers.iter().any(|each| {
        let crate::python::ExceptHandler::ExceptHandler(each) = each;
        std::ptr::eq(each, handler)
    })
}

/// Whether a body can end other than by `raise`, `return` or `break`: control continues after it, or
/// with the next iteration.
pub fn goes_on(body: &[Stmt]) -> bool {
    for statement in body {
        match statement {
            Stmt::Raise(_) | Stmt::Return(_) | Stmt::Break(_) => return false,
            Stmt::Continue(_) => return true,
            Stmt::If(node) => {
                let branches = || {
                    std::iter::once(&node.body)
                        .chain(node.elif_else_clauses.iter().map(|clause| &clause.body))
                };
                if branches().any(|branch| contains_continue(branch)) {
                    return true;
                }
                let has_else = node
                    .elif_else_clauses
                    .last()
                    .is_some_and(|clause| clause.test.is_none());
                if has_else && branches().all(|branch| !goes_on(branch)) {
                    return false;
                }
            }
            Stmt::Expr(node) if ends_the_process(&node.value) => return false,
            _ => {}
        }
    }
    true
}

fn contains_continue(body: &[Stmt]) -> bool {
    body.iter().any(|statement| match statement {
        Stmt::Continue(_) => true,
        Stmt::If(node) => {
            contains_continue(&node.body)
                || node
                    .elif_else_clauses
                    .iter()
                    .any(|clause| contains_continue(&clause.body))
        }
        _ => false,
    })
}
