//! The allocator's history of a run, prepared for replay: would less memory have been enough?

use std::collections::HashMap;

use ghostgpu_recording::{CardMemory, Category, Recording};
use ghostgpu_session::MemoryLimit;
use ghostgpu_session::memory_log::{LogEntry, LogReader};
use ghostgpu_snapshot::{DeviceTrace, EventKind, Snapshot};
use ghostgpu_whatif::{Choices, History, Known, OthersMemory, Outside};

/// The history of a process that used one card; `None` if a replay does not reproduce what was recorded.
pub fn replayable_history(
    log: &[u8],
    snapshot: &Snapshot,
    recording: &Recording,
    limits: &[MemoryLimit],
) -> Option<History> {
    let [card] = recording.cards.as_slice() else {
        return None;
    };
    let device = card.index as usize;
    let trace = snapshot
        .traces
        .iter()
        .find(|trace| trace.device == device)?;
    let limit = limits.iter().find(|limit| limit.device == card.index);
    let limit_bytes = limit.map(|limit| limit.limit_bytes);
    let with_limit = |limit_bytes: Option<u64>| {
        let known = Known {
            release: recording.about.torch.parse().ok(),
            limit_bytes,
        };
        let history = History::of(snapshot, device, known).ok()?;
        history.difference().is_none().then_some(history)
    };
    // With unlimited memory, the script's own limit was not enforced.
    let unlimited = || limit_bytes.and_then(|_| with_limit(None));
    let mut history = with_limit(limit_bytes).or_else(unlimited)?;
    let mut choices = ChoicesOfEvents::of_log(log, trace);
    choices.add_unknown(trace, card, &recording.names.operators);
    history.choose(choices.all, |event| choices.numbers.get(&event).copied());
    if let Some(others) = others_memory(log, trace) {
        history.beside(others);
    }
    Some(history)
}

/// What a program would request instead if there is no memory for a workspace. PyTorch asks cuDNN for the algorithms of
/// a convolution, fastest first, and takes the next one if the workspace of one does not fit.
#[derive(Debug, Default)]
struct ChoicesOfEvents {
    all: Vec<Choices>,
    /// By event of the trace: the index of its choices in `all`.
    numbers: HashMap<usize, u32>,
}

impl ChoicesOfEvents {
    /// Reads the choices that the library logged.
    fn of_log(log: &[u8], trace: &DeviceTrace) -> Self {
        let mut found = Self::default();
        let mut by_operation: HashMap<u32, u32> = HashMap::new();
        let mut events = allocation_events(trace);
        let mut latest_at: HashMap<u64, usize> = HashMap::new();
        for entry in LogReader::new(log) {
            match entry {
                Ok(LogEntry::Allocated {
                    device, address, ..
                }) if usize::from(device) == trace.device => {
                    latest_at.extend(events.next().map(|event| (address, event)));
                }
                Ok(LogEntry::WorkspaceChoices {
                    address,
                    workspace_bytes,
                    number,
                    sizes,
                }) => {
                    let known: Result<Vec<u64>, _> = sizes.split(',').map(str::parse).collect();
                    if let Ok(bytes) = known {
                        by_operation.insert(number, found.all.len() as u32);
                        found.all.push(Choices {
                            bytes,
                            are_known: true,
                        });
                    }
                    // A benchmark of all algorithms uses one workspace for all of them, so sizes must match.
                    if let (Some(&choices), Some(&event)) =
                        (by_operation.get(&number), latest_at.get(&address))
                        && trace.events.bytes()[event] == workspace_bytes
                        && found.all[choices as usize].bytes.contains(&workspace_bytes)
                    {
                        found.numbers.insert(event, choices);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        found
    }

    /// Adds convolutions that are not in the log: they can do without their workspaces, but what they would take instead
    /// is unknown.
    fn add_unknown(&mut self, trace: &DeviceTrace, card: &CardMemory, operators: &[String]) {
        let mut by_use: HashMap<(u32, u64), u32> = HashMap::new();
        // A recording has the allocations in the order of the events that made them.
        let allocations = card
            .allocations
            .iter()
            .filter(|allocation| allocation.allocated_at.is_some());
        for (event, allocation) in allocation_events(trace).zip(allocations) {
            let operator = operators.get(allocation.operator.0 as usize);
            let is_workspace = allocation.category == Category::Workspace;
            if !is_workspace
                || !operator.is_some_and(|name| is_convolution(name))
                || self.numbers.contains_key(&event)
            {
                continue;
            }
            let bytes = trace.events.bytes()[event];
            // Forward and backward passes choose separately.
            let number = *by_use
                .entry((allocation.operator.0, bytes))
                .or_insert_with(|| {
                    self.all.push(Choices {
                        bytes: vec![bytes, 0],
                        are_known: false,
                    });
                    self.all.len() as u32 - 1
                });
            self.numbers.insert(event, number);
        }
    }
}

/// The indices of the trace's allocations.
fn allocation_events(trace: &DeviceTrace) -> impl Iterator<Item = usize> {
    let kinds = trace.events.kinds().iter().enumerate();
    kinds
        .filter(|(_, kind)| **kind == EventKind::Alloc)
        .map(|(event, _)| event)
}

/// `aten::conv2d`, `aten::cudnn_convolution_transpose`, `ConvolutionBackward0`.
fn is_convolution(operator: &str) -> bool {
    operator.to_ascii_lowercase().contains("conv")
}

/// What the context and libraries took from the driver, each with the event of the next allocation; `None` if the log
/// does not say.
fn others_memory(log: &[u8], trace: &DeviceTrace) -> Option<OthersMemory> {
    let mut allocations = allocation_events(trace);
    let mut next = allocations.next()?;
    let mut others = OthersMemory::default();
    for entry in LogReader::new(log) {
        match entry.ok()? {
            LogEntry::Allocated { device, .. } if usize::from(device) == trace.device => {
                next = allocations.next().unwrap_or(usize::MAX);
            }
            // These entries count cards of the machine, the allocator counts cards that the process sees. There is only
            // one card here.
            LogEntry::LibraryMemory { bytes, .. } => {
                others.taken.push((next, Outside::Library { bytes }));
            }
            LogEntry::FirstKernel {
                context_bytes,
                bytes,
                ..
            } => {
                others.context_bytes = context_bytes;
                others.taken.push((next, Outside::FirstKernel { bytes }));
            }
            _ => {}
        }
    }
    (others.context_bytes > 0).then_some(others)
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::{Allocation, ModuleId, NameId, OperatorId, PoolId, StackId};
    use ghostgpu_session::memory_log::Totals;
    use ghostgpu_snapshot::{ContextId, Event, EventContext};

    use super::*;

    fn trace(kinds: &[EventKind]) -> DeviceTrace {
        let mut trace = DeviceTrace::default();
        for &kind in kinds {
            let event = Event {
                kind,
                address: 1 << 40,
                bytes: 512,
                device_free_bytes: None,
                time_us: 0,
                stack: ghostgpu_snapshot::StackId::NONE,
                context: ContextId(0),
            };
            trace.events.push(event, EventContext::default());
        }
        trace
    }

    fn log(entries: &[LogEntry]) -> Vec<u8> {
        let mut log = Vec::new();
        for entry in entries {
            entry.write(&mut log);
        }
        log
    }

    fn allocated(device: u8) -> LogEntry<'static> {
        LogEntry::Allocated {
            device,
            address: 1 << 40,
            block_bytes: 512,
            operator: 0,
            module: 0,
            totals: Totals::default(),
        }
    }

    #[test]
    fn what_others_took_comes_before_the_next_allocation() {
        use EventKind::{Alloc, FreeCompleted, FreeRequested, SegmentAlloc};
        let trace = trace(&[SegmentAlloc, Alloc, FreeRequested, FreeCompleted, Alloc]);
        let library = LogEntry::LibraryMemory {
            device: 0,
            bytes: 8,
        };
        let kernel = LogEntry::FirstKernel {
            device: 0,
            context_bytes: 100,
            bytes: 9,
        };
        // Allocations on another card are not counted.
        let entries = [
            library,
            allocated(0),
            allocated(1),
            kernel,
            allocated(0),
            library,
        ];
        assert_eq!(
            others_memory(&log(&entries), &trace),
            Some(OthersMemory {
                context_bytes: 100,
                taken: vec![
                    (1, Outside::Library { bytes: 8 }),
                    (4, Outside::FirstKernel { bytes: 9 }),
                    (usize::MAX, Outside::Library { bytes: 8 }),
                ],
            })
        );
        assert_eq!(others_memory(&log(&[allocated(0)]), &trace), None);
    }

    #[test]
    fn only_workspaces_of_convolutions_are_optional() {
        use EventKind::{Alloc, FreeRequested};
        let operators = ["", "aten::conv2d", "aten::linear", "ConvolutionBackward0"];
        let allocation = |category, operator| Allocation {
            address: 1 << 40,
            requested_bytes: 512,
            block_bytes: 512,
            allocated_at: Some(0),
            freed_at: None,
            category,
            name: NameId(0),
            module: ModuleId(0),
            operator: OperatorId(operator),
            stack: StackId(0),
            pool: PoolId(0),
        };
        let older = Allocation {
            allocated_at: None,
            ..allocation(Category::Workspace, 1)
        };
        let card = CardMemory {
            allocations: vec![
                older,
                allocation(Category::Workspace, 1),
                allocation(Category::Activation, 1),
                allocation(Category::Workspace, 2),
                allocation(Category::Workspace, 3),
                allocation(Category::Workspace, 1),
            ],
            ..CardMemory::default()
        };
        let trace = trace(&[
            FreeRequested,
            Alloc,
            Alloc,
            Alloc,
            FreeRequested,
            Alloc,
            Alloc,
        ]);
        let mut found = ChoicesOfEvents::default();
        found.add_unknown(&trace, &card, &operators.map(str::to_owned));
        let numbers = [1, 2, 3, 5, 6].map(|event| found.numbers.get(&event).copied());
        assert_eq!(numbers, [Some(0), None, None, Some(1), Some(0)]);
        let unknown = Choices {
            bytes: vec![512, 0],
            are_known: false,
        };
        assert_eq!(found.all, [unknown.clone(), unknown]);
    }

    #[test]
    fn what_the_library_says_of_workspaces_belongs_to_the_latest_allocation_at_their_address() {
        use EventKind::{Alloc, FreeRequested};
        let trace = trace(&[Alloc, FreeRequested, Alloc, FreeRequested, Alloc]);
        let choices = |number, workspace_bytes, sizes| LogEntry::WorkspaceChoices {
            address: 1 << 40,
            workspace_bytes,
            number,
            sizes,
        };
        let entries = [
            allocated(0),
            choices(7, 512, "512,64,0"),
            allocated(1),
            allocated(0),
            // A benchmark of all algorithms: the workspace does not belong to this one.
            choices(8, 256, "256"),
            allocated(0),
            choices(7, 512, ""),
        ];
        let found = ChoicesOfEvents::of_log(&log(&entries), &trace);
        let numbers = [0, 2, 4].map(|event| found.numbers.get(&event).copied());
        assert_eq!(numbers, [Some(0), None, Some(0)]);
        assert_eq!(found.all[0].bytes, [512, 64, 0]);
        assert!(found.all[0].are_known);
    }
}
