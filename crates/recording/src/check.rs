//! The consistency check of a recording.
//!
//! A recording that passes can be summed up and drawn without further checks: every index is valid, allocations begin
//! before they end, and no sum overflows.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::allocation::AllocationId;
use crate::events::{Event, Pool, PoolId};
use crate::names::{Module, Names};
use crate::recording::{CardMemory, Recording};

/// What is wrong with a recording, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Inconsistency(String);

/// Returns an error with a sentence unless a condition holds.
macro_rules! must {
    ($holds:expr, $($sentence:tt)+) => {
        if !$holds {
            return Err(Inconsistency(format!($($sentence)+)));
        }
    };
}

impl Recording {
    /// Checks that the recording is consistent.
    pub fn check(&self) -> Result<(), Inconsistency> {
        self.names.check()?;
        check_cards(&self.cards, &self.names)?;
        match &self.failed_run {
            Some(failed) => check_cards(&failed.cards, &self.names)
                .map_err(|Inconsistency(what)| Inconsistency(format!("the failed run: {what}"))),
            None => Ok(()),
        }
    }
}

/// The cards of one run.
fn check_cards(cards: &[CardMemory], names: &Names) -> Result<(), Inconsistency> {
    let mut known = BTreeSet::new();
    for card in cards {
        let title = card.title();
        must!(
            known.insert((card.rank, card.index)),
            "{title} occurs twice"
        );
        must!(
            card.nccl_bytes <= card.outside_bytes,
            "{title}: NCCL holds more than there is outside of PyTorch"
        );
        card.check(names)
            .map_err(|Inconsistency(what)| Inconsistency(format!("{title}: {what}")))?;
    }
    Ok(())
}

impl Names {
    pub(crate) fn check(&self) -> Result<(), Inconsistency> {
        let has_none = [
            ("name", self.texts.first().is_some_and(String::is_empty)),
            (
                "operator",
                self.operators.first().is_some_and(String::is_empty),
            ),
            ("module", self.modules.first() == Some(&Module::default())),
            ("stack", self.stacks.first().is_some_and(Vec::is_empty)),
        ];
        for (list, has_none) in has_none {
            must!(has_none, "the first {list} is not the empty one");
        }
        for (at, stack) in self.stacks.iter().enumerate() {
            for frame in stack {
                must!(
                    (frame.0 as usize) < self.frames.len(),
                    "stack {at} has frame {}, and there are {}",
                    frame.0,
                    self.frames.len()
                );
            }
        }
        Ok(())
    }
}

impl CardMemory {
    pub(crate) fn check(&self, names: &Names) -> Result<(), Inconsistency> {
        must!(
            self.events.len() < u32::MAX as usize && self.allocations.len() < u32::MAX as usize,
            "there are more events than 32 bits can count"
        );
        must!(
            self.times_us.len() == self.events.len(),
            "there are {} events and {} times",
            self.events.len(),
            self.times_us.len()
        );
        self.check_lists(names)?;
        self.check_allocations(names)?;
        self.check_events()?;
        self.check_phases()
    }

    fn check_lists(&self, names: &Names) -> Result<(), Inconsistency> {
        for range in &self.ranges {
            must!(
                (range.name.0 as usize) < names.texts.len(),
                "a range has no name {}",
                range.name.0
            );
        }
        let is_known = |pool: PoolId| (pool.0 as usize) < self.pools.len();
        must!(
            self.pools.first() == Some(&Pool::default()),
            "the first pool is not the default one"
        );
        for segment in self.reserved_before.iter().chain(&self.changes) {
            must!(
                is_known(segment.pool),
                "a segment has no pool {}",
                segment.pool.0
            );
        }
        for failure in &self.failures {
            must!(
                is_known(failure.pool) && (failure.stack.0 as usize) < names.stacks.len(),
                "a failed request has no pool {} or no stack {}",
                failure.pool.0,
                failure.stack.0
            );
        }
        Ok(())
    }

    fn check_allocations(&self, names: &Names) -> Result<(), Inconsistency> {
        for (at, one) in self.allocations.iter().enumerate() {
            must!(
                (one.pool.0 as usize) < self.pools.len(),
                "allocation {at} has pool {}, and there are {}",
                one.pool.0,
                self.pools.len()
            );
            let numbers = [
                ("name", one.name.0, names.texts.len()),
                ("module", one.module.0, names.modules.len()),
                ("operator", one.operator.0, names.operators.len()),
                ("stack", one.stack.0, names.stacks.len()),
            ];
            for (what, number, count) in numbers {
                must!(
                    (number as usize) < count,
                    "allocation {at} has {what} {number}, and there are {count}"
                );
            }
            must!(
                one.block_bytes >= one.requested_bytes,
                "allocation {at} is smaller than what was asked for"
            );
            must!(
                one.address.checked_add(one.block_bytes).is_some(),
                "allocation {at} ends beyond the last address"
            );
            let id = AllocationId(at as u32);
            let is = |event: Option<u32>, expected: Event| match event {
                None => true,
                Some(event) => self.events.get(event as usize) == Some(&expected),
            };
            must!(
                is(one.allocated_at, Event::Allocate(id)),
                "no event begins allocation {at} where it says"
            );
            must!(
                is(one.freed_at, Event::Free(id)),
                "no event ends allocation {at} where it says"
            );
            if let (Some(from), Some(to)) = (one.allocated_at, one.freed_at) {
                must!(from < to, "allocation {at} ends before it begins");
            }
        }
        Ok(())
    }

    fn check_events(&self) -> Result<(), Inconsistency> {
        let mut older = self
            .allocations
            .iter()
            .filter(|one| one.allocated_at.is_none());
        let mut allocated = older.try_fold(0_u64, |sum, one| sum.checked_add(one.block_bytes));
        let mut reserved = Some(0_u64);
        for segment in &self.reserved_before {
            must!(
                segment.address.checked_add(segment.bytes).is_some(),
                "memory reserved before ends beyond the last address"
            );
            reserved = reserved.and_then(|sum| sum.checked_add(segment.bytes));
        }
        must!(
            allocated.is_some() && reserved.is_some(),
            "more memory than 64 bits can count"
        );
        let (mut changes, mut failures) = (0_usize, 0_usize);
        for (at, event) in self.events.iter().enumerate() {
            let of = |id: AllocationId| self.allocations.get(id.0 as usize);
            let moment = Some(at as u32);
            match *event {
                Event::Allocate(id) => {
                    let one = of(id).filter(|one| one.allocated_at == moment);
                    must!(
                        one.is_some(),
                        "event {at} begins an allocation that does not say so"
                    );
                    let bytes = one.map_or(0, |one| one.block_bytes);
                    allocated = allocated.and_then(|sum| sum.checked_add(bytes));
                }
                Event::Free(id) => {
                    let one = of(id).filter(|one| one.freed_at == moment);
                    must!(
                        one.is_some(),
                        "event {at} ends an allocation that does not say so"
                    );
                    let bytes = one.map_or(0, |one| one.block_bytes);
                    allocated = allocated.and_then(|sum| sum.checked_sub(bytes));
                }
                Event::FreeRequested(id) => {
                    let now = at as u32;
                    let is_live = of(id).is_some_and(|one| {
                        one.allocated_at.is_none_or(|begin| begin < now)
                            && one.freed_at.is_none_or(|end| end > now)
                    });
                    must!(is_live, "event {at} gives back what is not live");
                }
                Event::Reserve(id) | Event::Release(id) => {
                    must!(
                        id.0 as usize == changes && changes < self.changes.len(),
                        "event {at} is about another range than the next"
                    );
                    changes += 1;
                    let change = self.change(id);
                    must!(
                        change.address.checked_add(change.bytes).is_some(),
                        "event {at} is about memory beyond the last address"
                    );
                    let is_reserve = matches!(event, Event::Reserve(_));
                    reserved = reserved.and_then(|sum| match is_reserve {
                        true => sum.checked_add(change.bytes),
                        false => sum.checked_sub(change.bytes),
                    });
                    must!(
                        is_reserve || reserved.is_some(),
                        "event {at} gives back more memory than is reserved"
                    );
                }
                Event::OutOfMemory(id) => {
                    must!(
                        id.0 as usize == failures && failures < self.failures.len(),
                        "event {at} is about another failed request than the next"
                    );
                    failures += 1;
                }
                Event::Other => {}
            }
            must!(
                allocated.is_some() && reserved.is_some(),
                "event {at}: more memory than 64 bits can count"
            );
        }
        must!(
            changes == self.changes.len() && failures == self.failures.len(),
            "ranges or failed requests belong to no event"
        );
        Ok(())
    }

    fn check_phases(&self) -> Result<(), Inconsistency> {
        must!(
            self.phases.is_empty() || self.phases.first().is_some_and(|one| one.first_event == 0),
            "no stage has the first event"
        );
        let mut last = 0;
        for (at, phase) in self.phases.iter().enumerate() {
            must!(
                phase.first_event >= last && phase.first_event as usize <= self.events.len(),
                "stage {at} begins at event {}, after {last} and with {} events",
                phase.first_event,
                self.events.len()
            );
            last = phase.first_event;
        }
        Ok(())
    }
}
