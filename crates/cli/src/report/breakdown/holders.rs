//! The largest holders at the peak, each with the stack that made it.

use ghostgpu_ledger::recording::{CardLedger, HolderGroup};
use ghostgpu_recording::{Frame, FrameOwner};

use super::lines::{short_title, shortened, shown_file};
use crate::report::sheet::{Sheet, TEXT_WIDTH};
use crate::report::text::Look;
use crate::size::human;

const MOST_HOLDERS: usize = 2;

pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger, look: Look) {
    let holders = ledger.holders(ledger.peak().moment);
    let largest = holders.iter().take(MOST_HOLDERS);
    let lines = largest.flat_map(|holder| [what(ledger, holder), stack(ledger, holder, look)]);
    sheet.section("holders", lines);
}

/// `1.50 GiB activations, 12 blocks, by aten::linear in layers.*`.
fn what(ledger: &CardLedger, holder: &HolderGroup) -> String {
    let operators = &ledger.recording().names.operators;
    let operator = operators.get(holder.operator.0 as usize);
    let mut text = format!(
        "{} {}, {}",
        human(holder.held.requested_bytes()),
        short_title(holder.category),
        match holder.held.count {
            1 => "1 block".to_owned(),
            count => format!("{count} blocks"),
        }
    );
    if let Some(operator) = operator.filter(|name| !name.is_empty()) {
        text.push_str(&format!(", by {operator}"));
    }
    if !holder.module.is_empty() {
        text.push_str(&format!(" in {}", holder.module));
    }
    shortened(&text, TEXT_WIDTH, TEXT_WIDTH / 2)
}

/// The stack on one line, innermost first, as far as there is room; what is torch's own only where there is
/// nothing else.
fn stack(ledger: &CardLedger, holder: &HolderGroup, look: Look) -> String {
    let names = &ledger.recording().names;
    let frames: Vec<&Frame> = names
        .stacks
        .get(holder.stack.0 as usize)
        .into_iter()
        .flatten()
        .filter_map(|id| names.frames.get(id.0 as usize))
        .collect();
    if frames.is_empty() {
        return "  no Python stack: made by autograd or by a library".to_owned();
    }
    let of_interest: Vec<&&Frame> = frames
        .iter()
        .filter(|frame| frame.owner != FrameOwner::Torch)
        .collect();
    let shown = match of_interest.is_empty() {
        true => frames.iter().collect(),
        false => of_interest,
    };
    one_line(&shown, look)
}

fn one_line(frames: &[&&Frame], look: Look) -> String {
    let mut text = String::new();
    for (place, frame) in frames.iter().enumerate() {
        let function = match frame.function.as_str() {
            "" | "<module>" => String::new(),
            function => format!(" in {function}"),
        };
        let file = shown_file(&frame.file, look);
        let next = format!("{file}:{}{function}", frame.line);
        let joint = if place == 0 { "  " } else { " ← " };
        let left = frames.len() - place;
        let room = TEXT_WIDTH - text.chars().count();
        // Room is left for the number of those that have none.
        let needed = (joint.chars().count() + next.chars().count()) + if left > 1 { 11 } else { 0 };
        if needed > room && place > 0 {
            return format!("{text} ← {left} more");
        }
        text.push_str(joint);
        text.push_str(&next);
    }
    shortened(&text, TEXT_WIDTH, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, line: u32, function: &str) -> Frame {
        Frame {
            file: file.to_owned(),
            line,
            function: function.to_owned(),
            owner: FrameOwner::User,
        }
    }

    #[test]
    fn a_stack_is_told_as_far_as_there_is_room() {
        let look = Look {
            has_colour: false,
            current_dir: None,
        };
        let frames = [
            frame("model.py", 5, "forward"),
            frame("train.py", 9, "main"),
            frame("train.py", 12, "<module>"),
        ];
        let all: Vec<&Frame> = frames.iter().collect();
        let shown: Vec<&&Frame> = all.iter().collect();
        assert_eq!(
            one_line(&shown, look),
            "  model.py:5 in forward ← train.py:9 in main ← train.py:12"
        );
        let deep: Vec<&&Frame> = std::iter::repeat_n(shown[0], 30).collect();
        let text = one_line(&deep, look);
        assert_eq!(text.matches("model.py:5 in forward").count(), 3);
        assert!(text.ends_with(" ← 27 more"), "{text}");
        assert!(text.chars().count() <= TEXT_WIDTH, "{text}");
    }
}
