//! The one door to ruff's parser: text in, syntax tree, comments and syntax errors out.
//!
//! Ruff publishes these crates without a promise about their interface. Everything the rules
//! need of them goes through this module, so that a new version touches one file.

pub use ruff_python_ast::{
    self as ast, Arguments, CmpOp, ExceptHandler, Expr, ExprAttribute, ExprCall, Keyword, Number,
    Operator, Parameters, Stmt, StmtClassDef, StmtFor, StmtFunctionDef, StmtIf, StmtTry, StmtWith,
    UnaryOp,
};
pub use ruff_text_size::{Ranged, TextRange, TextSize};

use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, Parsed};

/// A file's syntax tree. A file with syntax errors has the tree of what could be read.
pub struct Tree {
    parsed: Parsed<ast::ModModule>,
    comments: Vec<Range<usize>>,
    errors: Vec<SyntaxError>,
}

/// Text that is not Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub message: String,
    pub range: Range<usize>,
}

/// What the text is written in: notebooks may hold magics (`%matplotlib inline`, `!pip`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Python,
    Notebook,
}

impl Tree {
    pub fn parse(text: &str, dialect: Dialect) -> Self {
        let mode = match dialect {
            Dialect::Python => Mode::Module,
            Dialect::Notebook => Mode::Ipython,
        };
        let parsed = ruff_python_parser::parse_unchecked(text, ParseOptions::from(mode))
            .try_into_module()
            .expect("a module was asked for");
        let comments = parsed
            .tokens()
            .iter()
            .filter(|token| token.kind() == TokenKind::Comment)
            .map(|token| bytes(token.range()))
            .collect();
        let errors = parsed
            .errors()
            .iter()
            .map(|error| SyntaxError {
                message: error.error.to_string(),
                range: bytes(error.location),
            })
            .collect();
        Self {
            parsed,
            comments,
            errors,
        }
    }

    pub fn body(&self) -> &[Stmt] {
        self.parsed.suite()
    }

    /// The comments, in order of position, each with its `#`.
    pub fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    pub fn errors(&self) -> &[SyntaxError] {
        &self.errors
    }
}

/// A range of ruff's as plain byte positions.
pub fn bytes(range: TextRange) -> Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

/// The bytes a piece of syntax covers.
pub fn span(node: &impl Ranged) -> Range<usize> {
    bytes(node.range())
}

/// Runs `walk` with a stack that grows with the depth of the tree: a file decides that depth.
pub fn deep<R>(walk: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(128 * 1024, 4 * 1024 * 1024, walk)
}
