//! JSON: what the text report says, and all of it, for other programs.
//!
//! The document is versioned and described in `docs/report-json.md`; its types are in [`document`]. Numbers are
//! bytes, never text; the same recording gives the same bytes.

mod card;
mod document;

use std::io::Write;

use ghostgpu_recording::Recording;

use crate::error::ReportError;
pub use document::Breakdown;
use document::{About, Document, SCHEMA};

/// What the JSON document has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingJsonOptions {
    /// At most so many lines, operators and holders, the largest first; the rest is one sum.
    pub max_rows: usize,
}

impl Default for RecordingJsonOptions {
    fn default() -> Self {
        Self { max_rows: 200 }
    }
}

/// Whose memory it was, for the document of `ghostgpu run --json`.
pub fn recording_breakdown(recording: &Recording, options: &RecordingJsonOptions) -> Breakdown {
    let cards = recording.cards.iter();
    Breakdown {
        schema: SCHEMA,
        warnings: recording.warnings.clone(),
        cards: cards
            .map(|card| card::describe(recording, card, options))
            .collect(),
    }
}

/// Writes the document, indented, with a newline at its end.
pub fn write_recording_json(
    recording: &Recording,
    options: &RecordingJsonOptions,
    mut out: impl Write,
) -> Result<(), ReportError> {
    let about = &recording.about;
    let cards = recording.cards.iter();
    let document = Document {
        schema: SCHEMA,
        about: About {
            command: about.command.clone(),
            torch: about.torch.clone(),
            gpu: about.gpu.clone(),
            gpu_total_bytes: about.gpu_total_bytes,
            capability: about.capability.clone(),
            optimizer_steps: about.steps,
        },
        answer: serde_json::from_str(&about.answer_json).ok(),
        warnings: recording.warnings.clone(),
        cards: cards
            .map(|card| card::describe(recording, card, options))
            .collect(),
    };
    serde_json::to_writer_pretty(&mut out, &document)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::made_up::{MadeUp, recording, recording_at_random};
    use proptest::prelude::*;

    use super::*;

    fn written(recording: &Recording) -> String {
        let mut out = Vec::new();
        write_recording_json(recording, &RecordingJsonOptions { max_rows: 2 }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_document_has_parts_stages_steps_holders_growth_and_the_rule_of_thumb() {
        insta::assert_snapshot!(written(&recording(MadeUp {
            layers: 2,
            steps: 3
        })));
    }

    proptest! {
        #[test]
        fn parts_add_up_in_any_document(seed: u64, events in 0_usize..200) {
            let recording = recording_at_random(seed, events);
            let document: serde_json::Value = serde_json::from_str(&written(&recording)).unwrap();
            for (card, memory) in document["cards"].as_array().unwrap().iter().zip(&recording.cards) {
                for moment in ["at_peak", "at_reserved_peak", "at_end"] {
                    let accounts = &card[moment];
                    let parts = accounts["parts"].as_object().unwrap().values();
                    let sum: u64 = parts.map(|bytes| bytes.as_u64().unwrap()).sum();
                    let reserved = accounts["reserved_bytes"].as_u64().unwrap();
                    prop_assert_eq!(sum, reserved + memory.outside_bytes);
                }
            }
            prop_assert_eq!(written(&recording), written(&recording));
        }
    }
}
