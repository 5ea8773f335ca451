//! A try that is a run of its own, from the script's first line to its end.

use std::path::Path;
use std::time::Duration;

use ghostgpu_session::{Probe, ProbePlace};

use super::words::with_value;
use crate::judge::Rehearsal;
use crate::rehearsal::{Plan, ScriptOutput};
use crate::run_dir::RunDir;

/// The sizes that a try has instead of the script's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherSizes {
    batch: Option<u64>,
    /// Tokens of a sample.
    sequence: Option<u64>,
}

impl OtherSizes {
    pub fn batch(size: u64) -> Self {
        Self {
            batch: Some(size),
            sequence: None,
        }
    }

    pub fn sequence(size: u64) -> Self {
        Self {
            batch: None,
            sequence: Some(size),
        }
    }

    /// The words that a forked copy is told.
    pub fn named(self) -> Vec<(&'static str, u64)> {
        let named = [("batch", self.batch), ("seq", self.sequence)];
        let given = named
            .into_iter()
            .filter_map(|(name, size)| Some((name, size?)));
        given.collect()
    }
}

/// Runs the script with sizes that are set at `place`; what it prints goes to `log`.
pub fn run_whole(
    plan: &Plan,
    place: &ProbePlace,
    sized: OtherSizes,
    is_elastic: bool,
    log: &Path,
    tick: &mut dyn FnMut(Duration),
) -> anyhow::Result<Rehearsal> {
    let mut plan = plan.clone();
    // Only the figures count here, and they should come quickly.
    plan.session.attribution = false;
    match (place, sized.batch) {
        (ProbePlace::Option(option), Some(batch)) => {
            plan.words = with_value(&plan.words, option, batch);
        }
        (ProbePlace::Option(_), None) => {}
        (place, batch) => {
            plan.session.probe = Some(Probe {
                place: place.clone(),
                batch,
                seq: sized.sequence,
                socket: None,
            });
        }
    }
    let run_dir = RunDir::create(&plan.layout.library)?;
    let output = ScriptOutput::Kept(log.to_owned());
    Ok(plan.rehearse(run_dir, is_elastic, output, tick)?.rehearsal)
}
