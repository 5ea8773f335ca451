//! A plan as the report page shows it: the candidates, and what the memory consists of before and after.

use ghostgpu_ledger::{CardLedger, Part};
use ghostgpu_recording::{CategoryBytes, Plan, PlanCandidate};
use ghostgpu_rehearse::Run;

use super::{Candidate, PlanAnswer};

impl PlanAnswer {
    /// The part of the page that is about the plan; `run` is that of the recommended candidate.
    pub fn on_page(&self, run: &Run) -> Plan {
        let recommended = self.best();
        let made_of = self.as_it_is.made_of.iter();
        let before = by_category(made_of.map(|one| (one.part.as_str(), one.bytes)));
        Plan {
            candidates: self
                .candidates
                .iter()
                .filter_map(|candidate| {
                    let is_chosen = recommended.is_some_and(|best| std::ptr::eq(best, candidate));
                    point(candidate, is_chosen, run, &before)
                })
                .collect(),
            available_bytes: self.capacity_bytes,
            before,
        }
    }
}

/// A candidate as the page shows it; `None` if its peak is unknown.
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

/// Sorts `after` like `before`, so that both bars of the page have the same order.
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

/// Parts of a card's memory, summed up under the names for which the page has colours.
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
