//! One file per family of messages: the words that identify it, and how to read its figures.

mod apple;
mod cuda_calls;
mod cupy_paddle;
mod data_loader;
mod graphics;
mod host_kills;
mod host_memory;
mod host_programs;
mod libraries;
mod llama_cpp;
mod loose_figures;
mod malloc_async;
mod mps;
mod nccl;
mod other_allocators;
mod other_devices;
mod pytorch;
mod servers;
mod tensorflow;
mod triton;
mod unsaid;
mod vllm;
mod windows;
mod workers;
mod xla;

use std::sync::LazyLock;

use regex::Regex;

use crate::amount::{Amount, read_amount};
use crate::finding::Figures;
use crate::kind::Kind;
use crate::window::Window;
use crate::wording::Wording;

pub use loose_figures::add_figures_beside;

/// A family of messages: what to search for, and how to read it.
pub struct Family {
    /// Lines with any of these are read.
    pub needles: &'static [&'static str],
    pub read: fn(&Window) -> Vec<Message>,
}

/// A message found in a window.
#[derive(Debug)]
pub struct Message {
    pub kind: Kind,
    pub figures: Figures,
    pub wording: Option<Wording>,
    /// Offsets in the squeezed text.
    pub start: usize,
    pub end: usize,
}

impl Message {
    pub fn new(kind: Kind, start: usize, end: usize) -> Self {
        Self {
            kind,
            figures: Figures::default(),
            wording: None,
            start,
            end,
        }
    }
}

pub static FAMILIES: [Family; 24] = [
    pytorch::FAMILY,
    malloc_async::FAMILY,
    mps::FAMILY,
    cuda_calls::FAMILY,
    libraries::FAMILY,
    nccl::FAMILY,
    host_memory::FAMILY,
    host_kills::FAMILY,
    data_loader::FAMILY,
    xla::FAMILY,
    tensorflow::FAMILY,
    vllm::FAMILY,
    llama_cpp::FAMILY,
    other_allocators::FAMILY,
    triton::FAMILY,
    cupy_paddle::FAMILY,
    servers::FAMILY,
    windows::FAMILY,
    apple::FAMILY,
    graphics::FAMILY,
    other_devices::FAMILY,
    host_programs::FAMILY,
    workers::FAMILY,
    unsaid::FAMILY,
];

/// A regular expression that is compiled once.
pub(crate) struct Pattern(LazyLock<Option<Regex>>);

impl Pattern {
    pub(crate) const fn new(compile: fn() -> Option<Regex>) -> Self {
        Self(LazyLock::new(compile))
    }

    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<regex::Match<'t>> {
        self.0.as_ref()?.find(text)
    }

    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<regex::Captures<'t>> {
        self.0.as_ref()?.captures(text)
    }

    pub(crate) fn all<'t>(&self, text: &'t str) -> Vec<regex::Captures<'t>> {
        match self.0.as_ref() {
            Some(pattern) => pattern.captures_iter(text).collect(),
            None => Vec::new(),
        }
    }

    /// All matches except those in source lines that a traceback shows.
    pub(crate) fn printed<'t>(&self, text: &'t str) -> impl Iterator<Item = regex::Captures<'t>> {
        let is_printed = |found: &regex::Captures| !is_source_code(text, range(found).0);
        self.all(text).into_iter().filter(is_printed)
    }
}

/// Compiles a pattern. An invalid one matches nothing, and fails in tests.
pub(crate) fn compile(text: &str) -> Option<Regex> {
    let pattern = Regex::new(text);
    debug_assert!(pattern.is_ok(), "{pattern:?}");
    pattern.ok()
}

/// The text of a pattern for any case. Letters and digits are ASCII: with all of Unicode's, a few repetitions take
/// megabytes.
pub(crate) fn in_any_case(text: &str) -> String {
    let text = text.replace("{A}", AMOUNT);
    let text = text.replace(r"\w", "[0-9A-Za-z_]").replace(r"\d", "[0-9]");
    format!("(?i){text}")
}

/// `pattern!(NAME, "…")`; `{A}` stands for an amount without whitespace. The case of letters does not
/// matter: people type messages off.
macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: $crate::families::Pattern = $crate::families::Pattern::new(|| {
            $crate::families::compile(&$crate::families::in_any_case($text))
        });
    };
}
pub(crate) use pattern;

/// The same where the case of letters matters.
macro_rules! cased_pattern {
    ($name:ident, $text:expr) => {
        static $name: $crate::families::Pattern =
            $crate::families::Pattern::new(|| $crate::families::compile($text));
    };
}
pub(crate) use cased_pattern;

/// An amount in squeezed text.
pub(crate) const AMOUNT: &str = r"[0-9][0-9.,]*(?:bytes|byte|字节|[kKMGTP]i?B|B)";

/// The amount in a group of a match.
pub(crate) fn amount(found: &regex::Captures, group: usize) -> Option<Amount> {
    read_amount(found.get(group)?.as_str()).map(|read| read.0)
}

/// An amount, or a plain number of bytes.
pub(crate) fn amount_or_bytes(text: &str) -> Option<Amount> {
    match read_amount(text) {
        Some((amount, _)) => Some(amount),
        None => text.replace(',', "").parse().ok().map(Amount::exact),
    }
}

/// The number in a group of a match.
pub(crate) fn number(found: &regex::Captures, group: usize) -> Option<u64> {
    let digits = found.get(group)?.as_str().replace(',', "");
    digits.parse().ok()
}

/// The end of a text.
pub(crate) fn last_characters(text: &str, count: usize) -> &str {
    let cut = text.char_indices().rev().nth(count.saturating_sub(1));
    cut.map_or(text, |(cut, _)| &text[cut..])
}

/// The whole match.
pub(crate) fn range(found: &regex::Captures) -> (usize, usize) {
    found.get(0).map_or((0, 0), |all| (all.start(), all.end()))
}

/// The match is a string literal in a source line of a traceback, not a message.
pub(crate) fn is_source_code(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    before.ends_with("(\"")
        || before.ends_with("('")
        || before.ends_with("f\"")
        || before.ends_with("=\"")
        || before.ends_with("in\"")
        || before.ends_with("==\"")
}
