//! The ranks of a job next to each other: a bar for each, by part, at its own peak.
//!
//! The bars are drawn here instead of by a script, because they are few and do not change. The button of a bar shows
//! that rank below.

use ghostgpu_ledger::{Part, RankAccounts};
use ghostgpu_recording::Recording;

use super::counted::{Counted, RunShown};
use super::escape::Escaped;
use super::{push, size};

/// The section as HTML; empty if the job has only one rank.
pub(super) fn html(recording: &Recording, counted: &[Counted<'_>]) -> String {
    let ranks = RankAccounts::all(recording);
    if ranks.len() < 2 {
        return String::new();
    }
    let mut html = String::from(
        "<section id=\"ranks\" aria-labelledby=\"ranks-title\">\
         <div class=\"title\"><h2 id=\"ranks-title\">Ranks side by side</h2></div>",
    );
    push(
        &mut html,
        format_args!("<p class=\"caption\">{}</p>", caption(recording, &ranks)),
    );
    add_bars(&mut html, recording, &ranks, counted);
    add_key(&mut html, &ranks);
    add_table(&mut html, &ranks);
    html.push_str("</section>");
    html
}

fn caption(recording: &Recording, ranks: &[RankAccounts]) -> String {
    let answer = recording.about.answer.as_ref();
    let all = answer
        .and_then(|answer| answer.ranks.first())
        .map_or(0, |rank| rank.world_size as usize);
    let shown = match all > ranks.len() {
        true => format!("{} of {all} ranks were run.", ranks.len()),
        false => format!("{} ranks.", ranks.len()),
    };
    format!("{shown} Each bar is a rank when it had most allocated.")
}

fn add_bars(
    html: &mut String,
    recording: &Recording,
    ranks: &[RankAccounts],
    counted: &[Counted<'_>],
) {
    let widest = ranks.iter().map(|one| one.accounts.on_card_bytes()).max();
    // The card's memory is marked if it is not far beyond the widest bar.
    let total = recording.about.gpu_total_bytes;
    let widest = widest.unwrap_or(0).max(1);
    let is_end_shown = total > 0 && total <= widest.saturating_mul(2);
    let scale = if is_end_shown {
        widest.max(total)
    } else {
        widest
    } as f64;
    html.push_str("<dl class=\"rank-bars\">");
    for one in ranks {
        let sum = one.accounts.on_card_bytes();
        let place = counted.iter().position(|counted| {
            counted.run == RunShown::Recorded && counted.card.rank == Some(one.rank)
        });
        push(
            html,
            format_args!(
                "<dt><button type=\"button\" data-card=\"{}\">rank {}</button> <span class=\"soft\">{}</span></dt><dd>",
                place.unwrap_or(0),
                one.rank,
                size(sum)
            ),
        );
        for (part, bytes) in stacked(one) {
            push(
                html,
                format_args!(
                    "<span class=\"part\" data-bytes=\"{bytes}\" style=\"width:{:.3}%;background:var(--{})\" \
                     title=\"{}: {}\"></span>",
                    bytes as f64 * 100.0 / scale,
                    colour(part),
                    part.title_of_rank(one.is_sharded),
                    size(bytes)
                ),
            );
        }
        if is_end_shown {
            push(
                html,
                format_args!(
                    "<span class=\"end\" style=\"left:{:.3}%\" title=\"the card has {}\"></span>",
                    total as f64 * 100.0 / scale,
                    size(total)
                ),
            );
        }
        html.push_str("</dd>");
    }
    html.push_str("</dl>");
}

/// The parts in the order of the timeline, from the context up.
fn stacked(one: &RankAccounts) -> Vec<(Part, u64)> {
    let mut parts: Vec<(Part, u64)> = one.parts().collect();
    let is_beside = |part: Part| matches!(part, Part::Outside | Part::Nccl | Part::OtherProcesses);
    parts.sort_by_key(|(part, _)| !is_beside(*part));
    parts
}

/// The part's colour, by its name in the style sheet.
fn colour(part: Part) -> &'static str {
    match part {
        Part::Outside => "outside",
        Part::OtherProcesses => "others",
        Part::CachedPinned => "cached",
        other => other.name(),
    }
}

/// The parts that any rank has, in the order of the bars.
fn parts_of(ranks: &[RankAccounts]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (part, _) in ranks.iter().flat_map(stacked) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

fn add_key(html: &mut String, ranks: &[RankAccounts]) {
    let is_sharded = ranks.iter().any(|one| one.is_sharded);
    html.push_str("<p class=\"key\">");
    for part in parts_of(ranks) {
        push(
            html,
            format_args!(
                "<span><span class=\"swatch\" style=\"background:var(--{})\" aria-hidden=\"true\"></span>{}</span> ",
                colour(part),
                Escaped(&part.title_of_rank(is_sharded))
            ),
        );
    }
    html.push_str("</p>");
}

fn add_table(html: &mut String, ranks: &[RankAccounts]) {
    let is_sharded = ranks.iter().any(|one| one.is_sharded);
    html.push_str(
        "<details><summary>Table of ranks</summary><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">part</th>",
    );
    for one in ranks {
        push(
            html,
            format_args!("<th scope=\"col\" class=\"number\">rank {}</th>", one.rank),
        );
    }
    html.push_str("</tr></thead><tbody>");
    for part in parts_of(ranks) {
        push(
            html,
            format_args!("<tr><td>{}</td>", Escaped(&part.title_of_rank(is_sharded))),
        );
        for one in ranks {
            let bytes = one.accounts.part(part);
            push(
                html,
                format_args!("<td class=\"number\">{}</td>", size(bytes)),
            );
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div></details>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_ledger::Groups;
    use ghostgpu_recording::made_up::{MadeUp, recording};

    fn job(ranks: u32) -> Recording {
        let of_rank = |rank: u32| {
            let mut made = recording(MadeUp {
                layers: 2 + rank,
                steps: 2,
            });
            made.cards[0].rank = Some(rank);
            made.cards[0].nccl_bytes = 64 << 20;
            made
        };
        let mut job = of_rank(0);
        (1..ranks).for_each(|rank| job.join(of_rank(rank)));
        job
    }

    #[test]
    fn every_rank_has_a_bar_whose_parts_are_those_of_the_ledger() {
        let job = job(3);
        let groups = Groups::of(&job);
        let html = html(&job, &Counted::all(&job, &groups));
        assert_eq!(html.matches("data-card=").count(), 3);
        for one in RankAccounts::all(&job) {
            assert!(html.contains(&format!("data-card=\"{0}\">rank {0}<", one.rank)));
            for (part, bytes) in one.parts() {
                let bar = format!("data-bytes=\"{bytes}\"");
                assert!(html.contains(&bar), "{part:?} of rank {}", one.rank);
            }
        }
        assert!(html.contains("var(--nccl)"));
    }

    #[test]
    fn a_job_of_one_rank_has_no_such_section() {
        let made = recording(MadeUp {
            layers: 2,
            steps: 1,
        });
        assert_eq!(html(&made, &Counted::all(&made, &Groups::of(&made))), "");
        assert_eq!(html(&job(1), &[]), "");
    }
}
