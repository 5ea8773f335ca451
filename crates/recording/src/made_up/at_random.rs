//! Random recordings: consistent, with everything that may occur, in any order.

use crate::{
    About, Allocation, AllocationId, CardMemory, Category, Event, Failure, Frame, FrameId,
    FrameOwner, Module, ModuleId, NameId, NamedRange, Names, OperatorId, Phase, Pool, PoolId,
    Recording, SegmentChange, StackId, Stage,
};

/// A consistent recording with about this many events on each of one to three cards.
pub fn recording_at_random(seed: u64, events: usize) -> Recording {
    let mut dice = Dice(seed | 1);
    let names = names(&mut dice);
    let cards = (0..1 + dice.below(3))
        .map(|index| card(&mut dice, &names, index as u32, events))
        .collect();
    Recording {
        about: About {
            command: vec!["train.py".to_owned(), "--größe".to_owned()],
            torch: "2.11.0".to_owned(),
            gpu: "A card".to_owned(),
            gpu_total_bytes: dice.next(),
            capability: "9.0".to_owned(),
            steps: dice.below(9) as u32,
            ..About::default()
        },
        names,
        cards,
        failed_run: None,
        warnings: vec!["something is missing".to_owned(); dice.below(3)],
    }
}

/// Xorshift: good enough for tests, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

fn names(dice: &mut Dice) -> Names {
    let mut names = Names::default();
    for number in 0..dice.below(6) {
        names.texts.push(format!("layer.{number}.weight"));
        names.operators.push(format!("aten::op{number}"));
        names.modules.push(Module {
            path: format!("layer.{number}"),
            class: "Layer".to_owned(),
            output_bytes: dice.next() >> 40,
        });
        names.frames.push(Frame {
            file: format!("/home/me/file{}.py", number / 2),
            line: dice.next() as u32,
            function: ["", "main", "<module>"][number % 3].to_owned(),
            owner: [FrameOwner::User, FrameOwner::Package, FrameOwner::Torch][number % 3],
        });
    }
    if !names.frames.is_empty() {
        for _ in 0..dice.below(5) {
            let length = dice.below(7);
            let frames = (0..length).map(|_| FrameId(dice.below(names.frames.len()) as u32));
            names.stacks.push(frames.collect());
        }
    }
    names
}

/// Reserved addresses, and which parts of them are free.
struct Memory {
    next_address: u64,
    free: Vec<(u64, u64)>,
    live: Vec<(AllocationId, u64, u64)>,
}

fn card(dice: &mut Dice, names: &Names, index: u32, events: usize) -> CardMemory {
    let mut card = CardMemory {
        index,
        outside_bytes: dice.next() >> 30,
        pools: POOLS.to_vec(),
        began_us: dice.next() >> 12,
        ranges: vec![NamedRange {
            name: NameId(dice.below(names.texts.len()) as u32),
            begin_us: dice.next() >> 40,
            end_us: (dice.below(2) == 0).then(|| dice.next() >> 40),
        }],
        ..CardMemory::default()
    };
    let mut memory = Memory {
        next_address: 1 << 40,
        free: Vec::new(),
        live: Vec::new(),
    };
    for _ in 0..dice.below(4) {
        let segment = memory.segment(dice);
        card.reserved_before.push(segment);
    }
    for _ in 0..dice.below(6) {
        allocate(dice, names, &mut card, &mut memory, true);
    }
    let stage = dice.one_of(&Stage::ALL);
    card.phases.push(Phase {
        stage,
        step: 0,
        first_event: 0,
    });
    while card.events.len() < events {
        if dice.below(8) == 0 {
            let last = card.phases.last().map_or(0, |phase| phase.step);
            card.phases.push(Phase {
                stage: dice.one_of(&Stage::ALL),
                step: last + u32::from(dice.below(4) == 0),
                first_event: card.events.len() as u32,
            });
        }
        match dice.below(10) {
            0 | 1 => {
                let change = memory.segment(dice);
                let event = card.reserve(change);
                push(dice, &mut card, event);
            }
            2..=5 => allocate(dice, names, &mut card, &mut memory, false),
            6..=8 => free(dice, &mut card, &mut memory),
            _ if dice.below(2) == 0 => {
                let requested_bytes = dice.next();
                let event = card.fail(Failure {
                    requested_bytes,
                    driver_free_bytes: (dice.below(2) == 0).then(|| dice.next()),
                    pool: a_pool(dice),
                    stack: StackId(dice.below(names.stacks.len()) as u32),
                });
                push(dice, &mut card, event);
            }
            // A free range, whole or the beginning of it.
            _ if !memory.free.is_empty() => {
                let at = dice.below(memory.free.len());
                let (address, bytes) = memory.free.swap_remove(at);
                let part = if dice.below(2) == 0 { bytes } else { bytes / 2 };
                if part < bytes {
                    memory.free.push((address + part, bytes - part));
                }
                if part > 0 {
                    let change = SegmentChange {
                        address,
                        bytes: part,
                        ..SegmentChange::default()
                    };
                    let event = card.release(change);
                    push(dice, &mut card, event);
                }
            }
            _ => {}
        }
    }
    card
}

impl Memory {
    fn segment(&mut self, dice: &mut Dice) -> SegmentChange {
        let bytes = 512 * (1 + dice.below(4096) as u64);
        let address = self.next_address;
        // Some segments touch, others do not.
        self.next_address += bytes + 4096 * dice.below(2) as u64;
        self.free.push((address, bytes));
        SegmentChange {
            address,
            bytes,
            pool: a_pool(dice),
            is_small: dice.below(2) == 0,
            is_expandable: dice.below(2) == 0,
        }
    }
}

const POOLS: [Pool; 3] = [
    Pool {
        stream: 0,
        number: None,
    },
    Pool {
        stream: 7,
        number: Some((0, 0)),
    },
    Pool {
        stream: 0,
        number: Some((3, u64::MAX)),
    },
];

/// A category that a rehearsal can know.
fn a_category(dice: &mut Dice) -> Category {
    loop {
        match dice.one_of(&Category::ALL) {
            Category::Unknown => {}
            known => return known,
        }
    }
}

fn a_pool(dice: &mut Dice) -> PoolId {
    PoolId(dice.below(POOLS.len()) as u32)
}

fn push(dice: &mut Dice, card: &mut CardMemory, event: Event) {
    let last = card.times_us.last().copied().unwrap_or(0);
    card.times_us.push(last + dice.below(100) as u64);
    card.events.push(event);
}

fn allocate(
    dice: &mut Dice,
    names: &Names,
    card: &mut CardMemory,
    memory: &mut Memory,
    is_older: bool,
) {
    if memory.free.is_empty() {
        return;
    }
    let at = dice.below(memory.free.len());
    let (address, bytes) = memory.free.swap_remove(at);
    let block_bytes = 512 * (1 + dice.below((bytes / 512).max(1) as usize) as u64);
    if block_bytes > bytes {
        memory.free.push((address, bytes));
        return;
    }
    if bytes > block_bytes {
        memory
            .free
            .push((address + block_bytes, bytes - block_bytes));
    }
    let id = AllocationId(card.allocations.len() as u32);
    card.allocations.push(Allocation {
        address,
        requested_bytes: block_bytes - dice.below(512) as u64,
        block_bytes,
        allocated_at: (!is_older).then_some(card.events.len() as u32),
        freed_at: None,
        category: a_category(dice),
        name: NameId(dice.below(names.texts.len()) as u32),
        module: ModuleId(dice.below(names.modules.len()) as u32),
        operator: OperatorId(dice.below(names.operators.len()) as u32),
        stack: StackId(dice.below(names.stacks.len()) as u32),
        pool: a_pool(dice),
    });
    memory.live.push((id, address, block_bytes));
    if !is_older {
        push(dice, card, Event::Allocate(id));
    }
}

fn free(dice: &mut Dice, card: &mut CardMemory, memory: &mut Memory) {
    if memory.live.is_empty() {
        return;
    }
    let at = dice.below(memory.live.len());
    let (id, address, bytes) = memory.live.swap_remove(at);
    if dice.below(4) == 0 {
        push(dice, card, Event::FreeRequested(id));
        push(dice, card, Event::Other);
    }
    memory.free.push((address, bytes));
    card.allocations[id.0 as usize].freed_at = Some(card.events.len() as u32);
    push(dice, card, Event::Free(id));
}
