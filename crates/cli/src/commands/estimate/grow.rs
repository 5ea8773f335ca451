//! How the memory of an estimated job grows with its batch and with its sequence.

use ghostgpu_session::{ProbePlace, ProbeReport};

use super::Arguments;
use crate::commands::max_batch::growth_sentences;
use crate::commands::run;
use crate::commands::run::prepare::prepare;
use crate::output::print_all;
use crate::probing::Outcome;
use crate::probing::growth::growth;
use crate::probing::server::{Line, serve};
use crate::process::Cause;
use crate::report::Sheet;
use crate::run_dir::temporary_folder;

/// Tries of one size: the size, and peak allocated.
type Points = Vec<(u64, u64)>;

/// Runs the job at a few sizes on a card whose memory does not end, and prints what they say.
pub fn show(run_arguments: &run::Arguments, arguments: &Arguments) -> anyhow::Result<()> {
    let mut quiet = run_arguments.clone();
    quiet.options.json = None;
    let prepared = prepare(&quiet)?;
    let folder = temporary_folder()?;
    let log = folder.path().join("output.txt");
    let batch = u64::from(arguments.batch);
    let work = |report: &ProbeReport, line: &mut Line| {
        let batches = points(line, "batch", &around(batch, None))?;
        let lengths = match report.seq {
            Some(seq) => points(line, "seq", &around(seq, report.longest_seq))?,
            None => Points::new(),
        };
        Ok((batches, lengths))
    };
    let served = serve(
        &prepared.plan,
        &ProbePlace::Own,
        true,
        &log,
        &mut |_| {},
        work,
    )?;
    if let Cause::Interrupted(_) = served.rehearsal.supervised.cause {
        return Ok(());
    }
    let mut sheet = Sheet::default();
    match served.result {
        Some(Ok((batches, lengths))) => {
            sheet.list("by batch", &sentences(&batches, "batch", "sample"));
            if !lengths.is_empty() {
                sheet.list("by sequence", &sentences(&lengths, "sequence", "token"));
            }
        }
        Some(Err(error)) => sheet.paragraph("how it grows", &format!("unknown: {error:#}")),
        None => {
            let because = match Outcome::of(&served.rehearsal) {
                Outcome::Fails { because, .. } => because,
                _ => served.report.unforkable.unwrap_or_default(),
            };
            let text = format!("unknown: the job could not be run at other sizes: {because}");
            sheet.paragraph("how it grows", &text);
        }
    }
    print_all(&sheet.render())
}

/// Sizes below and above one that is asked about.
fn around(size: u64, longest: Option<u64>) -> Vec<u64> {
    let mut sizes = vec![size / 4, size / 2, size, size * 3 / 2, size * 2];
    sizes.retain(|&each| each > 0 && longest.is_none_or(|longest| each <= longest));
    sizes.dedup();
    sizes
}

fn points(line: &mut Line, name: &str, sizes: &[u64]) -> anyhow::Result<Points> {
    let mut points = Points::new();
    for &size in sizes {
        if let Outcome::Fits(peaks) = Outcome::of(&line.try_sizes(&[(name, size)])?) {
            points.push((size, peaks.allocated_bytes));
        }
    }
    Ok(points)
}

fn sentences(points: &[(u64, u64)], size: &str, one: &str) -> Vec<String> {
    match growth(points) {
        Some(growth) => growth_sentences(&growth, size, one),
        None => vec!["unknown: it could be run at one size only".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_tried_on_both_sides_as_far_as_the_model_goes() {
        assert_eq!(around(32, None), [8, 16, 32, 48, 64]);
        assert_eq!(around(512, Some(512)), [128, 256, 512]);
        assert_eq!(around(1, None), [1, 2]);
    }
}
