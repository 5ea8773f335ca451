//! The types of the JSON document, in the order in which they are written.
//!
//! A field that is added keeps the version; one that changes its meaning or goes raises it.

use std::collections::BTreeMap;

use serde::Serialize;

/// Name and version of the document.
pub(super) const SCHEMA: &str = "ghostgpu.snapshot/1";

#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) schema: &'static str,
    pub(super) source: Source,
    pub(super) warnings: Vec<String>,
    pub(super) settings: Settings,
    pub(super) devices: Vec<Device>,
}

#[derive(Debug, Serialize)]
pub(super) struct Source {
    pub(super) format: &'static str,
    pub(super) pickle_bytes: u64,
}

/// What the file does not say is null.
#[derive(Debug, Serialize)]
pub(super) struct Settings {
    pub(super) text: Option<String>,
    pub(super) max_split_bytes: Option<Limit>,
    pub(super) garbage_collection_threshold: Option<f64>,
    pub(super) expandable_segments: Option<bool>,
    pub(super) release_lock_on_cudamalloc: Option<bool>,
    pub(super) graph_capture_record_stream_reuse: Option<bool>,
    pub(super) roundup_power2_divisions: BTreeMap<u64, u64>,
    pub(super) trace_overflowed: Option<bool>,
    pub(super) trace_max_entries: Option<u64>,
}

/// A number of bytes, or the word `unlimited`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Limit {
    Bytes(u64),
    Word(&'static str),
}

#[derive(Debug, Serialize)]
pub(super) struct Device {
    pub(super) device: usize,
    pub(super) state: State,
    pub(super) trace: Option<Trace>,
    pub(super) peak_active: Peak,
    pub(super) peak_reserved: Peak,
    pub(super) holders_at_peak: Holders,
    pub(super) holders_at_end: Holders,
    pub(super) pools: Vec<PoolState>,
    pub(super) segments: Vec<SegmentState>,
}

/// Sums over segments and blocks when the snapshot was taken.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct State {
    pub(super) segments: u64,
    pub(super) reserved_bytes: u64,
    pub(super) allocated_bytes: u64,
    pub(super) active_bytes: u64,
    /// Of active blocks.
    pub(super) requested_bytes: Option<u64>,
    pub(super) inactive_bytes: u64,
    /// Of inactive blocks that share their segment with an active one: no flush releases them.
    pub(super) inactive_pinned_bytes: u64,
    pub(super) largest_inactive_block_bytes: u64,
    pub(super) allocated_blocks: u64,
    pub(super) pending_free_blocks: u64,
    pub(super) inactive_blocks: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Trace {
    pub(super) events: usize,
    pub(super) events_by_action: BTreeMap<&'static str, u64>,
    pub(super) first_time_us: Option<i64>,
    pub(super) last_time_us: Option<i64>,
    pub(super) blocks_older_than_trace: usize,
    pub(super) out_of_memory: Vec<OutOfMemory>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutOfMemory {
    pub(super) event: usize,
    pub(super) time_us: Option<i64>,
    pub(super) bytes: u64,
    pub(super) device_free_bytes: Option<u64>,
}

/// All sums at the moment of a peak. `event` is null if it was there from the beginning.
#[derive(Debug, Serialize)]
pub(super) struct Peak {
    pub(super) event: Option<usize>,
    pub(super) time_us: Option<i64>,
    pub(super) active_requested_bytes: u64,
    pub(super) active_bytes_at_least: u64,
    pub(super) reserved_bytes: u64,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Holders {
    pub(super) requested_bytes: u64,
    pub(super) blocks: u64,
    pub(super) holders: Vec<Holder>,
    pub(super) other_requested_bytes: u64,
    pub(super) other_blocks: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Holder {
    pub(super) requested_bytes: u64,
    pub(super) blocks: u64,
    pub(super) stream: u64,
    pub(super) pool: Option<Pool>,
    pub(super) category: Option<String>,
    pub(super) origin: &'static str,
    /// Innermost first; empty unless the origin is `stack`.
    pub(super) stack: Vec<Frame>,
}

/// `(0, 0)` is the default pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Pool(pub(super) u64, pub(super) u64);

#[derive(Debug, Serialize)]
pub(super) struct Frame {
    pub(super) function: String,
    pub(super) file: String,
    pub(super) line: u64,
}

/// Sums over the segments of one pool, stream and kind.
#[derive(Debug, Serialize)]
pub(super) struct PoolState {
    pub(super) pool: Option<Pool>,
    pub(super) stream: u64,
    pub(super) kind: &'static str,
    pub(super) is_expandable: bool,
    #[serde(flatten)]
    pub(super) state: State,
}

#[derive(Debug, Serialize)]
pub(super) struct SegmentState {
    pub(super) address: u64,
    pub(super) pool: Option<Pool>,
    pub(super) stream: u64,
    pub(super) kind: &'static str,
    pub(super) is_expandable: bool,
    pub(super) total_bytes: u64,
    pub(super) allocated_bytes: u64,
    pub(super) active_bytes: u64,
    pub(super) requested_bytes: Option<u64>,
    pub(super) blocks: u64,
    pub(super) active_blocks: u64,
    pub(super) largest_inactive_block_bytes: u64,
}
