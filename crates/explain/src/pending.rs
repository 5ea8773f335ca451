//! Lines of one writer, kept until the message among them is complete.

use std::collections::VecDeque;

use crate::clean::Writer;
use crate::collected::Collected;
use crate::families::{FAMILIES, Message, add_figures_beside};
use crate::finding::Finding;
use crate::kind::Kind;
use crate::needles::Readers;
use crate::progress::Progress;
use crate::traceback::Traceback;
use crate::window::Window;

/// A line that looks like a message, with the state when it arrived.
#[derive(Debug)]
pub struct Anchor {
    /// The index of the line. Lines that carriage returns separate share a number, but not this.
    pub sequence: u64,
    pub number: u64,
    pub readers: Readers,
    pub traceback: Option<Traceback>,
    pub progress: Option<Progress>,
}

/// How many lines before and after an anchor may belong to its message.
pub const LINES_BEFORE: usize = 3;
const LINES_AFTER: usize = 14;

/// In a narrow column a message has more lines, but not more characters.
const MOST_LINES_AFTER: usize = 80;
const BYTES_AFTER: usize = 1000;

/// A message is complete when its writer has been silent for this many lines.
const SILENCE: u64 = 400;

/// Bytes of squeezed text after a message in which it may be repeated.
const BESIDE: usize = 80;

#[derive(Debug, Default)]
pub struct Pending {
    lines: VecDeque<(u64, String)>,
    anchors: VecDeque<Anchor>,
    /// The last line that looked like a message, and the readers that need it.
    last_readers: Option<(u64, Readers)>,
}

impl Pending {
    /// Starts with earlier lines.
    pub fn new(before: Vec<(u64, String)>) -> Self {
        Self {
            lines: before.into(),
            ..Self::default()
        }
    }

    pub fn push(&mut self, sequence: u64, text: &str) {
        self.lines.push_back((sequence, text.to_owned()));
    }

    pub fn add_anchor(&mut self, mut anchor: Anchor) {
        // A reader that matched the last lines may see this one as part of the same message.
        if let Some((sequence, before)) = self.last_readers
            && anchor.sequence.saturating_sub(sequence) <= LINES_BEFORE as u64
        {
            anchor.readers = anchor.readers.with(before);
        }
        self.last_readers = Some((anchor.sequence, anchor.readers));
        self.anchors.push_back(anchor);
    }

    pub fn is_done(&self) -> bool {
        self.anchors.is_empty()
    }

    /// Reads the messages that are followed by enough lines.
    pub fn read_complete(&mut self, now: u64, writer: &Writer, collected: &mut Collected) {
        while let Some(anchor) = self.anchors.front() {
            let at = self.position(anchor.sequence);
            let is_complete = self.last_after(at).is_some();
            let is_silent = now.saturating_sub(anchor.sequence) > SILENCE;
            if !is_complete && !is_silent {
                return;
            }
            self.read_first(writer, collected);
        }
    }

    pub fn read_all(&mut self, writer: &Writer, collected: &mut Collected) {
        while !self.anchors.is_empty() {
            self.read_first(writer, collected);
        }
    }

    fn position(&self, sequence: u64) -> usize {
        self.lines.partition_point(|(each, _)| *each < sequence)
    }

    /// The last line that may belong to a message in this one; `None` while more may come.
    fn last_after(&self, at: usize) -> Option<usize> {
        let mut bytes = 0;
        for (index, (_, text)) in self.lines.iter().enumerate().skip(at) {
            bytes += text.len();
            let after = index - at;
            if after >= MOST_LINES_AFTER || (after >= LINES_AFTER && bytes >= BYTES_AFTER) {
                return Some(index);
            }
        }
        None
    }

    fn read_first(&mut self, writer: &Writer, collected: &mut Collected) {
        let Some(anchor) = self.anchors.pop_front() else {
            return;
        };
        let at = self.position(anchor.sequence);
        let first = at.saturating_sub(LINES_BEFORE);
        let last = self.last_after(at);
        let last = last.unwrap_or_else(|| self.lines.len().saturating_sub(1));
        let lines: Vec<&(u64, String)> = self.lines.range(first..=last).collect();
        let texts = lines.iter().map(|line| line.1.as_str()).collect();
        let mut window = Window::new(texts, at - first);
        // A message goes on in later lines, which may tell whose it is.
        let end = lines.last().map_or(anchor.sequence, |line| line.0);
        let later = self
            .anchors
            .iter()
            .take_while(|later| later.sequence <= end);
        let readers = later.fold(anchor.readers, |all, later| all.with(later.readers));
        let mut messages = messages_in(&window, readers);
        if let Some(joined) = window.without_breaks() {
            let more = messages_in(&joined, readers);
            if information(&joined, &more) > information(&window, &messages) {
                (window, messages) = (joined, more);
            }
        }
        for message in messages {
            let line = window.line_at(message.start);
            // A message that begins later has its own anchor.
            if !window.is_wanted(message.start) {
                continue;
            }
            let Some((sequence, _)) = lines.get(line) else {
                continue;
            };
            let place = (*sequence, message.start - window.start_of(line));
            let lines_before = anchor.sequence.saturating_sub(*sequence);
            collected.add(
                place,
                Finding {
                    kind: message.kind,
                    writer: writer.clone(),
                    line: anchor.number.saturating_sub(lines_before).max(1),
                    sequence: *sequence,
                    times: 1,
                    text: window.readable(message.start, message.end),
                    figures: message.figures,
                    wording: message.wording,
                    traceback: anchor.traceback.clone(),
                    progress: anchor.progress.clone(),
                },
            );
        }
        // Lines before the next message's window are no longer needed.
        let next = self
            .anchors
            .front()
            .map(|next| self.position(next.sequence));
        let done = next.map_or(0, |next| next.saturating_sub(LINES_BEFORE));
        self.lines.drain(..done);
    }
}

/// The messages that the families find in a window.
fn messages_in(window: &Window, readers: Readers) -> Vec<Message> {
    let mut messages: Vec<Message> = FAMILIES
        .iter()
        .enumerate()
        .filter(|(index, _)| readers.family(*index))
        .flat_map(|(_, family)| (family.read)(window))
        .collect();
    keep_the_best(window, &mut messages);
    for message in &mut messages {
        add_figures_beside(window, message);
    }
    messages
}

/// How much the messages that begin in time say.
fn information(window: &Window, messages: &[Message]) -> usize {
    let wanted = messages
        .iter()
        .filter(|message| window.is_wanted(message.start));
    wanted
        .map(|message| usize::from(message.kind.weight()) + message.figures.count())
        .sum()
}

/// Several families may match the same words: keeps the most informative message.
fn keep_the_best(window: &Window, messages: &mut Vec<Message>) {
    messages.sort_by_key(|message| (std::cmp::Reverse(message.kind.weight()), message.start));
    let mut kept: Vec<Message> = Vec::new();
    for message in messages.drain(..) {
        let is_same = |other: &Message| {
            let overlaps = message.start < other.end && other.start < message.end;
            // `CUDA error: out of memory` beside a message that says more.
            let is_beside = message.start < other.end + BESIDE
                || window.line_at(message.start) == window.line_at(other.start);
            let is_call = matches!(message.kind, Kind::CudaCall | Kind::CudaProgram);
            let is_echo = is_call && other.start <= message.start && is_beside;
            overlaps || is_echo
        };
        if !kept.iter().any(is_same) {
            kept.push(message);
        }
    }
    kept.sort_by_key(|message| message.start);
    *messages = kept;
}
