//! The interface to ruff's parser: text in, syntax tree, comments and syntax errors out.
//!
//! Ruff's crates have no stable interface. Everything the rules need from them goes through this module,
//! so a new version touches one file.

pub use ruff_python_ast::{
    self as ast, Arguments, CmpOp, ExceptHandler, Expr, ExprAttribute, ExprCall, Keyword, Number,
    Operator, Parameters, Stmt, StmtClassDef, StmtFor, StmtFunctionDef, StmtIf, StmtTry, StmtWith,
    UnaryOp,
};
pub use ruff_text_size::{Ranged, TextRange, TextSize};

mod nesting;

use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, Parsed};

/// A file's syntax tree. With syntax errors, the tree of what could be parsed.
pub struct Tree {
    parsed: Parsed<ast::ModModule>,
    comments: Vec<Range<usize>>,
    long_lines: Vec<Range<usize>>,
    errors: Vec<SyntaxError>,
}

/// A syntax error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub message: String,
    pub range: Range<usize>,
}

/// The dialect of the text: notebooks may contain magics (`%matplotlib inline`, `!pip`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Python,
    Notebook,
}

impl Dialect {
    fn mode(self) -> Mode {
        match self {
            Self::Python => Mode::Module,
            Self::Notebook => Mode::Ipython,
        }
    }
}

impl Tree {
    pub fn parse(text: &str, dialect: Dialect) -> Self {
        Self::parse_measured(text, dialect, levels(text, dialect))
    }

    /// The same where [`levels`] of the text are known.
    pub fn parse_measured(text: &str, dialect: Dialect, levels: usize) -> Self {
        let mode = dialect.mode();
        if levels > nesting::MOST_LEVELS {
            return Self::nothing(format!(
                "the code is nested more than {} levels deep: CPython would not compile it",
                nesting::MOST_LEVELS
            ));
        }
        let (parsed, gave_up) = match parse(text, mode) {
            Some(parsed) => (parsed, false),
            // As plain Python, only the magics are errors.
            None => match parse(text, Mode::Module) {
                Some(parsed) => (parsed, true),
                None => return Self::nothing(GAVE_UP.to_owned()),
            },
        };
        let comments = parsed
            .tokens()
            .iter()
            .filter(|token| token.kind() == TokenKind::Comment)
            .map(|token| bytes(token.range()))
            .collect();
        let long_lines = long_lines(text, &parsed);
        let mut errors: Vec<SyntaxError> = parsed
            .errors()
            .iter()
            .map(|error| SyntaxError {
                message: error.error.to_string(),
                range: bytes(error.location),
            })
            .collect();
        if gave_up && errors.is_empty() {
            errors.push(SyntaxError {
                message: GAVE_UP.to_owned(),
                range: 0..0,
            });
        }
        Self {
            parsed,
            comments,
            long_lines,
            errors,
        }
    }

    /// An empty tree, with the reason.
    fn nothing(reason: String) -> Self {
        let parsed = ruff_python_parser::parse_unchecked("", ParseOptions::from(Mode::Module))
            .try_into_module()
            .expect("a module was asked for");
        Self {
            parsed,
            comments: Vec::new(),
            long_lines: Vec::new(),
            errors: vec![SyntaxError {
                message: reason,
                range: 0..0,
            }],
        }
    }

    pub fn body(&self) -> &[Stmt] {
        self.parsed.suite()
    }

    /// The comments, in order of position, each with its `#`.
    pub fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    /// Statements (for a loop or definition, its header) that span several lines, in order.
    pub fn long_lines(&self) -> &[Range<usize>] {
        &self.long_lines
    }

    pub fn errors(&self) -> &[SyntaxError] {
        &self.errors
    }
}

/// The message for a text on which ruff's parser panics.
const GAVE_UP: &str = "the parser failed on this text";

/// The tree, or `None` where the parser panics: it does on some notebook text
/// (`fuzz/corpus/lint/parser_fault`).
fn parse(text: &str, mode: Mode) -> Option<Parsed<ast::ModModule>> {
    let parse = || ruff_python_parser::parse_unchecked(text, ParseOptions::from(mode));
    let parsed = std::panic::catch_unwind(parse).ok()?;
    Some(parsed.try_into_module().expect("a module was asked for"))
}

fn long_lines(text: &str, parsed: &Parsed<ast::ModModule>) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = None;
    for token in parsed.tokens().iter() {
        match token.kind() {
            TokenKind::Newline => {
                let line = start.take().unwrap_or(token.start())..token.start();
                let line = line.start.to_usize()..line.end.to_usize();
                if text[line.clone()].contains(['\n', '\r']) {
                    lines.push(line);
                }
            }
            TokenKind::NonLogicalNewline
            | TokenKind::Comment
            | TokenKind::Indent
            | TokenKind::Dedent => {}
            _ => start = start.or(Some(token.start())),
        }
    }
    lines
}

/// A ruff range as byte positions.
pub fn bytes(range: TextRange) -> Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}

/// The bytes of a node.
pub fn span(node: &impl Ranged) -> Range<usize> {
    bytes(node.range())
}

/// Runs `walk` with a stack that grows with the depth of the tree: a file decides that depth.
pub fn deep<R>(walk: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(128 * 1024, 4 * 1024 * 1024, walk)
}

/// Enough stack for any operation on the deepest tree.
const LARGE_STACK: usize = 256 << 20;

/// Trees with fewer levels can be walked and freed on any stack.
const FEW_LEVELS: usize = 100;

/// At least as many levels as the tree of `text` has.
pub fn levels(text: &str, dialect: Dialect) -> usize {
    nesting::levels(text, dialect.mode())
}

/// Runs `work`, which parses, walks and frees a tree of `levels` levels, with enough stack.
pub fn with_stack_for<R>(levels: usize, work: impl FnOnce() -> R) -> R {
    match levels <= FEW_LEVELS {
        true => work(),
        false => stacker::grow(LARGE_STACK, work),
    }
}
