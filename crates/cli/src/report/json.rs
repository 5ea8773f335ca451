//! The answer as JSON.

use crate::answer::Answer;

/// One pretty-printed document with a line break at its end.
pub fn json_report(answer: &Answer) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(answer)?;
    text.push('\n');
    Ok(text)
}
