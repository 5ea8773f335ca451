//! Estimates how deep a text is nested before it is parsed.
//!
//! The file decides how deep its expressions go (`((((…`, `not not not …`, `a.b.c.…`), and everything
//! that walks or frees a syntax tree needs stack for every level. So the depth is estimated first, and
//! what CPython would not compile is not parsed at all.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// More levels than this are refused. CPython itself gives up on far fewer of most kinds.
pub const MOST_LEVELS: usize = 5_000;

/// At least as many levels as the syntax tree of `text` will have.
///
/// Every token that could begin a level counts as one; a comma or the end of a statement separates
/// siblings.
pub fn levels(text: &str, mode: Mode) -> usize {
    // Every level takes a byte.
    if text.len() <= 64 {
        return text.len();
    }
    let mut lexer = lexer::lex(text, mode);
    let mut most = 0;
    let mut blocks = 0usize;
    let mut open: Vec<Chain> = Vec::new();
    let mut below = 0;
    let mut chain = Chain::default();
    loop {
        match lexer.next_token() {
            TokenKind::EndOfFile => return most,
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline => {}
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                chain.links += 1;
                below += chain.length();
                open.push(std::mem::take(&mut chain));
            }
            TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd => {
                if let Some(outer) = open.pop() {
                    below -= outer.length();
                    chain = outer;
                }
            }
            TokenKind::Comma => chain.links = 0,
            TokenKind::Newline | TokenKind::Semi => {
                open.clear();
                below = 0;
                chain = Chain::default();
            }
            TokenKind::Lambda => chain.lambdas += 1,
            _ => chain.links += 1,
        }
        most = most.max(blocks + below + chain.length());
    }
}

/// The state inside one pair of brackets.
#[derive(Default)]
struct Chain {
    links: usize,
    /// Lambda parameters have commas that separate no siblings.
    lambdas: usize,
}

impl Chain {
    fn length(&self) -> usize {
        self.links + self.lambdas
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_nesting_is_counted() {
        let count = 1_000;
        let nested = [
            format!("{}1{}", "(".repeat(count), ")".repeat(count)),
            format!("{}1{}", "[".repeat(count), "]".repeat(count)),
            format!("x = {}1", "not ".repeat(count)),
            format!("x = {}1", "-".repeat(count)),
            format!("x = a{}", "+a".repeat(count)),
            format!("x = a{}", ".a".repeat(count)),
            format!("x = a{}", "()".repeat(count)),
            format!("x = a{}", "[0]".repeat(count)),
            format!("x = {}0", "lambda a, b: ".repeat(count)),
            format!("x = {}0", "1 if a else ".repeat(count)),
            format!("x = {}a", "a ** ".repeat(count)),
            format!("x = {}a{}", "f(1, a=".repeat(count), ")".repeat(count)),
            (0..count)
                .map(|depth| format!("{}if a:\n", " ".repeat(depth)))
                .chain([format!("{}pass\n", " ".repeat(count))])
                .collect(),
        ];
        for text in nested {
            let levels = levels(&text, Mode::Module);
            assert!(levels >= count, "{levels} in {:.40}", text);
        }
    }

    #[test]
    fn siblings_are_not_deep() {
        let flat = [
            format!("x = [{}]", "-0.5, ".repeat(10_000)),
            format!("x = {{{}}}", "'a': f(-1.0), ".repeat(10_000)),
            "f(a.b.c(1), d)\n".repeat(10_000),
            "x = 1;".repeat(10_000),
        ];
        for text in flat {
            let levels = levels(&text, Mode::Module);
            assert!(levels < 20, "{levels} in {:.40}", text);
        }
    }
}
