//! A try that is a run of its own, from the script's first line to its end.

use std::path::Path;
use std::time::Duration;

use ghostgpu_session::{Probe, ProbePlace};

use super::words::with_value;
use crate::judge::Rehearsal;
use crate::rehearsal::{Plan, ScriptOutput};
use crate::run_dir::RunDir;

/// Runs the script with a batch that is set at `place`; what it prints goes to `log`.
pub fn run_whole(
    plan: &Plan,
    place: &ProbePlace,
    batch: u64,
    log: &Path,
    tick: &mut dyn FnMut(Duration),
) -> anyhow::Result<Rehearsal> {
    let mut plan = plan.clone();
    match place {
        ProbePlace::Option(option) => plan.words = with_value(&plan.words, option, batch),
        place => {
            plan.session.attribution = false;
            plan.session.probe = Some(Probe {
                place: place.clone(),
                batch: Some(batch),
                socket: None,
            });
        }
    }
    let run_dir = RunDir::create(&plan.layout.library)?;
    let output = ScriptOutput::Kept(log.to_owned());
    Ok(plan.rehearse(run_dir, false, output, tick)?.rehearsal)
}
