//! What an out-of-memory error in a log means, and what to do about it.

mod candidates_in_words;
mod combinations;
mod figures;
mod picture;
mod rehearsed;
mod short;
mod text;

pub use candidates_in_words::{Typed, rehearsed};
use ghostgpu_explain::{Catalogue, Environment, Explanation, Log, Series};
pub use rehearsed::Rehearsed;
use serde::Serialize;

use crate::in_json;
use crate::style::{Detail, Style};

/// Adding a field keeps the version; `docs/explain-json.md` describes them.
const SCHEMA: &str = "ghostgpu.explain/1";

/// The JSON document; the text shows the same.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    explanation: &'a Explanation,
    log: LogSummary<'a>,
    rehearsed: Option<&'a Rehearsed>,
    exit_code: u8,
}

/// What else the log says.
#[derive(Debug, Serialize)]
struct LogSummary<'a> {
    bytes: u64,
    /// Failures that were counted, but not kept.
    left_out: u64,
    environment: &'a Environment,
    memory_prints: &'a [Series],
}

/// What the text and the document contain.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The language of the text, which is that of the explanation.
    pub catalogue: &'a Catalogue,
    pub log: &'a Log,
    pub explanation: &'a Explanation,
    pub rehearsed: Option<&'a Rehearsed>,
}

impl Answer<'_> {
    /// The text in the requested detail.
    pub fn text(&self, style: Style) -> String {
        match style.detail {
            Detail::Quiet => short::headline(self).alone(style),
            Detail::Screen => short::short_text(self, style),
            Detail::Everything => text::full_text(self, style),
        }
    }

    /// The document, which `docs/explain-json.md` describes.
    pub fn json(&self, exit_code: u8) -> serde_json::Result<String> {
        let log = self.log;
        in_json(&Document {
            schema: SCHEMA,
            explanation: self.explanation,
            log: LogSummary {
                bytes: log.bytes,
                left_out: log.left_out,
                environment: &log.environment,
                memory_prints: &log.memory_prints,
            },
            rehearsed: self.rehearsed,
            exit_code,
        })
    }
}
