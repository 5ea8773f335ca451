//! Which of several ways is the better one.

use std::cmp::Ordering;

use super::bench::{CameTo, Tried};
use super::coarse_time::coarse_time;

/// Best first: what fits with the margin before what fits tightly and what does not; what keeps the numbers before what
/// changes them; then by time as it is shown, predicted where that can be, else the coarse one; then what changes less, what
/// can be typed, and what is less.
/// Of those that do not fit, what needs least comes first.
pub fn rank(tried: &mut [Tried], blocks: u64) {
    tried.sort_by(|one, other| compare(one, other, blocks));
}

fn compare(one: &Tried, other: &Tried, blocks: u64) -> Ordering {
    let degree = degree(one).cmp(&degree(other));
    if degree.is_ne() {
        return degree;
    }
    if !one.fits() {
        return needed(one).cmp(&needed(other));
    }
    let changes_numbers = |tried: &Tried| !tried.combination.keeps_numbers();
    let time = |tried: &Tried| {
        let coarse = || coarse_time(&tried.combination, blocks);
        // No prediction is better than a hundredth.
        (tried.relative_time.unwrap_or_else(coarse) * 100.0).round()
    };
    let cannot_be_typed = |tried: &Tried| {
        let mut requests = tried.combination.requests().iter();
        requests.any(|request| request.flag_words().is_none())
    };
    let size = |tried: &Tried| tried.combination.requests().len();
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

fn degree(tried: &Tried) -> u8 {
    match tried.came_to {
        CameTo::Fits { .. } if tried.fits_with_room() => 0,
        CameTo::Fits { .. } => 1,
        CameTo::DoesNotFit { .. } => 2,
        CameTo::NotKnown(_) => 3,
        CameTo::Fails(_) => 4,
    }
}

fn headroom(tried: &Tried) -> u64 {
    match tried.came_to {
        CameTo::Fits { headroom_bytes, .. } => headroom_bytes,
        _ => 0,
    }
}

/// What is not known comes last.
fn needed(tried: &Tried) -> u64 {
    match &tried.came_to {
        CameTo::DoesNotFit {
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

    fn tried(requests: Vec<Request>, came_to: CameTo) -> Tried {
        let combination = requests
            .into_iter()
            .try_fold(Combination::none(), |all, request| all.with(request));
        Tried {
            combination: combination.expect("no conflict"),
            came_to,
            relative_time: None,
            reports: Vec::new(),
            is_thorough: true,
        }
    }

    fn fits(requests: Vec<Request>, tight_because: Option<&str>) -> Tried {
        let came_to = CameTo::Fits {
            peaks: peaks(1),
            headroom_bytes: 1,
            tight_because: tight_because.map(str::to_owned),
        };
        tried(requests, came_to)
    }

    fn misses(name: &str, bytes: Option<u64>) -> Tried {
        let came_to = CameTo::DoesNotFit {
            place: None,
            needed: bytes.map(peaks),
        };
        tried(vec![Request::named(name)], came_to)
    }

    fn order(mut all: Vec<Tried>) -> Vec<String> {
        rank(&mut all, 12);
        all.iter()
            .map(|tried| tried.combination.in_words())
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
    fn of_two_that_take_as_long_the_one_that_can_be_typed_comes_first() {
        let timed = |request: Request, time: f64| Tried {
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
    fn a_predicted_time_counts_more_than_the_coarse_order() {
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
