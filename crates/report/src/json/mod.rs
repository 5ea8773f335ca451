//! JSON: the full contents of the text report, for other programs.
//!
//! The document is versioned and described in `docs/report-json.md`; its types are in [`document`]. Numbers are
//! bytes, never text; the same recording gives the same bytes.

mod card;
mod document;

use std::io::Write;

use ghostgpu_recording::{Recording, Source};

use crate::error::ReportError;
use crate::selection::cards;
pub use document::Breakdown;
use document::{About, Document, SCHEMA};

/// What to put into the JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonOptions {
    /// Only this card.
    pub card: Option<u32>,
    /// At most this many lines, operators and holders, the largest first; the rest is one sum.
    pub max_rows: usize,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            card: None,
            max_rows: 200,
        }
    }
}

/// The breakdown for the document of `ghostgpu run --json`.
pub fn breakdown(recording: &Recording, options: &JsonOptions) -> Breakdown {
    let cards = recording.cards.iter();
    Breakdown {
        schema: SCHEMA,
        warnings: recording.warnings.clone(),
        cards: cards
            .map(|card| card::describe(recording, card, options))
            .collect(),
    }
}

/// Writes the document, pretty-printed, with a trailing newline.
pub fn write_json(
    recording: &Recording,
    options: &JsonOptions,
    mut out: impl Write,
) -> Result<(), ReportError> {
    let about = &recording.about;
    let cards = cards(recording, options.card)?.into_iter();
    let document = Document {
        schema: SCHEMA,
        about: About {
            source: match about.source {
                Source::Rehearsal => "rehearsal",
                Source::Snapshot => "snapshot",
            },
            command: about.command.clone(),
            torch: about.torch.clone(),
            gpu: about.gpu.clone(),
            gpu_total_bytes: about.gpu_total_bytes,
            capability: about.capability.clone(),
            allocator_settings: about.allocator_settings.clone(),
            optimizer_steps: about.steps,
        },
        answer: about.answer.as_ref(),
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

    use ghostgpu_snapshot::{BlockState, EventKind};

    use super::*;
    use crate::test_snapshot::{SEGMENT_BYTES, TestSnapshot};

    fn written(recording: &Recording) -> String {
        let mut out = Vec::new();
        write_json(
            recording,
            &JsonOptions {
                card: None,
                max_rows: 2,
            },
            &mut out,
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_document_has_parts_stages_steps_holders_growth_and_the_rule_of_thumb() {
        insta::assert_snapshot!(written(&recording(MadeUp {
            layers: 2,
            steps: 3
        })));
    }

    #[test]
    fn the_document_of_a_snapshot_has_what_it_knows_and_null_for_the_rest() {
        let mut test = TestSnapshot::new();
        let stack = test.stack(&["linear@nn.py", "main@train.py"]);
        test.event(EventKind::SegmentAlloc, 0, SEGMENT_BYTES);
        test.event_at(0, EventKind::Alloc, 0, 700, stack);
        test.alloc(1024, 100).free(1024, 100).free(2048, 30);
        test.event_at(0, EventKind::Oom, 0, 9000, stack);
        test.segment(&[
            (0, 700, BlockState::Allocated),
            (1024, 100, BlockState::Inactive),
        ]);
        insta::assert_snapshot!(written(&test.recording()));
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
