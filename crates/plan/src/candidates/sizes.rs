//! Advice about sizes: a smaller batch, shorter samples.

use ghostgpu_explain::{Advice, Effect};
use ghostgpu_rehearse::{
    Change, Dimension, Outcome, Reason, Run, SizePoint, Sizes, Stop, present_value,
};

use super::bench::Bench;
use super::result::{CandidateOutcome, Failed, Made, NotRehearsed};
use super::script_options::length;
use crate::largest_batch::{Goal, LargestBatch, NotFound, find};
use crate::sizes::{Reached, at_point};

impl Bench<'_> {
    /// Searches for the largest batch that fits.
    pub(super) fn smaller_batch(&mut self, advice: &Advice) -> Result<(), Stop> {
        let point = self.question.batch.clone();
        let mut result = self.largest_batch(&point);
        if let (SizePoint::TrainingLoader, Ok(LargestBatch::NotFound(reason))) = (&point, &result)
            && let Some(option) = self.likely_option(&options_of(reason))
        {
            result = self.largest_batch(&SizePoint::Option(option));
        }
        let because = match result {
            Ok(LargestBatch::Found(found)) => {
                let given = match &found.point {
                    SizePoint::Option(option) => present_value(self.question.words, option),
                    _ => None,
                };
                let made = Made::Batch {
                    batch: found.batch,
                    own: found.seen.batch.or(given),
                    place: found.seen.place.clone(),
                    point: found.point.clone(),
                };
                let peaks = found.outcomes.get(&found.batch).and_then(Outcome::peaks);
                let outcome = match (peaks, found.not_reached) {
                    (Some(&peaks), None) => CandidateOutcome::Works {
                        made,
                        peaks,
                        total_bytes: self.question.capacity_bytes,
                        ends_growth_of_bytes: None,
                    },
                    (_, not_reached) => CandidateOutcome::Fails {
                        made: Some(made),
                        because: Failed::NotReached(not_reached.unwrap_or_default()),
                    },
                };
                self.keep_with_effect(advice, Effect::Training, outcome);
                return Ok(());
            }
            Ok(LargestBatch::NotFound(reason)) => Failed::NoBatch(reason),
            Err(Stop::TimedOut(_)) => Failed::Script(Reason::TimedOut),
            Err(stop) => return Err(stop),
        };
        self.keep(
            advice,
            CandidateOutcome::Fails {
                made: None,
                because,
            },
        );
        Ok(())
    }

    fn largest_batch(&mut self, point: &SizePoint) -> Result<LargestBatch, Stop> {
        let goal = Goal {
            point: point.clone(),
            given: match point {
                SizePoint::Option(option) => present_value(self.question.words, option),
                _ => None,
            },
            at_most: None,
            whole_because: None,
            capacity_bytes: self.question.capacity_bytes,
            margin_bytes: 0,
            first_steps: self.question.first_steps,
        };
        find(self.runner, &goal)
    }

    /// Of the options that look as if they set a batch, one that the user gave, else the first.
    fn likely_option(&self, options: &[String]) -> Option<String> {
        let given = options
            .iter()
            .find(|option| present_value(self.question.words, option).is_some());
        given.or(options.first()).cloned()
    }

    /// Halves the sequence length or image size, if the script has an argument for it.
    pub(super) fn shorter_samples(&mut self, advice: &Advice) -> Result<(), Stop> {
        let Some(length) = length(&self.text(), self.question.words) else {
            return self.cut_batches(advice);
        };
        let half = length.value / 2;
        let change = Change::Argument {
            option: length.word.clone(),
            value: half,
        };
        let run = self.rehearse(&advice.what, vec![change])?;
        let made = Made::Argument {
            option: length.word,
            value: half,
            before: length.value,
        };
        let outcome = self.judged(made, &run);
        self.keep(advice, outcome);
        Ok(())
    }

    /// For a script without such an argument: cuts its batches to half of their tokens.
    fn cut_batches(&mut self, advice: &Advice) -> Result<(), Stop> {
        let point = SizePoint::TrainingLoader;
        let reached = at_point(self.runner, &point, &[], |at, _| {
            // A run with unchanged batches shows how long they are.
            let run = at.rehearse(Dimension::Sequence, Sizes::default())?;
            let Some(of) = tokens_of(&run).filter(|tokens| *tokens >= 2) else {
                return Ok(None);
            };
            let tokens = of / 2;
            let run = at.rehearse(Dimension::Sequence, Sizes::sequence(tokens))?;
            Ok(Some((Made::CutBatches { tokens, of }, run)))
        })?;
        let outcome = match reached {
            Reached::Done(Some((made, run))) => self.judged(made, &run),
            _ => CandidateOutcome::Not(NotRehearsed::NoLength),
        };
        self.keep(advice, outcome);
        Ok(())
    }
}

fn tokens_of(run: &Run) -> Option<u64> {
    run.size_point()?.seq
}

/// The script's options that look as if they set a batch, if it iterates no loader or runs out of memory before.
fn options_of(reason: &NotFound) -> Vec<String> {
    match reason {
        NotFound::NoLoader { options } => options.clone(),
        NotFound::DoesNotFit(run) => {
            let processes = run.findings.processes.iter();
            let reports = processes.filter_map(|process| process.size_point.as_ref());
            reports
                .flat_map(|report| report.batch_options.clone())
                .collect()
        }
        _ => Vec::new(),
    }
}
