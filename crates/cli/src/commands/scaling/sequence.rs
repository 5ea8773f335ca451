//! Other lengths of sequences: taken by a script of ours, or cut from the batches of any script's.

use ghostgpu_session::ProbeReport;

use super::measure::{Runs, series};
use super::{Sizes, around};
use crate::probing::whole::OtherSizes;

/// Lengths of a script of ours, which says how long its sequences are.
pub(super) fn lengths_of(
    report: &ProbeReport,
    runs: &mut dyn Runs,
) -> anyhow::Result<Option<Sizes>> {
    let Some(own) = report.seq else {
        return Ok(None);
    };
    let tried = series(&around(own, report.longest_seq), runs, OtherSizes::sequence)?;
    Ok(Some(Sizes::of(
        "the tokens of each sample".to_owned(),
        own,
        tried,
    )))
}

/// Batches cut to fewer tokens. A run of the job as it is shows how many there are; longer ones than that
/// cannot be made.
pub(super) fn cut_lengths(runs: &mut dyn Runs) -> anyhow::Result<Sizes> {
    let run = runs.with(OtherSizes::default())?;
    let mut processes = run.findings.processes.iter();
    let report = processes.find_map(|process| process.probe.clone().filter(|seen| seen.is_found));
    let report = report.unwrap_or_default();
    let Some(own) = report.seq else {
        let because = match report.no_sequence_because {
            Some(because) => because,
            None => "no batch was seen".to_owned(),
        };
        return Ok(Sizes::unknown(format!(
            "{because}: name the script's argument that sets it, `--seq-arg --max-length`"
        )));
    };
    let mut sizes = vec![own / 4, own / 2, own / 4 * 3, own];
    sizes.retain(|&size| size > 0);
    sizes.dedup();
    let tried = series(&sizes, runs, OtherSizes::sequence)?;
    Ok(Sizes::of(
        format!("batches that were cut: {}", report.seq_place),
        own,
        tried,
    ))
}
