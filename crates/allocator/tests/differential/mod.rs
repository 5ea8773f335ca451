//! Compares the replica with PyTorch's own allocator: reads a file of `tests/allocator/drive.py`, repeats
//! its operations, and reports the first difference.

mod file;
mod recorded_driver;

use std::collections::{BTreeMap, BTreeSet};

use ghostgpu_allocator::{
    Address, AllocError, Allocator, BlockState, PoolId, PoolKind, PoolOptions, Release,
    ScopeFilter, Settings, StreamId, StreamIdentity, ThreadId, TraceEvent,
};

use file::{Operation, Outcome, Recorded, Step};
use recorded_driver::RecordedDriver;

type Replica = Allocator<RecordedDriver, Vec<TraceEvent>>;

/// What was compared.
#[derive(Debug, Default)]
pub struct Compared {
    pub operations: usize,
    pub failed_requests: usize,
    pub statistics: usize,
    pub segments: usize,
    pub trace_entries: usize,
}

/// Repeats a recording; `Err` is the first difference, with its line.
pub fn compare(text: &str) -> Result<Compared, String> {
    let recorded = Recorded::read(text)?;
    let settings = Settings::parse(&recorded.settings, recorded.release)
        .map_err(|error| format!("settings: {error}"))?;
    let driver = RecordedDriver::new(&recorded);
    let mut run = Run {
        allocator: Allocator::with_trace(recorded.release, settings, driver, Vec::new()),
        recorded: &recorded,
        live: BTreeMap::new(),
        pools: BTreeMap::new(),
        stats: recorded.first_stats.iter().cloned().collect(),
        used: BTreeSet::new(),
        open_scopes: 0,
        order_is_unknown: false,
        compared: Compared::default(),
    };
    for &(handle, id) in &recorded.streams {
        let identity = StreamIdentity { device: 0, id };
        run.allocator.identify_stream(StreamId(handle), identity);
    }
    for step in &recorded.steps {
        let asserts = |text: &str| text.contains("INTERNAL ASSERT FAILED");
        if matches!(&step.outcome, Some(Outcome::Failed(text)) if asserts(text)) {
            // PyTorch crashed in the middle of this operation.
            return Ok(run.compared);
        }
        run.step(step)
            .map_err(|trouble| format!("line {}: {:?}: {trouble}", step.line, step.operation))?;
    }
    run.trace()?;
    Ok(run.compared)
}

struct Run<'a> {
    allocator: Replica,
    recorded: &'a Recorded,
    live: BTreeMap<u64, Address>,
    pools: BTreeMap<String, PoolId>,
    stats: BTreeMap<String, i64>,
    /// Names that other streams use.
    used: BTreeSet<u64>,
    open_scopes: usize,
    /// From 2.9 to 2.12 frees that a pool scope deferred come back in an order that depends on where
    /// the C++ heap put the block objects.
    order_is_unknown: bool,
    compared: Compared,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        self.compared.operations += 1;
        self.act(step)?;
        if let Some(trouble) = self.allocator.driver_mut().trouble.take() {
            return Err(trouble);
        }
        for (key, value) in &step.stats {
            self.stats.insert(key.clone(), *value);
        }
        if step.has_stats {
            self.compare_stats()?;
        }
        if let Some(segments) = &step.segments {
            self.compare_segments(segments)?;
        }
        Ok(())
    }

    fn act(&mut self, step: &Step) -> Result<(), String> {
        let fail = |error: &dyn std::fmt::Display| error.to_string();
        match &step.operation {
            Operation::Malloc { id, bytes, stream } => {
                let stream = self.stream(*stream);
                let got = self.allocator.malloc(*bytes, stream);
                let address = self.compare_outcome(got, step.outcome.as_ref())?;
                if let Some(address) = address {
                    self.live.insert(*id, address);
                }
                Ok(())
            }
            Operation::Free { id } => {
                let address = self.live.remove(id).ok_or("nothing has this name")?;
                let release = self.recorded.release;
                let by_pointer = release >= Release::new(2, 9) && release < Release::new(2, 13);
                self.order_is_unknown |=
                    by_pointer && self.open_scopes > 0 && self.used.contains(id);
                self.allocator.free(address).map_err(|error| fail(&error))
            }
            Operation::Record { id, stream } => {
                let stream = self.stream(*stream);
                let address = self.live.get(id).ok_or("nothing has this name")?;
                self.used.insert(*id);
                self.allocator
                    .record_stream(*address, stream)
                    .map_err(|error| fail(&error))
            }
            Operation::Flush => self.allocator.empty_cache().map_err(|error| fail(&error)),
            Operation::ResetPeak => {
                self.allocator.stats_mut().reset_peak();
                Ok(())
            }
            Operation::ResetSums => {
                self.allocator.stats_mut().reset_accumulated();
                Ok(())
            }
            Operation::Fraction(part) => {
                self.allocator.set_memory_fraction(*part);
                Ok(())
            }
            Operation::Settings(text) => self
                .allocator
                .apply_settings(text)
                .map_err(|error| fail(&error)),
            Operation::Pool { name, id, helps } => {
                let options = PoolOptions {
                    use_on_oom: *helps,
                    ..PoolOptions::default()
                };
                self.allocator.create_pool(*id, options);
                self.pools.insert(name.clone(), *id);
                Ok(())
            }
            Operation::Enter(name) => {
                self.open_scopes += 1;
                let filter = ScopeFilter::Thread(ThreadId(0));
                self.allocator
                    .begin_scope(self.pools[name], filter)
                    .map_err(|error| fail(&error))
            }
            Operation::Leave(name) => {
                self.open_scopes -= 1;
                let id = self.pools[name];
                self.allocator.end_scope(id).map_err(|error| fail(&error))?;
                self.allocator
                    .release_pool(id)
                    .map_err(|error| fail(&error))
            }
            Operation::Drop(name) => self
                .allocator
                .destroy_pool(self.pools[name])
                .map_err(|error| fail(&error)),
            Operation::Look => Ok(()),
        }
    }

    fn stream(&self, number: usize) -> StreamId {
        StreamId(self.recorded.streams[number].0)
    }

    fn compare_outcome(
        &mut self,
        got: Result<ghostgpu_allocator::Allocation, AllocError>,
        outcome: Option<&Outcome>,
    ) -> Result<Option<Address>, String> {
        match (got, outcome) {
            (Ok(got), Some(Outcome::Address(address))) if got.address.0 == *address => {
                Ok(Some(got.address))
            }
            (Ok(got), other) => Err(format!("{:#x} here, {other:x?} in PyTorch", got.address.0)),
            (Err(AllocError::OutOfMemory(oom)), Some(Outcome::Failed(text))) => {
                self.compared.failed_requests += 1;
                let here = oom.text(self.recorded.release, 0, &[]);
                let there = without_processes(text);
                if here == there {
                    Ok(None)
                } else {
                    Err(format!("different words\n here  {here}\n there {there}"))
                }
            }
            (Err(error @ AllocError::Rejected(_)), Some(Outcome::Failed(text)))
                if error.to_string() == *text =>
            {
                self.compared.failed_requests += 1;
                Ok(None)
            }
            (Err(error), other) => Err(format!("{error} here, {other:x?} in PyTorch")),
        }
    }

    fn compare_stats(&mut self) -> Result<(), String> {
        let here: BTreeMap<String, i64> = self
            .allocator
            .stats()
            .named(self.recorded.release)
            .into_iter()
            .collect();
        self.compared.statistics += here.len();
        let keys = here.keys().chain(self.stats.keys());
        let different: Vec<String> = keys
            .filter(|key| here.get(*key) != self.stats.get(*key))
            .filter(|key| !(self.order_is_unknown && depends_on_order(key)))
            .map(|key| {
                let (here, there) = (here.get(key), self.stats.get(key));
                format!("{key} is {here:?} here, {there:?} in PyTorch")
            })
            .collect();
        match different.is_empty() {
            true => Ok(()),
            false => Err(different.join("\n ")),
        }
    }

    fn compare_segments(&mut self, there: &[String]) -> Result<(), String> {
        self.compared.segments += there.len();
        let here: Vec<String> = self.allocator.segments().iter().map(segment_line).collect();
        self.allocator.record_snapshot();
        for (here, there) in here.iter().zip(there) {
            let is_same = if self.order_is_unknown {
                without_stale(here) == without_stale(there)
            } else {
                here == there
            };
            if !is_same {
                return Err(format!("different segment\n here  {here}\n there {there}"));
            }
        }
        match here.len() == there.len() {
            true => Ok(()),
            false => Err(format!(
                "{} segments here, {} in PyTorch",
                here.len(),
                there.len()
            )),
        }
    }

    fn trace(&mut self) -> Result<(), String> {
        let here: Vec<(&str, u64, u64, u64)> = self
            .allocator
            .sink()
            .iter()
            .map(|event| {
                let TraceEvent {
                    action,
                    address,
                    bytes,
                    stream,
                    ..
                } = event;
                (action.name(), address.0, *bytes, stream.0)
            })
            .collect();
        self.compared.trace_entries = here.len();
        let there: Vec<(&str, u64, u64, u64)> = self
            .recorded
            .trace
            .iter()
            .map(|(action, address, bytes, stream)| (action.as_str(), *address, *bytes, *stream))
            .collect();
        let (mut here, mut there) = (here, there);
        if self.order_is_unknown {
            sort_completions(&mut here);
            sort_completions(&mut there);
        }
        for (number, (here, there)) in here.iter().zip(&there).enumerate() {
            if here != there {
                return Err(format!(
                    "trace entry {number}: {here:x?} here, {there:x?} in PyTorch"
                ));
            }
        }
        match here.len() == there.len() {
            true => Ok(()),
            false => Err(format!(
                "{} trace entries here, {} in PyTorch",
                here.len(),
                there.len()
            )),
        }
    }
}

/// How free blocks merged, not the result.
fn depends_on_order(key: &str) -> bool {
    key.starts_with("inactive_split") && !key.ends_with(".current")
}

/// A segment's line without what was last asked for in free blocks: of two that merge, the one that is
/// freed last says it.
fn without_stale(line: &str) -> String {
    let (head, blocks) = line.rsplit_once(' ').unwrap_or_default();
    let blocks: Vec<String> = blocks
        .split(',')
        .map(|block| match block.strip_suffix(":inactive") {
            Some(sizes) => sizes.split(':').next().unwrap_or_default().to_owned(),
            None => block.to_owned(),
        })
        .collect();
    format!("{head} {}", blocks.join(","))
}

/// Completions that follow one another, by address.
fn sort_completions(entries: &mut [(&str, u64, u64, u64)]) {
    let completes = |entry: &(&str, u64, u64, u64)| entry.0 == "free_completed";
    for run in entries.chunk_by_mut(|a, b| completes(a) && completes(b)) {
        run.sort_unstable();
    }
}

/// The sentence without the part that NVML supplies.
fn without_processes(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text
        .find("Including non-PyTorch memory")
        .or_else(|| text.find("Process "))
    {
        let end = text[start..]
            .find("in use. ")
            .map_or(text.len(), |end| start + end + 8);
        text.replace_range(start..end, "");
    }
    text
}

fn segment_line(segment: &ghostgpu_allocator::SegmentView) -> String {
    let blocks: Vec<String> = segment
        .blocks
        .iter()
        .map(|block| {
            let state = match block.state {
                BlockState::Allocated => "active_allocated",
                BlockState::PendingFree => "active_pending_free",
                BlockState::Inactive => "inactive",
            };
            format!("{}:{}:{state}", block.size, block.requested_size)
        })
        .collect();
    format!(
        "{} {} {} {} {},{} {} {}",
        segment.address.0,
        segment.total_size,
        segment.stream.0,
        match segment.kind {
            PoolKind::Small => "small",
            PoolKind::Large => "large",
        },
        segment.pool.0,
        segment.pool.1,
        u8::from(segment.is_expandable),
        blocks.join(",")
    )
}
