//! Recordings that a test builds event by event.

use crate::{
    Allocation, AllocationId, CardMemory, Category, Event, Frame, FrameId, FrameOwner, Module,
    ModuleId, NameId, OperatorId, Phase, PoolId, Recording, SegmentChange, StackId, Stage,
};

/// Builds a recording of one card. Memory is reserved as needed, one segment per allocation, unless the test reserves it.
#[derive(Clone, Debug, Default)]
pub struct ByHand {
    pub recording: Recording,
    step: u32,
    next_address: u64,
}

/// What a test specifies about an allocation, besides its bytes and category.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// `file.py:12`, innermost first; those in `torch/` are PyTorch's, those in `site-packages/` a package's.
    pub lines: &'a [&'a str],
    pub module: &'a str,
    pub operator: &'a str,
    pub name: &'a str,
}

impl ByHand {
    pub fn new() -> Self {
        let mut by_hand = Self::default();
        by_hand.recording.cards.push(CardMemory::default());
        by_hand.enter(Stage::Script);
        by_hand
    }

    pub fn card(&mut self) -> &mut CardMemory {
        &mut self.recording.cards[0]
    }

    /// A stage begins, in the current step.
    pub fn enter(&mut self, stage: Stage) {
        let step = self.step;
        let card = self.card();
        let first_event = card.events.len() as u32;
        card.phases.push(Phase {
            stage,
            step,
            first_event,
        });
    }

    /// Ends the optimizer step; what follows belongs to the next one.
    pub fn next_step(&mut self) {
        self.step += 1;
        self.recording.about.steps = self.step;
        self.enter(Stage::Script);
    }

    pub fn push(&mut self, event: Event) {
        let card = self.card();
        card.times_us.push(card.events.len() as u64 * 10);
        card.events.push(event);
    }

    pub fn reserve(&mut self, address: u64, bytes: u64) {
        let event = self.card().reserve(SegmentChange {
            address,
            bytes,
            ..SegmentChange::default()
        });
        self.push(event);
    }

    pub fn release(&mut self, address: u64, bytes: u64) {
        let event = self.card().release(SegmentChange {
            address,
            bytes,
            ..SegmentChange::default()
        });
        self.push(event);
    }

    /// Allocates in a new segment.
    pub fn allocate(&mut self, bytes: u64, category: Category, origin: Origin) -> AllocationId {
        let block_bytes = bytes.max(1).next_multiple_of(512);
        let address = 0x7f00_0000_0000 + self.next_address;
        self.next_address += block_bytes;
        self.reserve(address, block_bytes);
        self.allocate_at(address, bytes, category, origin)
    }

    /// Allocates where the test has reserved memory.
    pub fn allocate_at(
        &mut self,
        address: u64,
        bytes: u64,
        category: Category,
        origin: Origin,
    ) -> AllocationId {
        let allocation = Allocation {
            address,
            requested_bytes: bytes,
            block_bytes: bytes.max(1).next_multiple_of(512),
            allocated_at: Some(self.card().events.len() as u32),
            freed_at: None,
            category,
            name: self.name(origin.name),
            module: self.module(origin.module),
            operator: self.operator(origin.operator),
            stack: self.stack(origin.lines),
            pool: PoolId(0),
        };
        let card = self.card();
        let id = AllocationId(card.allocations.len() as u32);
        card.allocations.push(allocation);
        self.push(Event::Allocate(id));
        id
    }

    pub fn free(&mut self, id: AllocationId) {
        let card = self.card();
        card.allocations[id.0 as usize].freed_at = Some(card.events.len() as u32);
        self.push(Event::Free(id));
    }

    fn name(&mut self, text: &str) -> NameId {
        NameId(place_of(&mut self.recording.names.texts, text.to_owned()))
    }

    fn operator(&mut self, name: &str) -> OperatorId {
        OperatorId(place_of(
            &mut self.recording.names.operators,
            name.to_owned(),
        ))
    }

    fn module(&mut self, path: &str) -> ModuleId {
        let module = Module {
            path: path.to_owned(),
            ..Module::default()
        };
        ModuleId(place_of(&mut self.recording.names.modules, module))
    }

    fn stack(&mut self, lines: &[&str]) -> StackId {
        let frames = lines.iter().map(|line| {
            let (file, number) = line.rsplit_once(':').unwrap_or((line, "0"));
            let frame = Frame {
                file: file.to_owned(),
                line: number.parse().unwrap_or(0),
                function: "main".to_owned(),
                owner: match file {
                    _ if file.starts_with("torch/") => FrameOwner::Torch,
                    _ if file.contains("site-packages/") => FrameOwner::Package,
                    _ => FrameOwner::User,
                },
            };
            FrameId(place_of(&mut self.recording.names.frames, frame))
        });
        let frames = frames.collect();
        StackId(place_of(&mut self.recording.names.stacks, frames))
    }
}

fn place_of<T: PartialEq>(list: &mut Vec<T>, thing: T) -> u32 {
    let found = list.iter().position(|one| *one == thing);
    found.unwrap_or_else(|| {
        list.push(thing);
        list.len() - 1
    }) as u32
}
