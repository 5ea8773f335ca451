//! The ranks of a job in a few lines: what they used, which are alike, and which is the largest.

use ghostgpu_ledger::{Part, RankAccounts, largest_excess};
use ghostgpu_recording::{CategoryBytes, RankPeak};
use ghostgpu_text::{Sheet, human};

/// How many lines one screen has for ranks.
const MOST_LINES: usize = 4;

/// How many parts a line names; the others are summed up.
const MOST_PARTS: usize = 5;

/// Adds to each rank what its memory consisted of.
pub fn add_parts(ranks: &mut [RankPeak], accounts: &[RankAccounts]) {
    for rank in ranks {
        let Some(found) = accounts.iter().find(|one| one.rank == rank.rank) else {
            continue;
        };
        rank.is_sharded = found.is_sharded;
        rank.made_of = found
            .parts()
            .map(|(part, bytes)| CategoryBytes {
                category: part.name().to_owned(),
                bytes,
            })
            .collect();
    }
}

/// Adds a line for each group of ranks that are alike; on one screen at most `MOST_LINES`.
pub fn add_ranks(sheet: &mut Sheet, ranks: &[RankPeak], is_full: bool) {
    let most = if is_full { usize::MAX } else { MOST_LINES };
    let mut lines = lines(ranks, most, is_full);
    lines.extend(why_largest(ranks));
    if !lines.is_empty() {
        sheet.section("ranks", lines);
    }
}

/// The parts that were recorded of a rank.
fn parts(rank: &RankPeak) -> Vec<(Part, u64)> {
    let parts = rank.made_of.iter();
    parts
        .filter_map(|one| Some((Part::named(&one.category)?, one.bytes)))
        .collect()
}

/// Why the largest rank is larger than the smallest: `rank 0 has 31.85 MiB more activations than rank 1`.
fn why_largest(ranks: &[RankPeak]) -> Option<String> {
    let recorded = || ranks.iter().filter(|rank| !rank.made_of.is_empty());
    let size = |rank: &&RankPeak| rank.peak_allocated_bytes;
    // The first of equals.
    let largest = recorded().rev().max_by_key(size)?;
    let smallest = recorded().min_by_key(size)?;
    if size(&largest) == size(&smallest) {
        return None;
    }
    let less = parts(smallest);
    let of_smallest = |part: Part| {
        let same = less.iter().find(|(other, _)| *other == part);
        same.map_or(0, |(_, bytes)| *bytes)
    };
    let allocated: Vec<(Part, u64)> = parts(largest)
        .into_iter()
        .filter(|(part, _)| matches!(part, Part::Category(_) | Part::Rounding))
        .collect();
    let (part, bytes) = largest_excess(&allocated, of_smallest)?;
    Some(format!(
        "rank {} has {} more {} than rank {}",
        largest.rank,
        human(bytes),
        part.title_of_rank(largest.is_sharded),
        smallest.rank
    ))
}

/// `of that 1.20 GiB gathered parameters, 800.00 MiB activations, … and 12.00 MiB of other things`.
fn made_of(rank: &RankPeak) -> Option<String> {
    let mut parts = parts(rank);
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let words = |(part, bytes): &(Part, u64)| {
        format!("{} {}", human(*bytes), part.title_of_rank(rank.is_sharded))
    };
    let mut list: Vec<String> = parts.iter().take(MOST_PARTS).map(words).collect();
    let rest: u64 = parts.iter().skip(MOST_PARTS).map(|(_, bytes)| bytes).sum();
    if rest > 0 {
        list.push(format!("{} of other things", human(rest)));
    }
    (!list.is_empty()).then(|| format!("  {}", list.join(", ")))
}

fn lines(ranks: &[RankPeak], most: usize, is_full: bool) -> Vec<String> {
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
        .flat_map(|group| {
            let is_largest = is_largest_told && size(group) == largest;
            let line = line(group, group.len() == world_size, is_largest);
            let parts = group.first().filter(|_| is_full);
            [Some(line), parts.and_then(|rank| made_of(rank))]
        })
        .flatten()
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

/// The number of ranks of the job. Recordings of older versions have no world size, but all ranks.
fn world_size(ranks: &[RankPeak]) -> usize {
    let told = ranks.first().map_or(0, |rank| rank.world_size as usize);
    told.max(ranks.len())
}

/// Why ranks of the job are not in the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRun {
    /// One rank of each kind was found and run.
    Alike,
    /// The user asked for other ranks.
    NotAsked,
    /// The launcher runs them on other machines.
    Elsewhere,
    /// They were started, and the run ended before they joined the job.
    NotYet,
}

impl NotRun {
    pub const ALL: [Self; 4] = [Self::Alike, Self::NotAsked, Self::Elsewhere, Self::NotYet];
}

/// Why ranks that were not run are taken to be like those that were; `None` if all were run.
pub fn grounds_in_words(ranks: &[RankPeak], not_run: NotRun) -> Option<String> {
    let (run, all) = (ranks.len(), world_size(ranks));
    let grounds = match not_run {
        NotRun::Alike => {
            "every other has the same place in pipelines as one of them, parts of parameters of the same sizes, and \
             stands in its groups between ranks with the same figures"
        }
        NotRun::NotAsked => "the others are taken to be like them (--ranks)",
        NotRun::Elsewhere => {
            "the others run on other machines (`ghostgpu report` puts together what each records with --record)"
        }
        NotRun::NotYet => {
            let figures = format!(
                "the figures are of {run} of {all} ranks: the run ended before the others joined the job"
            );
            return (run < all).then_some(figures);
        }
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
            ..RankPeak::default()
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
            assert_eq!(lines(ranks, MOST_LINES, false), expected);
        }
    }

    #[test]
    fn the_number_of_ranks_is_given_if_not_all_were_run() {
        let of_eight = |number| RankPeak {
            world_size: 8,
            ..rank(number, 10)
        };
        let some = [of_eight(0), of_eight(7)];
        assert_eq!(
            lines(&some, MOST_LINES, false),
            ["0, 7 of 8: 10.00 MiB allocated, 20.00 MiB reserved, 30.00 MiB on card"]
        );
        let words = |not_run| grounds_in_words(&some, not_run).unwrap_or_default();
        assert!(
            words(NotRun::Alike)
                .starts_with("2 of 8 ranks were run: every other has the same place")
        );
        assert_eq!(
            words(NotRun::NotAsked),
            "2 of 8 ranks were run: the others are taken to be like them (--ranks)"
        );
        assert!(words(NotRun::Elsewhere).contains("run on other machines"));
        let all = [rank(0, 1), rank(1, 1)];
        assert_eq!(grounds_in_words(&all, NotRun::Alike), None);
        assert_eq!(grounds_in_words(&[], NotRun::Alike), None);
    }

    #[test]
    fn a_screen_has_the_largest_and_says_how_many_more_there_are() {
        let ranks: Vec<RankPeak> = (0..8)
            .map(|number| rank(number, 10 + u64::from(number)))
            .collect();
        let shown = lines(&ranks, MOST_LINES, false);
        assert_eq!(shown.len(), MOST_LINES);
        assert!(
            shown[0].starts_with("7: ") && shown[0].ends_with("most"),
            "{shown:?}"
        );
        assert_eq!(shown[3], "5 smaller ones (--verbose has them)");
        assert_eq!(lines(&ranks, usize::MAX, true).len(), 8);
    }

    #[test]
    fn the_rank_that_ran_out_of_memory_is_named() {
        let mut failed = rank(1, 10);
        failed.ran_out = true;
        let shown = lines(&[rank(0, 10), failed], MOST_LINES, false);
        assert!(shown[1].ends_with("on card: runs out"), "{shown:?}");
    }

    #[test]
    fn the_answer_says_why_the_largest_rank_is_larger_and_what_each_consists_of() {
        let with = |mut rank: RankPeak, activations: u64| {
            rank.is_sharded = true;
            rank.made_of = [
                ("parameter", 4 * MIB),
                ("gathered", 2 * MIB),
                ("activation", activations),
            ]
            .map(|(category, bytes)| CategoryBytes {
                category: category.to_owned(),
                bytes,
            })
            .to_vec();
            rank
        };
        let ranks = [with(rank(0, 20), 9 * MIB), with(rank(1, 14), 3 * MIB)];
        assert_eq!(
            why_largest(&ranks).as_deref(),
            Some("rank 0 has 6.00 MiB more activations kept for backward than rank 1")
        );
        assert_eq!(
            lines(&ranks, usize::MAX, true)[1],
            "  9.00 MiB activations kept for backward, 4.00 MiB sharded parameters, 2.00 MiB gathered parameters"
        );
        assert_eq!(why_largest(&[rank(0, 20), rank(1, 14)]), None);
        assert_eq!(why_largest(&[ranks[0].clone(), ranks[0].clone()]), None);
    }
}
