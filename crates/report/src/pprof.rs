//! pprof: a heap profile of what is live at a moment of each card.
//!
//! "In use" is what is live at the moment, "allocated" everything in the recording; see [`counted_bytes`]. The operator
//! is the innermost frame. Where there is no Python stack, the modules' path and the stage
//! stand in its place. Device, category, module, operator, name, stream and pool are labels, as far as they are known:
//! `pprof -tagroot=module`.

use std::collections::BTreeMap;
use std::io::Write;

use ghostgpu_recording::{
    Allocation, AllocationId, CardMemory, Category, ModuleId, NameId, OperatorId, PoolId,
    Recording, Source, StackId,
};

use crate::error::ReportError;
use crate::profile::{PlainFrame, Profile, Values};
use crate::selection::{Selection, chosen, counted_bytes};
use crate::text;

/// Allocations that make one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stack: StackId,
    module: ModuleId,
    operator: OperatorId,
    category: Category,
    pool: PoolId,
    /// Only of snapshots: in a rehearsal, names of parameters would make each of them a separate sample.
    name: NameId,
    /// The frame to show if there is no stack.
    without_stack: &'static str,
}

/// Writes a profile of what is live at a moment, and of all allocations.
pub fn write_pprof(
    recording: &Recording,
    selection: Selection,
    out: impl Write,
) -> Result<(), ReportError> {
    let cards = chosen(recording, selection)?;
    let time_us = cards.first().and_then(|(ledger, moment)| {
        let began_us = ledger.card().began_us;
        let time_us = began_us.saturating_add(ledger.time_us(*moment));
        (began_us > 0).then(|| i64::try_from(time_us).unwrap_or(i64::MAX))
    });
    let mut profile = Profile::new(out, time_us, &recording.warnings)?;
    for (ledger, moment) in cards {
        let card = ledger.card();
        let mut samples: BTreeMap<Key, Values> = BTreeMap::new();
        for (at, one) in card.allocations.iter().enumerate() {
            let values = samples.entry(key(recording, card, one)).or_default();
            if one.allocated_at.is_some() {
                values.made_blocks += 1;
                let bytes = counted_bytes(recording, one);
                values.made_bytes = values.made_bytes.saturating_add(bytes);
            }
            if ledger.is_live(AllocationId(at as u32), moment) {
                values.live_blocks += 1;
                let bytes = counted_bytes(recording, one);
                values.live_bytes = values.live_bytes.saturating_add(bytes);
            }
        }
        for (key, values) in samples {
            write_sample(&mut profile, recording, card, &key, values)?;
        }
    }
    profile.finish()?;
    Ok(())
}

fn key(recording: &Recording, card: &CardMemory, one: &Allocation) -> Key {
    let frames = recording.names.stacks.get(one.stack.0 as usize);
    let has_stack = frames.is_some_and(|frames| !frames.is_empty());
    let stage = |event| card.phase_of(event).map(|phase| phase.stage.title());
    let without_stack = match (has_stack, one.allocated_at) {
        (false, None) => text::OLDER,
        (false, Some(event)) => stage(event).unwrap_or(text::NO_STACK),
        (true, _) => "",
    };
    Key {
        stack: one.stack,
        module: one.module,
        operator: one.operator,
        category: one.category,
        pool: one.pool,
        name: match recording.about.source {
            Source::Rehearsal => NameId(0),
            Source::Snapshot => one.name,
        },
        without_stack,
    }
}

fn write_sample(
    profile: &mut Profile<impl Write>,
    recording: &Recording,
    card: &CardMemory,
    key: &Key,
    values: Values,
) -> std::io::Result<()> {
    let names = &recording.names;
    let module = names.modules.get(key.module.0 as usize);
    let module = module.map_or("", |module| &module.path);
    let operator = names.operators.get(key.operator.0 as usize);
    let operator = operator.map_or("", |name| name);
    let named = |function| PlainFrame {
        function,
        file: "",
        line: 0,
    };
    let mut frames = Vec::new();
    if !operator.is_empty() {
        frames.push(named(operator));
    }
    frames.extend(text::frames(names, key.stack).map(|frame| PlainFrame {
        function: match frame.function.as_str() {
            "" => &frame.file,
            function => function,
        },
        file: &frame.file,
        line: frame.line.into(),
    }));
    if !key.without_stack.is_empty() {
        // `encoder`, `encoder.layer`, …, innermost first, like frames.
        let paths = module.rmatch_indices('.').map(|(at, _)| &module[..at]);
        let paths = [module].into_iter().chain(paths.take(MOST_PATHS));
        frames.extend(paths.filter(|path| !path.is_empty()).map(named));
        frames.push(named(key.without_stack));
    }
    let device = card.index.to_string();
    let name = names.texts.get(key.name.0 as usize).map_or("", |name| name);
    let pool = card.pools.get(key.pool.0 as usize).copied();
    let pool = pool.unwrap_or_default();
    let stream = pool.stream.to_string();
    let pool = text::pool(pool).unwrap_or_default();
    let category = match key.category {
        Category::Unknown => "",
        category => category.name(),
    };
    let mut labels = vec![("device", device.as_str()), ("stream", stream.as_str())];
    for (label, text) in [
        ("category", category),
        ("module", module),
        ("operator", operator),
        ("name", name),
        ("pool", pool.as_str()),
    ] {
        if !text.is_empty() {
            labels.push((label, text));
        }
    }
    profile.sample(frames, values, &labels)
}

/// At most this many parts of a module's path become frames.
const MOST_PATHS: usize = 31;
