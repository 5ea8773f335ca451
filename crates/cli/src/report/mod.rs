//! Answers as people and programs read them.

mod breakdown;
mod json;
mod next;
mod one_line;
mod peak;
mod short;
mod text;
mod verdict;

pub use breakdown::breakdown_answer;
pub use json::json_report;
pub use next::FollowUps;
pub use one_line::{add as add_one_line_each, one_line};
pub use peak::figures;
pub use verdict::Headline;

use crate::answer::Answer;
use crate::terminal::{Detail, Look};
use ghostgpu_rehearse::Memory;

/// The answer to "does it fit?", as much of it as is asked for.
pub fn text_answer(answer: &Answer, memory: &Memory, follow_ups: &FollowUps, look: Look) -> String {
    match look.detail {
        Detail::Quiet => Headline::of(answer).alone(look),
        Detail::Screen => short::short_answer(answer, memory, follow_ups, look),
        Detail::Everything => text::full_answer(answer, memory, look),
    }
}

#[cfg(test)]
pub mod tests;
