//! Allocations that fail although there is memory, to test programs that survive such failures.
//!
//! A seed determines which ones fail. A failure lasts for several requests, because PyTorch frees
//! its cache and retries before it gives up.

/// Decides for each request for memory whether it fails.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocationFaults {
    probability: f64,
    /// Requests that fail in a row.
    length: u32,
    /// How many requests at the beginning never fail.
    after: u64,
    state: u64,
    requests: u64,
    left: u32,
}

impl AllocationFaults {
    /// Reads `probability=0.01,seed=7,length=4,after=100`; only the probability is required.
    ///
    /// # Errors
    /// A sentence that names the part that could not be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut faults = Self {
            probability: f64::NAN,
            length: 4,
            after: 0,
            state: 0,
            requests: 0,
            left: 0,
        };
        for part in text.split(',') {
            let unread = || format!("`{part}` is not a part of a description of faults");
            let (name, value) = part.trim().split_once('=').ok_or_else(unread)?;
            match name {
                "probability" => faults.probability = value.parse().map_err(|_| unread())?,
                "seed" => faults.state = value.parse().map_err(|_| unread())?,
                "length" => faults.length = value.parse().map_err(|_| unread())?,
                "after" => faults.after = value.parse().map_err(|_| unread())?,
                _ => return Err(unread()),
            }
        }
        if (0.0..=1.0).contains(&faults.probability) {
            Ok(faults)
        } else {
            Err(format!("`{text}` has no probability between 0 and 1"))
        }
    }

    /// Whether the next request fails.
    pub fn next_fails(&mut self) -> bool {
        self.requests += 1;
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        let fails = self.requests > self.after && self.draw() < self.probability;
        if fails {
            self.left = self.length.saturating_sub(1);
        }
        fails
    }

    /// A number from 0 to 1, drawn with SplitMix64.
    fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::AllocationFaults;

    fn failing(text: &str, requests: usize) -> Vec<usize> {
        let mut faults = AllocationFaults::parse(text).expect(text);
        (0..requests).filter(|_| faults.next_fails()).collect()
    }

    #[test]
    fn the_same_seed_fails_the_same_requests() {
        let one = failing("probability=0.1,seed=3", 1000);
        assert_eq!(one, failing("seed=3,probability=0.1", 1000));
        assert_ne!(one, failing("probability=0.1,seed=4", 1000));
    }

    #[test]
    fn a_failure_lasts_as_long_as_asked_for() {
        let one = failing("probability=0.01,seed=1,length=1", 10_000).len();
        assert!((60..140).contains(&one), "{one}");
        let at = failing("probability=0.001,seed=1,length=5", 10_000);
        assert!(at.chunks(5).all(|run| run[4] == run[0] + 4), "{at:?}");
    }

    #[test]
    fn the_first_requests_can_be_spared() {
        assert_eq!(failing("probability=1,after=7,length=1", 9), [7, 8]);
        assert!(failing("probability=0", 100).is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, said) in [
            ("", "``"),
            ("seed=1", "no probability"),
            ("probability=2", "no probability"),
            ("probability=x", "`probability=x`"),
            ("probability=0.1,colour=red", "`colour=red`"),
        ] {
            let error = AllocationFaults::parse(text).expect_err(text);
            assert!(error.contains(said), "{error}");
        }
    }
}
