//! The plan: candidates as a scatter plot of memory against time, and the peak by category before and after.
//!
//! It is drawn here instead of by a script, because it is small and does not change.

use ghostgpu_recording::{Category, CategoryBytes, Plan, PlanCandidate, Recording};
use ghostgpu_text::grouped;

use super::escape::Escaped;
use super::{push, size};

/// The approximate number of ticks on an axis.
const MOST_TICKS: f64 = 5.0;

/// The section as HTML; empty if there is no plan.
pub(super) fn html(recording: &Recording) -> String {
    let plan = recording
        .about
        .answer
        .as_ref()
        .and_then(|answer| answer.plan.as_ref());
    match plan {
        Some(plan) if !plan.candidates.is_empty() => section(plan),
        _ => String::new(),
    }
}

fn section(plan: &Plan) -> String {
    let mut html = String::from("<section id=\"plan\" aria-labelledby=\"plan-title\">");
    html.push_str("<div class=\"title\"><h2 id=\"plan-title\">Ways to make it fit</h2></div>");
    push(
        &mut html,
        format_args!("<p class=\"caption\">{}</p>", summary(plan)),
    );
    add_points(&mut html, plan);
    add_bars(&mut html, plan);
    add_table(&mut html, plan);
    html.push_str("</section>");
    html
}

/// How many candidates there are, and which one is recommended.
fn summary(plan: &Plan) -> String {
    let count = plan.candidates.len();
    let fitting = plan.candidates.iter().filter(|one| one.fits).count();
    let rehearsed = match (count, fitting) {
        (1, _) => "One combination was rehearsed.".to_owned(),
        (_, 0) => format!("{count} combinations were rehearsed; none fits."),
        (_, 1) => format!("{count} combinations were rehearsed; 1 fits."),
        _ => format!("{count} combinations were rehearsed; {fitting} fit."),
    };
    match plan.chosen() {
        None => rehearsed,
        Some(chosen) => format!(
            "{rehearsed} Recommended: <strong>{}</strong>, {}{}.",
            Escaped(&chosen.what),
            size(chosen.peak_bytes),
            time(chosen).map_or(String::new(), |time| format!(", {time} the time")),
        ),
    }
}

/// Maps values to positions on an axis, in percent.
struct Axis {
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis that covers these values, with a little space around them.
    fn around(values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        let room = ((most - least) * 0.08).max(most.abs() * 0.02).max(1e-9);
        Self {
            from: least - room,
            to: most + room,
        }
    }

    fn percent(&self, value: f64) -> f64 {
        ((value - self.from) / (self.to - self.from) * 100.0).clamp(0.0, 100.0)
    }

    /// Round numbers within its range.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / MOST_TICKS;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * magnitude)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        // If the step is lost in rounding, there are no useful ticks.
        match last.saturating_sub(first) <= 20 {
            true => (first..=last).map(|tick| tick as f64 * step).collect(),
            false => Vec::new(),
        }
    }
}

fn add_points(html: &mut String, plan: &Plan) {
    let times: Option<Vec<f64>> = plan
        .candidates
        .iter()
        .map(|one| one.relative_time.filter(|time| time.is_finite()))
        .collect();
    let has_times = times.is_some();
    // Without times, candidates are placed by their rank.
    let across = times.unwrap_or_else(|| (1..=plan.candidates.len()).map(|it| it as f64).collect());
    let memory = plan.candidates.iter().map(|one| one.peak_bytes as f64);
    let up = Axis {
        from: 0.0,
        to: memory.fold(plan.available_bytes as f64, f64::max).max(1.0) * 1.08,
    };
    // The job as it is has the time 1.
    let also = has_times.then_some(1.0);
    let right = Axis::around(across.iter().copied().chain(also));
    let axis = match has_times {
        true => "time for the same samples, in units of the job as it is",
        false => "rank: times are not known",
    };
    html.push_str("<div class=\"plan-plot\"><div class=\"plan-points\">");
    for tick in memory_ticks(&up) {
        push(
            html,
            format_args!(
                "<div class=\"tick across\" style=\"bottom:{:.2}%\"><span>{}</span></div>",
                up.percent(tick),
                size(tick as u64).replace(".00", "")
            ),
        );
    }
    for tick in right.ticks() {
        let is_whole = has_times || tick.fract() == 0.0;
        if is_whole && right.from < tick && tick < right.to {
            push(
                html,
                format_args!(
                    "<div class=\"tick up\" style=\"left:{:.2}%\"><span>{}</span></div>",
                    right.percent(tick),
                    match has_times {
                        true => format!("{}×", shortened(tick)),
                        false => shortened(tick),
                    }
                ),
            );
        }
    }
    if plan.available_bytes > 0 {
        push(
            html,
            format_args!(
                "<div class=\"limit\" style=\"bottom:{:.2}%\"><span>the card: {}</span></div>",
                up.percent(plan.available_bytes as f64),
                size(plan.available_bytes)
            ),
        );
    }
    for (place, (one, at)) in plan.candidates.iter().zip(&across).enumerate() {
        let words = described(one);
        push(
            html,
            format_args!(
                "<a class=\"point{}{}\" href=\"#plan-{place}\" style=\"left:{:.2}%;bottom:{:.2}%\" title=\"{words}\" aria-label=\"{words}\"></a>",
                if one.fits { " fits" } else { "" },
                if one.chosen { " chosen" } else { "" },
                right.percent(*at),
                up.percent(one.peak_bytes as f64),
            ),
        );
    }
    push(
        html,
        format_args!("</div><p class=\"axis\">{axis}</p></div>"),
    );
    html.push_str(
        "<p class=\"key\"><span><i class=\"point fits chosen\"></i>recommended</span>\
         <span><i class=\"point fits\"></i>fits</span><span><i class=\"point\"></i>does not fit</span></p>",
    );
}

/// Round amounts of memory.
fn memory_ticks(up: &Axis) -> Vec<f64> {
    let unit = match up.to >= 2.0 * (1_u64 << 30) as f64 {
        true => (1_u64 << 30) as f64,
        false => (1_u64 << 20) as f64,
    };
    let scaled = Axis {
        from: up.from / unit,
        to: up.to / unit,
    };
    scaled.ticks().into_iter().map(|tick| tick * unit).collect()
}

fn described(one: &PlanCandidate) -> String {
    let time = time(one).map_or(String::new(), |time| format!(", {time}"));
    let fits = if one.fits { "fits" } else { "does not fit" };
    format!(
        "{}: {}{time}, {fits}",
        Escaped(&one.what),
        size(one.peak_bytes)
    )
}

/// The peak by category, of the job as it is and with the recommended candidate.
fn add_bars(html: &mut String, plan: &Plan) {
    let best = plan.chosen().or_else(|| plan.candidates.first());
    let Some(after) = best.filter(|one| !one.categories.is_empty() && !plan.before.is_empty())
    else {
        return;
    };
    let total = |list: &[CategoryBytes]| list.iter().map(|one| u128::from(one.bytes)).sum::<u128>();
    let widest = total(&plan.before).max(total(&after.categories)).max(1);
    html.push_str("<h3>The peak by category</h3><dl class=\"plan-bars\">");
    let label = if after.chosen { "recommended" } else { "best" };
    for (title, list) in [("as it is", &plan.before), (label, &after.categories)] {
        let sum = u64::try_from(total(list)).unwrap_or(u64::MAX);
        push(
            html,
            format_args!(
                "<dt>{title} <span class=\"soft\">{}</span></dt><dd>",
                size(sum)
            ),
        );
        for one in list.iter().filter(|one| one.bytes > 0) {
            let (name, title) = category(&one.category);
            push(
                html,
                format_args!(
                    "<span class=\"part\" style=\"width:{:.3}%;background:var(--{name})\" title=\"{title}: {}\"></span>",
                    one.bytes as f64 * 100.0 / widest as f64,
                    size(one.bytes)
                ),
            );
        }
        html.push_str("</dd>");
    }
    html.push_str("</dl>");
    add_categories(html, &plan.before, &after.categories);
}

fn add_categories(html: &mut String, before: &[CategoryBytes], after: &[CategoryBytes]) {
    let of = |list: &[CategoryBytes], name: &str| -> u64 {
        let found = list.iter().filter(|one| category(&one.category).0 == name);
        found.fold(0, |sum, one| sum.saturating_add(one.bytes))
    };
    let mut names: Vec<&'static str> = Vec::new();
    for one in before.iter().chain(after) {
        let (name, _) = category(&one.category);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    html.push_str(
        "<div class=\"scroll\"><table class=\"plan-categories\"><thead><tr><th scope=\"col\">category</th>\
         <th scope=\"col\" class=\"number\">as it is</th><th scope=\"col\" class=\"number\">after</th>\
         <th scope=\"col\" class=\"number\">difference</th></tr></thead><tbody>",
    );
    for name in names {
        let (then, now) = (of(before, name), of(after, name));
        if then == 0 && now == 0 {
            continue;
        }
        let difference = match now.cmp(&then) {
            std::cmp::Ordering::Equal => "–".to_owned(),
            std::cmp::Ordering::Less => format!("−{}", size(then - now)),
            std::cmp::Ordering::Greater => format!("+{}", size(now - then)),
        };
        push(
            html,
            format_args!(
                "<tr><td><span class=\"swatch\" style=\"background:var(--{name})\" aria-hidden=\"true\"></span>{}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{difference}</td></tr>",
                category(name).1,
                size(then),
                size(now),
            ),
        );
    }
    html.push_str("</tbody></table></div>");
}

/// The colour and the title of a category, by its name.
fn category(name: &str) -> (&'static str, &'static str) {
    match name {
        "outside" => return ("outside", "outside PyTorch"),
        "rounding" => return ("rounding", "rounding of blocks"),
        "cached" => return ("cached", "cached"),
        _ => {}
    }
    let found = Category::ALL.into_iter().find(|one| one.name() == name);
    let found = found.unwrap_or(Category::Unknown);
    (found.name(), found.title())
}

fn add_table(html: &mut String, plan: &Plan) {
    html.push_str(
        "<details open><summary>Table of all that were rehearsed</summary><div class=\"scroll\">\
         <table><thead><tr><th scope=\"col\">what changes</th><th scope=\"col\" class=\"number\">peak</th>\
         <th scope=\"col\" class=\"number\">left</th><th scope=\"col\" class=\"number\">time</th>\
         <th scope=\"col\">numbers</th></tr></thead><tbody>",
    );
    for (place, one) in plan.candidates.iter().enumerate() {
        let left = match plan.available_bytes.checked_sub(one.peak_bytes) {
            _ if plan.available_bytes == 0 => String::new(),
            Some(left) if one.fits => size(left),
            _ => "does not fit".to_owned(),
        };
        push(
            html,
            format_args!(
                "<tr id=\"plan-{place}\"{}><td>{}{}</td><td class=\"number\" title=\"{} bytes\">{}</td>\
                 <td class=\"number\">{left}</td><td class=\"number\">{}</td><td>{}</td></tr>",
                if one.chosen { " class=\"chosen\"" } else { "" },
                Escaped(&one.what),
                if one.chosen { " (recommended)" } else { "" },
                grouped(one.peak_bytes),
                size(one.peak_bytes),
                time(one).unwrap_or_else(|| "not known".to_owned()),
                Escaped(&one.numbers),
            ),
        );
    }
    html.push_str("</tbody></table></div></details>");
}

/// A predicted time: `1.34×`.
fn time(one: &PlanCandidate) -> Option<String> {
    let time = one.relative_time.filter(|time| time.is_finite())?;
    Some(format!("{time:.2}×"))
}

/// A number without trailing zeros.
fn shortened(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::{About, Answer};

    use super::*;

    fn candidate(what: &str, gib: u64, time: Option<f64>) -> PlanCandidate {
        PlanCandidate {
            what: what.to_owned(),
            peak_bytes: gib << 30,
            relative_time: time,
            fits: gib <= 11,
            numbers: "identical".to_owned(),
            ..PlanCandidate::default()
        }
    }

    fn bytes(category: &str, gib: u64) -> CategoryBytes {
        CategoryBytes {
            category: category.to_owned(),
            bytes: gib << 30,
        }
    }

    fn plan(times: bool) -> Plan {
        let time = |time: f64| times.then_some(time);
        Plan {
            available_bytes: 11 << 30,
            before: vec![bytes("parameter", 1), bytes("activation", 14)],
            candidates: vec![
                PlanCandidate {
                    chosen: true,
                    categories: vec![
                        bytes("parameter", 1),
                        bytes("activation", 5),
                        bytes("outside", 1),
                    ],
                    ..candidate("bf16 <autocast>", 7, time(0.52))
                },
                candidate("checkpointing", 6, time(1.34)),
                candidate("fused", 15, time(1.0)),
            ],
        }
    }

    fn page_of(plan: Option<Plan>) -> String {
        html(&Recording {
            about: About {
                answer: Some(Answer {
                    plan,
                    ..Answer::default()
                }),
                ..About::default()
            },
            ..Recording::default()
        })
    }

    #[test]
    fn there_is_a_section_only_with_a_plan() {
        assert_eq!(page_of(None), "");
        assert_eq!(page_of(Some(Plan::default())), "");
        assert_eq!(html(&Recording::default()), "");
        assert!(page_of(Some(plan(true))).starts_with("<section id=\"plan\""));
    }

    #[test]
    fn every_candidate_is_a_point_and_a_row_and_names_are_escaped() {
        let html = page_of(Some(plan(true)));
        assert_eq!(html.matches("<a class=\"point").count(), 3);
        assert_eq!(html.matches("<tr id=\"plan-").count(), 3);
        assert!(
            html.contains("bf16 &lt;autocast&gt;") && !html.contains("<autocast>"),
            "{html}"
        );
        assert!(
            html.contains("3 combinations were rehearsed; 2 fit."),
            "{html}"
        );
        assert!(html.contains("0.52× the time"), "{html}");
    }

    #[test]
    fn without_times_points_are_placed_by_rank() {
        let html = page_of(Some(plan(false)));
        assert!(html.contains("rank: times are not known"), "{html}");
        assert!(
            html.contains("<td class=\"number\">not known</td>"),
            "{html}"
        );
        let lefts: Vec<&str> = html.split("<a class=\"point").skip(1).collect();
        let left = |point: &str| -> f64 {
            let text = point
                .split("left:")
                .nth(1)
                .and_then(|rest| rest.split('%').next());
            text.and_then(|text| text.parse().ok()).expect("a place")
        };
        assert!(left(lefts[0]) < left(lefts[1]) && left(lefts[1]) < left(lefts[2]));
    }

    #[test]
    fn categories_are_compared_with_the_job_as_it_is() {
        let html = page_of(Some(plan(true))).replace('\u{a0}', " ");
        assert!(html.contains("−9.00 GiB"), "{html}");
        assert!(html.contains("outside PyTorch</td>"), "{html}");
        assert!(
            html.contains("width:33.333%;background:var(--activation)"),
            "{html}"
        );
    }

    #[test]
    fn extreme_numbers_break_nothing() {
        let wild = |peak_bytes, relative_time| PlanCandidate {
            peak_bytes,
            relative_time,
            categories: vec![bytes("nonsense", 1 << 33)],
            ..PlanCandidate::default()
        };
        for available_bytes in [0, 1, u64::MAX] {
            let html = page_of(Some(Plan {
                available_bytes,
                before: vec![bytes("parameter", 1 << 33), bytes("parameter", 1 << 33)],
                candidates: vec![
                    wild(0, Some(f64::NAN)),
                    wild(u64::MAX, Some(1e300)),
                    wild(1, Some(-1.0)),
                ],
            }));
            assert!(!html.contains("NaN") && !html.contains("inf%"), "{html}");
        }
        for time in [1e300, 0.0, -5.0] {
            let html = page_of(Some(Plan {
                candidates: vec![wild(1, Some(time))],
                ..Plan::default()
            }));
            assert!(!html.contains("NaN") && !html.contains("inf%"), "{html}");
        }
    }
}
