//! The last lines of a log, kept because a later line may need them.

use std::collections::VecDeque;

use crate::clean::{Writer, text_of, without_prefixes};
use crate::collected::Collected;
use crate::pending::LINES_BEFORE;

/// The last few lines, in reused buffers.
#[derive(Debug, Default)]
pub struct Recent {
    lines: VecDeque<(u64, Vec<u8>)>,
}

impl Recent {
    pub fn keep(&mut self, sequence: u64, line: &[u8]) {
        let mut buffer = match self.lines.len() {
            LINES_BEFORE => self
                .lines
                .pop_front()
                .map(|oldest| oldest.1)
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        buffer.clear();
        buffer.extend_from_slice(line);
        self.lines.push_back((sequence, buffer));
    }

    pub fn last(&self) -> Option<&[u8]> {
        self.lines.back().map(|line| line.1.as_slice())
    }

    /// The lines of one writer among them, without prefixes.
    pub fn of_writer(&self, writer: &Writer) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        for (sequence, line) in &self.lines {
            let text = text_of(line);
            let unprefixed = without_prefixes(&text);
            if unprefixed.writer == *writer || unprefixed.writer == Writer::Unnamed {
                found.push((*sequence, unprefixed.text.to_owned()));
            }
        }
        found
    }
}

/// This many messages are all read; of the next, every second, then every fourth, …
const BUDGET: u64 = 400;

/// The last lines are always read.
const LAST_LINES: usize = 40;

/// Counts messages, and keeps the end of a log that has too many of them.
#[derive(Debug, Default)]
pub struct Tail {
    messages: u64,
    read: u64,
    lines: VecDeque<(u64, u64, Vec<u8>)>,
    is_over_budget: bool,
}

impl Tail {
    /// Whether to read a line; only messages count against the budget.
    pub fn is_budget_left(&mut self, is_message: bool, collected: &mut Collected) -> bool {
        if !is_message {
            return true;
        }
        self.messages += 1;
        let stride = self.stride();
        self.is_over_budget = stride > 1;
        let is_read = self.messages.is_multiple_of(stride);
        match is_read {
            true => self.read += 1,
            false => collected.count_unread(),
        }
        is_read
    }

    /// Whether the next message will only be counted.
    pub fn skips_the_next(&self) -> bool {
        !(self.messages + 1).is_multiple_of(self.stride())
    }

    /// Of so many messages one is read.
    fn stride(&self) -> u64 {
        let doublings = (self.read / BUDGET) as u32;
        1u64.checked_shl(doublings).unwrap_or(u64::MAX)
    }

    pub fn is_over_budget(&self) -> bool {
        self.is_over_budget
    }

    pub fn keep(&mut self, sequence: u64, number: u64, line: &[u8]) {
        if !self.is_over_budget {
            return;
        }
        let mut buffer = match self.lines.len() {
            LAST_LINES => self
                .lines
                .pop_front()
                .map(|oldest| oldest.2)
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        buffer.clear();
        buffer.extend_from_slice(line);
        self.lines.push_back((sequence, number, buffer));
    }

    pub fn take_unread(&mut self) -> VecDeque<(u64, u64, Vec<u8>)> {
        std::mem::take(&mut self.lines)
    }
}
