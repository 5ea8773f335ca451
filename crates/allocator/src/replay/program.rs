//! The requests of a program to the allocator, without how the allocator served them.

use super::environment::Environment;
use super::exact::exact;
use super::groups::{Group, Groups};
use super::operations::{Operations, Recording};
use super::private_pools::PrivatePools;
use super::start::Start;
use super::warning::Warning;
use crate::driver::Outside;
use crate::ids::{PoolId, StreamId};
use crate::structures::address_map::AddressMap;
use crate::trace::Action;

/// One request. `slot` identifies a live allocation; slots are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramRequest {
    Allocate {
        slot: u32,
        place: u16,
        bytes: u64,
    },
    /// A request with others in reserve: see [`Program::choose`].
    AllocateOneOf {
        place: u16,
        slot: u32,
        /// The number of the choices among those of the program.
        choices: u32,
    },
    Free {
        slot: u32,
    },
    /// A free that waits for other streams.
    FreeLater {
        slot: u32,
    },
    Complete {
        slot: u32,
    },
    /// A request that failed in the recording, which the program survived.
    AllocateOrFail {
        place: u16,
        bytes: u64,
    },
    Flush,
    /// The last user of a private pool is gone.
    FlushPool {
        place: u16,
    },
}

/// What a program requests for one purpose, and what else it would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// In the order in which they are tried; nothing has to be requested for 0 bytes.
    pub bytes: Vec<u64>,
    /// Whether these are all there are, and in this order. Otherwise the program may do better or worse.
    pub are_known: bool,
}

/// A recording, reduced to what the program requested. Built once, run under any number of settings.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub(super) requests: Vec<ProgramRequest>,
    /// The entry of the recording that each request comes from.
    pub(super) entries: Vec<u32>,
    /// Streams and pools.
    pub(super) places: Vec<(StreamId, PoolId)>,
    pub(super) slots: usize,
    pub(super) choices: Vec<Choices>,
    /// What others took from the driver, each before the request of an entry, in order.
    pub(super) outside: Vec<(u32, Outside)>,
    warnings: Vec<Warning>,
}

impl Program {
    /// Extracts the program from a recording made in this environment.
    #[must_use]
    pub fn of(recording: &Recording, environment: &Environment) -> Self {
        let start = Start::of(recording);
        let (program, is_in_doubt) = Self::read(recording, environment, &start, Vec::new());
        if !is_in_doubt {
            return program;
        }
        // Whether a release was the allocator's own or the program's shows when it is repeated.
        let flushes = exact(recording, environment).flushes;
        if flushes.is_empty() {
            return program;
        }
        Self::read(recording, environment, &start, flushes).0
    }

    fn read(
        recording: &Recording,
        environment: &Environment,
        start: &Start,
        flushes: Vec<usize>,
    ) -> (Self, bool) {
        let mut reader = Reader {
            program: Self {
                requests: Vec::with_capacity(recording.operations.len()),
                entries: Vec::with_capacity(recording.operations.len()),
                warnings: start.warnings.clone(),
                ..Self::default()
            },
            live: AddressMap::default(),
            addresses: Vec::new(),
            vacant: Vec::new(),
            pools: PrivatePools::new(start, recording),
            waiting: 0,
        };
        reader.start(start);
        let premises = environment.premises();
        let mut groups = Groups::new(&recording.operations, start, premises).with_flushes(flushes);
        for group in &mut groups {
            reader.read(group, &recording.operations, start);
        }
        let mut program = reader.program;
        program.warnings.extend(groups.warnings());
        if reader.waiting > 0 {
            program.warnings.push(Warning::CompletionTimesFixed {
                frees: reader.waiting,
            });
        }
        (program, groups.is_in_doubt())
    }

    /// Gives the program other sizes to request where there is no memory for what it requested. `number_of` gives
    /// an entry the number of its `choices`; entries with one number are for the same purpose. Libraries work so:
    /// without the workspace of one algorithm they take another, stay with it, and begin with the first again when
    /// there is no memory for that one either.
    pub fn choose(
        &mut self,
        choices: Vec<Choices>,
        mut number_of: impl FnMut(usize) -> Option<u32>,
    ) {
        for (request, &entry) in self.requests.iter_mut().zip(&self.entries) {
            if let ProgramRequest::Allocate { slot, place, .. } = *request
                && let Some(choices) = number_of(entry as usize)
            {
                *request = ProgramRequest::AllocateOneOf {
                    place,
                    slot,
                    choices,
                };
            }
        }
        self.choices = choices;
    }

    /// Has others take memory from the driver, each before the request of an entry; in order.
    pub fn with_outside(&mut self, taken: impl IntoIterator<Item = (usize, Outside)>) {
        let taken = taken.into_iter();
        self.outside = taken
            .map(|(entry, taken)| (u32::try_from(entry).unwrap_or(u32::MAX), taken))
            .collect();
    }

    /// What others take from the driver, in order.
    pub fn outside_mut(&mut self) -> impl Iterator<Item = &mut Outside> {
        self.outside.iter_mut().map(|(_, taken)| taken)
    }

    /// What had to be assumed.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Requests that it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

struct Reader {
    program: Program,
    /// Slots by address.
    live: AddressMap,
    /// The address that each slot has, or had last.
    addresses: Vec<u64>,
    vacant: Vec<u32>,
    pools: PrivatePools,
    waiting: usize,
}

impl Reader {
    fn push(&mut self, request: ProgramRequest, entry: usize) {
        self.program.requests.push(request);
        self.program.entries.push(entry as u32);
    }

    fn place(&mut self, stream: StreamId, pool: PoolId) -> u16 {
        let places = &mut self.program.places;
        let known = places.iter().position(|&place| place == (stream, pool));
        known.unwrap_or_else(|| {
            places.push((stream, pool));
            places.len() - 1
        }) as u16
    }

    fn new_slot(&mut self, address: u64) -> u32 {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.program.slots += 1;
            self.addresses.push(address);
            self.program.slots as u32 - 1
        });
        self.addresses[slot as usize] = address;
        let address_of = |slot: u32| self.addresses[slot as usize];
        self.live.insert(address, slot, address_of);
        slot
    }

    fn take_slot(&mut self, address: u64) -> Option<u32> {
        let address_of = |slot: u32| self.addresses[slot as usize];
        let slot = self.live.remove(address, address_of)?;
        self.vacant.push(slot);
        Some(slot)
    }

    /// Allocations older than the recording come first.
    fn start(&mut self, start: &Start) {
        for (&address, block) in &start.blocks {
            let range = start.ranges.containing(address);
            let stream = range.map_or(StreamId::DEFAULT, |range| range.stream);
            let pool = range.and_then(|range| range.pool).unwrap_or_default();
            let place = self.place(stream, pool);
            let slot = self.new_slot(address);
            let bytes = block.requested;
            self.push(ProgramRequest::Allocate { slot, place, bytes }, 0);
            if block.is_pending {
                self.push(ProgramRequest::FreeLater { slot }, 0);
            }
        }
        if !start.blocks.is_empty() {
            let blocks = start.blocks.len();
            self.program
                .warnings
                .push(Warning::StartOrderAssumed { blocks });
        }
    }

    fn read(&mut self, group: Group, operations: &Operations, start: &Start) {
        let (first, end) = group.span();
        match group {
            Group::Request { first, last } => {
                // Blocks whose frees completed meanwhile stay free.
                for index in first..last {
                    if operations.actions()[index] == Action::FreeCompleted {
                        self.complete(operations.addresses()[index], index);
                    }
                }
                let pool = self.pools.of_request(operations, first, last, start);
                self.request(operations, last, pool.unwrap_or_default());
            }
            Group::Free { at, completes } => self.free(operations.addresses()[at], at, completes),
            Group::Complete { at } => self.complete(operations.addresses()[at], at),
            Group::Flush { first, end } => self.flush(operations, first, end),
            Group::Snapshot { .. } | Group::Stray { .. } => {}
        }
        self.pools.follow(operations, first, end, start);
    }

    fn request(&mut self, operations: &Operations, last: usize, pool: PoolId) {
        let entry = operations.at(last);
        let place = self.place(entry.context.stream, pool);
        let bytes = entry.bytes;
        if entry.action == Action::Oom {
            self.push(ProgramRequest::AllocateOrFail { place, bytes }, last);
        } else {
            let slot = self.new_slot(entry.address.0);
            self.push(ProgramRequest::Allocate { slot, place, bytes }, last);
        }
    }

    fn free(&mut self, address: u64, entry: usize, completes: bool) {
        // The undone entries have named everything live; another address is a contradiction among the
        // warnings.
        let address_of = |slot: u32| self.addresses[slot as usize];
        if completes {
            if let Some(slot) = self.take_slot(address) {
                self.push(ProgramRequest::Free { slot }, entry);
            }
        } else if let Some(slot) = self.live.get(address, address_of) {
            self.waiting += 1;
            self.push(ProgramRequest::FreeLater { slot }, entry);
        }
    }

    fn complete(&mut self, address: u64, entry: usize) {
        if let Some(slot) = self.take_slot(address) {
            self.push(ProgramRequest::Complete { slot }, entry);
        }
    }

    fn flush(&mut self, operations: &Operations, first: usize, end: usize) {
        for index in first..end {
            if operations.actions()[index] == Action::FreeCompleted {
                self.complete(operations.addresses()[index], index);
            }
        }
        let (pools, of_default) = self.pools.released(operations, first, end);
        for pool in pools {
            let place = self.place(StreamId::DEFAULT, pool);
            self.push(ProgramRequest::FlushPool { place }, first);
        }
        if of_default {
            self.push(ProgramRequest::Flush, first);
        }
    }
}
