//! The least amount of a trick that is enough, found with as few rehearsals as possible. Pure.

/// Searches `1..=most` for the least amount that is enough. If an amount is enough, so is every larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// The largest amount known not to be enough; 0 is the job as it is.
    too_little: u64,
    /// The smallest amount known to be enough.
    enough: Option<u64>,
    most: u64,
}

impl Least {
    /// A search that only knows that 0 is not enough.
    pub fn up_to(most: u64) -> Self {
        Self {
            too_little: 0,
            enough: None,
            most,
        }
    }

    pub fn note(&mut self, amount: u64, is_enough: bool) {
        match is_enough {
            true => self.enough = Some(self.enough.map_or(amount, |known| known.min(amount))),
            false => self.too_little = self.too_little.max(amount),
        }
    }

    /// The amount to rehearse next: the one closest to `guess` in the open range; without a guess the middle of the range, or
    /// twice what was not enough. `None` when the answer is known, or no amount is enough.
    pub fn next(&self, guess: Option<u64>) -> Option<u64> {
        let highest = match self.enough {
            Some(enough) => enough.checked_sub(1)?,
            None => self.most,
        };
        let lowest = self.too_little + 1;
        if lowest > highest {
            return None;
        }
        let middle = match self.enough {
            Some(_) => lowest + (highest - lowest) / 2,
            None => (self.too_little * 2).max(2),
        };
        Some(guess.unwrap_or(middle).clamp(lowest, highest))
    }

    pub fn found(&self) -> Option<u64> {
        self.enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goes through amounts until the search ends, and returns them.
    fn rehearsed(
        mut least: Least,
        true_least: u64,
        mut guess: impl FnMut() -> Option<u64>,
    ) -> Vec<u64> {
        let mut all = Vec::new();
        while let Some(amount) = least.next(guess()) {
            assert!(!all.contains(&amount), "{amount} twice");
            all.push(amount);
            least.note(amount, amount >= true_least);
        }
        if true_least <= least.most {
            assert_eq!(least.found(), Some(true_least));
        } else {
            assert_eq!(least.found(), None);
        }
        all
    }

    #[test]
    fn the_least_amount_is_found_whatever_it_is() {
        for most in [1, 2, 3, 7, 12, 100] {
            for true_least in 1..=most + 1 {
                assert!(rehearsed(Least::up_to(most), true_least, || None).len() <= 15);
                let all_fits = {
                    let mut least = Least::up_to(most);
                    if true_least <= most {
                        least.note(most, true);
                    }
                    least
                };
                rehearsed(all_fits, true_least, || None);
                for guess in [0, 1, most / 2, most + 5] {
                    rehearsed(Least::up_to(most), true_least, || Some(guess));
                }
            }
        }
    }

    #[test]
    fn a_good_guess_needs_two_rehearsals() {
        let mut least = Least::up_to(48);
        least.note(48, true);
        let mut guesses = [Some(17), Some(16)].into_iter();
        assert_eq!(rehearsed(least, 17, || guesses.next().flatten()), [17, 16]);
    }
}
