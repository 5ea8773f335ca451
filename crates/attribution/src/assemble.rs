//! Reads PyTorch's history and the memory log side by side.

use std::collections::BTreeMap;

use ghostgpu_recording::{
    Allocation, AllocationId, CardMemory, Category, Event, Failure, ModuleId, NameId, Names,
    OperatorId, Phase, PoolId, Recording, SegmentChange, Stage,
};
use ghostgpu_session::memory_log::{LogEntry, LogReader, OwnerKind, Totals};
use ghostgpu_snapshot::{DeviceTrace, EventKind, Snapshot};

use crate::category::{End, Evidence};
use crate::log::CardLog;
use crate::names::{Stacks, names_of_log};
use crate::pools::Pools;
use crate::sharding::Exchanges;

/// What is on a card outside PyTorch's allocator, by the card's index.
pub type Outside<'a> = &'a dyn Fn(u32) -> u64;

/// Makes the recording of a process; the caller fills in `about`.
pub fn assemble(log: &[u8], snapshot: &Snapshot, outside: Outside) -> Recording {
    let mut names = names_of_log(log);
    let mut stacks = Stacks::new(snapshot.stacks.len());
    let mut warnings: Vec<String> = snapshot.warnings.iter().map(ToString::to_string).collect();
    let mut cards = Vec::new();
    for trace in &snapshot.traces {
        let Ok(device) = u8::try_from(trace.device) else {
            continue;
        };
        if trace.events.is_empty() {
            continue;
        }
        let mut card = Card::new(CardLog::new(log, device), &mut names);
        card.read_trace(trace, snapshot, &mut stacks);
        if card.unmatched > 0 {
            warnings.push(format!(
                "{} allocations of device {device} are in PyTorch's history but not in the memory log: \
                 their operators and modules are not known",
                card.unmatched
            ));
        }
        if let Some((event, ours, theirs)) = card.first_difference {
            warnings.push(format!(
                "at event {event} of device {device}, what is counted here ({} bytes allocated, {} \
                 reserved) is not what PyTorch says ({} and {})",
                ours.allocated_bytes,
                ours.reserved_bytes,
                theirs.allocated_bytes,
                theirs.reserved_bytes
            ));
        }
        cards.push(card.finish(u32::from(device), outside(u32::from(device))));
    }
    add_nccl(&mut cards, log);
    Recording {
        names,
        cards,
        warnings,
        ..Recording::default()
    }
}

/// Adds NCCL's memory. A process has its communicators on one card: the one that it uses most.
fn add_nccl(cards: &mut [CardMemory], log: &[u8]) {
    let entries = LogReader::new(log).map_while(Result::ok);
    let bytes = entries.filter_map(|entry| match entry {
        LogEntry::NcclMemory { bytes } => Some(bytes),
        _ => None,
    });
    let bytes: u64 = bytes.fold(0, u64::saturating_add);
    if let Some(card) = cards.iter_mut().max_by_key(|card| card.outside_bytes) {
        card.nccl_bytes = bytes.min(card.outside_bytes);
    }
}

/// The memory of one card while it is assembled.
struct Card<'a> {
    log: CardLog<'a>,
    names: &'a mut Names,
    memory: CardMemory,
    evidence: Vec<Evidence>,
    pools: Pools,
    /// What lives at each address.
    live: BTreeMap<u64, AllocationId>,
    stage: (Stage, u32),
    /// The number of allocations that are not in the log.
    unmatched: usize,
    counted: Totals,
    /// The event at which our sums first differ from the allocator's own, with both sums.
    first_difference: Option<(u32, Totals, Totals)>,
}

impl<'a> Card<'a> {
    fn new(log: CardLog<'a>, names: &'a mut Names) -> Self {
        Self {
            log,
            names,
            memory: CardMemory::default(),
            evidence: Vec::new(),
            pools: Pools::default(),
            live: BTreeMap::new(),
            stage: (Stage::Script, 0),
            unmatched: 0,
            counted: Totals::default(),
            first_difference: None,
        }
    }

    fn read_trace(&mut self, trace: &DeviceTrace, snapshot: &Snapshot, stacks: &mut Stacks) {
        let first_time = trace.events.get(0).map_or(0, |event| event.time_us);
        self.memory.phases.push(Phase {
            stage: Stage::Script,
            step: 0,
            first_event: 0,
        });
        for event in trace.events.iter() {
            let time_us = u64::try_from(event.time_us - first_time).unwrap_or(0);
            let context = trace.events.context(event.context);
            let pool = self.pools.place(context.stream, context.pool);
            let change = SegmentChange {
                address: event.address,
                bytes: event.bytes,
                is_small: event.bytes <= 2 << 20,
                is_expandable: matches!(
                    event.kind,
                    EventKind::SegmentMap | EventKind::SegmentUnmap
                ),
                pool,
            };
            match event.kind {
                EventKind::Alloc => {
                    let stack = stacks.bring(event.stack, snapshot, self.names);
                    let id = self.allocate(event.address, event.bytes, stack, pool);
                    self.push(Event::Allocate(id), time_us);
                }
                // From the program's free on, the allocator no longer counts it as allocated, even if another stream
                // still uses it.
                EventKind::FreeRequested => {
                    let id = self.free(event.address, event.bytes, pool);
                    self.push(Event::Free(id), time_us);
                }
                EventKind::SegmentAlloc | EventKind::SegmentMap => {
                    self.counted.reserved_bytes += event.bytes;
                    let event = self.memory.reserve(change);
                    self.push(event, time_us);
                }
                EventKind::SegmentFree | EventKind::SegmentUnmap => {
                    let reserved = &mut self.counted.reserved_bytes;
                    *reserved = reserved.saturating_sub(event.bytes);
                    let event = self.memory.release(change);
                    self.push(event, time_us);
                }
                EventKind::Oom => {
                    let event = self.memory.fail(Failure {
                        requested_bytes: event.bytes,
                        driver_free_bytes: event.device_free_bytes,
                        stack: stacks.bring(event.stack, snapshot, self.names),
                        pool,
                    });
                    self.push(event, time_us);
                }
                EventKind::FreeCompleted
                | EventKind::Snapshot
                | EventKind::Annotate
                | EventKind::Other => {}
            }
        }
        while self.peek().is_some() {
            self.log.advance();
        }
    }

    fn push(&mut self, event: Event, time_us: u64) {
        self.memory.events.push(event);
        self.memory.times_us.push(time_us);
    }

    fn now(&self) -> u32 {
        self.memory.events.len() as u32
    }

    fn allocate(
        &mut self,
        address: u64,
        requested_bytes: u64,
        stack: ghostgpu_recording::StackId,
        pool: PoolId,
    ) -> AllocationId {
        let (block_bytes, operator, module) = match self.peek() {
            Some(LogEntry::Allocated {
                address: there,
                block_bytes,
                operator,
                module,
                totals,
                ..
            }) if there == address => {
                self.log.advance();
                self.counted.allocated_bytes += block_bytes;
                self.compare(totals);
                (block_bytes.max(requested_bytes), operator, module)
            }
            _ => {
                self.unmatched += 1;
                (requested_bytes, 0, 0)
            }
        };
        let id = AllocationId(self.memory.allocations.len() as u32);
        self.memory.allocations.push(Allocation {
            address,
            requested_bytes,
            block_bytes,
            allocated_at: Some(self.now()),
            freed_at: None,
            category: Category::Temporary,
            name: NameId(0),
            module: ModuleId(known(module, self.names.modules.len())),
            operator: OperatorId(known(operator, self.names.operators.len())),
            stack,
            pool,
        });
        self.evidence.push(Evidence {
            made_in: Some(self.stage),
            ..Evidence::default()
        });
        self.live.insert(address, id);
        id
    }

    /// Compares our sums with the allocator's own at the same moment.
    fn compare(&mut self, totals: Totals) {
        if self.counted != totals && self.first_difference.is_none() {
            self.first_difference = Some((self.now(), self.counted, totals));
        }
    }

    fn free(&mut self, address: u64, bytes: u64, pool: PoolId) -> AllocationId {
        let now = self.now();
        // Earlier remarks in the log refer to allocations that are still live, and a workspace is usually freed right
        // after its use. So they must be applied before this free.
        self.peek();
        let id = match self.live.remove(&address) {
            Some(id) => id,
            // Older than the recording.
            None => {
                let id = AllocationId(self.memory.allocations.len() as u32);
                self.memory.allocations.push(Allocation {
                    address,
                    requested_bytes: bytes,
                    block_bytes: bytes,
                    allocated_at: None,
                    freed_at: None,
                    category: Category::Temporary,
                    name: NameId(0),
                    module: ModuleId(0),
                    operator: OperatorId(0),
                    stack: ghostgpu_recording::StackId(0),
                    pool,
                });
                self.evidence.push(Evidence::default());
                id
            }
        };
        let allocation = &mut self.memory.allocations[id.0 as usize];
        allocation.freed_at = Some(now);
        let block_bytes = allocation.block_bytes;
        if let Some(LogEntry::Freed {
            address: there,
            totals,
            ..
        }) = self.peek()
            && there == address
        {
            self.log.advance();
            let allocated = &mut self.counted.allocated_bytes;
            *allocated = allocated.saturating_sub(block_bytes);
            self.compare(totals);
        }
        self.evidence[id.0 as usize].freed_in = Some(self.stage);
        id
    }

    /// The log's next allocation or free; remarks before it are applied.
    fn peek(&mut self) -> Option<LogEntry<'a>> {
        let now = self.memory.events.len() as u32;
        let Self {
            log,
            names,
            memory,
            evidence,
            live,
            stage,
            ..
        } = self;
        log.peek(|remark| match remark {
            LogEntry::Stage {
                stage: number,
                step,
            } => {
                if let Some(&entered) = Stage::ALL.get(usize::from(number)) {
                    *stage = (entered, step);
                    enter(&mut memory.phases, entered, step, now);
                }
            }
            LogEntry::Owner {
                kind,
                name,
                address,
            } => {
                if let (Some(&id), Some(kind)) = (live.get(&address), OwnerKind::from_number(kind))
                {
                    let is_stronger = evidence[id.0 as usize].recognise(kind);
                    let allocation = &mut memory.allocations[id.0 as usize];
                    // The name of a variable is better than none.
                    if is_stronger || allocation.name == NameId(0) {
                        allocation.name = NameId(known(name, names.texts.len()));
                    }
                }
            }
            LogEntry::Exchanged { address } => {
                // The block that contains the address, because ranks send parts of what they gather.
                if let Some((_, id)) = live.range(..=address).next_back() {
                    let one = &memory.allocations[id.0 as usize];
                    let is_inside = address - one.address < one.block_bytes;
                    evidence[id.0 as usize].is_exchanged |= is_inside;
                }
            }
            LogEntry::Workspace { address } => {
                if let Some(&id) = live.get(&address) {
                    evidence[id.0 as usize].is_workspace = true;
                }
            }
            // Names were read before; failed requests are also in PyTorch's history.
            _ => {}
        })
    }

    fn finish(mut self, index: u32, outside_bytes: u64) -> CardMemory {
        // A script that recovers from a failed request allocates again.
        let mut backwards = self.memory.events.iter().rev();
        let last =
            backwards.find(|event| matches!(event, Event::Allocate(_) | Event::OutOfMemory(_)));
        let end = End {
            step: self.stage.1,
            is_out_of_memory: matches!(last, Some(Event::OutOfMemory(_))),
        };
        let exchanges = Exchanges::of(self.names);
        for (allocation, evidence) in self.memory.allocations.iter_mut().zip(&mut self.evidence) {
            evidence.exchange = exchanges.of_stack(allocation.stack);
            allocation.category = evidence.category(end);
        }
        self.memory.pools = self.pools.all;
        self.memory.index = index;
        self.memory.outside_bytes = outside_bytes;
        self.memory
    }
}

/// Begins a phase, unless it is the same as the current one. A phase without events is replaced.
fn enter(phases: &mut Vec<Phase>, stage: Stage, step: u32, now: u32) {
    if phases.last().is_some_and(|phase| phase.first_event == now) {
        phases.pop();
    }
    if phases
        .last()
        .is_none_or(|phase| (phase.stage, phase.step) != (stage, step))
    {
        phases.push(Phase {
            stage,
            step,
            first_event: now,
        });
    }
}

/// A number from the log, or 0 if it refers to nothing.
fn known(number: u32, count: usize) -> u32 {
    if (number as usize) < count { number } else { 0 }
}
