//! Segments, blocks and settings: from the pickle's values to this crate's types.

use ghostgpu_pickle::{Heap, Value};

use super::interner::{Interner, key_number};
use super::keys;
use super::plain::item_at;
use super::{Budget, ReadError};
use crate::segments::{Block, BlockState, HistoryEntry, Segment, SegmentKind};
use crate::settings::AllocatorSettings;
use crate::stacks::StackId;
use crate::warning::Part;

/// Reads a list of segments.
pub(super) fn segments(
    interner: &mut Interner,
    heap: &mut Heap,
    list: Value,
    budget: &mut Budget,
) -> Result<Vec<Segment>, ReadError> {
    let mut segments = Vec::new();
    for at in 0.. {
        let Some(value) = item_at(heap, list, at)? else {
            break;
        };
        if heap.dict(value).is_none() {
            interner
                .notes
                .wrong_type(Part::Top, keys::SEGMENTS, heap, value);
            continue;
        }
        budget.spend(size_of::<Segment>())?;
        segments.push(segment(interner, heap, value, budget)?);
    }
    Ok(segments)
}

fn segment(
    interner: &mut Interner,
    heap: &mut Heap,
    value: Value,
    budget: &mut Budget,
) -> Result<Segment, ReadError> {
    const PART: Part = Part::Segment;
    let mut segment = Segment {
        device: 0,
        address: 0,
        total_bytes: 0,
        allocated_bytes: 0,
        active_bytes: 0,
        requested_bytes: None,
        stream: 0,
        kind: SegmentKind::Large,
        pool: None,
        is_expandable: false,
        stack: StackId::NONE,
        forward_stack: StackId::NONE,
        blocks: Vec::new(),
    };
    let mut blocks_list = Value::None;
    let (mut has_address, mut has_size) = (false, false);
    for at in 0.. {
        let Some((key, value)) = entry_at(heap, value, at) else {
            break;
        };
        let number = key_number(key);
        match number {
            keys::DEVICE => match value {
                Value::Int(device) => segment.device = device,
                _ => interner.notes.wrong_type(PART, number, heap, value),
            },
            keys::ADDRESS
            | keys::TOTAL_SIZE
            | keys::ALLOCATED_SIZE
            | keys::ACTIVE_SIZE
            | keys::REQUESTED_SIZE
            | keys::STREAM => {
                let Some(integer) = heap.unsigned_bits(value) else {
                    interner.notes.wrong_type(PART, number, heap, value);
                    continue;
                };
                match number {
                    keys::ADDRESS => {
                        segment.address = integer;
                        has_address = true;
                    }
                    keys::TOTAL_SIZE => {
                        segment.total_bytes = integer;
                        has_size = true;
                    }
                    keys::ALLOCATED_SIZE => segment.allocated_bytes = integer,
                    keys::ACTIVE_SIZE => segment.active_bytes = integer,
                    keys::REQUESTED_SIZE => segment.requested_bytes = Some(integer),
                    _ => segment.stream = integer,
                }
            }
            keys::SEGMENT_TYPE => match key_number(value) {
                keys::SMALL => segment.kind = SegmentKind::Small,
                keys::LARGE => segment.kind = SegmentKind::Large,
                _ => interner.notes.wrong_type(PART, number, heap, value),
            },
            keys::SEGMENT_POOL_ID => segment.pool = interner.pool(heap, PART, number, value),
            keys::IS_EXPANDABLE => match value {
                Value::Bool(is_expandable) => segment.is_expandable = is_expandable,
                _ => interner.notes.wrong_type(PART, number, heap, value),
            },
            keys::FRAMES => segment.stack = interner.stack(heap, PART, number, value),
            keys::FORWARD_FRAMES => {
                segment.forward_stack = interner.stack(heap, PART, number, value)
            }
            keys::BLOCKS => blocks_list = value,
            _ => interner.notes.unknown_key(PART, key),
        }
    }
    if !has_address {
        interner.notes.missing(PART, keys::ADDRESS);
    }
    if !has_size {
        interner.notes.missing(PART, keys::TOTAL_SIZE);
    }
    segment.blocks = blocks(interner, heap, blocks_list, segment.address, budget)?;
    Ok(segment)
}

fn blocks(
    interner: &mut Interner,
    heap: &mut Heap,
    list: Value,
    segment_address: u64,
    budget: &mut Budget,
) -> Result<Vec<Block>, ReadError> {
    if heap.list(list).is_none() {
        interner.notes.missing(Part::Segment, keys::BLOCKS);
    }
    let mut blocks = Vec::new();
    // Before torch 2.1 a block does not say where it is: they follow each other.
    let mut next_address = segment_address;
    for at in 0.. {
        let Some(value) = item_at(heap, list, at)? else {
            break;
        };
        if heap.dict(value).is_none() {
            interner
                .notes
                .wrong_type(Part::Segment, keys::BLOCKS, heap, value);
            continue;
        }
        budget.spend(size_of::<Block>())?;
        let block = block(interner, heap, value, next_address, budget)?;
        next_address = block.address.wrapping_add(block.bytes);
        blocks.push(block);
    }
    Ok(blocks)
}

fn block(
    interner: &mut Interner,
    heap: &mut Heap,
    value: Value,
    expected_address: u64,
    budget: &mut Budget,
) -> Result<Block, ReadError> {
    const PART: Part = Part::Block;
    let mut block = Block {
        address: expected_address,
        bytes: 0,
        requested_bytes: None,
        state: BlockState::Inactive,
        stack: StackId::NONE,
        forward_stack: StackId::NONE,
        history: Vec::new(),
    };
    let (mut has_size, mut has_state) = (false, false);
    for at in 0.. {
        let Some((key, value)) = entry_at(heap, value, at) else {
            break;
        };
        let number = key_number(key);
        match number {
            keys::ADDRESS | keys::SIZE | keys::REQUESTED_SIZE => {
                let Some(integer) = heap.unsigned_bits(value) else {
                    interner.notes.wrong_type(PART, number, heap, value);
                    continue;
                };
                match number {
                    keys::ADDRESS => block.address = integer,
                    keys::SIZE => {
                        block.bytes = integer;
                        has_size = true;
                    }
                    _ => block.requested_bytes = Some(integer),
                }
            }
            keys::STATE => {
                has_state = true;
                match key_number(value) {
                    keys::ACTIVE_ALLOCATED => block.state = BlockState::Allocated,
                    keys::ACTIVE_PENDING_FREE | keys::ACTIVE_AWAITING_FREE => {
                        block.state = BlockState::PendingFree;
                    }
                    keys::INACTIVE => block.state = BlockState::Inactive,
                    _ => interner.notes.wrong_type(PART, number, heap, value),
                }
            }
            keys::FRAMES => block.stack = interner.stack(heap, PART, number, value),
            keys::FORWARD_FRAMES => block.forward_stack = interner.stack(heap, PART, number, value),
            keys::HISTORY => block.history = history(interner, heap, value, budget)?,
            _ => interner.notes.unknown_key(PART, key),
        }
    }
    if !has_size {
        interner.notes.missing(PART, keys::SIZE);
    }
    if !has_state {
        interner.notes.missing(PART, keys::STATE);
    }
    // The first use is the current one, if there is one.
    if let Some(current) = block.history.first().filter(|_| block.state.is_active()) {
        block.requested_bytes.get_or_insert(current.requested_bytes);
        if block.stack == StackId::NONE {
            block.stack = current.stack;
        }
    }
    Ok(block)
}

/// The uses of a block, in torch 1.13 and 2.0.
fn history(
    interner: &mut Interner,
    heap: &mut Heap,
    list: Value,
    budget: &mut Budget,
) -> Result<Vec<HistoryEntry>, ReadError> {
    const PART: Part = Part::Block;
    let mut uses = Vec::new();
    for at in 0.. {
        let Some(value) = item_at(heap, list, at)? else {
            break;
        };
        budget.spend(size_of::<HistoryEntry>())?;
        let mut entry = HistoryEntry {
            address: 0,
            requested_bytes: 0,
            stack: StackId::NONE,
        };
        let mut cpp_stack = StackId::NONE;
        for at in 0.. {
            let Some((key, value)) = entry_at(heap, value, at) else {
                break;
            };
            let number = key_number(key);
            match number {
                keys::ADDR => entry.address = heap.unsigned_bits(value).unwrap_or(0),
                keys::REAL_SIZE => entry.requested_bytes = heap.unsigned_bits(value).unwrap_or(0),
                keys::FRAMES => entry.stack = interner.stack(heap, PART, number, value),
                keys::CPP_FRAMES => cpp_stack = interner.stack(heap, PART, number, value),
                _ => interner.notes.unknown_key(PART, key),
            }
        }
        if entry.stack == StackId::NONE {
            entry.stack = cpp_stack;
        }
        uses.push(entry);
    }
    Ok(uses)
}

/// Reads the allocator's settings.
pub(super) fn settings(interner: &mut Interner, heap: &Heap, value: Value) -> AllocatorSettings {
    const PART: Part = Part::Settings;
    let mut settings = AllocatorSettings::default();
    let Some(dictionary) = heap.dict(value) else {
        interner
            .notes
            .wrong_type(Part::Top, keys::ALLOCATOR_SETTINGS, heap, value);
        return settings;
    };
    for (key, value) in dictionary.entries() {
        let number = key_number(key);
        let integer = heap.unsigned_bits(value);
        // -1, or the largest number: no limit.
        let bounded = integer.map(|bytes| (bytes != u64::MAX).then_some(bytes));
        let boolean = match value {
            Value::Bool(value) => Some(value),
            _ => None,
        };
        let understood = match number {
            keys::PYTORCH_CUDA_ALLOC_CONF => {
                if let Value::String(id) = value {
                    settings.text = Some(heap.text(id).into_owned());
                }
                settings.text.is_some()
            }
            keys::MAX_SPLIT_SIZE => set(&mut settings.max_split_bytes, bounded),
            keys::MAX_ROUND_THRESHOLD => set(&mut settings.max_round_threshold_bytes, bounded),
            keys::MAX_CACHED_SIZE => set(&mut settings.max_cached_bytes, bounded),
            keys::GARBAGE_COLLECTION_THRESHOLD => {
                let threshold = match value {
                    Value::Float(threshold) => Some(threshold),
                    Value::Int(threshold) => Some(threshold as f64),
                    _ => None,
                };
                set(&mut settings.garbage_collection_threshold, threshold)
            }
            keys::EXPANDABLE_SEGMENTS => set(&mut settings.expandable_segments, boolean),
            keys::PINNED_NUM_REGISTER_THREADS => {
                set(&mut settings.pinned_num_register_threads, integer)
            }
            keys::RELEASE_LOCK_ON_CUDAMALLOC => {
                set(&mut settings.release_lock_on_cudamalloc, boolean)
            }
            keys::PINNED_USE_CUDA_HOST_REGISTER => {
                set(&mut settings.pinned_use_cuda_host_register, boolean)
            }
            keys::GRAPH_CAPTURE_RECORD_STREAM_REUSE => {
                set(&mut settings.graph_capture_record_stream_reuse, boolean)
            }
            keys::ROUNDUP_POWER2_DIVISIONS => {
                settings.roundup_power2_divisions = divisions(heap, value);
                heap.dict(value).is_some()
            }
            keys::TRACE_ALLOC_OVERFLOWED => {
                set(&mut settings.trace_overflowed, any_true(heap, value))
            }
            keys::TRACE_ALLOC_MAX_ENTRIES => set(&mut settings.trace_max_entries, integer),
            _ => {
                interner.notes.unknown_key(PART, key);
                true
            }
        };
        if !understood {
            interner.notes.wrong_type(PART, number, heap, value);
        }
    }
    settings
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    *slot = value;
    slot.is_some()
}

/// Keys are sizes in MiB as text.
fn divisions(heap: &Heap, value: Value) -> Vec<(u64, u64)> {
    let Some(dictionary) = heap.dict(value) else {
        return Vec::new();
    };
    let entry = |(key, divisions): (Value, Value)| {
        let size = match key {
            Value::String(id) => heap.text(id).parse().ok()?,
            other => heap.unsigned_bits(other)?,
        };
        Some((size, heap.unsigned_bits(divisions)?))
    };
    dictionary.entries().filter_map(entry).collect()
}

/// A flag for all devices, or one per device.
fn any_true(heap: &Heap, value: Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(value),
        _ => heap
            .list(value)
            .or_else(|| heap.tuple(value))
            .map(|items| items.contains(&Value::Bool(true))),
    }
}

fn entry_at(heap: &Heap, dict: Value, at: usize) -> Option<(Value, Value)> {
    let items = heap.dict(dict)?.items();
    Some((*items.get(2 * at)?, *items.get(2 * at + 1)?))
}
