//! Whether a series that is looked at once in every step goes on rising, or levels off.
//!
//! Much rises for a while and then no more: caches, optimizer state that is made when a parameter first has a gradient,
//! what a second epoch adds, buffers with room for a number of things. So a rise counts only if it comes again and
//! again up to the end, at intervals that are about the same, and if the later ones are not smaller.

/// In fewer steps nothing is seen.
const FEWEST_STEPS: usize = 3;

/// From so many steps on, the first is left out, and a rise has to come three times; of fewer, two have to do.
const ENOUGH_STEPS: usize = 5;

/// A rise without an end in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastingRise {
    /// Between the first and the last rise that were seen the value is to be compared: after the step of this index, …
    pub from: usize,
    /// … and after this one.
    pub to: usize,
    /// It rises once in so many steps at most.
    pub period: usize,
}

/// The lasting rise of a series, if there is one: `values[n]` is what there was after step n.
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
    // What usually came every other step and has not come for longer than that does not come any more.
    let is_overdue = values.len() - 1 - last >= longest;
    let is_regular = longest <= 2 * shortest;
    (is_regular && !is_overdue && !is_slowing(values, &rises)).then_some(LastingRise {
        from: first,
        to: last,
        period: longest,
    })
}

/// Where the part of the series begins that never falls, if it has outgrown by far what was before: what was given
/// back once will be given back again.
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

/// Whether the later half of the rises comes to clearly less than the earlier.
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
            // Whatever the first steps made, the others add the same.
            (&[90, 200, 201, 202, 203, 204], Some(1)),
            (&[0, 1, 3, 6, 10, 15], Some(1)),
            // A step of a short batch, or an end of an epoch, without one.
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
            // The second epoch, once.
            (&[1, 1, 1, 1, 5, 5, 5, 5], None),
            // Rises that become smaller and smaller.
            (&[0, 16, 24, 28, 30, 31], None),
            // What is collected every four steps.
            (&[1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3], None),
            // A batch that is sometimes larger.
            (&[5, 3, 4, 6, 2, 3, 4], None),
            // Given back once, at the beginning, and never again.
            (&[5, 9, 1, 9, 17, 25, 33], Some(1)),
            // Once in an epoch of five steps, seen twice.
            (&[0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2], None),
        ] {
            let found = lasting_rise(values).map(|rise| rise.period);
            assert_eq!(found, period, "{values:?}");
        }
    }
}
