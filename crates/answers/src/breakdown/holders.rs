//! The largest holders at the peak, each with the stack that made it.

use ghostgpu_ledger::{CardLedger, HolderGroup};
use ghostgpu_recording::{Frame, FrameOwner, Source};

use super::lines::{short_title, shown_file};
use crate::style::Style;
use ghostgpu_text::{Sheet, human, shortened};

const MOST_HOLDERS: usize = 2;

pub(super) fn add(sheet: &mut Sheet, ledger: &CardLedger, style: Style) {
    let holders = ledger.holders(ledger.peak().moment);
    let largest = holders.iter().take(MOST_HOLDERS);
    let width = sheet.text_width();
    let lines = largest.flat_map(|holder| {
        [
            what(ledger, holder, width),
            stack(ledger, holder, width, style),
        ]
    });
    sheet.section("holders", lines);
}

/// `1.50 GiB activations, 12 blocks, by aten::linear in layers.*`.
fn what(ledger: &CardLedger, holder: &HolderGroup, width: usize) -> String {
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
    shortened(&text, width, width / 2)
}

/// The stack on one line, innermost first, as far as there is room; torch's own frames only if there are no others.
fn stack(ledger: &CardLedger, holder: &HolderGroup, width: usize, style: Style) -> String {
    let names = &ledger.recording().names;
    let frames: Vec<&Frame> = names
        .stacks
        .get(holder.stack.0 as usize)
        .into_iter()
        .flatten()
        .filter_map(|id| names.frames.get(id.0 as usize))
        .collect();
    if frames.is_empty() {
        return match ledger.recording().about.source {
            Source::Rehearsal => "  no Python stack: made by autograd or by a library".to_owned(),
            Source::Snapshot => "  no stack was recorded".to_owned(),
        };
    }
    let of_interest: Vec<&&Frame> = frames
        .iter()
        .filter(|frame| frame.owner != FrameOwner::Torch)
        .collect();
    let shown = match of_interest.is_empty() {
        true => frames.iter().collect(),
        false => of_interest,
    };
    one_line(&shown, width, style)
}

/// The innermost frame and the user's own, then as many others, innermost first, as there is room for; `…` replaces the
/// rest.
fn one_line(frames: &[&&Frame], width: usize, style: Style) -> String {
    let mut order: Vec<usize> = (0..frames.len()).collect();
    order.sort_by_key(|&at| (at > 0 && frames[at].owner != FrameOwner::User, at));
    let mut chosen: Vec<usize> = Vec::new();
    for at in order {
        let mut wider = chosen.clone();
        wider.push(at);
        wider.sort_unstable();
        if chosen.is_empty() || joined(frames, &wider, style).chars().count() <= width {
            chosen = wider;
        }
    }
    shortened(&joined(frames, &chosen, style), width, 2)
}

fn joined(frames: &[&&Frame], chosen: &[usize], style: Style) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = 0;
    for &at in chosen {
        if at > next {
            parts.push("…".to_owned());
        }
        let frame = frames[at];
        let function = match frame.function.as_str() {
            "" | "<module>" => String::new(),
            function => format!(" in {function}"),
        };
        let file = match frame.owner {
            FrameOwner::User => shown_file(&frame.file, style),
            // The function says more than a package's folders.
            _ => frame.file.rsplit('/').next().unwrap_or(&frame.file),
        };
        parts.push(format!("{file}:{}{function}", frame.line));
        next = at + 1;
    }
    if next < frames.len() {
        parts.push("…".to_owned());
    }
    format!("  {}", parts.join(" ← "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::PLAIN;

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
        let style = PLAIN;
        let frames = [
            frame("model.py", 5, "forward"),
            frame("train.py", 9, "main"),
            frame("train.py", 12, "<module>"),
        ];
        let all: Vec<&Frame> = frames.iter().collect();
        let shown: Vec<&&Frame> = all.iter().collect();
        assert_eq!(
            one_line(&shown, 85, style),
            "  model.py:5 in forward ← train.py:9 in main ← train.py:12"
        );
        let mut deep: Vec<Frame> = vec![frames[0].clone(); 30];
        for frame in &mut deep[..29] {
            frame.owner = FrameOwner::Package;
        }
        deep[29] = frame("train.py", 9, "main");
        let all: Vec<&Frame> = deep.iter().collect();
        let text = one_line(&all.iter().collect::<Vec<_>>(), 85, style);
        assert_eq!(
            text,
            "  model.py:5 in forward ← model.py:5 in forward ← … ← train.py:9 in main"
        );
    }
}
