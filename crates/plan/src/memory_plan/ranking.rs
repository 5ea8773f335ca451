//! Which of several combinations is the best.

use std::cmp::Ordering;

use super::bench::{CombinationOutcome, RehearsedCombination};
use super::coarse_time::coarse_time;

/// Sorts combinations, best first:
///
/// 1. those that fit with the margin, then those that fit tightly, then the others;
/// 2. those that keep the numbers;
/// 3. by time, predicted if possible, else coarse, rounded as it is shown;
/// 4. by how much they change the numbers;
/// 5. those that can be written as flags;
/// 6. those with fewer tricks, then those with more headroom.
///
/// Combinations that do not fit are sorted by what they need.
pub fn rank(rehearsed: &mut [RehearsedCombination], blocks: u64) {
    rehearsed.sort_by(|one, other| compare(one, other, blocks));
}

fn compare(one: &RehearsedCombination, other: &RehearsedCombination, blocks: u64) -> Ordering {
    let degree = degree(one).cmp(&degree(other));
    if degree.is_ne() {
        return degree;
    }
    if !one.fits() {
        return needed(one).cmp(&needed(other));
    }
    let changes_numbers = |rehearsed: &RehearsedCombination| !rehearsed.combination.keeps_numbers();
    let time = |rehearsed: &RehearsedCombination| {
        let coarse = || coarse_time(&rehearsed.combination, blocks);
        // Predictions are not accurate beyond a hundredth.
        (rehearsed.relative_time.unwrap_or_else(coarse) * 100.0).round()
    };
    let cannot_be_typed = |rehearsed: &RehearsedCombination| {
        let mut requests = rehearsed.combination.requests().iter();
        requests.any(|request| request.flag_words().is_none())
    };
    let size = |rehearsed: &RehearsedCombination| rehearsed.combination.requests().len();
    changes_numbers(one)
        .cmp(&changes_numbers(other))
        .then(time(one).total_cmp(&time(other)))
        .then(
            one.combination
                .numerics()
                .cmp(&other.combination.numerics()),
        )
        .then(cannot_be_typed(one).cmp(&cannot_be_typed(other)))
        .then(size(one).cmp(&size(other)))
        .then_with(|| headroom(other).cmp(&headroom(one)))
}

fn degree(rehearsed: &RehearsedCombination) -> u8 {
    match rehearsed.outcome {
        CombinationOutcome::Fits { .. } if rehearsed.fits_with_room() => 0,
        CombinationOutcome::Fits { .. } => 1,
        CombinationOutcome::DoesNotFit { .. } => 2,
        CombinationOutcome::NotKnown(_) => 3,
        CombinationOutcome::Fails(_) => 4,
    }
}

fn headroom(rehearsed: &RehearsedCombination) -> u64 {
    match rehearsed.outcome {
        CombinationOutcome::Fits { headroom_bytes, .. } => headroom_bytes,
        _ => 0,
    }
}

/// What a combination needs; unknown needs come last.
fn needed(rehearsed: &RehearsedCombination) -> u64 {
    match &rehearsed.outcome {
        CombinationOutcome::DoesNotFit {
            needed: Some(peaks),
            ..
        } => peaks.device_bytes,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use ghostgpu_rehearse::Peaks;
    use ghostgpu_tricks::Request;

    use super::super::combination::{Combination, request};
    use super::*;

    fn peaks(bytes: u64) -> Peaks {
        Peaks {
            allocated_bytes: bytes,
            reserved_bytes: bytes,
            device_bytes: bytes,
        }
    }

    fn rehearsed(requests: Vec<Request>, outcome: CombinationOutcome) -> RehearsedCombination {
        let combination = requests
            .into_iter()
            .try_fold(Combination::none(), |all, request| all.with(request));
        RehearsedCombination {
            combination: combination.expect("no conflict"),
            outcome,
            relative_time: None,
            reports: Vec::new(),
            is_thorough: true,
        }
    }

    fn fits(requests: Vec<Request>, tight_because: Option<&str>) -> RehearsedCombination {
        let outcome = CombinationOutcome::Fits {
            peaks: peaks(1),
            headroom_bytes: 1,
            tight_because: tight_because.map(str::to_owned),
        };
        rehearsed(requests, outcome)
    }

    fn misses(name: &str, bytes: Option<u64>) -> RehearsedCombination {
        let outcome = CombinationOutcome::DoesNotFit {
            place: None,
            needed: bytes.map(peaks),
        };
        rehearsed(vec![Request::named(name)], outcome)
    }

    fn order(mut all: Vec<RehearsedCombination>) -> Vec<String> {
        rank(&mut all, 12);
        all.iter()
            .map(|rehearsed| rehearsed.combination.in_words())
            .collect()
    }

    #[test]
    fn what_fits_with_room_and_keeps_the_numbers_comes_first() {
        let blocks = |count: &str| request("checkpointing", &[("blocks", count.to_owned())]);
        let ordered = order(vec![
            misses("inplace-activations", None),
            misses("loss-head", Some(7)),
            misses("offload-optimizer", Some(5)),
            fits(
                vec![Request::named("early-zero-grad")],
                Some("little is left"),
            ),
            fits(vec![Request::named("autocast")], None),
            fits(vec![Request::named("chunking")], None),
            fits(vec![blocks("9")], None),
            fits(vec![blocks("3")], None),
        ]);
        assert_eq!(
            ordered,
            [
                "--checkpoint 3",
                "--checkpoint 9",
                "--chunks 2",
                "--amp bf16",
                "--early-zero-grad",
                "--optimizer offload",
                "--chunk-loss 8",
                "--inplace",
            ]
        );
    }

    #[test]
    fn of_two_equally_fast_combinations_the_one_with_a_flag_comes_first() {
        let timed = |request: Request, time: f64| RehearsedCombination {
            relative_time: Some(time),
            ..fits(vec![request], None)
        };
        let kept = request("checkpointing", &[("keep", "matmuls".to_owned())]);
        let whole = Request::named("checkpointing");
        let typed = "--checkpoint auto";
        let equal = vec![timed(kept.clone(), 1.229), timed(whole.clone(), 1.231)];
        assert_eq!(order(equal)[0], typed);
        let quicker = vec![timed(whole, 1.231), timed(kept, 1.21)];
        assert_ne!(order(quicker)[0], typed);
    }

    #[test]
    fn a_predicted_time_takes_precedence_over_the_coarse_one() {
        let mut chunks = fits(vec![Request::named("chunking")], None);
        let mut blocks = fits(vec![Request::named("checkpointing")], None);
        let (chunked, checkpointed) = ("--chunks 2", "--checkpoint auto");
        assert_eq!(
            order(vec![chunks.clone(), blocks.clone()]),
            [checkpointed, chunked]
        );
        chunks.relative_time = Some(1.1);
        blocks.relative_time = Some(1.4);
        assert_eq!(order(vec![blocks, chunks]), [chunked, checkpointed]);
    }
}
