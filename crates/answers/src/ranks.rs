//! The ranks of a job in a few lines: what they had, which are alike, and which is the largest.

use ghostgpu_recording::RankPeak;
use ghostgpu_text::{Sheet, human};

/// Lines that a screen has for them.
const MOST_LINES: usize = 4;

/// A line for each rank that differs from the others, at most so many.
pub fn add_ranks(sheet: &mut Sheet, ranks: &[RankPeak], is_full: bool) {
    let lines = lines(ranks, if is_full { usize::MAX } else { MOST_LINES });
    if !lines.is_empty() {
        sheet.section("ranks", lines);
    }
}

fn lines(ranks: &[RankPeak], most: usize) -> Vec<String> {
    let mut groups: Vec<Vec<&RankPeak>> = Vec::new();
    for rank in ranks {
        let like =
            |group: &&mut Vec<&RankPeak>| group.first().is_some_and(|first| is_alike(first, rank));
        match groups.iter_mut().find(like) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    let size = |group: &[&RankPeak]| {
        group.first().map_or((0, 0, 0), |rank| {
            (
                rank.peak_device_bytes,
                rank.peak_reserved_bytes,
                rank.peak_allocated_bytes,
            )
        })
    };
    let largest = groups
        .iter()
        .map(|group| size(group))
        .max()
        .unwrap_or_default();
    let is_largest_told = groups.len() > 1;
    if groups.len() > most {
        groups.sort_by_key(|group| std::cmp::Reverse(size(group)));
    }
    let shown = if groups.len() > most { most - 1 } else { most };
    let world_size = world_size(ranks);
    let mut lines: Vec<String> = groups
        .iter()
        .take(shown)
        .map(|group| {
            let is_largest = is_largest_told && size(group) == largest;
            line(group, group.len() == world_size, is_largest)
        })
        .collect();
    if ranks.len() < world_size
        && let Some(first) = lines.first_mut()
    {
        *first = first.replacen(": ", &format!(" of {world_size}: "), 1);
    }
    if groups.len() > shown {
        let others: usize = groups[shown..].iter().map(Vec::len).sum();
        lines.push(format!("{others} smaller ones (--verbose has them)"));
    }
    lines
}

/// Recordings of older versions have no world size, and all ranks.
fn world_size(ranks: &[RankPeak]) -> usize {
    let told = ranks.first().map_or(0, |rank| rank.world_size as usize);
    told.max(ranks.len())
}

/// On what grounds ranks that were not run are like those that were; none if all were run.
pub fn grounds_in_words(ranks: &[RankPeak], are_distinct: bool) -> Option<String> {
    let (run, all) = (ranks.len(), world_size(ranks));
    let grounds = match are_distinct {
        true => {
            "every other has the same place in pipelines as one of them, parts of parameters of the same sizes, and \
             stands in its groups between ranks with the same figures"
        }
        false => "the others are taken to be like them (--ranks)",
    };
    (run < all).then(|| format!("{run} of {all} ranks were run: {grounds}"))
}

fn is_alike(one: &RankPeak, other: &RankPeak) -> bool {
    let figures = |rank: &RankPeak| {
        (
            rank.peak_allocated_bytes,
            rank.peak_reserved_bytes,
            rank.peak_device_bytes,
            rank.ran_out,
        )
    };
    figures(one) == figures(other)
}

/// `0, 2–5: 1.20 GiB allocated, 1.50 GiB reserved, 2.10 GiB on card (the largest)`.
fn line(group: &[&RankPeak], are_all: bool, is_largest: bool) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let numbers: Vec<u32> = group.iter().map(|rank| rank.rank).collect();
    let who = match are_all {
        true => format!("all {} alike", group.len()),
        false => intervals(&numbers),
    };
    let figures = format!(
        "{who}: {} allocated, {} reserved, {} on card",
        human(first.peak_allocated_bytes),
        human(first.peak_reserved_bytes),
        human(first.peak_device_bytes),
    );
    match (first.ran_out, is_largest) {
        (true, _) => format!("{figures}: runs out"),
        (false, true) => format!("{figures}, most"),
        (false, false) => figures,
    }
}

/// Numbers in ascending order, neighbours together: `0, 2–5`.
fn intervals(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let words = parts.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn rank(rank: u32, mebibytes: u64) -> RankPeak {
        RankPeak {
            rank,
            world_size: 0,
            device: rank as usize,
            peak_allocated_bytes: mebibytes * MIB,
            peak_reserved_bytes: 2 * mebibytes * MIB,
            peak_device_bytes: 3 * mebibytes * MIB,
            steps: 3,
            ran_out: false,
        }
    }

    #[test]
    fn ranks_that_are_alike_share_a_line() {
        let cases: [(&[RankPeak], &[&str]); 3] = [
            (&[], &[]),
            (
                &[rank(0, 10), rank(1, 10)],
                &["all 2 alike: 10.00 MiB allocated, 20.00 MiB reserved, 30.00 MiB on card"],
            ),
            (
                &[
                    rank(0, 20),
                    rank(1, 10),
                    rank(2, 10),
                    rank(3, 10),
                    rank(4, 20),
                ],
                &[
                    "0, 4: 20.00 MiB allocated, 40.00 MiB reserved, 60.00 MiB on card, most",
                    "1–3: 10.00 MiB allocated, 20.00 MiB reserved, 30.00 MiB on card",
                ],
            ),
        ];
        for (ranks, expected) in cases {
            assert_eq!(lines(ranks, MOST_LINES), expected);
        }
    }

    #[test]
    fn it_is_told_how_many_ranks_there_are_if_not_all_were_run() {
        let of_eight = |number| RankPeak {
            world_size: 8,
            ..rank(number, 10)
        };
        let some = [of_eight(0), of_eight(7)];
        assert_eq!(
            lines(&some, MOST_LINES),
            ["0, 7 of 8: 10.00 MiB allocated, 20.00 MiB reserved, 30.00 MiB on card"]
        );
        let words = |are_distinct| grounds_in_words(&some, are_distinct).unwrap_or_default();
        assert!(words(true).starts_with("2 of 8 ranks were run: every other has the same place"));
        assert_eq!(
            words(false),
            "2 of 8 ranks were run: the others are taken to be like them (--ranks)"
        );
        assert_eq!(grounds_in_words(&[rank(0, 1), rank(1, 1)], true), None);
        assert_eq!(grounds_in_words(&[], true), None);
    }

    #[test]
    fn a_screen_has_the_largest_and_says_how_many_more_there_are() {
        let ranks: Vec<RankPeak> = (0..8)
            .map(|number| rank(number, 10 + u64::from(number)))
            .collect();
        let shown = lines(&ranks, MOST_LINES);
        assert_eq!(shown.len(), MOST_LINES);
        assert!(
            shown[0].starts_with("7: ") && shown[0].ends_with("most"),
            "{shown:?}"
        );
        assert_eq!(shown[3], "5 smaller ones (--verbose has them)");
        assert_eq!(lines(&ranks, usize::MAX).len(), 8);
    }

    #[test]
    fn who_ran_out_of_memory_is_told() {
        let mut failed = rank(1, 10);
        failed.ran_out = true;
        let shown = lines(&[rank(0, 10), failed], MOST_LINES);
        assert!(shown[1].ends_with("on card: runs out"), "{shown:?}");
    }
}
