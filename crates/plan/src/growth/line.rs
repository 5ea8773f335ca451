//! How memory grows with a size: what each sample or token takes, and what is independent of the size. Pure.
//!
//! The peak is the highest of many moments, and each grows in its own way: with few samples the optimizer's step is
//! the highest, with many the backward pass. On a nearly full card the allocator flushes its cache, and blocks are
//! split differently. So the line is the one that most of the larger sizes lie on, and the sizes off the line are
//! listed.

use serde::Serialize;

/// A peak lies on a line if its distance is at most this fraction of it.
const TOLERANCE: f64 = 0.01;

/// Sizes below one part in this many of the largest show how small sizes behave, not how memory grows.
const SMALL: u64 = 4;

/// The line that most of the larger sizes lie on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// What one more sample or token takes.
    pub bytes_each: i64,
    /// What does not depend on the size: the line at size 0.
    pub bytes_fixed: i64,
    /// All measured sizes from `linear_from` to `linear_to` lie on the line.
    pub linear_from: u64,
    pub linear_to: u64,
    /// How many sizes these are. Two always lie on a line, so two prove nothing.
    pub points: usize,
    /// The largest distance of these sizes from the line.
    pub largest_error_bytes: u64,
    /// What one more takes between the two smallest sizes. If it is less than `bytes_each`, memory grows faster than
    /// linearly.
    pub bytes_each_at_first: i64,
    /// Sizes off the line, and how far above or below it they are.
    pub off_the_line: Vec<Deviation>,
}

/// A size whose peak is off the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Deviation {
    pub size: u64,
    pub bytes: i64,
}

/// Fits a line to sizes and their peaks, in ascending order of sizes; `None` if there are too few.
pub fn growth(points: &[(u64, u64)]) -> Option<Growth> {
    let &(last, _) = points.last()?;
    let mut large: Vec<(u64, u64)> = points.to_vec();
    large.retain(|point| point.0 * SMALL >= last);
    if large.len() < 2 {
        large = points[points.len().saturating_sub(2)..].to_vec();
    }
    let line = best_line(&large)?;
    let is_on_line = |&(size, bytes): &(u64, u64)| {
        (bytes as f64 - line.at(size)).abs() <= TOLERANCE * bytes as f64
    };
    let run = longest_run(points, is_on_line);
    let inside = &points[run.clone()];
    let deviation = |&(size, bytes): &(u64, u64)| Deviation {
        size,
        bytes: (bytes as f64 - line.at(size)).round() as i64,
    };
    Some(Growth {
        bytes_each: line.each.round() as i64,
        bytes_fixed: line.at(0).round() as i64,
        linear_from: inside.first()?.0,
        linear_to: inside.last()?.0,
        points: inside.len(),
        largest_error_bytes: inside
            .iter()
            .map(|point| deviation(point).bytes.unsigned_abs())
            .max()?,
        bytes_each_at_first: {
            let [(low, low_bytes), (high, high_bytes)] = points.first_chunk::<2>()?;
            ((*high_bytes as f64 - *low_bytes as f64) / (high - low) as f64).round() as i64
        },
        off_the_line: points[..run.start]
            .iter()
            .chain(&points[run.end..])
            .map(deviation)
            .collect(),
    })
}

#[derive(Clone, Copy)]
struct Line {
    each: f64,
    fixed: f64,
}

impl Line {
    fn at(self, size: u64) -> f64 {
        self.fixed + self.each * size as f64
    }
}

/// The line through two of the points that most points lie on; of equally good ones, that of the largest sizes.
fn best_line(points: &[(u64, u64)]) -> Option<Line> {
    let mut best: Option<(usize, (bool, u64, u64), Line)> = None;
    for (index, &(low, low_bytes)) in points.iter().enumerate() {
        for &(high, high_bytes) in &points[index + 1..] {
            let each = (high_bytes as f64 - low_bytes as f64) / (high - low) as f64;
            let line = Line {
                each,
                fixed: high_bytes as f64 - each * high as f64,
            };
            let on_it = |point: &&(u64, u64)| {
                (point.1 as f64 - line.at(point.0)).abs() <= TOLERANCE * point.1 as f64
            };
            // Two close sizes make a poor line: half a megabyte of rounding tilts it.
            let is_long = low <= high / 4 * 3;
            let weight = (is_long, high, low);
            let support = points.iter().filter(on_it).count();
            if best.is_none_or(|(most, heaviest, _)| (support, weight) > (most, heaviest)) {
                best = Some((support, weight, line));
            }
        }
    }
    best.map(|(_, _, line)| line)
}

/// The longest run of consecutive good values; of equally long ones, the last.
fn longest_run<T>(values: &[T], is_good: impl Fn(&T) -> bool) -> std::ops::Range<usize> {
    let mut longest = 0..0;
    let mut start = 0;
    for (index, value) in values.iter().enumerate() {
        if !is_good(value) {
            start = index + 1;
        } else if index + 1 - start >= longest.len() {
            longest = start..index + 1;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_together_with_its_fixed_part() {
        let points: Vec<(u64, u64)> = [1, 2, 8, 16, 40]
            .map(|size| (size, 1_000_000 + 5_000 * size))
            .to_vec();
        let found = growth(&points).expect("enough points");
        assert_eq!((found.bytes_each, found.bytes_fixed), (5_000, 1_000_000));
        assert_eq!(
            (found.linear_from, found.linear_to, found.points),
            (1, 40, 5)
        );
        assert_eq!(found.largest_error_bytes, 0);
        assert!(found.off_the_line.is_empty());
    }

    #[test]
    fn small_sizes_at_which_another_moment_is_the_highest_are_named() {
        let points: Vec<(u64, u64)> = [1, 4, 8, 16, 24, 32]
            .map(|size| (size, (4_000 * size).max(40_000)))
            .to_vec();
        let found = growth(&points).expect("enough points");
        assert_eq!((found.bytes_each, found.bytes_fixed), (4_000, 0));
        assert_eq!((found.linear_from, found.points), (16, 3));
        let sizes: Vec<u64> = found.off_the_line.iter().map(|off| off.size).collect();
        assert_eq!(sizes, [1, 4, 8]);
        assert_eq!(found.off_the_line[2].bytes, 8_000);
    }

    #[test]
    fn a_last_size_on_a_full_card_does_not_tilt_the_line() {
        let mut points: Vec<(u64, u64)> = [16, 18, 32, 36, 52, 69, 71]
            .map(|size| (size, 1_260_000 + 119_000 * size))
            .to_vec();
        points.push((72, 1_260_000 + 119_000 * 72 + 150_000));
        let found = growth(&points).expect("enough points");
        assert_eq!((found.bytes_each, found.bytes_fixed), (119_000, 1_260_000));
        assert_eq!((found.linear_from, found.linear_to), (16, 71));
        let off = Deviation {
            size: 72,
            bytes: 150_000,
        };
        assert_eq!(found.off_the_line, [off]);
    }

    #[test]
    fn what_grows_with_the_square_is_not_taken_for_a_line() {
        let points: Vec<(u64, u64)> = [128, 256, 512, 1024]
            .map(|size| (size, size * size * 100))
            .to_vec();
        let found = growth(&points).expect("enough points");
        assert_eq!(found.points, 2);
        assert_eq!(found.off_the_line.len(), 2);
    }

    #[test]
    fn one_size_says_nothing_about_growth() {
        assert_eq!(growth(&[]), None);
        assert_eq!(growth(&[(8, 100)]), None);
    }
}
