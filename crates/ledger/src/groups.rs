//! The few groups that a chart distinguishes by colour.

use std::collections::BTreeMap;

use ghostgpu_recording::{Allocation, Category, Frame, Recording, Source};

use crate::card_ledger::CardLedger;
use crate::places::{Place, Places};

/// The number of categories. A recording has at most ten of them, unless its job has several ranks.
pub const MOST_GROUPS: usize = Category::ALL.len();

/// The largest number of lines: nobody can distinguish more colours than this.
const MOST_LINES: usize = 10;

/// Groups of allocations: categories if owners are known, else the lines that held most at a card's peak, and a group for
/// all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// At most [`MOST_GROUPS`].
    pub titles: Vec<String>,
    /// For each stack its group; `None` if the groups are categories.
    by_stack: Option<Vec<u8>>,
}

impl Groups {
    pub fn of(recording: &Recording) -> Self {
        match recording.about.source {
            Source::Rehearsal => Self {
                titles: Category::ALL.map(|one| one.title().to_owned()).to_vec(),
                by_stack: None,
            },
            Source::Snapshot => Self::by_line(recording),
        }
    }

    /// The index of an allocation's group.
    pub fn group(&self, one: &Allocation) -> usize {
        match &self.by_stack {
            None => one.category as usize,
            Some(groups) => groups
                .get(one.stack.0 as usize)
                .map_or(0, |at| (*at).into()),
        }
    }

    fn by_line(recording: &Recording) -> Self {
        let mut held: BTreeMap<Place, u64> = BTreeMap::new();
        for card in &recording.cards {
            let ledger = CardLedger::new(recording, card);
            for sum in ledger.by_place(ledger.peak().moment) {
                let bytes = held.entry(sum.place).or_default();
                *bytes = (*bytes).max(sum.held.requested_bytes());
            }
        }
        let mut lines: Vec<_> = held
            .into_iter()
            .filter_map(|(place, bytes)| match place {
                Place::Line(id) => Some((id, bytes)),
                _ => None,
            })
            .collect();
        lines.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
        lines.truncate(MOST_LINES - 1);
        let frames = &recording.names.frames;
        let titles = lines.iter().map(|(id, _)| match frames.get(id.0 as usize) {
            Some(frame) => short_label(frame),
            None => String::new(),
        });
        let mut titles: Vec<String> = titles.collect();
        let others = titles.len() as u8;
        titles.push(match others {
            0 => "allocations".to_owned(),
            _ => "other lines".to_owned(),
        });
        let places = match recording.cards.first() {
            Some(card) => Places::of(recording, card),
            None => {
                return Self {
                    titles,
                    by_stack: Some(Vec::new()),
                };
            }
        };
        let groups = (0..recording.names.stacks.len() as u32).map(|stack| {
            let frame = places.frame_of(ghostgpu_recording::StackId(stack));
            let place = frame.and_then(|id| lines.iter().position(|line| line.0 == id));
            place.map_or(others, |place| place as u8)
        });
        Self {
            titles,
            by_stack: Some(groups.collect()),
        }
    }
}

/// `train.py:58 in forward`: without the folder.
fn short_label(frame: &Frame) -> String {
    let file = frame.file.rsplit(['/', '\\']).next().unwrap_or_default();
    match (file, frame.function.as_str()) {
        ("", function) => function.to_owned(),
        (file, "" | "<module>") => format!("{file}:{}", frame.line),
        (file, function) => format!("{file}:{} in {function}", frame.line),
    }
}
