//! What the ledger says about one card of one run, as far as the page initially shows it.

use ghostgpu_ledger::{CardLedger, Groups, Growth, Level, Overview, PhaseSums, RanOut};
use ghostgpu_recording::{CardMemory, Recording, Source, Verdict};

/// An overview has at most this many stretches: more than any screen has columns of pixels.
const MOST_STRETCHES: usize = 16_384;

/// Which run of the job is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunShown {
    /// The run that ran out of memory.
    Failed,
    /// The run that was recorded.
    Recorded,
}

pub(super) struct Counted<'a> {
    pub run: RunShown,
    pub card: &'a CardMemory,
    pub overview: Overview,
    pub phases: Vec<PhaseSums>,
    /// The highest moments, including the one before the first event.
    pub peak: Level,
    pub peak_reserved: Level,
    /// Where the run ended because memory ran out.
    pub ran_out: Option<RanOut>,
    /// What grows with every step of the recorded run.
    pub growth: Growth,
    /// What other processes of the rehearsal held of the card.
    pub other_processes_bytes: u64,
}

impl<'a> Counted<'a> {
    /// The cards of every run in a recording; those of the failed run come first.
    pub fn all(recording: &'a Recording, groups: &Groups) -> Vec<Self> {
        let failed = recording.failed_run.iter().flat_map(|run| &run.cards);
        let failed = failed.map(|card| {
            let ledger = CardLedger::of_failed_run(recording, card);
            Self::of(&ledger, card, RunShown::Failed, groups)
        });
        let recorded = recording.cards.iter().map(|card| {
            let ledger = CardLedger::new(recording, card);
            Self::of(&ledger, card, RunShown::Recorded, groups)
        });
        failed.chain(recorded).collect()
    }

    fn of(ledger: &CardLedger<'a>, card: &'a CardMemory, run: RunShown, groups: &Groups) -> Self {
        let recording = ledger.recording();
        let has_ended = run == RunShown::Failed || ends_in_failure(recording);
        Self {
            run,
            card,
            overview: ledger.overview(groups, MOST_STRETCHES),
            phases: ledger.phases(),
            peak: ledger.peak(),
            peak_reserved: ledger.peak_reserved(),
            ran_out: if has_ended { ledger.ran_out() } else { None },
            growth: match (recording.about.source, run) {
                (Source::Rehearsal, RunShown::Recorded) => ledger.growth(),
                _ => Growth::default(),
            },
            other_processes_bytes: recording.other_processes_bytes(card),
        }
    }
}

/// Whether the last request that failed ended what was recorded. A script may also go on after one.
fn ends_in_failure(recording: &Recording) -> bool {
    match recording.about.source {
        Source::Snapshot => true,
        Source::Rehearsal => {
            let answer = recording.about.answer.as_ref();
            let is_misfit = answer.is_some_and(|answer| answer.verdict == Verdict::DoesNotFit);
            is_misfit && recording.failed_run.is_none()
        }
    }
}
