//! Who holds what is live: sums by line, function, stack, name or size.

use std::collections::HashMap;

use ghostgpu_recording::{Allocation, FrameId, NameId, StackId};

use crate::card_ledger::CardLedger;
use crate::moment::Moment;
use crate::places::{Places, line_label};

/// What allocations are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The user's own line.
    Line,
    /// The user's own function.
    Function,
    /// The whole stack.
    Stack,
    /// The name of a parameter, or the name in a snapshot. It is never guessed; without one, the holder is unknown.
    Name,
    /// The requested size.
    Size,
}

/// One holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// For people: `train.py:12 in forward`, a name, a size in bytes.
    pub label: String,
    pub requested_bytes: u64,
    pub block_bytes: u64,
    pub count: u64,
    /// How many of these allocations are older than the recording.
    pub older_count: u64,
    /// The stack of its largest allocation.
    pub stack: StackId,
}

/// All holders of a moment, the largest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holders {
    pub moment: Moment,
    pub requested_bytes: u64,
    pub block_bytes: u64,
    pub count: u64,
    pub holders: Vec<Holder>,
}

/// Allocations with equal keys have the same holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'a> {
    Line(&'a str, u32, &'a str),
    Function(&'a str, &'a str),
    Stack(StackId),
    Name(NameId),
    Bytes(u64),
    /// There is no stack or no name, possibly because the allocation is older than the recording.
    Unknown {
        is_older: bool,
    },
}

impl CardLedger<'_> {
    /// Who holds what is live at a moment.
    pub fn held_by(&self, moment: Moment, by: By) -> Holders {
        let places = Places::of(self.recording, self.card);
        let mut sums: HashMap<Key, Sum> = HashMap::new();
        let mut all = Sum::default();
        for (_, one) in self.live_at(moment) {
            sums.entry(self.key(by, one, &places)).or_default().add(one);
            all.add(one);
        }
        let mut holders: Vec<Holder> = sums
            .into_iter()
            .map(|(key, sum)| Holder {
                label: self.holder_label(key, &sum, &places),
                requested_bytes: sum.requested_bytes,
                block_bytes: sum.block_bytes,
                count: sum.count,
                older_count: sum.older_count,
                stack: sum.stack,
            })
            .collect();
        // Label and stack come last, so that equal holders always have the same order.
        holders.sort_by(|first, second| {
            let order = second.requested_bytes.cmp(&first.requested_bytes);
            order
                .then_with(|| first.label.cmp(&second.label))
                .then(first.stack.cmp(&second.stack))
        });
        Holders {
            moment,
            requested_bytes: all.requested_bytes,
            block_bytes: all.block_bytes,
            count: all.count,
            holders,
        }
    }

    fn key<'b>(&self, by: By, one: &Allocation, places: &Places<'b>) -> Key<'b> {
        let unknown = Key::Unknown {
            is_older: one.allocated_at.is_none(),
        };
        match by {
            By::Size => return Key::Bytes(one.requested_bytes),
            By::Name if one.name == NameId(0) => return unknown,
            By::Name => return Key::Name(one.name),
            By::Stack if one.stack != StackId(0) => return Key::Stack(one.stack),
            By::Line | By::Function | By::Stack => {}
        }
        let frame = places.frame_of(one.stack).and_then(|id| places.frame(id));
        match (frame, by) {
            (None, _) => unknown,
            (Some(frame), By::Function) => Key::Function(&frame.file, &frame.function),
            (Some(frame), _) => Key::Line(&frame.file, frame.line, &frame.function),
        }
    }

    fn holder_label(&self, key: Key, sum: &Sum, places: &Places) -> String {
        let frame: Option<FrameId> = places.frame_of(sum.stack);
        match key {
            Key::Line(..) | Key::Stack(_) => match frame.and_then(|id| places.frame(id)) {
                Some(frame) => line_label(frame),
                None => "no stack".to_owned(),
            },
            Key::Function("", function) => function.to_owned(),
            Key::Function(file, function) => format!("{function} ({file})"),
            Key::Name(name) => {
                let name = self.recording.names.texts.get(name.0 as usize);
                name.cloned().unwrap_or_default()
            }
            Key::Bytes(bytes) => format!("{bytes} bytes"),
            Key::Unknown { is_older: true } => "unknown, older than the recording".to_owned(),
            Key::Unknown { is_older: false } => "unknown".to_owned(),
        }
    }
}

#[derive(Debug, Default)]
struct Sum {
    requested_bytes: u64,
    block_bytes: u64,
    count: u64,
    older_count: u64,
    stack: StackId,
    largest: u64,
}

impl Sum {
    fn add(&mut self, one: &Allocation) {
        self.requested_bytes = self.requested_bytes.saturating_add(one.requested_bytes);
        self.block_bytes = self.block_bytes.saturating_add(one.block_bytes);
        self.count += 1;
        self.older_count += u64::from(one.allocated_at.is_none());
        if self.count == 1 || one.requested_bytes > self.largest {
            self.largest = one.requested_bytes;
            self.stack = one.stack;
        }
    }
}
