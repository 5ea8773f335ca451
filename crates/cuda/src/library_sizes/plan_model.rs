//! Work areas of transforms whose lengths were not recorded.
//!
//! cuFFT has kernels for lengths with small prime factors, up to some length without any work area;
//! for others it needs room for the data once, and for long primes, which it transforms as a
//! convolution, four times. So a length takes, for each value, what a recorded length of the same
//! kind takes, the nearest one; and a transform in several dimensions what the worst of them takes.

use ghostgpu_library_sizes::{Canonical, Compact, Series};

/// The family of plans.
const FAMILY: &str = "XtMakePlanMany";

pub fn is_plan(canonical: &Canonical) -> bool {
    canonical.family == FAMILY
}

/// The work area of a plan that is not among the points of its series.
pub fn work_bytes(recording: &Compact, plan: &Canonical, series: &Series) -> Option<i64> {
    let batch = *plan.sizes.get("batch")?;
    let lengths = lengths(plan);
    if let Some(bytes) = from_other_batches(series, &lengths, batch) {
        return Some(bytes);
    }
    let values: i64 = lengths.iter().product::<i64>() * batch;
    match lengths.as_slice() {
        [length] => scaled(nearest_of_kind(series, *length)?, values),
        _ => {
            let worst = lengths
                .iter()
                .filter_map(|&length| of_one_dimension(recording, plan, length, values))
                .max()?;
            Some(worst)
        }
    }
}

fn lengths(plan: &Canonical) -> Vec<i64> {
    let names = plan.sizes.iter().filter(|(name, _)| name.starts_with('n'));
    names.map(|(_, &length)| length).collect()
}

/// A work area and the number of values it is for.
type Share = (i64, i64);

fn scaled((bytes, recorded_values): Share, values: i64) -> Option<i64> {
    let bytes = i128::from(bytes) * i128::from(values);
    i64::try_from(bytes / i128::from(recorded_values.max(1))).ok()
}

/// The same lengths with another batch, the nearest one.
fn from_other_batches(series: &Series, lengths: &[i64], batch: i64) -> Option<i64> {
    let same = series
        .points
        .iter()
        .filter(|(place, _)| place[1..] == *lengths);
    let (place, bytes) = same.min_by_key(|(place, _)| (place[0] - batch).abs())?;
    scaled((bytes[0], place[0]), batch)
}

/// What one dimension of a larger transform takes: as much as a complex transform along it.
fn of_one_dimension(
    recording: &Compact,
    plan: &Canonical,
    length: i64,
    values: i64,
) -> Option<i64> {
    let complex = [plan.labels.get("from")?, plan.labels.get("to")?]
        .into_iter()
        .find(|element| element.starts_with('c'))?;
    let mut alone = plan.clone();
    for (label, value) in [("from", complex.as_str()), ("to", complex), ("rank", "1")] {
        alone.labels.insert(label.to_owned(), value.to_owned());
    }
    let (series, _) = recording.find(&alone)?;
    scaled(nearest_of_kind(series, length)?, values)
}

/// The work area of the nearest recorded length, of the same kind if there is one, with the largest batch.
fn nearest_of_kind(series: &Series, length: i64) -> Option<Share> {
    let distance = |other: i64| (other as f64 / length as f64).ln().abs();
    let wanted = Kind::new(length);
    let alike = |is_strict: bool| {
        series
            .points
            .iter()
            .filter(|(place, _)| !is_strict || Kind::new(place[1]) == wanted)
            .min_by(|(one, _), (other, _)| {
                let one = (distance(one[1]), -one[0]);
                one.partial_cmp(&(distance(other[1]), -other[0]))
                    .unwrap_or(std::cmp::Ordering::Equal)
            })
    };
    let (place, bytes) = alike(true).or_else(|| alike(false))?;
    Some((bytes[0], place[0] * place[1]))
}

/// What decides which kernels there are for a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    is_even: bool,
    is_prime: bool,
    factors: Factors,
}

/// By the largest prime factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Factors {
    /// Up to 7.
    Small,
    /// Up to 31.
    Medium,
    /// Up to 127.
    Large,
    Huge,
}

impl Kind {
    fn new(length: i64) -> Self {
        let largest = largest_prime_factor(length);
        Self {
            is_even: length % 2 == 0,
            is_prime: largest == length && length > 1,
            factors: match largest {
                ..=7 => Factors::Small,
                8..=31 => Factors::Medium,
                32..=127 => Factors::Large,
                _ => Factors::Huge,
            },
        }
    }
}

fn largest_prime_factor(number: i64) -> i64 {
    let (mut rest, mut largest, mut factor) = (number, 1, 2);
    while factor * factor <= rest {
        if rest % factor == 0 {
            largest = factor;
            rest /= factor;
        } else {
            factor += 1;
        }
    }
    largest.max(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library_sizes::shipped::recording;

    #[test]
    fn lengths_are_told_apart_by_their_prime_factors() {
        assert_eq!(largest_prime_factor(1), 1);
        assert_eq!(largest_prime_factor(1024), 2);
        assert_eq!(largest_prime_factor(111), 37);
        assert_eq!(largest_prime_factor(10_007), 10_007);
        assert!(Kind::new(10_007).is_prime && !Kind::new(111).is_prime);
    }

    /// How many recorded plans of one dimension the others would have given, of how many.
    fn guessed(from: &str, to: &str) -> (usize, usize) {
        let (_, series) = recording()
            .series()
            .find(|(family, series)| {
                let has = |label: &str, value| series.labels[label] == value;
                *family == FAMILY
                    && has("rank", "1")
                    && has("layout", "dense")
                    && has("from", from)
                    && has("to", to)
            })
            .expect("recorded");
        let mut right = 0;
        for (place, bytes) in &series.points {
            let mut others = series.clone();
            others.points.retain(|other, _| other[1] != place[1]);
            let share = nearest_of_kind(&others, place[1]).expect("others are there");
            let guess = scaled(share, place[0] * place[1]).expect("in range");
            let is_right = (guess - bytes[0]).abs() <= bytes[0] / 8;
            right += usize::from(is_right);
        }
        (right, series.points.len())
    }

    #[test]
    fn most_recorded_lengths_would_have_been_guessed() {
        for (from, to, percent) in [("c32", "c32", 85), ("f32", "c32", 65), ("c32", "f32", 55)] {
            let (right, all) = guessed(from, to);
            assert!(
                right * 100 >= all * percent,
                "{from} to {to}: {right} of {all}"
            );
        }
    }
}
