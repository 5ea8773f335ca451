//! The details of the verdict, as a list of labels and texts: headroom, growth, coverage, the next command.

use ghostgpu_ledger::Growth;
use ghostgpu_recording::{Answer, Category, Recording, Verdict};
use ghostgpu_text::{grouped, human};

use super::counted::{Counted, RunShown};
use super::escape::Escaped;
use super::{push, size};
use crate::text;

/// How many of the fastest-growing lines are listed; the others are only counted.
const MOST_GROWING: usize = 3;

/// The list as HTML; empty if there is nothing to say.
pub(super) fn html(recording: &Recording, counted: &[Counted<'_>]) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(answer) = &recording.about.answer {
        rows.extend(headroom(recording, answer));
        rows.extend(need(answer));
        rows.extend(covered(answer));
    }
    let verdict = recording.about.answer.as_ref().map(|answer| answer.verdict);
    rows.extend(fullest(counted).and_then(|card| grows(&card.growth, verdict)));
    rows.extend(recording.about.answer.as_ref().and_then(next));
    if rows.is_empty() {
        return String::new();
    }
    let mut html = String::from("<dl class=\"outcome\">");
    for (label, text) in rows {
        push(&mut html, format_args!("<dt>{label}</dt><dd>{text}</dd>"));
    }
    html.push_str("</dl>");
    html
}

/// The card with the highest peak of the recorded run; of several, the first.
fn fullest<'a>(counted: &'a [Counted<'a>]) -> Option<&'a Counted<'a>> {
    let recorded = counted.iter().filter(|one| one.run == RunShown::Recorded);
    recorded.reduce(|best, next| {
        let is_higher = next.peak.allocated_bytes > best.peak.allocated_bytes;
        if is_higher { next } else { best }
    })
}

/// What is left of the card, unless the reason of the verdict already says so.
fn headroom(recording: &Recording, answer: &Answer) -> Option<(&'static str, String)> {
    let left = answer
        .headroom_bytes
        .filter(|_| answer.fits == Some(true))?;
    if answer.reason.contains(&human(left)) {
        return None;
    }
    let total = recording.about.gpu_total_bytes;
    let share = match total {
        0 => String::new(),
        total => format!(" ({:.0} % of the card)", left as f64 * 100.0 / total as f64),
    };
    Some(("headroom", format!("{}{share}", size(left))))
}

/// Why the need is unknown, or from which memory on PyTorch never flushes its cache. The need itself is in the headline.
fn need(answer: &Answer) -> Option<(&'static str, String)> {
    if answer.fits == Some(false)
        && let Some(because) = &answer.needed_unknown_because
    {
        return Some(("needs", format!("unknown: {}", Escaped(because))));
    }
    let needed = answer
        .needed_device_bytes
        .unwrap_or(answer.peak_device_bytes);
    let comfortable = answer
        .comfortable_device_bytes
        .filter(|bytes| *bytes > needed)?;
    let flushes = match answer.cache_flushes_per_step {
        Some(flushes @ 0.05..) => format!("; on this card, {flushes:.1} cache flushes per step"),
        _ => String::new(),
    };
    Some((
        "comfortable",
        format!("{} or more{flushes}", size(comfortable)),
    ))
}

fn covered(answer: &Answer) -> Vec<(&'static str, String)> {
    let covered: Vec<String> = answer
        .covered
        .iter()
        .map(|one| with_detail(one.part.title(), &one.detail))
        .collect();
    let missing: Vec<String> = answer
        .not_reached
        .iter()
        .map(|one| with_detail(one.part.title(), &one.because))
        .collect();
    let rows = [
        ("covered", covered.join(", ")),
        ("not reached", missing.join("; ")),
    ];
    rows.into_iter()
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

fn with_detail(title: &str, detail: &str) -> String {
    match detail {
        "" => title.to_owned(),
        detail => format!("{title} ({})", Escaped(detail)),
    }
}

/// Which lines allocate memory that is kept and, unless the reason of the verdict says so, when the card is full.
fn grows(growth: &Growth, verdict: Option<Verdict>) -> Option<(&'static str, String)> {
    growth.sources.first()?;
    let mut text = String::from("<ul>");
    for source in growth.sources.iter().take(MOST_GROWING) {
        push(
            &mut text,
            format_args!(
                "<li>{} more in each step from <code>{}</code>{}",
                size(source.bytes_per_step),
                Escaped(text::shown_file(&source.label)),
                match source.category {
                    Category::Unknown => String::new(),
                    category => format!(" ({})", category.title()),
                }
            ),
        );
        if !source.kept_in.is_empty() {
            push(
                &mut text,
                format_args!(", kept in {}", Escaped(&source.kept_in)),
            );
        }
        text.push_str("</li>");
    }
    let mut rest = match growth.sources.len().saturating_sub(MOST_GROWING) {
        0 => Vec::new(),
        1 => vec!["1 more line grows".to_owned()],
        others => vec![format!("{others} more lines grow")],
    };
    if verdict != Some(Verdict::WillRunOut) {
        rest.push(until_full(growth.steps_until_full));
    }
    if !rest.is_empty() {
        push(&mut text, format_args!("<li>{}</li>", rest.join("; ")));
    }
    text.push_str("</ul>");
    Some(("grows", text))
}

/// When growth ends.
fn until_full(steps: Option<u64>) -> String {
    match steps {
        Some(0) => "the card is full within the next step".to_owned(),
        Some(1) => "the card is full after 1 more step".to_owned(),
        Some(steps) => format!("the card is full after {} more steps", grouped(steps)),
        None => "when the card is full is unknown: so is its memory".to_owned(),
    }
}

fn next(answer: &Answer) -> Option<(&'static str, String)> {
    let next = answer.next.as_ref()?;
    let text = format!(
        "<code>{}</code> <span class=\"soft\"># {}</span>",
        Escaped(&next.command),
        Escaped(&next.finds)
    );
    Some(("next", text))
}

#[cfg(test)]
mod tests {
    use ghostgpu_ledger::Groups;
    use ghostgpu_recording::made_up::{ByHand, Origin};
    use ghostgpu_recording::{About, NextCommand, Stage};
    use ghostgpu_session::{Covered, NotReached};

    use super::*;
    use ghostgpu_session::TrainingPart;

    fn said(answer: Answer) -> String {
        let recording = Recording {
            about: About {
                gpu_total_bytes: 10 << 30,
                answer: Some(answer),
                ..About::default()
            },
            ..Recording::default()
        };
        html(&recording, &[]).replace('\u{a0}', " ")
    }

    #[test]
    fn what_the_answer_knows_is_listed_and_nothing_else() {
        assert_eq!(said(Answer::default()), "");
        let html = said(Answer {
            fits: Some(true),
            headroom_bytes: Some(1 << 30),
            needed_device_bytes: Some(9 << 30),
            comfortable_device_bytes: Some(11 << 30),
            cache_flushes_per_step: Some(2.0),
            covered: vec![Covered {
                part: TrainingPart::Steps,
                detail: "9 of 1,250".to_owned(),
            }],
            not_reached: vec![NotReached {
                part: TrainingPart::Evaluation,
                because: "the <script> ended".to_owned(),
            }],
            next: Some(NextCommand {
                command: "ghostgpu lint 'a&b.py'".to_owned(),
                finds: "what keeps it".to_owned(),
            }),
            ..Answer::default()
        });
        for row in [
            "<dt>headroom</dt><dd>1.00 GiB (10 % of the card)</dd>",
            "<dt>comfortable</dt><dd>11.00 GiB or more; on this card, 2.0 cache flushes per step</dd>",
            "<dt>covered</dt><dd>optimizer steps (9 of 1,250)</dd>",
            "<dt>not reached</dt><dd>evaluation (the &lt;script&gt; ended)</dd>",
            "<dt>next</dt><dd><code>ghostgpu lint &#39;a&amp;b.py&#39;</code>",
        ] {
            assert!(html.contains(row), "{row}\n{html}");
        }
    }

    #[test]
    fn headroom_that_the_reason_names_is_not_repeated() {
        let html = said(Answer {
            fits: Some(true),
            reason: "1.00 GiB (10 %) to spare".to_owned(),
            headroom_bytes: Some(1 << 30),
            ..Answer::default()
        });
        assert_eq!(html, "");
    }

    #[test]
    fn an_unknown_need_says_why() {
        let html = said(Answer {
            fits: Some(false),
            needed_unknown_because: Some("it was not looked for".to_owned()),
            ..Answer::default()
        });
        assert!(html.contains("<dt>needs</dt><dd>unknown: it was not looked for</dd>"));
    }

    #[test]
    fn growth_says_which_line_how_much_and_until_when() {
        let mut by_hand = ByHand::new();
        by_hand.recording.about.gpu_total_bytes = 100 << 20;
        for _ in 0..4 {
            by_hand.enter(Stage::Forward);
            let origin = Origin {
                lines: &["torch/linear.py:7", "train.py:20"],
                ..Origin::default()
            };
            by_hand.allocate(2 << 20, Category::Activation, origin);
            by_hand.enter(Stage::OptimizerStep);
            by_hand.allocate(512, Category::Temporary, Origin::default());
            by_hand.next_step();
        }
        let recording = by_hand.recording;
        let counted = Counted::all(&recording, &Groups::of(&recording));
        let html = html(&recording, &counted).replace('\u{a0}', " ");
        let line = "<li>2.00 MiB more in each step from <code>train.py:20 in main</code> \
                    (activations kept for backward)</li>";
        assert!(html.contains(line), "{html}");
        assert!(html.contains("<li>the card is full after 4"), "{html}");
    }
}
