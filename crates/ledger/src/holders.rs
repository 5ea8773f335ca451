//! Who holds what is live: sums by line, function, stack, category or size.

use std::collections::HashMap;

use ghostgpu_pickle::SeededState;
use ghostgpu_trace::{FrameId, NameId, StackId};

use crate::allocation::Allocation;
use crate::annotations::OpenRanges;
use crate::ledger::{Ledger, Moment};
use crate::user_frames::UserFrames;

/// What allocations are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The user's own line.
    Line,
    /// The user's own function.
    Function,
    /// The whole stack.
    Stack,
    /// What the file calls it: an annotation of the block, its thread's metadata, or the range of
    /// `record_function` that was open. Never guessed: without any, it is unknown.
    Category,
    /// What was asked for.
    Size,
}

/// One holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// For people: `train.py:12 forward`, a category, a size in bytes.
    pub label: String,
    pub bytes: u64,
    pub block_bytes: u64,
    pub count: u64,
    /// Of these, how many are older than the recording.
    pub older_count: u64,
    /// The stack of its largest allocation.
    pub stack: StackId,
    /// The frame that it is summed up by, if it is a line or a function.
    pub frame: Option<FrameId>,
}

/// All holders of a moment, the largest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holders {
    pub moment: Moment,
    pub bytes: u64,
    pub block_bytes: u64,
    pub count: u64,
    pub holders: Vec<Holder>,
}

/// What makes two allocations the same holder's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Line(NameId, u64, NameId),
    Function(NameId, NameId),
    Stack(StackId),
    Name(NameId),
    Bytes(u64),
    /// There is no stack: older than the recording, or not.
    Unknown {
        is_older: bool,
    },
}

impl Ledger<'_> {
    /// Who holds what is live at a moment.
    pub fn holders(&self, moment: Moment, by: By) -> Holders {
        let live = self.live_at(moment);
        let user_frames = UserFrames::of(self.snapshot);
        let ranges = match by {
            By::Category => OpenRanges::of(&self.snapshot.annotations, self.device()),
            _ => OpenRanges::default(),
        };
        let mut sums: HashMap<Key, Sum, SeededState> = HashMap::default();
        for block in &live {
            let frame = user_frames.frame(block.stack);
            let key = self.key(by, block, frame, &ranges);
            sums.entry(key).or_default().add(block);
        }
        let mut holders: Vec<Holder> = sums
            .into_iter()
            .map(|(key, sum)| {
                let frame = match key {
                    Key::Line(..) | Key::Function(..) | Key::Stack(_) => {
                        user_frames.frame(sum.stack)
                    }
                    _ => None,
                };
                Holder {
                    label: self.label(key, frame),
                    bytes: sum.bytes,
                    block_bytes: sum.block_bytes,
                    count: sum.count,
                    older_count: sum.older_count,
                    stack: sum.stack,
                    frame,
                }
            })
            .collect();
        // By label and stack at the end, so that equal ones stand in the same order every time.
        holders.sort_by(|first, second| {
            let order = second.bytes.cmp(&first.bytes);
            order
                .then_with(|| first.label.cmp(&second.label))
                .then(first.stack.cmp(&second.stack))
        });
        Holders {
            moment,
            bytes: live
                .iter()
                .fold(0, |sum, block| sum.saturating_add(block.bytes)),
            block_bytes: live
                .iter()
                .fold(0, |sum, block| sum.saturating_add(block.block_bytes)),
            count: live.len() as u64,
            holders,
        }
    }

    fn key(&self, by: By, block: &Allocation, frame: Option<FrameId>, ranges: &OpenRanges) -> Key {
        let is_older = block.origin.is_older();
        match by {
            By::Size => return Key::Bytes(block.bytes),
            By::Category => {
                let range = || match is_older {
                    true => NameId::EMPTY,
                    false => ranges.at(block.time_us),
                };
                let name = if block.label != NameId::EMPTY {
                    block.label
                } else {
                    range()
                };
                return if name == NameId::EMPTY {
                    Key::Unknown { is_older }
                } else {
                    Key::Name(name)
                };
            }
            By::Stack if block.stack != StackId::NONE => return Key::Stack(block.stack),
            _ => {}
        }
        let Some(frame) = frame.map(|frame| self.snapshot.stacks.frame(frame)) else {
            return Key::Unknown { is_older };
        };
        match by {
            By::Function => Key::Function(frame.file, frame.function),
            _ => Key::Line(frame.file, frame.line, frame.function),
        }
    }

    fn label(&self, key: Key, frame: Option<FrameId>) -> String {
        let text = |name| self.snapshot.names.text(name);
        match key {
            Key::Line(file, line, function) => match text(file) {
                "" => text(function).to_string(),
                file => format!("{file}:{line} {}", text(function)),
            },
            Key::Function(file, function) => match text(file) {
                "" => text(function).to_string(),
                file => format!("{} ({file})", text(function)),
            },
            Key::Stack(_) => match frame.map(|frame| self.snapshot.stacks.frame(frame)) {
                Some(frame) => self.label(Key::Line(frame.file, frame.line, frame.function), None),
                None => "no stack".to_string(),
            },
            Key::Name(name) => text(name).to_string(),
            Key::Bytes(bytes) => format!("{bytes} bytes"),
            Key::Unknown { is_older: true } => "unknown, older than the recording".to_string(),
            Key::Unknown { is_older: false } => "unknown".to_string(),
        }
    }
}

#[derive(Debug, Default)]
struct Sum {
    bytes: u64,
    block_bytes: u64,
    count: u64,
    older_count: u64,
    stack: StackId,
    largest: u64,
}

impl Sum {
    fn add(&mut self, block: &Allocation) {
        self.bytes = self.bytes.saturating_add(block.bytes);
        self.block_bytes = self.block_bytes.saturating_add(block.block_bytes);
        self.count += 1;
        self.older_count += u64::from(block.origin.is_older());
        if self.count == 1 || block.bytes > self.largest {
            self.largest = block.bytes;
            self.stack = block.stack;
        }
    }
}
