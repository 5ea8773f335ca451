//! Does it fit? The answer to that, in three lengths and as JSON.

mod answer;
mod covered;
mod json;
pub(crate) mod next;
mod short;
mod text;

pub use answer::{Answer, Circumstances, Need, add_peak_ranges, answer, assumed_sizes_in_words};
pub use json::json_answer;
pub use next::FollowUps;

use ghostgpu_ledger::CardLedger;
use ghostgpu_recording::NextCommand;
use ghostgpu_rehearse::Memory;

use crate::headline::VerdictHeadline;
use crate::peak;
use crate::style::{Detail, Style};

/// The answer to "does it fit?", in the requested detail.
pub fn text_answer(
    answer: &Answer,
    memory: &Memory,
    follow_ups: &FollowUps,
    style: Style,
) -> String {
    match style.detail {
        Detail::Quiet => VerdictHeadline::of(answer).alone(style),
        Detail::Screen => short::short_answer(answer, memory, follow_ups, style),
        Detail::Everything => text::full_answer(answer, memory, style),
    }
}

/// The command to type next, as the short text shows it.
pub fn next_command(
    answer: &Answer,
    memory: &Memory,
    follow_ups: &FollowUps,
) -> Option<NextCommand> {
    let ledger = memory.recording().and_then(CardLedger::of_fullest);
    let grows = ledger.is_some_and(|ledger| peak::matters(&ledger.growth()));
    follow_ups.choose(answer, grows).map(NextCommand::from)
}

#[cfg(test)]
pub(crate) mod tests;
