//! The types of the JSON report, in the order in which they are written.
//!
//! Adding a field keeps the version; changing the meaning of a field or removing one raises it.

use std::collections::BTreeMap;

use ghostgpu_recording::Answer;
use serde::Serialize;

/// Name and version of the document.
pub(super) const SCHEMA: &str = "ghostgpu.report/1";

/// Bytes by the name of their category or part. All names that the recording can know are present, including those with
/// zero bytes.
pub(super) type ByName = BTreeMap<&'static str, u64>;

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    pub(super) schema: &'static str,
    pub(super) about: About,
    /// The document of `ghostgpu run --json`; null if the recording has none.
    pub(super) answer: Option<&'a Answer>,
    pub(super) warnings: Vec<String>,
    pub(super) cards: Vec<Card>,
}

/// The part of this document that the document of `ghostgpu run --json` contains: everything that it does not have
/// itself.
#[derive(Debug, Serialize)]
pub struct Breakdown {
    pub(super) schema: &'static str,
    pub(super) warnings: Vec<String>,
    pub(super) cards: Vec<Card>,
}

#[derive(Debug, Serialize)]
pub(super) struct About {
    pub(super) source: &'static str,
    pub(super) command: Vec<String>,
    pub(super) torch: String,
    pub(super) gpu: String,
    pub(super) gpu_total_bytes: u64,
    pub(super) capability: String,
    pub(super) allocator_settings: String,
    pub(super) optimizer_steps: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct Card {
    pub(super) card: u32,
    /// The rank whose card it is; null if the job has only one.
    pub(super) rank: Option<u32>,
    pub(super) events: usize,
    /// Since 1970; null if unknown.
    pub(super) began_us: Option<u64>,
    pub(super) at_peak: Accounts,
    pub(super) at_reserved_peak: Accounts,
    pub(super) at_end: Accounts,
    pub(super) stages: Option<Stages>,
    pub(super) steps: Vec<Step>,
    pub(super) modules: Vec<Module>,
    pub(super) lines: Rows<Line>,
    pub(super) operators: Option<Rows<Operator>>,
    pub(super) holders: Rows<Holder>,
    pub(super) rule_of_thumb: Option<RuleOfThumb>,
    pub(super) growth: Option<Growth>,
    pub(super) out_of_memory: Vec<OutOfMemory>,
    pub(super) segments_at_end: Vec<Segment>,
}

/// The stream and pool that memory belongs to.
#[derive(Debug, Serialize)]
pub(super) struct Pool {
    pub(super) stream: u64,
    /// `[0, 0]` is the default pool; null if it was not recorded.
    pub(super) pool: Option<(u64, u64)>,
}

#[derive(Debug, Serialize)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) bytes: u64,
    #[serde(flatten)]
    pub(super) pool: Pool,
    pub(super) is_small: bool,
    pub(super) is_expandable: bool,
    pub(super) live_bytes: u64,
    pub(super) requested_bytes: u64,
    pub(super) blocks: usize,
    pub(super) live_blocks: usize,
    /// How many of these blocks were freed while another stream may still use them.
    pub(super) pending_blocks: usize,
    pub(super) largest_free_block_bytes: u64,
}

/// A moment: after which event, when, and in which step and stage.
#[derive(Debug, Serialize)]
pub(super) struct Moment {
    pub(super) event: Option<usize>,
    pub(super) time_us: u64,
    pub(super) step: Option<u32>,
    pub(super) stage: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct Accounts {
    #[serde(flatten)]
    pub(super) moment: Moment,
    /// Null if only PyTorch's allocator was recorded.
    pub(super) on_card_bytes: Option<u64>,
    pub(super) reserved_bytes: u64,
    pub(super) allocated_bytes: u64,
    pub(super) requested_bytes: u64,
    /// Adds up to `on_card_bytes`, or else to `reserved_bytes`.
    pub(super) parts: ByName,
}

#[derive(Debug, Serialize)]
pub(super) struct Stages {
    pub(super) later_step: Option<u32>,
    pub(super) optimizer_state_in_first_step_bytes: u64,
    pub(super) rows: Vec<Stage>,
}

#[derive(Debug, Serialize)]
pub(super) struct Stage {
    pub(super) part: &'static str,
    pub(super) step: Option<u32>,
    pub(super) stage: &'static str,
    pub(super) phases: u32,
    pub(super) first_event: usize,
    pub(super) came_bytes: u64,
    pub(super) went_bytes: u64,
    pub(super) stayed_bytes: u64,
    pub(super) peak_allocated_bytes: u64,
    pub(super) peak_event: Option<usize>,
    pub(super) came: ByName,
    pub(super) went: ByName,
    pub(super) stayed: ByName,
}

#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) step: u32,
    pub(super) first_event: usize,
    pub(super) is_complete: bool,
    pub(super) peak_allocated_bytes: u64,
    pub(super) peak_reserved_bytes: u64,
    pub(super) allocated_after_bytes: u64,
}

/// Sums over live allocations.
#[derive(Debug, Serialize)]
pub(super) struct Held {
    pub(super) requested_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) blocks: u64,
    pub(super) categories: ByName,
}

#[derive(Debug, Serialize)]
pub(super) struct Module {
    pub(super) path: String,
    pub(super) class: String,
    /// Index in this list.
    pub(super) parent: Option<usize>,
    pub(super) own_requested_bytes: u64,
    #[serde(flatten)]
    pub(super) held: Held,
}

/// The largest rows, and the sum of the others.
#[derive(Debug, Serialize)]
pub(super) struct Rows<T> {
    pub(super) rows: Vec<T>,
    pub(super) other_rows: usize,
    pub(super) other_requested_bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) place: String,
    pub(super) frame: Option<Frame>,
    #[serde(flatten)]
    pub(super) held: Held,
}

#[derive(Debug, Serialize)]
pub(super) struct Operator {
    pub(super) operator: String,
    pub(super) is_known: bool,
    #[serde(flatten)]
    pub(super) held: Held,
}

#[derive(Debug, Serialize)]
pub(super) struct Holder {
    pub(super) category: &'static str,
    pub(super) requested_bytes: u64,
    pub(super) block_bytes: u64,
    pub(super) blocks: u64,
    pub(super) place: String,
    pub(super) module: String,
    pub(super) operator: String,
    /// The name of the largest allocation.
    pub(super) name: String,
    pub(super) largest_requested_bytes: u64,
    #[serde(flatten)]
    pub(super) pool: Pool,
    /// Innermost first.
    pub(super) stack: Vec<Frame>,
}

#[derive(Debug, Serialize)]
pub(super) struct Frame {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) function: String,
    pub(super) owner: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct RuleOfThumb {
    pub(super) optimizer: &'static str,
    pub(super) copies: u64,
    pub(super) parameter_bytes: u64,
    pub(super) output_bytes: u64,
    pub(super) rule_bytes: u64,
    pub(super) exact_bytes: u64,
    pub(super) differences: Vec<Difference>,
    pub(super) layers: Vec<Layer>,
}

#[derive(Debug, Serialize)]
pub(super) struct Difference {
    pub(super) part: &'static str,
    pub(super) bytes: i64,
    pub(super) reason: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Layer {
    pub(super) path: String,
    pub(super) class: String,
    pub(super) parameter_bytes: u64,
    pub(super) output_bytes: u64,
    pub(super) rule_bytes: u64,
    pub(super) exact_bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Growth {
    pub(super) steps_compared: usize,
    pub(super) bytes_per_step: u64,
    pub(super) steps_until_full: Option<u64>,
    pub(super) sources: Vec<GrowthSource>,
}

#[derive(Debug, Serialize)]
pub(super) struct GrowthSource {
    pub(super) place: String,
    pub(super) category: &'static str,
    pub(super) bytes_per_step: u64,
    pub(super) blocks: u64,
    pub(super) kept_in: String,
    pub(super) bytes_at_ends: Vec<u64>,
    pub(super) stack: Vec<Frame>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutOfMemory {
    #[serde(flatten)]
    pub(super) moment: Moment,
    pub(super) requested_bytes: u64,
    /// What the driver had left; null if not recorded.
    pub(super) driver_free_bytes: Option<u64>,
    #[serde(flatten)]
    pub(super) pool: Pool,
    pub(super) stack: Vec<Frame>,
}
