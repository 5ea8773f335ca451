//! Whether a series with one value per step keeps rising or levels off.
//!
//! Many things rise for a while and then stop: caches, optimizer state that is allocated when a parameter first has a
//! gradient, what a second epoch adds, buffers of limited size. So a rise counts only if it recurs up to the end, at
//! roughly regular intervals, and does not slow down.

/// With fewer steps, no rise is recognised.
const FEWEST_STEPS: usize = 3;

/// From this many steps on, the first step is ignored and three rises are required; with fewer steps, two are enough.
const ENOUGH_STEPS: usize = 5;

/// A rise that continues to the end of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastingRise {
    /// The index of the first step with a rise. Growth is the difference between the values at `from` and `to`.
    pub from: usize,
    /// The index of the last step with a rise.
    pub to: usize,
    /// The largest number of steps between two rises.
    pub period: usize,
}

/// The lasting rise of a series, if there is one; `values[n]` is the value after step n.
pub fn lasting_rise(values: &[u64]) -> Option<LastingRise> {
    if values.len() < FEWEST_STEPS {
        return None;
    }
    let (beginning, fewest_rises) = match values.len() {
        ..ENOUGH_STEPS => (0, 2),
        _ => (1, 3),
    };
    let start = after_last_fall(values, beginning)?;
    let rises: Vec<usize> = (start + 1..values.len())
        .filter(|&at| values[at] > values[at - 1])
        .collect();
    let (&first, &last) = rises.first().zip(rises.last())?;
    if rises.len() < fewest_rises {
        return None;
    }
    let gaps = || rises.windows(2).map(|pair| pair[1] - pair[0]);
    let (shortest, longest) = (gaps().min()?, gaps().max()?);
    // If the last rise is longer ago than the longest interval, the series has stopped rising.
    let is_overdue = values.len() - 1 - last >= longest;
    let is_regular = longest <= 2 * shortest;
    (is_regular && !is_overdue && !is_slowing(values, &rises)).then_some(LastingRise {
        from: first,
        to: last,
        period: longest,
    })
}

/// Where the last part without a fall begins, if it has grown far beyond everything before it. Otherwise there is no
/// lasting rise, because memory that was freed once will be freed again.
fn after_last_fall(values: &[u64], beginning: usize) -> Option<usize> {
    let fall = (beginning + 1..values.len())
        .rev()
        .find(|&at| values[at] < values[at - 1]);
    let Some(fall) = fall else {
        return Some(beginning);
    };
    let highest_before = values[beginning..fall].iter().max()?;
    let last = values.last()?;
    (*last > highest_before.saturating_mul(2)).then_some(fall)
}

/// Whether the later half of the rises adds up to clearly less than the earlier half.
fn is_slowing(values: &[u64], rises: &[usize]) -> bool {
    let half = rises.len() / 2;
    let sum = |rises: &[usize]| -> u128 {
        let sizes = rises.iter().map(|&at| values[at] - values[at - 1]);
        sizes.map(u128::from).sum()
    };
    sum(&rises[rises.len() - half..]) * 4 < sum(&rises[..half]) * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rise_that_goes_on_is_lasting() {
        for (values, period) in [
            (&[1, 2, 3][..], Some(1)),
            (&[0, 5, 10, 15], Some(1)),
            (&[0, 0, 1, 2], Some(1)),
            // The first step differs, and the others add the same amount each.
            (&[90, 200, 201, 202, 203, 204], Some(1)),
            (&[0, 1, 3, 6, 10, 15], Some(1)),
            // One step without a rise, such as a small batch or the end of an epoch.
            (&[0, 1, 2, 3, 3, 4, 5, 6], Some(2)),
            // Every second step, every fourth.
            (&[1, 1, 2, 2, 3, 3, 4], Some(2)),
            (&[0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4], Some(4)),
            (&[], None),
            (&[1, 2], None),
            (&[7, 7, 7], None),
            (&[1, 2, 2], None),
            // A buffer that has filled up.
            (&[1, 2, 3, 4, 4, 4, 4], None),
            // A single rise in the second epoch.
            (&[1, 1, 1, 1, 5, 5, 5, 5], None),
            // Rises that get smaller and smaller.
            (&[0, 16, 24, 28, 30, 31], None),
            // Something that is freed every four steps.
            (&[1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3], None),
            // A batch that is sometimes larger.
            (&[5, 3, 4, 6, 2, 3, 4], None),
            // Freed once, at the beginning, and never again.
            (&[5, 9, 1, 9, 17, 25, 33], Some(1)),
            // Once in an epoch of five steps, seen twice.
            (&[0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2], None),
        ] {
            let found = lasting_rise(values).map(|rise| rise.period);
            assert_eq!(found, period, "{values:?}");
        }
    }
}
