//! Folded stacks: `frame;frame;frame bytes`, outermost first, as flame graph tools read them.

use std::collections::BTreeMap;
use std::io::Write;

use ghostgpu_trace::Snapshot;

use crate::error::ReportError;
use crate::holdings::{Selection, holdings};
use crate::origin::frames_from_outermost;

/// Writes what is live at a moment, one line for each stack, in the order of their texts.
///
/// With several devices, the outermost frame is the device.
pub fn write_folded(
    snapshot: &Snapshot,
    selection: Selection,
    mut out: impl Write,
) -> Result<(), ReportError> {
    let devices = holdings(snapshot, selection)?;
    let mut bytes_by_line: BTreeMap<String, u64> = BTreeMap::new();
    for device in &devices {
        for (owner, held) in device
            .by_owner
            .iter()
            .filter(|(_, held)| held.live_bytes > 0)
        {
            let mut frames = Vec::new();
            if devices.len() > 1 {
                frames.push(format!("device {}", device.device));
            }
            frames.extend(
                frames_from_outermost(snapshot, owner.origin)
                    .map(|frame| without_separators(&frame.text(snapshot))),
            );
            let bytes = bytes_by_line.entry(frames.join(";")).or_default();
            *bytes = bytes.saturating_add(held.live_bytes);
        }
    }
    for (line, bytes) in bytes_by_line {
        writeln!(out, "{line} {bytes}")?;
    }
    out.flush()?;
    Ok(())
}

/// A frame that cannot be taken for two, or for the end of its line.
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
    use ghostgpu_trace::{EventKind, StackId};

    use super::*;
    use crate::holdings::At;
    use crate::test_snapshot::TestSnapshot;

    fn folded(snapshot: &Snapshot, at: At) -> String {
        let selection = Selection { at, device: None };
        let mut out = Vec::new();
        write_folded(snapshot, selection, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_a_stack_from_the_outermost_frame_with_its_live_bytes() {
        let mut test = TestSnapshot::new();
        let linear = test.stack(&["linear@/torch/nn.py", "main@/home/me/train.py"]);
        let step = test.stack(&["step@/torch/adam.py", "main@/home/me/train.py"]);
        test.event_at(0, EventKind::Alloc, 0, 100, linear);
        test.event_at(0, EventKind::Alloc, 512, 20, linear);
        test.event_at(0, EventKind::Alloc, 1024, 5, step);
        test.free(0, 100).free(2048, 8);
        let peak = folded(&test.snapshot, At::Peak);
        assert_eq!(
            peak,
            "(allocated before the trace) 8\n\
             main (/home/me/train.py:1);linear (/torch/nn.py:1) 120\n\
             main (/home/me/train.py:1);step (/torch/adam.py:1) 5\n"
        );
        let end = folded(&test.snapshot, At::End);
        assert!(end.contains("linear (/torch/nn.py:1) 20\n"), "{end}");
        let first = At::Event {
            device: 0,
            event: 0,
        };
        let first = folded(&test.snapshot, first);
        assert!(first.contains("linear (/torch/nn.py:1) 100\n"), "{first}");
    }

    #[test]
    fn several_devices_are_told_apart_by_the_outermost_frame() {
        let mut test = TestSnapshot::new();
        test.event_at(1, EventKind::Alloc, 0, 7, StackId::NONE);
        test.event_at(0, EventKind::Alloc, 0, 9, StackId::NONE);
        assert_eq!(
            folded(&test.snapshot, At::End),
            "device 0;(no stack recorded) 9\ndevice 1;(no stack recorded) 7\n"
        );
    }

    #[test]
    fn a_frame_with_a_separator_stays_one_frame() {
        let mut test = TestSnapshot::new();
        let stack = test.stack(&["a;b\nc@x y.py"]);
        test.event_at(0, EventKind::Alloc, 0, 7, stack);
        assert_eq!(folded(&test.snapshot, At::End), "a:b c (x y.py:1) 7\n");
    }

    #[test]
    fn a_moment_or_a_device_that_is_not_there_is_refused() {
        let mut test = TestSnapshot::new();
        test.alloc(0, 1);
        let refused = |at, device| {
            let selection = Selection { at, device };
            let error = write_folded(&test.snapshot, selection, Vec::new()).unwrap_err();
            error.to_string()
        };
        let after = At::Event {
            device: 0,
            event: 1,
        };
        assert_eq!(
            refused(after, None),
            "device 0 has 1 events, and no event 1"
        );
        assert_eq!(
            refused(At::Peak, Some(3)),
            "the snapshot has no device 3; it has 0"
        );
    }
}
