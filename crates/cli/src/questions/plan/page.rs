//! A plan as a report page: the recommended way, rehearsed once more with whose memory it is, and the others beside it.

use ghostgpu_answers::fits::{self, Need};
use ghostgpu_answers::plan::{Candidate, PlanAnswer};
use ghostgpu_ledger::{CardLedger, Part};
use ghostgpu_plan::StepGrowth;
use ghostgpu_plan::verdict::{OnCard, judge, need_seen_in};
use ghostgpu_recording::{CategoryBytes, Plan, PlanCandidate};
use ghostgpu_rehearse::{
    Change, Completion, Memory, Prepared, Purpose, Records, Rehearsal, Rehearse, Run, Stop,
};

use super::super::recorded::{complete, write_recording};
use crate::output::Output;

/// Rehearses the recommended way, or the job with unlimited memory where nothing fits, and writes its page.
pub fn write(
    runner: &mut dyn Rehearse,
    prepared: &Prepared,
    on_card: &OnCard,
    plan: &PlanAnswer,
    page: Output,
) -> anyhow::Result<()> {
    let mut run = recorded(runner, plan)?;
    let need = (run.completion() == Completion::Completed).then(|| need_seen_in(&run));
    let growth = StepGrowth::of(&run);
    let judgement = judge(&run, need.as_ref(), growth.as_ref(), on_card);
    let need = match need {
        Some(need) => Need::Found(need),
        None => Need::Unknown {
            because: "the script did not run to its end".to_owned(),
        },
    };
    let circumstances = fits::Circumstances::of(prepared);
    let mut answer = fits::answer(&run, judgement, need, &circumstances);
    answer.plan = Some(shown(plan, &run));
    let mut memory = std::mem::replace(&mut run.memory, Memory::Unwanted);
    complete(&mut memory, &answer, prepared);
    write_recording(&memory, Some(page), None)
}

fn recorded(runner: &mut dyn Rehearse, plan: &PlanAnswer) -> Result<Run, Stop> {
    let rehearsal = match plan.best() {
        Some(best) => Rehearsal {
            purpose: Purpose::Candidate(best.in_words.clone()),
            changes: best.tricks.iter().cloned().map(Change::Trick).collect(),
            records: Records::Memory,
        },
        None => Rehearsal {
            purpose: Purpose::Need,
            changes: vec![Change::UnlimitedMemory],
            records: Records::Memory,
        },
    };
    Run::even_if_timed_out(runner.rehearse(&rehearsal))
}

fn shown(plan: &PlanAnswer, run: &Run) -> Plan {
    let recommended = plan.best();
    let made_of = plan.as_it_is.made_of.iter();
    let before = by_category(made_of.map(|one| (one.part.as_str(), one.bytes)));
    Plan {
        candidates: plan
            .candidates
            .iter()
            .filter_map(|candidate| {
                let is_chosen = recommended.is_some_and(|best| std::ptr::eq(best, candidate));
                point(candidate, is_chosen, run, &before)
            })
            .collect(),
        available_bytes: plan.capacity_bytes,
        before,
    }
}

/// A candidate as the page shows it; none where it is not known how much it takes.
fn point(
    candidate: &Candidate,
    is_chosen: bool,
    run: &Run,
    before: &[CategoryBytes],
) -> Option<PlanCandidate> {
    Some(PlanCandidate {
        what: candidate.in_words.clone(),
        peak_bytes: candidate.peaks?.peak_device_bytes,
        relative_time: candidate.relative_time,
        fits: candidate.outcome.fits(),
        chosen: is_chosen,
        numbers: candidate.numerics.to_string(),
        categories: match is_chosen {
            true => in_order_of(before, categories_of(run)),
            false => Vec::new(),
        },
    })
}

fn categories_of(run: &Run) -> Vec<CategoryBytes> {
    let Some(ledger) = run.memory.recording().and_then(CardLedger::of_fullest) else {
        return Vec::new();
    };
    let accounts = ledger.accounts(ledger.peak().moment);
    by_category(accounts.parts().map(|(part, bytes)| (part.name(), bytes)))
}

/// The same order in both bars of the page.
fn in_order_of(before: &[CategoryBytes], mut after: Vec<CategoryBytes>) -> Vec<CategoryBytes> {
    let place = |one: &CategoryBytes| {
        let found = before
            .iter()
            .position(|other| other.category == one.category);
        found.unwrap_or(before.len())
    };
    after.sort_by_key(place);
    after
}

/// Parts of a card's memory under the names that the page has colours for, those of one name together.
fn by_category<'a>(parts: impl Iterator<Item = (&'a str, u64)>) -> Vec<CategoryBytes> {
    let mut all: Vec<CategoryBytes> = Vec::new();
    for (part, bytes) in parts.filter(|(_, bytes)| *bytes > 0) {
        let outside = [Part::Outside, Part::OtherProcesses];
        let category = match part {
            part if outside.iter().any(|one| one.name() == part) => "outside",
            part if part == Part::CachedPinned.name() => Part::Cached.name(),
            part => part,
        };
        match all.iter_mut().find(|one| one.category == category) {
            Some(found) => found.bytes += bytes,
            None => all.push(CategoryBytes {
                category: category.to_owned(),
                bytes,
            }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_pytorchs_and_what_is_cached_have_one_name_each() {
        let parts = [
            ("activation", 5),
            ("context", 3),
            ("cached", 2),
            ("cached_unusable", 1),
            ("other_processes", 4),
            ("gradient", 0),
        ];
        let named: Vec<(String, u64)> = by_category(parts.into_iter())
            .into_iter()
            .map(|one| (one.category, one.bytes))
            .collect();
        let expected = [("activation", 5), ("outside", 7), ("cached", 3)];
        assert_eq!(
            named,
            expected.map(|(name, bytes)| (name.to_owned(), bytes))
        );
    }
}
