//! Which size to rehearse next, to find the largest one that fits with few rehearsals. Pure.
//!
//! Two sizes that fit show how much each sample takes, which gives a guess. If a guess does not halve the range, the
//! next size is the middle of it, so that even a script with odd memory use takes at most twice the rehearsals of a
//! bisection. The search always ends with a size that was rehearsed and fits, and the next one, which was rehearsed
//! and does not.

use std::collections::BTreeMap;

use ghostgpu_rehearse::{Outcome, Peaks};

/// While every size fits, a guess is at most this many times the largest one.
const BOLDEST: u64 = 16;

/// The next multiples of these above a size that does not fit are rehearsed too: people like round sizes, and some
/// libraries take less memory for them.
const ROUND: [u64; 2] = [8, 32];

/// How far above, as one part of so many.
const NOT_FAR_PART: u64 = 16;

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    start: u64,
    most: u64,
    capacity_bytes: u64,
    outcomes: BTreeMap<u64, Outcome>,
    /// The width of the open range before the last rehearsal.
    width_before: Option<u64>,
    /// Whether a round size above the first that does not fit is rehearsed too.
    looks_further: bool,
    /// The start is close to the answer: after a size that does not fit, slightly smaller ones come next.
    starts_close: bool,
}

impl Search {
    /// Begins at `start` and never goes beyond `most`, on a card of `capacity_bytes`.
    pub fn new(start: u64, most: u64, capacity_bytes: u64) -> Self {
        let most = most.max(1);
        Self {
            start: start.clamp(1, most),
            most,
            capacity_bytes,
            outcomes: BTreeMap::new(),
            width_before: None,
            looks_further: true,
            starts_close: false,
        }
    }

    /// The start is known to be close to the answer, and not below it.
    pub fn starting_close_above(mut self) -> Self {
        self.starts_close = true;
        self
    }

    /// Limits the search to sizes up to `most`, and forgets the outcomes of larger ones.
    pub fn limit(&mut self, most: u64) {
        self.most = self.most.min(most).max(1);
        self.start = self.start.min(self.most);
        self.outcomes.retain(|size, _| *size <= self.most);
    }

    /// Ends as soon as a size fits and the next one does not. For slow rehearsals.
    pub fn without_looking_further(mut self) -> Self {
        self.looks_further = false;
        self
    }

    pub fn outcomes(&self) -> &BTreeMap<u64, Outcome> {
        &self.outcomes
    }

    /// The largest size that was seen to fit.
    pub fn largest(&self) -> Option<u64> {
        let mut fitting = self.fitting();
        fitting.next_back().map(|(size, _)| size)
    }

    /// The smallest size above the largest that fits that was rehearsed, with its outcome.
    pub fn next_above(&self) -> Option<(u64, &Outcome)> {
        let largest = self.largest()?;
        let above = self.outcomes.range(largest + 1..).next();
        above.map(|(&size, outcome)| (size, outcome))
    }

    /// A size that does not fit below the largest one that does: memory does not grow monotonically.
    pub fn gap(&self) -> Option<u64> {
        let largest = self.largest()?;
        let mut below = self.outcomes.range(..largest).rev();
        below
            .find(|(_, outcome)| matches!(outcome, Outcome::DoesNotFit(_)))
            .map(|(&size, _)| size)
    }

    pub fn note(&mut self, size: u64, outcome: Outcome) {
        self.width_before = self.width();
        self.outcomes.insert(size, outcome);
    }

    /// The next size to rehearse; `None` when the answer is known, or cannot be found.
    pub fn next(&self) -> Option<u64> {
        if !self.outcomes.contains_key(&self.start) {
            return Some(self.start);
        }
        let Some(low) = self.largest() else {
            return self.smaller();
        };
        if low == self.most {
            return None;
        }
        match self.next_above() {
            None => Some(self.bold_guess(low)),
            Some((high, _)) if high > low + 1 => Some(self.guess_between(low, high)),
            Some((_, Outcome::DoesNotFit(_))) => self.further_up(low),
            Some(_) => None,
        }
    }

    /// The next size while nothing has fitted yet.
    fn smaller(&self) -> Option<u64> {
        let (&least, outcome) = self.outcomes.first_key_value()?;
        match outcome {
            Outcome::DoesNotFit(_) if least > 1 => Some(self.below(least)),
            // The script may fail with a single sample (batch normalisation).
            Outcome::Fails { .. } if least == 1 && self.most > 1 => {
                (!self.outcomes.contains_key(&2)).then_some(2)
            }
            _ => None,
        }
    }

    /// Half of the smallest size, none of which fits; from a close start, steps that double.
    fn below(&self, least: u64) -> u64 {
        let step = (self.start - least).max(self.start / 16).max(1);
        match self.starts_close && step < least {
            true => least - step,
            false => least / 2,
        }
    }

    fn bold_guess(&self, low: u64) -> u64 {
        // Two sizes that take the same memory do not show how much a sample takes, so the guess may be bold.
        let factor = match self.fitting().count() {
            0 | 1 => 2,
            _ => BOLDEST,
        };
        let guess = self
            .predicted(least_use)
            .unwrap_or(low.saturating_mul(factor));
        guess
            .clamp(low + 1, low.saturating_mul(BOLDEST).max(2))
            .min(self.most)
    }

    fn guess_between(&self, low: u64, high: u64) -> u64 {
        let has_narrowed = match (self.width_before, self.width()) {
            (Some(before), Some(now)) => now <= before / 2 + 1,
            _ => true,
        };
        let middle = low + (high - low) / 2;
        if !has_narrowed {
            return middle;
        }
        // PyTorch may or may not return its cache, so the truth lies between these two.
        let guesses = [
            self.predicted(least_use),
            self.predicted(|peaks| peaks.device_bytes),
        ];
        guesses
            .into_iter()
            .flatten()
            .find(|&guess| guess > low && guess < high)
            .unwrap_or(middle)
    }

    /// One more size, as a check of whether memory grows monotonically. If it does, the answer is already known.
    fn further_up(&self, low: u64) -> Option<u64> {
        if !self.looks_further {
            return None;
        }
        let farthest = low + (low / NOT_FAR_PART).max(ROUND[0] + 1);
        let mut sizes = ROUND.iter().map(|round| (low + 2).next_multiple_of(*round));
        sizes.find(|size| *size <= self.most.min(farthest) && !self.outcomes.contains_key(size))
    }

    /// The width of the open range, once both ends are known.
    fn width(&self) -> Option<u64> {
        Some(self.next_above()?.0 - self.largest()?)
    }

    fn fitting(&self) -> impl DoubleEndedIterator<Item = (u64, &Peaks)> {
        self.outcomes
            .iter()
            .filter_map(|(&size, outcome)| Some((size, outcome.peaks()?)))
    }

    /// The size at which the card is full, extrapolated from the two largest sizes that fit. `used` gives how full the
    /// card is.
    fn predicted(&self, used: impl Fn(&Peaks) -> u64) -> Option<u64> {
        let mut largest = self.fitting().rev();
        let (high, high_peaks) = largest.next()?;
        let (low, low_peaks) = largest.next()?;
        let grown = high_peaks
            .allocated_bytes
            .checked_sub(low_peaks.allocated_bytes)?;
        let per_sample = grown / (high - low);
        if per_sample == 0 {
            return None;
        }
        let room = self.capacity_bytes.saturating_sub(used(high_peaks));
        Some(high + room / per_sample)
    }
}

/// What is on the card after PyTorch has returned all of its cache.
fn least_use(peaks: &Peaks) -> u64 {
    peaks.allocated_bytes + peaks.device_bytes.saturating_sub(peaks.reserved_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_rehearse::{OutOfMemory, Reason};

    const MIB: u64 = 1 << 20;

    fn outcome(device_bytes: u64, capacity: u64) -> Outcome {
        match device_bytes <= capacity {
            true => Outcome::Fits(Peaks {
                allocated_bytes: device_bytes - 600 * MIB,
                reserved_bytes: device_bytes - 500 * MIB,
                device_bytes,
            }),
            false => Outcome::DoesNotFit(OutOfMemory::Context),
        }
    }

    /// Runs a search to its end; returns it with the sizes in the order in which it asked for them.
    fn run(mut search: Search, mut outcome_of: impl FnMut(u64) -> Outcome) -> (Search, Vec<u64>) {
        let mut order = Vec::new();
        while let Some(size) = search.next() {
            assert!(!order.contains(&size), "{size} came twice: {order:?}");
            assert!(order.len() < 60, "no end: {order:?}");
            order.push(size);
            search.note(size, outcome_of(size));
        }
        (search, order)
    }

    #[test]
    fn memory_that_grows_linearly_takes_few_runner() {
        for (capacity, start) in [(11_000, 8), (11_000, 1), (80_000, 4), (2_000, 512)] {
            let capacity = capacity * MIB;
            let linear = |size: u64| outcome((1_500 + 37 * size) * MIB, capacity);
            let (search, order) = run(Search::new(start, u64::MAX, capacity), linear);
            let truth = (capacity / MIB - 1_500) / 37;
            assert_eq!(search.largest(), Some(truth));
            assert_eq!(search.next_above().map(|above| above.0), Some(truth + 1));
            assert_eq!(search.gap(), None);
            assert!(order.len() <= 14, "{order:?}");
        }
    }

    #[test]
    fn with_memory_that_grows_in_jumps_the_search_bisects() {
        let capacity = 11_000 * MIB;
        let jumps = |size: u64| outcome((1_500 + 2_000 * (size / 100) + size) * MIB, capacity);
        let (search, order) = run(Search::new(8, u64::MAX, capacity), jumps);
        let found = search.largest().expect("something fits");
        assert!(matches!(jumps(found), Outcome::Fits(_)));
        assert!(matches!(jumps(found + 1), Outcome::DoesNotFit(_)));
        assert!(order.len() <= 24, "{order:?}");
    }

    #[test]
    fn a_size_that_fits_above_one_that_does_not_is_noticed() {
        let capacity = 11_000 * MIB;
        // Some sizes make a library take much more.
        let odd = |size: u64| {
            outcome(
                (1_500 + 100 * size + 9_000 * (size % 16 % 8 / 7)) * MIB,
                capacity,
            )
        };
        let (search, _) = run(Search::new(16, u64::MAX, capacity), odd);
        let found = search.largest().expect("something fits");
        assert!(matches!(odd(found), Outcome::Fits(_)));
        let beyond = search.next_above().expect("there is one").0;
        assert_eq!(beyond, found + 1);
    }

    #[test]
    fn one_sample_that_does_not_fit_ends_the_search() {
        let (search, order) = run(Search::new(8, u64::MAX, 1), |size| outcome(size << 40, 1));
        assert_eq!(order, [8, 4, 2, 1]);
        assert_eq!(search.largest(), None);
    }

    #[test]
    fn the_data_may_limit_the_batch_before_memory_does() {
        let capacity = 11_000 * MIB;
        let (search, order) = run(Search::new(8, 50, capacity), |size| {
            outcome((1_500 + size) * MIB, capacity)
        });
        assert_eq!(search.largest(), Some(50));
        assert_eq!(search.next_above(), None);
        assert_eq!(order, [8, 16, 50]);
    }

    #[test]
    fn a_search_with_a_close_start_takes_small_steps() {
        let capacity = 11_000 * MIB;
        let linear = |size: u64| outcome((1_500 + 10 * size) * MIB, capacity);
        for start in [950, 960, 1000, 1100, 3000] {
            let mut search = Search::new(start, u64::MAX, capacity).starting_close_above();
            search.note(start + 1, outcome(u64::MAX, capacity));
            let (search, order) = run(search.without_looking_further(), linear);
            assert_eq!(search.largest(), Some(950), "{order:?}");
            assert!(order.len() <= 14, "{order:?}");
        }
    }

    #[test]
    fn a_size_larger_than_the_data_is_replaced_by_all_samples() {
        let capacity = 11_000 * MIB;
        let mut search = Search::new(600, u64::MAX, capacity);
        search.note(600, outcome(2_000 * MIB, capacity));
        search.limit(50);
        assert_eq!(search.next(), Some(50));
    }

    #[test]
    fn a_script_that_fails_at_its_own_size_is_not_tried_further() {
        let (search, order) = run(Search::new(8, u64::MAX, MIB), |_| Outcome::Fails {
            reason: Reason::Exception("KeyError: 'x'".to_owned()),
            code: 1,
        });
        assert_eq!(order, [8]);
        assert_eq!(search.largest(), None);
    }
}
