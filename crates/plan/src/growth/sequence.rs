//! Other sequence lengths: set in GhostGPU's own script, or cut from the batches of any script.

use ghostgpu_rehearse::{Dimension, SizePointReport, Sizes, Stop};

use super::measure::series;
use super::{NoSeries, Series, SetThrough, around};
use crate::sizes::AtPoint;

/// Lengths in GhostGPU's own script, which reports how long its sequences are.
pub(super) fn lengths_of(at: &mut AtPoint, seen: &SizePointReport) -> Result<Option<Series>, Stop> {
    let Some(own) = seen.seq else {
        return Ok(None);
    };
    let sizes = around(own, seen.longest_seq);
    Ok(Some(Series::Measured {
        set_through: SetThrough::Tokens,
        own,
        outcomes: series(at, &sizes, Dimension::Sequence)?,
    }))
}

/// Batches cut to fewer tokens. A run of the job as it is shows how many tokens there are; sequences cannot be made
/// longer than that.
pub(super) fn cut_lengths(at: &mut AtPoint) -> Result<Series, Stop> {
    let run = at.rehearse(Dimension::Sequence, Sizes::default())?;
    let seen = run.size_point().filter(|seen| seen.is_found);
    let seen = seen.cloned().unwrap_or_default();
    let Some(own) = seen.seq else {
        let because = seen.no_sequence_because;
        return Ok(Series::Unknown(NoSeries::NoSequenceInBatches(because)));
    };
    let mut sizes = vec![own / 4, own / 2, own / 4 * 3, own];
    sizes.retain(|&size| size > 0);
    sizes.dedup();
    Ok(Series::Measured {
        set_through: SetThrough::CutBatches(seen.seq_place),
        own,
        outcomes: series(at, &sizes, Dimension::Sequence)?,
    })
}
