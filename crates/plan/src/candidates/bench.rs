//! Rehearses advice, one kind of change for each kind of advice.

use ghostgpu_device::{Card, Catalogue};
use ghostgpu_explain::{Advice, Candidate, Effect};
use ghostgpu_rehearse::{Change, Outcome, Purpose, Rehearsal, Run, Runner, Stop, TrickRequest};

use super::fixed_lines::{self, Fixing, Kept, LOSSES, rules_for};
use super::result::{CandidateOutcome, Failed, Made, NotRehearsed, RehearsedCandidate};
use super::script_options::switches;
use super::{KnownTrick, Question};
use crate::step_growth::growth_per_step;
use crate::verdict::not_known;
use ghostgpu_session::ChangeReport;

/// Every release of PyTorch with allocator settings reads this name, and it takes precedence over the others.
const ALLOCATOR_VARIABLE: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// A longer script is not searched for arguments.
const LONGEST_SCRIPT_BYTES: usize = 1 << 20;

/// Rehearses candidates and collects their outcomes.
pub struct Bench<'a> {
    pub(super) runner: &'a mut dyn Runner,
    pub(super) question: &'a Question<'a>,
    candidates: Vec<RehearsedCandidate>,
}

impl<'a> Bench<'a> {
    pub fn new(runner: &'a mut dyn Runner, question: &'a Question<'a>) -> Self {
        Self {
            runner,
            question,
            candidates: Vec::new(),
        }
    }

    pub fn finish(self) -> Vec<RehearsedCandidate> {
        self.candidates
    }

    /// Rehearses advice for a script that does not fit.
    pub fn against_the_card(&mut self, needed_bytes: Option<u64>) -> Result<(), Stop> {
        for advice in self.question.advice {
            self.one(advice, needed_bytes)?;
        }
        self.switches()
    }

    /// Rehearses advice for a script that fits but grows: only corrected lines, which work if they end the growth.
    pub fn against_growth(&mut self, growth_bytes: u64) -> Result<(), Stop> {
        for advice in self.question.advice {
            match advice.candidate {
                Some(candidate) => {
                    if let Some(rules) = rules_for(candidate) {
                        self.fixes(advice, rules, Some(growth_bytes))?;
                    }
                }
                None => self.keep(advice, CandidateOutcome::Not(NotRehearsed::Impossible)),
            }
        }
        Ok(())
    }

    pub fn leave_what_cannot_be_rehearsed(&mut self) {
        for advice in self.question.advice {
            if advice.candidate.is_none() {
                self.keep(advice, CandidateOutcome::Not(NotRehearsed::Impossible));
            }
        }
    }

    fn one(&mut self, advice: &Advice, needed_bytes: Option<u64>) -> Result<(), Stop> {
        let Some(candidate) = advice.candidate else {
            self.keep(advice, CandidateOutcome::Not(NotRehearsed::Impossible));
            return Ok(());
        };
        match candidate {
            Candidate::EmptyCard => {
                let because = Failed::OnEmptyCardToo;
                self.keep(
                    advice,
                    CandidateOutcome::Fails {
                        made: None,
                        because,
                    },
                );
                Ok(())
            }
            Candidate::ExpandableSegments => self.setting(advice, "expandable_segments:True"),
            Candidate::MaxSplitSize => self.setting(advice, "max_split_size_mb:128"),
            Candidate::SmallerBatch => self.smaller_batch(advice),
            Candidate::LargerCard => self.larger_card(advice, needed_bytes),
            Candidate::ShorterSamples => self.shorter_samples(advice),
            Candidate::FixedLosses | Candidate::FixedOutputs | Candidate::FixedState => {
                self.fixes(advice, rules_for(candidate).unwrap_or_default(), None)
            }
            Candidate::Autocast => self.trick(advice, "autocast"),
            Candidate::Checkpointing => self.trick(advice, "checkpointing"),
            Candidate::Bfloat16Weights => self.trick(advice, "bfloat16-weights"),
            Candidate::LeanOptimizer => self.trick(advice, "adafactor"),
            Candidate::NoGradEvaluation => self.trick(advice, "no-grad-evaluation"),
            Candidate::SmallEvaluationBatch => self.trick(advice, "small-evaluation-batch"),
            Candidate::DropGradients => self.trick(advice, "drop-gradients"),
            Candidate::DropLast => self.trick(advice, "drop-last"),
            Candidate::NoCudnnBenchmark => self.trick(advice, "no-cudnn-benchmark"),
            Candidate::LeaveRoom => self.trick(advice, "leave-room"),
            Candidate::NoLimit => self.trick(advice, "no-limit"),
        }
    }

    /// One rehearsal with changes. If it reaches its time limit, it is a run that failed.
    pub(super) fn rehearse(&mut self, what: &str, changes: Vec<Change>) -> Result<Run, Stop> {
        let purpose = Purpose::Candidate(what.to_owned());
        let rehearsal = Rehearsal::figures(purpose, changes);
        Run::even_if_timed_out(self.runner.rehearse(&rehearsal))
    }

    pub(super) fn keep(&mut self, advice: &Advice, outcome: CandidateOutcome) {
        self.keep_with_effect(advice, advice.effect, outcome);
    }

    pub(super) fn keep_with_effect(
        &mut self,
        advice: &Advice,
        effect: Effect,
        outcome: CandidateOutcome,
    ) {
        self.candidates.push(RehearsedCandidate {
            advice: Some(advice.clone()),
            effect,
            outcome,
        });
    }

    /// The outcome of a run on the job's own card. A change works only if the whole training was seen to fit.
    pub(super) fn judged(&self, made: Made, run: &Run) -> CandidateOutcome {
        self.works_on(self.question.capacity_bytes, made, run)
    }

    fn works_on(&self, total_bytes: u64, made: Made, run: &Run) -> CandidateOutcome {
        let because = match Outcome::of(run) {
            Outcome::Fits(peaks) => match why_not_recommended(run) {
                None => {
                    return CandidateOutcome::Works {
                        made,
                        peaks,
                        total_bytes,
                        ends_growth_of_bytes: None,
                    };
                }
                Some(because) => because,
            },
            Outcome::DoesNotFit(place) => Failed::OutOfMemory(place),
            Outcome::Fails { reason, .. } => Failed::Script(reason),
        };
        CandidateOutcome::Fails {
            made: Some(made),
            because,
        }
    }

    /// A setting of PyTorch's allocator.
    fn setting(&mut self, advice: &Advice, value: &str) -> Result<(), Stop> {
        let (name, value) = (ALLOCATOR_VARIABLE.to_owned(), value.to_owned());
        let change = Change::Variable {
            name: name.clone(),
            value: value.clone(),
        };
        let run = self.rehearse(&advice.what, vec![change])?;
        let outcome = self.judged(Made::Variable { name, value }, &run);
        self.keep(advice, outcome);
        Ok(())
    }

    /// A trick, applied by the agent while the script runs.
    fn trick(&mut self, advice: &Advice, name: &str) -> Result<(), Stop> {
        if let Some(known) = self.known(name) {
            let (effect, made) = code(advice, known.report.clone());
            let outcome = CandidateOutcome::Works {
                made,
                peaks: known.peaks,
                total_bytes: self.question.capacity_bytes,
                ends_growth_of_bytes: None,
            };
            self.keep_with_effect(advice, effect, outcome);
            return Ok(());
        }
        let change = Change::Trick(TrickRequest::named(name));
        let run = self.rehearse(&advice.what, vec![change])?;
        let processes = &run.findings.processes;
        let mut reports = processes.iter().flat_map(|process| &process.changes);
        let report = reports.find(|report| report.did.is_some()).cloned();
        let mut effect = advice.effect;
        let outcome = match (report, Outcome::of(&run)) {
            (Some(report), _) => {
                let made;
                (effect, made) = code(advice, report);
                self.judged(made, &run)
            }
            (None, Outcome::Fails { reason, .. }) => CandidateOutcome::Fails {
                made: None,
                because: Failed::Script(reason),
            },
            // The trick found nothing to change, so the run says nothing about it.
            (None, Outcome::DoesNotFit(place)) => {
                CandidateOutcome::Not(NotRehearsed::NothingToChangeBefore(place))
            }
            (None, Outcome::Fits(_)) => CandidateOutcome::Not(NotRehearsed::NothingToChange),
        };
        self.keep_with_effect(advice, effect, outcome);
        Ok(())
    }

    fn known(&self, name: &str) -> Option<&'a KnownTrick> {
        let mut known = self.question.known.iter();
        known.find(|known| known.report.name == name)
    }

    /// Finds the smallest card of the catalogue on which the script fits.
    fn larger_card(&mut self, advice: &Advice, needed_bytes: Option<u64>) -> Result<(), Stop> {
        let Some(needed_bytes) = needed_bytes else {
            return Ok(());
        };
        let capacity = self.question.capacity_bytes;
        let mut cards: Vec<&'static Card> = Catalogue::builtin()
            .cards()
            .iter()
            .filter(|card| card.total_bytes >= needed_bytes && card.total_bytes > capacity)
            .collect();
        cards.sort_by_key(|card| card.total_bytes);
        // A card that just has the needed memory may still be too small, because contexts differ.
        for card in cards.into_iter().take(2) {
            let what = format!("{}: {}", advice.what, card.driver_name);
            let change = Change::Card(Box::new(card.sheet()));
            let run = self.rehearse(&what, vec![change])?;
            let outcome = self.works_on(card.total_bytes, Made::Card(card), &run);
            if matches!(outcome, CandidateOutcome::Works { .. }) {
                // Another card computes with other kernels.
                self.keep_with_effect(advice, Effect::Rounding, outcome);
                break;
            }
        }
        Ok(())
    }

    /// Rehearses corrected lines. If the script fits and grows by `growth_bytes` per step, they must end the growth.
    fn fixes(
        &mut self,
        advice: &Advice,
        rules: &[&str],
        growth_bytes: Option<u64>,
    ) -> Result<(), Stop> {
        let kinds: &[Kept] = match rules == LOSSES {
            true => &[Kept::Detached, Kept::Number],
            false => &[Kept::Detached],
        };
        let mut first_failure = None;
        for &kept in kinds {
            let (contents, lines) = match fixed_lines::fixed(self.question.script, rules, kept) {
                Fixing::Fixed { contents, lines } => (contents, lines),
                Fixing::Nothing(because) => {
                    self.keep(advice, CandidateOutcome::Not(NotRehearsed::NoFix(because)));
                    return Ok(());
                }
            };
            let run = self.rehearse(&advice.what, vec![Change::Text(contents)])?;
            let still_grows_by = growth_per_step(&run.findings.processes);
            let mut outcome = self.judged(Made::Fixes(lines), &run);
            if let (
                CandidateOutcome::Works {
                    made,
                    ends_growth_of_bytes,
                    ..
                },
                Some(growth_bytes),
            ) = (&mut outcome, growth_bytes)
            {
                match still_grows_by {
                    None => *ends_growth_of_bytes = Some(growth_bytes),
                    Some(bytes) => {
                        outcome = CandidateOutcome::Fails {
                            made: Some(made.clone()),
                            because: Failed::StillGrows(bytes),
                        };
                    }
                }
            }
            if matches!(outcome, CandidateOutcome::Works { .. }) {
                self.keep(advice, outcome);
                return Ok(());
            }
            first_failure.get_or_insert(outcome);
        }
        if let Some(failure) = first_failure {
            self.keep(advice, failure);
        }
        Ok(())
    }

    /// Rehearses the script's own memory-saving switches.
    fn switches(&mut self) -> Result<(), Stop> {
        for switch in switches(&self.text(), self.question.words) {
            let what = format!("the script's own {}", switch.word);
            let run = self.rehearse(&what, vec![Change::Word(switch.word.clone())])?;
            let outcome = self.judged(Made::Switch(switch.word), &run);
            self.candidates.push(RehearsedCandidate {
                advice: None,
                effect: switch.effect,
                outcome,
            });
        }
        Ok(())
    }

    /// The script's text to search for arguments; empty if it is unreadable or too long.
    pub(super) fn text(&self) -> String {
        match &self.question.script.contents {
            Ok(contents) if contents.len() <= LONGEST_SCRIPT_BYTES => {
                String::from_utf8_lossy(contents).into_owned()
            }
            _ => String::new(),
        }
    }
}

/// The effect of a trick on the training's numbers, and what it did.
fn code(advice: &Advice, report: ChangeReport) -> (Effect, Made) {
    let effect = match report.other_results {
        Some(_) => Effect::Training,
        None => advice.effect,
    };
    let made = Made::Code {
        did: report.did,
        line: report.line,
        other_results: report.other_results,
    };
    (effect, made)
}

/// Why a change is not recommended although the script fits with it as far as it was rehearsed.
fn why_not_recommended(run: &Run) -> Option<Failed> {
    not_known(run).map(Failed::NotReached)
}
