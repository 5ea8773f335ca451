//! The answer as JSON; `docs/run-json.md` describes it.

use ghostgpu_report::{Breakdown, JsonOptions, breakdown};
use serde::Serialize;

use crate::fits::Answer;
use crate::growth::Scaling;
use ghostgpu_rehearse::Memory;

/// How many lines, operators and holders the answer has: only the largest, because each holder includes its stack.
/// `ghostgpu report --json` has more of them.
const MAX_ROWS: usize = 20;

/// The document of `ghostgpu run --json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    /// Whose memory it was, as in the report; null if it was not recorded.
    breakdown: Option<Breakdown>,
    /// Why it was not recorded.
    breakdown_missing_because: Option<&'a str>,
    /// How memory grows with the batch and the sequence; null without `--grow`.
    grows_with: Option<&'a Scaling>,
}

/// The document, pretty-printed, with a trailing newline.
pub fn json_answer(
    answer: &Answer,
    memory: &Memory,
    scaling: Option<&Scaling>,
) -> serde_json::Result<String> {
    let options = JsonOptions {
        card: None,
        max_rows: MAX_ROWS,
    };
    let document = Document {
        answer,
        breakdown: memory
            .recording()
            .map(|recording| breakdown(recording, &options)),
        breakdown_missing_because: memory.missing_because(),
        grows_with: scaling,
    };
    crate::in_json(&document)
}
