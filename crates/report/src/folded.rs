//! Folded stacks: `frame;frame;frame bytes`, outermost first, as flame graph tools read them.

use std::collections::BTreeMap;
use std::io::Write;

use ghostgpu_recording::{Recording, StackId};

use crate::error::ReportError;
use crate::selection::{Selection, chosen, counted_bytes};
use crate::text;

/// Writes what is live at a moment, one line per stack, in alphabetical order.
///
/// With several cards, the outermost frame is the card.
pub fn write_folded(
    recording: &Recording,
    selection: Selection,
    mut out: impl Write,
) -> Result<(), ReportError> {
    let cards = chosen(recording, selection)?;
    let mut bytes_by_line: BTreeMap<String, u64> = BTreeMap::new();
    for (ledger, moment) in &cards {
        // By stack; allocations without one, by whether they are older than the recording.
        let mut bytes_by_stack: BTreeMap<(StackId, bool), u64> = BTreeMap::new();
        for (_, one) in ledger.live_at(*moment) {
            let is_older = one.stack == StackId(0) && one.allocated_at.is_none();
            let bytes = bytes_by_stack.entry((one.stack, is_older)).or_default();
            *bytes = bytes.saturating_add(counted_bytes(recording, one));
        }
        for ((stack, is_older), held) in bytes_by_stack.into_iter().filter(|one| one.1 > 0) {
            let mut line = Vec::new();
            if cards.len() > 1 {
                line.push(format!("device {}", ledger.card().index));
            }
            let frames = text::frames(&recording.names, stack).rev();
            let known = line.len();
            line.extend(frames.map(|frame| without_separators(&text::frame(frame))));
            if line.len() == known {
                line.push(
                    if is_older {
                        text::OLDER
                    } else {
                        text::NO_STACK
                    }
                    .to_owned(),
                );
            }
            let bytes = bytes_by_line.entry(line.join(";")).or_default();
            *bytes = bytes.saturating_add(held);
        }
    }
    for (line, bytes) in bytes_by_line {
        writeln!(out, "{line} {bytes}")?;
    }
    out.flush()?;
    Ok(())
}

/// The frame's text without separators and line breaks.
fn without_separators(frame: &str) -> String {
    frame
        .chars()
        .map(|character| match character {
            ';' => ':',
            character if character.is_control() => ' ',
            character => character,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::Category;
    use ghostgpu_recording::made_up::{ByHand, Origin};

    use super::*;
    use crate::selection::At;

    fn folded(recording: &Recording, selection: Selection) -> Result<String, ReportError> {
        let mut out = Vec::new();
        write_folded(recording, selection, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn at(at: At) -> Selection {
        Selection { at, card: None }
    }

    #[test]
    fn live_bytes_are_summed_by_stack_and_separators_are_replaced() {
        let mut by_hand = ByHand::new();
        let origin = Origin {
            lines: &["a;b\nc.py:1", "main.py:2"],
            ..Origin::default()
        };
        by_hand.allocate(700, Category::Temporary, origin);
        let gone = by_hand.allocate(100, Category::Temporary, Origin::default());
        by_hand.allocate(300, Category::Temporary, origin);
        by_hand.free(gone);
        let recording = by_hand.recording;
        let lines = "main (main.py:2);main (a:b c.py:1) 1536\n";
        assert_eq!(folded(&recording, at(At::End)).unwrap(), lines);
        let peak = format!("(no stack recorded) 512\n{lines}");
        assert_eq!(folded(&recording, at(At::Peak)).unwrap(), peak);
    }

    #[test]
    fn a_moment_or_a_card_that_is_not_there_is_refused() {
        let recording = ByHand::new().recording;
        let refused = |selection| folded(&recording, selection).unwrap_err().to_string();
        assert_eq!(
            refused(at(At::Event { card: 0, event: 0 })),
            "device 0 has 0 events, and no event 0"
        );
        let missing = Selection {
            at: At::Peak,
            card: Some(3),
        };
        assert_eq!(refused(missing), "there is no device 3, only 0");
    }
}
