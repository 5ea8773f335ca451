//! What-if replay: the same program under other settings, with other memory, with another release.

use super::exact::OTHER_STREAM;
use super::program::{Program, ProgramRequest};
use super::warning::Warning;
use crate::allocator::{AllocError, Allocation, Allocator, Request, Room};
use crate::driver::{Driver, DriverRequest, MemoryInfo, Outside, RecordedEvent};
use crate::ids::{Address, BlockId, PoolId};
use crate::oom_text::OutOfMemory;
use crate::pools::PoolOptions;
use crate::release::Release;
use crate::settings::Settings;
use crate::stats::Stats;

/// A driver under which events pass exactly when the program says so.
#[derive(Clone, Debug)]
pub struct HeldEvents<D>(pub D);

impl<D: Driver> Driver for HeldEvents<D> {
    fn allocate(&mut self, request: DriverRequest) -> Option<Address> {
        self.0.allocate(request)
    }

    fn free(&mut self, address: Address, bytes: u64) {
        self.0.free(address, bytes);
    }

    fn reserve(&mut self, request: DriverRequest) -> Option<Address> {
        self.0.reserve(request)
    }

    fn release_reservation(&mut self, address: Address, bytes: u64) {
        self.0.release_reservation(address, bytes);
    }

    fn map(&mut self, address: Address, bytes: u64, page_bytes: u64) -> bool {
        self.0.map(address, bytes, page_bytes)
    }

    fn unmap(&mut self, address: Address, bytes: u64) {
        self.0.unmap(address, bytes);
    }

    fn total_bytes(&self) -> u64 {
        self.0.total_bytes()
    }

    fn memory_info(&self) -> MemoryInfo {
        self.0.memory_info()
    }

    fn reserve_room(&mut self, segments: usize) {
        self.0.reserve_room(segments);
    }

    fn take_outside(&mut self, taken: Outside) {
        self.0.take_outside(taken);
    }

    fn has_passed(&mut self, _event: RecordedEvent) -> bool {
        false
    }
}

/// What would have happened.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// All figures at the end. Peaks are those of the whole run.
    pub stats: Stats,
    /// What was allocated when reserved memory peaked.
    pub allocated_at_peak_bytes: u64,
    /// The largest free block at the end.
    pub largest_free_bytes: u64,
    /// The request that ended the program, if one did.
    pub failure: Option<Failure>,
    /// Requests that failed in the recording, which succeed here: positions of their entries.
    pub rescued: Vec<usize>,
    /// Requests that failed in the recording and fail here too.
    pub survived: Vec<Failure>,
    /// The largest request in whose place another was made: see [`Program::choose`].
    pub largest_replaced_bytes: u64,
    /// The same for requests of which it is not known what would be requested instead.
    pub largest_unknown_replaced_bytes: u64,
    pub warnings: Vec<Warning>,
}

/// A request that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// The position of its entry in the recording.
    pub index: usize,
    pub error: AllocError,
}

impl WhatIf {
    #[must_use]
    pub fn peak_reserved_bytes(&self) -> u64 {
        self.stats.reserved_bytes.all.peak as u64
    }

    #[must_use]
    pub fn peak_allocated_bytes(&self) -> u64 {
        self.stats.allocated_bytes.all.peak as u64
    }

    #[must_use]
    pub fn retries(&self) -> u64 {
        self.stats.num_alloc_retries as u64
    }

    /// The part of what was reserved at the peak that nothing used.
    #[must_use]
    pub fn fragmentation_at_peak(&self) -> f64 {
        let reserved = self.peak_reserved_bytes();
        if reserved == 0 {
            return 0.0;
        }
        (reserved - self.allocated_at_peak_bytes.min(reserved)) as f64 / reserved as f64
    }

    /// What was known when the program ended for lack of memory.
    #[must_use]
    pub fn out_of_memory(&self) -> Option<&OutOfMemory> {
        match &self.failure.as_ref()?.error {
            AllocError::OutOfMemory(oom) => Some(oom),
            _ => None,
        }
    }
}

/// Runs a program. It ends at the first request that fails, unless that one failed in the recording
/// too. `limit_bytes` is what a memory fraction allows; the driver has what the card has.
pub fn what_if<D: Driver>(
    program: &Program,
    release: Release,
    settings: Settings,
    limit_bytes: Option<u64>,
    driver: D,
) -> WhatIf {
    let mut run = WhatIfRun::new(program, release, settings, limit_bytes, driver);
    run.run();
    run.finish()
}

/// A what-if replay in three parts: [`new`](Self::new) allocates the memory that the program needs;
/// [`run`](Self::run) runs it without touching the heap, unless there are many more segments than live
/// blocks, private pools, or failures; [`finish`](Self::finish) evaluates the result.
pub struct WhatIfRun<'a, D> {
    allocator: Allocator<HeldEvents<D>>,
    program: &'a Program,
    live: Vec<Live>,
    allocated_at_peak: i64,
    peak_reserved: i64,
    rescued: Vec<usize>,
    survived: Vec<Failure>,
    failure: Option<Failure>,
    /// By number of choices: the one that the program stays with once it has succeeded.
    chosen: Vec<Option<u32>>,
    largest_replaced: u64,
    largest_unknown_replaced: u64,
}

/// What a slot of the program has.
#[derive(Clone, Copy)]
struct Live {
    address: Address,
    block: BlockId,
}

impl<'a, D: Driver> WhatIfRun<'a, D> {
    pub fn new(
        program: &'a Program,
        release: Release,
        settings: Settings,
        limit_bytes: Option<u64>,
        driver: D,
    ) -> Self {
        let allocator = Allocator::new(release, settings, HeldEvents(driver));
        let mut allocator = allocator.without_addresses();
        if limit_bytes.is_some() {
            allocator.set_limit(limit_bytes);
        }
        allocator.reserve(Room {
            live: program.slots,
            segments: program.slots.max(64),
            places: program.places.len(),
        });
        let nothing = Live {
            address: Allocation::NULL.address,
            block: Allocation::NULL.block,
        };
        Self {
            allocator,
            program,
            live: vec![nothing; program.slots],
            allocated_at_peak: 0,
            peak_reserved: 0,
            rescued: Vec::new(),
            survived: Vec::new(),
            failure: None,
            chosen: vec![None; program.choices.len()],
            largest_replaced: 0,
            largest_unknown_replaced: 0,
        }
    }

    /// Serves the program's requests, up to the one that ends it.
    pub fn run(&mut self) {
        let requests = self.program.requests.iter().zip(&self.program.entries);
        let mut outside = self.program.outside.iter().peekable();
        for (request, &entry) in requests {
            while let Some((_, taken)) = outside.next_if(|(before, _)| *before <= entry) {
                self.allocator.driver_mut().take_outside(*taken);
            }
            if self.serve(*request, entry as usize).is_err() {
                break;
            }
        }
    }

    pub fn finish(self) -> WhatIf {
        let mut warnings = self.program.warnings().to_vec();
        let release = self.allocator.release();
        if release.is_unchecked() {
            warnings.push(Warning::ReleaseUnchecked(release));
        }
        if !self.rescued.is_empty() {
            warnings.push(Warning::LifetimesUnknown {
                requests: self.rescued.len(),
            });
        }
        WhatIf {
            stats: self.allocator.stats().clone(),
            allocated_at_peak_bytes: self.allocated_at_peak as u64,
            largest_free_bytes: self.allocator.largest_free_block(),
            failure: self.failure,
            rescued: self.rescued,
            survived: self.survived,
            largest_replaced_bytes: self.largest_replaced,
            largest_unknown_replaced_bytes: self.largest_unknown_replaced,
            warnings,
        }
    }

    #[inline]
    fn serve(&mut self, request: ProgramRequest, entry: usize) -> Result<(), ()> {
        match request {
            ProgramRequest::Allocate { slot, place, bytes } => {
                let allocated = self.malloc(place, bytes);
                self.hold(slot, allocated, entry)?;
            }
            ProgramRequest::AllocateOneOf {
                place,
                slot,
                choices,
            } => {
                let allocated = self.malloc_one_of(place, choices);
                self.hold(slot, allocated, entry)?;
            }
            // An earlier request allocated what is freed.
            ProgramRequest::Free { slot } => {
                let _ = self.allocator.free_block(self.live[slot as usize].block);
            }
            ProgramRequest::FreeLater { slot } => {
                let block = self.live[slot as usize].block;
                let _ = self.allocator.record_stream_of(block, OTHER_STREAM);
                let _ = self.allocator.free_block(block);
            }
            // A flush in the replay may have completed it already, and its id may be reused.
            ProgramRequest::Complete { slot } => {
                let Live { address, block } = self.live[slot as usize];
                if self.allocator.is_in_use_at(block, address) {
                    self.allocator.complete_block(block);
                }
            }
            ProgramRequest::AllocateOrFail { place, bytes } => match self.malloc(place, bytes) {
                Ok(allocation) => {
                    self.rescued.push(entry);
                    let _ = self.allocator.free_block(allocation.block);
                }
                Err(error) => self.survived.push(Failure {
                    index: entry,
                    error,
                }),
            },
            // No scope is ever open here.
            ProgramRequest::Flush => {
                let _ = self.allocator.empty_cache();
            }
            ProgramRequest::FlushPool { place } => {
                let pool = self.program.places[place as usize].1;
                while self.allocator.release_pool(pool).is_ok() {}
                self.allocator.empty_pool_cache(pool);
            }
        }
        Ok(())
    }

    /// Puts what was allocated into its slot; a failure ends the program.
    #[inline]
    fn hold(
        &mut self,
        slot: u32,
        allocated: Result<Allocation, AllocError>,
        entry: usize,
    ) -> Result<(), ()> {
        match allocated {
            Ok(Allocation { address, block, .. }) => {
                self.live[slot as usize] = Live { address, block };
                self.note_peak();
                Ok(())
            }
            Err(error) => {
                self.failure = Some(Failure {
                    index: entry,
                    error,
                });
                Err(())
            }
        }
    }

    #[inline]
    fn note_peak(&mut self) {
        let stats = self.allocator.stats();
        if stats.reserved_bytes.all.current > self.peak_reserved {
            self.peak_reserved = stats.reserved_bytes.all.current;
            self.allocated_at_peak = stats.allocated_bytes.all.current;
        }
    }

    /// Allocates the choice that the program has used so far, or else the first for which there is memory.
    fn malloc_one_of(&mut self, place: u16, number: u32) -> Result<Allocation, AllocError> {
        let program = self.program;
        let choices = &program.choices[number as usize];
        if let Some(chosen) = self.chosen[number as usize]
            && let Ok(allocation) = self.malloc_unless_empty(place, choices.bytes[chosen as usize])
        {
            return Ok(allocation);
        }
        let mut result = Ok(Allocation::NULL);
        for (index, &bytes) in choices.bytes.iter().enumerate() {
            result = self.malloc_unless_empty(place, bytes);
            if result.is_ok() {
                self.chosen[number as usize] = Some(index as u32);
                break;
            }
            self.largest_replaced = self.largest_replaced.max(bytes);
            if !choices.are_known {
                self.largest_unknown_replaced = self.largest_unknown_replaced.max(bytes);
            }
        }
        result
    }

    fn malloc_unless_empty(&mut self, place: u16, bytes: u64) -> Result<Allocation, AllocError> {
        match bytes {
            0 => Ok(Allocation::NULL),
            bytes => self.malloc(place, bytes),
        }
    }

    #[inline]
    fn malloc(&mut self, place: u16, bytes: u64) -> Result<Allocation, AllocError> {
        let (stream, pool) = self.program.places[place as usize];
        if pool != PoolId::DEFAULT && !self.allocator.is_pool_in_use(pool) {
            self.allocator.create_pool(pool, PoolOptions::default());
        }
        self.allocator.malloc_request(Request {
            pool: Some(pool),
            ..Request::new(bytes, stream)
        })
    }
}
