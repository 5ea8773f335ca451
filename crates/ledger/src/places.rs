//! The line of the program that made an allocation, or a substitute if there is none.

use std::collections::BTreeMap;

use ghostgpu_recording::{
    Allocation, CardMemory, Frame, FrameId, FrameOwner, OperatorId, Recording, StackId, Stage,
};

use crate::card_ledger::CardLedger;
use crate::held::Held;
use crate::moment::Moment;
use crate::owner_module::OwnerModules;

/// Where an allocation was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A line: the innermost of the user's own code, else of a package, else of PyTorch, else of C++.
    Line(FrameId),
    /// A thread without Python (the backward pass), identified by operator, module and stage.
    NoStack {
        operator: OperatorId,
        /// The module's path, `*` for numbers; empty for none.
        module: String,
        stage: Option<Stage>,
    },
    /// Before the recording began.
    Older,
}

/// Finds the places of allocations, and their labels.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    recording: &'a Recording,
    card: &'a CardMemory,
    pub(crate) owners: OwnerModules<'a>,
    by_stack: Vec<Option<FrameId>>,
}

/// What one place holds at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceSum {
    pub place: Place,
    pub label: String,
    pub held: Held,
    /// The stack of its largest allocation.
    pub stack: StackId,
}

impl<'a> Places<'a> {
    pub fn of(recording: &'a Recording, card: &'a CardMemory) -> Self {
        let names = &recording.names;
        let by_stack = names.stacks.iter().map(|frames| {
            let known = frames.iter().filter_map(|id| {
                let frame = names.frames.get(id.0 as usize)?;
                Some((*id, rank(frame)))
            });
            // The first of equally good frames is the innermost one.
            let best = known.reduce(|best, next| if next.1 < best.1 { next } else { best });
            best.map(|(id, _)| id)
        });
        Self {
            recording,
            card,
            owners: OwnerModules::of(names),
            by_stack: by_stack.collect(),
        }
    }

    /// The place where an allocation was made.
    pub fn place(&self, allocation: &Allocation) -> Place {
        if let Some(frame) = self.frame_of(allocation.stack) {
            return Place::Line(frame);
        }
        let Some(event) = allocation.allocated_at else {
            return Place::Older;
        };
        Place::NoStack {
            operator: allocation.operator,
            module: self.owners.pattern(allocation.module).to_owned(),
            stage: self.card.phase_of(event).map(|phase| phase.stage),
        }
    }

    /// The frame that represents a stack.
    pub fn frame_of(&self, stack: StackId) -> Option<FrameId> {
        self.by_stack.get(stack.0 as usize).copied().flatten()
    }

    pub fn frame(&self, id: FrameId) -> Option<&'a Frame> {
        self.recording.names.frames.get(id.0 as usize)
    }

    /// `train.py:58 in main`, or what is known instead.
    pub fn label(&self, place: &Place) -> String {
        match place {
            Place::Line(id) => match self.frame(*id) {
                Some(frame) => line_label(frame),
                None => "a line that the recording does not have".to_owned(),
            },
            Place::NoStack {
                operator,
                module,
                stage,
            } => self.label_without_stack(*operator, module, *stage),
            Place::Older => "older than the recording".to_owned(),
        }
    }

    fn label_without_stack(
        &self,
        operator: OperatorId,
        module: &str,
        stage: Option<Stage>,
    ) -> String {
        let operators = &self.recording.names.operators;
        let operator = operators.get(operator.0 as usize).map_or("", |name| name);
        if stage.is_none() && operator.is_empty() && module.is_empty() {
            return "no stack recorded".to_owned();
        }
        let work = match stage {
            Some(Stage::Script) | None => "the script",
            Some(stage) => stage.title(),
        };
        let place = match module {
            "" => work.to_owned(),
            module => format!("{work} of {module}"),
        };
        match operator {
            "" => format!("{place}, outside Python"),
            operator => format!("{operator} in {place}"),
        }
    }
}

/// Parts of C++ names of functions that allocate memory or record stacks, and do not show what the memory is for.
const PLUMBING: [&str; 9] = [
    "unwind",
    "CapturedTraceback",
    "gather",
    "CachingAllocator",
    "c10::",
    "at::detail::empty",
    "at::empty",
    "empty_strided",
    "empty_memory_format",
];

/// How well a frame shows what memory is for. The frame with the lowest rank represents the stack.
fn rank(frame: &Frame) -> (FrameOwner, u8) {
    let function = frame.function.as_str();
    let among_native = match frame.owner {
        FrameOwner::Native if function.contains("Backward") => 0,
        FrameOwner::Native
            if function == "??" || PLUMBING.iter().any(|part| function.contains(part)) =>
        {
            2
        }
        FrameOwner::Native => 1,
        _ => 0,
    };
    (frame.owner, among_native)
}

/// `train.py:58 in main`.
pub(crate) fn line_label(frame: &Frame) -> String {
    if frame.owner == FrameOwner::Native && !frame.function.is_empty() {
        return frame.function.clone();
    }
    let place = format!("{}:{}", frame.file, frame.line);
    let place = match frame.function.as_str() {
        "" | "<module>" => place,
        function => format!("{place} in {function}"),
    };
    match frame.owner {
        FrameOwner::User | FrameOwner::Package | FrameOwner::Native => place,
        FrameOwner::Torch => format!("{place} (no line of the script's)"),
    }
}

impl CardLedger<'_> {
    /// What is live at a moment, by the line that made it; the largest first.
    pub fn by_place(&self, moment: Moment) -> Vec<PlaceSum> {
        let places = Places::of(self.recording, self.card);
        let mut sums: BTreeMap<Place, (Held, u64, StackId)> = BTreeMap::new();
        for (_, one) in self.live_at(moment) {
            let (held, largest, stack) = sums.entry(places.place(one)).or_default();
            if held.count == 0 || one.requested_bytes > *largest {
                (*largest, *stack) = (one.requested_bytes, one.stack);
            }
            held.add(one);
        }
        let mut sums: Vec<PlaceSum> = sums
            .into_iter()
            .map(|(place, (held, _, stack))| PlaceSum {
                label: places.label(&place),
                place,
                held,
                stack,
            })
            .collect();
        sums.sort_by(|one, other| {
            let by_bytes = other
                .held
                .requested_bytes()
                .cmp(&one.held.requested_bytes());
            by_bytes
                .then_with(|| one.label.cmp(&other.label))
                .then_with(|| one.place.cmp(&other.place))
        });
        sums
    }
}
