//! Which tricks make a job fit? The answer of `plan`, as data and as text.
//!
//! The document is also read back: a second call with the same question shows the answer of the first.

mod command;
mod file;
mod on_page;
mod text;

use std::collections::BTreeSet;

use ghostgpu_plan::candidates::KnownTrick;
use ghostgpu_plan::memory_plan::{
    Allowance, Combination, CombinationOutcome, MemoryPlan, RehearsedCombination, Searched,
    SmallerKind, Stopped,
};
use ghostgpu_plan::verdict::OnCard;
use ghostgpu_recording::{Gpu, Verdict, Versions};
use ghostgpu_rehearse::{EXIT_DOES_NOT_FIT, EXIT_FAILURE, Peaks};
use ghostgpu_session::ChangeReport;
use ghostgpu_tricks::{Numerics, Request};
use serde::{Deserialize, Serialize};

pub use command::Typed;

/// Adding a field keeps the version; changing the meaning of a field or removing one raises it.
pub const SCHEMA: &str = "ghostgpu.plan/1";

/// The JSON document of `--json`, which `docs/plan-json.md` describes; the text shows the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswer {
    /// Name and version of the document.
    pub schema: String,
    pub result: PlanResult,
    /// The reason, in a sentence.
    pub reason: String,
    pub gpu: Gpu,
    /// The part of the card that the job may use.
    pub capacity_bytes: u64,
    /// How much of it must be left.
    pub margin_bytes: u64,
    pub as_it_is: AsItIs,
    /// Everything that was rehearsed, best first.
    pub candidates: Vec<Candidate>,
    /// The index of the recommended candidate.
    pub recommended: Option<usize>,
    /// The words of the command that trains with it.
    pub command: Vec<String>,
    /// The largest batch with which the recommended candidate fits, if that was searched for.
    pub largest_batch: Option<LargestBatch>,
    /// The number of rehearsals of combinations of tricks.
    pub rehearsals: usize,
    pub stopped: StoppedBecause,
    /// Families of combinations that were not rehearsed because they contain one that fits.
    pub left_out_since_one_within_fits: usize,
    /// Those whose tricks cannot save enough together.
    pub left_out_as_too_large: usize,
    /// Those that take much longer than one that fits.
    #[serde(default)]
    pub left_out_as_slower: usize,
    /// Nothing that keeps the numbers fits, so combinations that change them were rehearsed without being allowed.
    pub looked_beyond_what_was_allowed: bool,
    /// If nothing fits: the smallest cards that are large enough.
    pub cards: Vec<LargerCard>,
    /// If nothing fits: what smaller data would save.
    pub smaller_data: Vec<SmallerDatum>,
    pub torch: Option<String>,
    pub versions: Versions,
    pub exit_code: u8,
}

/// The result of a search for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanResult {
    /// The job fits as it is.
    FitsAlready,
    /// A combination was found that fits with the margin.
    Found,
    /// The best combination fits only with less than the margin left, or with flushes of PyTorch's cache in every step.
    FoundTightly,
    NothingFits,
    /// The job's problem is not its size.
    NoQuestion,
}

/// The job without tricks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsItIs {
    pub verdict: Verdict,
    pub reason: String,
    /// Its peaks with unlimited memory, or on the card if it fits.
    #[serde(flatten)]
    pub peaks: Option<StoredPeaks>,
    /// What is on the card at the peak with unlimited memory, the largest part first.
    pub made_of: Vec<MadeOf>,
    /// The repeated blocks of the model and their memory, by class.
    #[serde(default)]
    pub layers: Vec<LayersOf>,
}

/// Blocks of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayersOf {
    pub class: String,
    pub count: u64,
    /// All of them together, at the peak with unlimited memory.
    pub bytes: u64,
}

/// The peak memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredPeaks {
    pub peak_allocated_bytes: u64,
    pub peak_reserved_bytes: u64,
    pub peak_device_bytes: u64,
}

impl From<StoredPeaks> for Peaks {
    fn from(stored: StoredPeaks) -> Self {
        Self {
            allocated_bytes: stored.peak_allocated_bytes,
            reserved_bytes: stored.peak_reserved_bytes,
            device_bytes: stored.peak_device_bytes,
        }
    }
}

impl From<Peaks> for StoredPeaks {
    fn from(peaks: Peaks) -> Self {
        Self {
            peak_allocated_bytes: peaks.allocated_bytes,
            peak_reserved_bytes: peaks.reserved_bytes,
            peak_device_bytes: peaks.device_bytes,
        }
    }
}

/// One part of the card's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeOf {
    pub part: String,
    pub title: String,
    pub bytes: u64,
}

/// A combination of tricks, and the outcome of its rehearsal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub tricks: Vec<Request>,
    /// The flags for them; null if they can only be written in a plan file.
    pub flags: Option<String>,
    /// The same as text, even if there are no flags.
    pub in_words: String,
    pub outcome: CandidateOutcome,
    /// Why it does not fit, fits only tightly, or is not known to fit.
    pub because: Option<String>,
    /// Its peaks on the card or, if it does not fit, with unlimited memory; missing if that was not rehearsed.
    #[serde(flatten)]
    pub peaks: Option<StoredPeaks>,
    pub headroom_bytes: Option<u64>,
    /// Predicted time for the same samples, where 1 is the plain job on this card.
    pub relative_time: Option<f64>,
    pub numerics: Numerics,
    /// The values of `--allow` that it needs.
    pub needs_allowed: Vec<String>,
    /// What the tricks did.
    pub did: Vec<Did>,
}

/// Whether a candidate fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateOutcome {
    Fits,
    FitsTightly,
    DoesNotFit,
    NotKnown,
    Fails,
}

impl CandidateOutcome {
    pub fn fits(self) -> bool {
        matches!(self, Self::Fits | Self::FitsTightly)
    }
}

/// What one trick did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    pub trick: String,
    pub did: String,
    /// A line of code with the same effect.
    pub line: Option<String>,
    /// Why that line changes the results although the trick does not.
    pub other_results: Option<String>,
}

/// The largest batch with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestBatch {
    pub batch: u64,
    pub own: Option<u64>,
}

/// Why the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBecause {
    /// There was nothing to search for.
    NotSearched,
    NothingLeft,
    Spent,
    Interrupted,
}

/// A card that is large enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargerCard {
    pub name: String,
    pub total_bytes: u64,
    /// The tricks that it needs; empty for the job as it is.
    pub tricks: Vec<Request>,
    pub in_words: String,
    pub peak_device_bytes: u64,
}

/// What smaller data would save, with the combination that is closest to fitting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmallerDatum {
    /// `batch` or `tokens`.
    pub what: String,
    pub from: u64,
    pub to: u64,
    pub before_device_bytes: u64,
    pub after_device_bytes: u64,
}

/// What the answer needs to know besides the plan.
#[derive(Clone, Debug)]
pub struct Circumstances<'a> {
    pub card: &'a OnCard<'a>,
    pub torch: Option<String>,
    pub torch_cuda: Option<String>,
}

impl PlanAnswer {
    pub fn new(plan: &MemoryPlan, circumstances: &Circumstances) -> Self {
        match plan {
            MemoryPlan::Fits { judgement, run } => Self {
                result: PlanResult::FitsAlready,
                reason: judgement.reason.clone(),
                as_it_is: AsItIs {
                    verdict: judgement.verdict,
                    reason: judgement.reason.clone(),
                    peaks: Some(run.peaks().into()),
                    made_of: Vec::new(),
                    layers: Vec::new(),
                },
                exit_code: 0,
                ..Self::empty(circumstances)
            },
            MemoryPlan::NoQuestion { judgement, .. } => Self {
                result: PlanResult::NoQuestion,
                reason: judgement.reason.clone(),
                as_it_is: AsItIs {
                    verdict: judgement.verdict,
                    reason: judgement.reason.clone(),
                    peaks: None,
                    made_of: Vec::new(),
                    layers: Vec::new(),
                },
                exit_code: judgement.verdict.exit_code().unwrap_or(EXIT_FAILURE),
                ..Self::empty(circumstances)
            },
            MemoryPlan::Searched(searched) => Self::searched(searched, circumstances),
        }
    }

    fn searched(searched: &Searched, circumstances: &Circumstances) -> Self {
        let candidates: Vec<Candidate> = searched.rehearsed.iter().map(Candidate::new).collect();
        let best = candidates.first().map(|candidate| candidate.outcome);
        let result = match best {
            Some(CandidateOutcome::Fits) => PlanResult::Found,
            Some(CandidateOutcome::FitsTightly) => PlanResult::FoundTightly,
            _ => PlanResult::NothingFits,
        };
        let card = circumstances.card;
        Self {
            result,
            reason: match (result, &searched.stopped) {
                (PlanResult::Found, _) => "the whole training fits with it".to_owned(),
                (PlanResult::FoundTightly, _) => candidates
                    .first()
                    .and_then(|candidate| candidate.because.clone())
                    .unwrap_or_default(),
                (_, Stopped::Interrupted(_)) => "nothing found so far fits".to_owned(),
                _ => "nothing that was rehearsed fits".to_owned(),
            },
            as_it_is: AsItIs {
                verdict: searched.as_it_is.verdict,
                reason: searched.as_it_is.reason.clone(),
                peaks: Some(searched.needed.into()),
                made_of: made_of(searched),
                layers: layers(searched),
            },
            recommended: best.filter(|best| best.fits()).map(|_| 0),
            candidates,
            rehearsals: searched.rehearsals,
            stopped: match &searched.stopped {
                Stopped::NothingLeft => StoppedBecause::NothingLeft,
                Stopped::Spent => StoppedBecause::Spent,
                Stopped::Interrupted(_) => StoppedBecause::Interrupted,
            },
            left_out_since_one_within_fits: searched.left_out.contain_one_that_fits,
            left_out_as_too_large: searched.left_out.too_large,
            left_out_as_slower: searched.left_out.slower,
            looked_beyond_what_was_allowed: searched.allowed_more,
            cards: searched
                .cards
                .iter()
                .map(|found| LargerCard {
                    name: found.card.driver_name.to_owned(),
                    total_bytes: found.card.total_bytes,
                    tricks: found.combination.requests().to_vec(),
                    in_words: found.combination.in_words(),
                    peak_device_bytes: found.peaks.device_bytes,
                })
                .collect(),
            smaller_data: smaller_data(searched),
            exit_code: match (result, &searched.stopped) {
                (_, Stopped::Interrupted(stop)) => stop.exit_code(),
                (PlanResult::Found, _) => 0,
                (PlanResult::FoundTightly, _) => {
                    Verdict::FitsTightly.exit_code().unwrap_or(EXIT_FAILURE)
                }
                _ => EXIT_DOES_NOT_FIT,
            },
            capacity_bytes: card.capacity_bytes(),
            ..Self::empty(circumstances)
        }
    }

    fn empty(circumstances: &Circumstances) -> Self {
        let card = circumstances.card;
        let sheet = card.sheet;
        Self {
            schema: SCHEMA.to_owned(),
            result: PlanResult::NothingFits,
            reason: String::new(),
            gpu: Gpu {
                name: sheet.name.clone(),
                total_bytes: sheet.total_bytes,
                capability: sheet.capability.to_string(),
                count: card.count,
            },
            capacity_bytes: card.capacity_bytes(),
            margin_bytes: card.margin_bytes(),
            as_it_is: AsItIs {
                verdict: Verdict::NotKnown,
                reason: String::new(),
                peaks: None,
                made_of: Vec::new(),
                layers: Vec::new(),
            },
            candidates: Vec::new(),
            recommended: None,
            command: Vec::new(),
            largest_batch: None,
            rehearsals: 0,
            stopped: StoppedBecause::NotSearched,
            left_out_since_one_within_fits: 0,
            left_out_as_too_large: 0,
            left_out_as_slower: 0,
            looked_beyond_what_was_allowed: false,
            cards: Vec::new(),
            smaller_data: Vec::new(),
            torch: circumstances.torch.clone(),
            versions: Versions {
                ghostgpu: env!("CARGO_PKG_VERSION").to_owned(),
                torch_cuda: circumstances.torch_cuda.clone(),
                ..Versions::default()
            },
            exit_code: 0,
        }
    }

    /// The combinations to choose from, the recommended one included: all that fit and are allowed, best first, each in one
    /// amount. That is the fastest amount, because others are better only in headroom.
    pub fn fitting(&self) -> impl Iterator<Item = &Candidate> {
        let fitting = self.candidates.iter().filter(|it| it.outcome.fits());
        let mut seen: Vec<Vec<Request>> = Vec::new();
        fitting.filter(move |candidate| {
            let tricks = candidate.tricks.iter();
            let kind = tricks.map(Request::without_amounts).collect();
            let is_new = !seen.contains(&kind);
            if is_new {
                seen.push(kind);
            }
            is_new
        })
    }

    /// Tricks that were rehearsed alone, without options, and are enough.
    pub fn known_tricks(&self) -> Vec<KnownTrick> {
        let fitting = self.candidates.iter();
        let fitting = fitting.filter(|it| it.outcome == CandidateOutcome::Fits);
        let known = fitting.filter_map(|candidate| {
            let ([request], [did]) = (&candidate.tricks[..], &candidate.did[..]) else {
                return None;
            };
            request.options.is_empty().then_some(KnownTrick {
                peaks: candidate.peaks?.into(),
                report: ChangeReport {
                    name: did.trick.clone(),
                    did: Some(did.did.clone()),
                    line: did.line.clone(),
                    other_results: did.other_results.clone(),
                },
            })
        });
        known.collect()
    }

    /// The candidate that is recommended.
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.get(self.recommended?)
    }
}

impl Candidate {
    fn new(rehearsed: &RehearsedCombination) -> Self {
        let combination = &rehearsed.combination;
        let (outcome, because, peaks, headroom_bytes) = match &rehearsed.outcome {
            CombinationOutcome::Fits {
                peaks,
                headroom_bytes,
                tight_because,
            } => (
                match tight_because {
                    None => CandidateOutcome::Fits,
                    Some(_) => CandidateOutcome::FitsTightly,
                },
                tight_because.clone(),
                Some(*peaks),
                Some(*headroom_bytes),
            ),
            CombinationOutcome::DoesNotFit { place, needed } => (
                CandidateOutcome::DoesNotFit,
                place.as_ref().map(|place| format!("out of memory {place}")),
                *needed,
                None,
            ),
            CombinationOutcome::NotKnown(because) => (
                CandidateOutcome::NotKnown,
                Some(because.clone()),
                None,
                None,
            ),
            CombinationOutcome::Fails(because) => {
                (CandidateOutcome::Fails, Some(because.clone()), None, None)
            }
        };
        Self {
            tricks: combination.requests().to_vec(),
            flags: flags(combination),
            in_words: combination.in_words(),
            outcome,
            because,
            peaks: peaks.map(StoredPeaks::from),
            headroom_bytes,
            relative_time: rehearsed.relative_time,
            numerics: combination.numerics(),
            needs_allowed: needs_allowed(combination),
            did: did(rehearsed),
        }
    }

    pub fn keeps_numbers(&self) -> bool {
        self.numerics <= Numerics::Rounding
    }
}

fn flags(combination: &Combination) -> Option<String> {
    let words: Option<Vec<Vec<String>>> = combination
        .requests()
        .iter()
        .map(Request::flag_words)
        .collect();
    Some(words?.concat().join(" "))
}

fn needs_allowed(combination: &Combination) -> Vec<String> {
    let requests = combination.requests().iter();
    let allowances: BTreeSet<Allowance> = requests
        .filter_map(|request| Allowance::of_trick(&request.name))
        .collect();
    let names = allowances.into_iter().map(Allowance::name);
    names.map(str::to_owned).collect()
}

fn did(rehearsed: &RehearsedCombination) -> Vec<Did> {
    let mut all: Vec<Did> = Vec::new();
    for report in &rehearsed.reports {
        let Some(did) = &report.did else { continue };
        // Several processes may report the same trick.
        if !all.iter().any(|one| one.trick == report.name) {
            all.push(Did {
                trick: report.name.clone(),
                did: did.clone(),
                line: report.line.clone(),
                other_results: report.other_results.clone(),
            });
        }
    }
    all
}

fn made_of(searched: &Searched) -> Vec<MadeOf> {
    let parts = searched.composition.parts.iter();
    parts
        .map(|(part, bytes)| MadeOf {
            part: part.name().to_owned(),
            title: part.title().to_owned(),
            bytes: *bytes,
        })
        .collect()
}

fn layers(searched: &Searched) -> Vec<LayersOf> {
    let layers = searched.composition.layers.iter();
    layers
        .map(|layers| LayersOf {
            class: layers.class.clone(),
            count: layers.count,
            bytes: layers.bytes,
        })
        .collect()
}

fn smaller_data(searched: &Searched) -> Vec<SmallerDatum> {
    let data = searched.smaller_data.iter();
    data.map(|smaller| {
        let (what, from, to) = match smaller.kind {
            SmallerKind::Batch { from, to } => ("batch", from, to),
            SmallerKind::Tokens { from, to } => ("tokens", from, to),
        };
        SmallerDatum {
            what: what.to_owned(),
            from,
            to,
            before_device_bytes: smaller.before.device_bytes,
            after_device_bytes: smaller.after.device_bytes,
        }
    })
    .collect()
}

#[cfg(test)]
pub(crate) mod tests;
