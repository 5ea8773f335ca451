//! pprof: a heap profile of what is live at the peak of each card.
//!
//! In use are the blocks at the peak, so that the total is PyTorch's own "allocated"; allocated are all blocks of
//! the recording. The operator is the innermost frame. Where there is no Python stack, the modules' path and the stage
//! stand in its place. Category, module, operator and card are labels: `pprof -tagroot=module`.

use std::collections::BTreeMap;
use std::io::Write;

use ghostgpu_ledger::recording::CardLedger;
use ghostgpu_recording::{
    Allocation, AllocationId, CardMemory, Category, ModuleId, OperatorId, Recording, StackId,
};

use crate::error::ReportError;
use crate::profile::{PlainFrame, Profile, Values};

/// Allocations that make one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stack: StackId,
    module: ModuleId,
    operator: OperatorId,
    category: Category,
    /// What is said where there is no stack.
    without_stack: &'static str,
}

/// Writes a profile of what is live at the peak of each card, and of all allocations.
pub fn write_recording_pprof(recording: &Recording, out: impl Write) -> Result<(), ReportError> {
    let mut profile = Profile::new(out, None, &recording.warnings)?;
    for card in &recording.cards {
        let ledger = CardLedger::new(recording, card);
        let mut samples: BTreeMap<Key, Values> = BTreeMap::new();
        for (at, one) in card.allocations.iter().enumerate() {
            let values = samples.entry(key(recording, card, one)).or_default();
            if one.allocated_at.is_some() {
                values.made_blocks += 1;
                values.made_bytes = values.made_bytes.saturating_add(one.block_bytes);
            }
            if ledger.is_live(AllocationId(at as u32), ledger.peak().moment) {
                values.live_blocks += 1;
                values.live_bytes = values.live_bytes.saturating_add(one.block_bytes);
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
        (false, None) => "(allocated before the recording)",
        (false, Some(event)) => stage(event).unwrap_or("(no stack recorded)"),
        (true, _) => "",
    };
    Key {
        stack: one.stack,
        module: one.module,
        operator: one.operator,
        category: one.category,
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
    let stack = names.stacks.get(key.stack.0 as usize).into_iter().flatten();
    let stack = stack.filter_map(|id| names.frames.get(id.0 as usize));
    frames.extend(stack.map(|frame| PlainFrame {
        function: match frame.function.as_str() {
            "" => &frame.file,
            function => function,
        },
        file: &frame.file,
        line: frame.line.into(),
    }));
    if !key.without_stack.is_empty() {
        // `encoder`, `encoder.layer`, …: from the innermost on, like frames.
        let paths = module.rmatch_indices('.').map(|(at, _)| &module[..at]);
        let paths = [module].into_iter().chain(paths.take(MOST_PATHS));
        frames.extend(paths.filter(|path| !path.is_empty()).map(named));
        frames.push(named(key.without_stack));
    }
    let card = card.index.to_string();
    let mut labels = vec![("card", card.as_str()), ("category", key.category.name())];
    for (label, text) in [("module", module), ("operator", operator)] {
        if !text.is_empty() {
            labels.push((label, text));
        }
    }
    profile.sample(frames, values, &labels)
}

/// Paths are followed outwards so far.
const MOST_PATHS: usize = 31;
