//! Which blocks are drawn: the largest, and not too many.

use super::{PerfettoOptions, PerfettoSummary};

/// Decides block by block, in the order of the recording.
#[derive(Debug)]
pub(crate) struct BlockSelection {
    /// Larger ones are all drawn.
    threshold_bytes: u64,
    /// How many of exactly that size are drawn too.
    at_threshold_left: usize,
    min_block_bytes: u64,
    pub(crate) summary: PerfettoSummary,
}

impl BlockSelection {
    /// For blocks of these sizes.
    pub(crate) fn new(sizes: impl Iterator<Item = u64>, options: &PerfettoOptions) -> Self {
        let mut sizes: Vec<u64> = sizes
            .filter(|bytes| *bytes >= options.min_block_bytes)
            .collect();
        let (threshold_bytes, at_threshold_left) = match options.max_blocks.checked_sub(1) {
            None => (u64::MAX, 0),
            Some(last) if last < sizes.len() => {
                let (larger, smallest, _) =
                    sizes.select_nth_unstable_by(last, |one, other| other.cmp(one));
                let as_small = larger.iter().filter(|bytes| *bytes == smallest).count();
                (*smallest, as_small + 1)
            }
            Some(_) => (options.min_block_bytes, usize::MAX),
        };
        Self {
            threshold_bytes,
            at_threshold_left,
            min_block_bytes: options.min_block_bytes,
            summary: PerfettoSummary::default(),
        }
    }

    /// Whether the next block is drawn.
    pub(crate) fn draws(&mut self, bytes: u64) -> bool {
        let is_drawn = match bytes.cmp(&self.threshold_bytes) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => match self.at_threshold_left.checked_sub(1) {
                Some(left) => {
                    self.at_threshold_left = left;
                    true
                }
                None => false,
            },
        };
        if is_drawn {
            self.summary.blocks_drawn += 1;
        } else if bytes < self.min_block_bytes {
            self.summary.blocks_too_small += 1;
        } else {
            self.summary.blocks_left_out += 1;
        }
        is_drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(sizes: &[u64], max_blocks: usize) -> Vec<u64> {
        let options = PerfettoOptions {
            min_block_bytes: 10,
            max_blocks,
            ..PerfettoOptions::default()
        };
        let mut selection = BlockSelection::new(sizes.iter().copied(), &options);
        sizes
            .iter()
            .copied()
            .filter(|bytes| selection.draws(*bytes))
            .collect()
    }

    #[test]
    fn the_largest_are_drawn_and_among_equals_the_oldest() {
        assert_eq!(
            drawn(&[9, 10, 30, 20, 20, 20, 40], 10),
            [10, 30, 20, 20, 20, 40]
        );
        assert_eq!(drawn(&[9, 10, 30, 20, 20, 20, 40], 4), [30, 20, 20, 40]);
        assert_eq!(drawn(&[20, 20, 20], 1), [20]);
        assert_eq!(drawn(&[20, 20, 20], 0), [0_u64; 0]);
        assert_eq!(drawn(&[], 3), [0_u64; 0]);
    }
}
