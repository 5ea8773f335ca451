//! The answer of a replay as text.

use ghostgpu_allocator::AllocError;
use ghostgpu_allocator::replay::WhatIf;
use ghostgpu_whatif::{Basis, Found};

use super::{Outcome, Replayed};
use crate::style::{Detail, Style};
use ghostgpu_text::{Sheet, Table, grouped, human, signed_change};

/// What an empty settings text means.
const DEFAULT_SETTINGS: &str = "default settings";

pub(super) fn render(replayed: &Replayed, style: Style) -> String {
    let mut sheet = style.sheet();
    if style.detail == Detail::Quiet {
        sheet.section("what if", [verdict(replayed)]);
        return sheet.render();
    }
    let history = replayed.history;
    let how_known = match history.basis {
        Basis::Reproduced => ", found by its choices",
        _ => "",
    };
    sheet.paragraph(
        "history",
        &format!(
            "{}: {} events of device {} (torch {}{how_known}), {}",
            replayed.file,
            grouped(history.entries() as u64),
            history.device,
            history.release,
            settings_name(&history.settings.text),
        ),
    );
    sheet.section(
        "repeated",
        [match history.difference() {
            None => "every address, segment and event comes out as recorded".to_owned(),
            Some(difference) => format!("as recorded up to {difference}"),
        }],
    );
    let recorded = &history.recorded;
    let counts = Counts {
        reserved_bytes: recorded.peak_reserved_bytes,
        allocated_bytes: recorded.peak_allocated_bytes,
        retries: recorded.retries,
        failed: recorded.ooms,
    };
    sheet.section("recorded", figures(&counts, None));
    match &replayed.outcome {
        Outcome::One(answer) => one(&mut sheet, replayed, answer),
        Outcome::Ranked { found, shown } => ranked(&mut sheet, replayed, found, *shown),
    }
    sheet.list("assumes", &replayed.assumptions);
    sheet.render()
}

/// The one line of `--quiet`.
fn verdict(replayed: &Replayed) -> String {
    let recorded = replayed.history.recorded.peak_reserved_bytes;
    let line = |settings: &str, answer: &WhatIf| {
        let reserved = answer.peak_reserved_bytes();
        format!(
            "{}: {}, {} reserved at most ({})",
            settings_name(settings),
            ending(replayed, answer),
            human(reserved),
            change(recorded, reserved)
        )
    };
    match &replayed.outcome {
        Outcome::One(answer) => line(&replayed.question.settings.text, answer),
        Outcome::Ranked { found, .. } => match found.first() {
            Some(best) => line(&best.settings.text, &best.answer),
            None => "no setting was replayed".to_owned(),
        },
    }
}

fn one(sheet: &mut Sheet, replayed: &Replayed, answer: &WhatIf) {
    let recorded = replayed.history.recorded.peak_reserved_bytes;
    let counts = Counts {
        reserved_bytes: answer.peak_reserved_bytes(),
        allocated_bytes: Some(answer.peak_allocated_bytes()),
        retries: Some(answer.retries()),
        failed: u64::try_from(answer.stats.num_ooms).unwrap_or(0),
    };
    let mut lines = vec![circumstances(replayed, &replayed.question.settings.text)];
    lines.extend(figures(&counts, Some(recorded)));
    lines.push(ending(replayed, answer));
    sheet.section("what if", lines);
}

fn circumstances(replayed: &Replayed, settings: &str) -> String {
    let mut text = settings_name(settings).to_owned();
    if replayed.question.release != replayed.history.release {
        text.push_str(&format!(", torch {}", replayed.question.release));
    }
    if let Some(card) = &replayed.card {
        let name = card.name.as_deref().unwrap_or("a card");
        text.push_str(&format!(
            ", {name} with {}, of which {} for PyTorch",
            human(card.total_bytes),
            human(card.for_the_allocator_bytes())
        ));
    }
    if let Some(limit) = replayed.question.limit_bytes {
        text.push_str(&format!(", limited to {}", human(limit)));
    }
    text
}

/// Figures of a replay; unknown ones are left out.
struct Counts {
    reserved_bytes: u64,
    allocated_bytes: Option<u64>,
    retries: Option<u64>,
    failed: u64,
}

fn figures(counts: &Counts, compared_with: Option<u64>) -> Vec<String> {
    let figure = |name: &str, bytes: u64, remark: &str| {
        let exact = grouped(bytes);
        format!("{name:<15} {:>10}  {exact:>15} bytes{remark}", human(bytes))
    };
    let change = compared_with.map_or(String::new(), |before| {
        format!("  {}", change(before, counts.reserved_bytes))
    });
    let mut lines = vec![figure("peak reserved", counts.reserved_bytes, &change)];
    if let Some(bytes) = counts.allocated_bytes {
        lines.push(figure("peak allocated", bytes, ""));
    }
    let failed = times(counts.failed, "failed request", "failed requests");
    lines.push(match counts.retries {
        Some(retries) => format!("{}, {failed}", times(retries, "retry", "retries")),
        None => failed,
    });
    lines
}

fn ending(replayed: &Replayed, answer: &WhatIf) -> String {
    match &answer.failure {
        None => "runs to the end".to_owned(),
        Some(failure) => {
            let event = replayed.history.event_of(failure.index);
            let asked = match &failure.error {
                AllocError::OutOfMemory(oom) => {
                    format!("a request for {} fails", human(oom.requested_bytes))
                }
                other => other.to_string(),
            };
            format!(
                "does not fit: {asked} at event {} of {}",
                grouped(event as u64),
                grouped(replayed.history.entries() as u64)
            )
        }
    }
}

fn ranked(sheet: &mut Sheet, replayed: &Replayed, found: &[Found], shown: usize) {
    let recorded = replayed.history.recorded.peak_reserved_bytes;
    let on_a_card = match &replayed.card {
        Some(card) => format!(
            " on {} with {}; with {} of them it runs to the end",
            card.name.as_deref().unwrap_or("a card"),
            human(card.total_bytes),
            found.iter().filter(|each| each.fits()).count()
        ),
        None => String::new(),
    };
    sheet.paragraph(
        "searched",
        &format!("{} combinations of settings{on_a_card}", found.len()),
    );
    let mut table = Table::new(&[">", ">reserved", ">change", ">retries", "fits", "setting"]);
    let distinct = distinct(found);
    for (place, (best, others)) in distinct.iter().take(shown).enumerate() {
        table.push(row(
            &format!("{}", place + 1),
            replayed,
            best,
            recorded,
            *others,
        ));
    }
    let is_default_shown = distinct
        .iter()
        .take(shown)
        .any(|(best, _)| best.settings.text.is_empty());
    let default = found.iter().find(|each| each.settings.text.is_empty());
    if let Some(default) = default.filter(|_| !is_default_shown) {
        table.push(row("", replayed, default, recorded, 0));
    }
    sheet.table("best", &table);
}

/// Settings with the same outcome share one line: the first, which is the simplest, and the number of others (`+3`).
fn distinct(found: &[Found]) -> Vec<(&Found, usize)> {
    let mut lines: Vec<(&Found, usize)> = Vec::new();
    for each in found {
        let outcome = |found: &Found| {
            let failed = found.answer.failure.as_ref().map(|failure| failure.index);
            (
                found.answer.peak_reserved_bytes(),
                found.answer.retries(),
                failed,
            )
        };
        match lines.last_mut() {
            Some((first, others)) if outcome(first) == outcome(each) => *others += 1,
            _ => lines.push((each, 0)),
        }
    }
    lines
}

fn row(
    place: &str,
    replayed: &Replayed,
    found: &Found,
    recorded: u64,
    others: usize,
) -> Vec<String> {
    let reserved = found.answer.peak_reserved_bytes();
    let mut name = settings_name(&found.settings.text).to_owned();
    if others > 0 {
        name.push_str(&format!(" (+{others})"));
    }
    let end = match &found.answer.failure {
        None => "yes".to_owned(),
        Some(failure) => format!(
            "not at event {}",
            grouped(replayed.history.event_of(failure.index) as u64)
        ),
    };
    vec![
        place.to_owned(),
        human(reserved),
        signed_change(recorded, reserved),
        found.answer.retries().to_string(),
        end,
        // Last, as it may be long.
        name,
    ]
}

fn settings_name(text: &str) -> &str {
    if text.is_empty() {
        DEFAULT_SETTINGS
    } else {
        text
    }
}

/// `-120.00 MiB, -2.3 %`.
fn change(before: u64, now: u64) -> String {
    if before == now {
        return "as recorded".to_owned();
    }
    let percent = match before {
        0 => String::new(),
        _ => format!(
            ", {:+.1} %",
            (now as f64 - before as f64) / before as f64 * 100.0
        ),
    };
    format!("{}{percent}", signed_change(before, now))
}

fn times(count: u64, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        _ => format!("{} {many}", grouped(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_said_with_their_sign() {
        assert_eq!(change(200 << 20, 150 << 20), "-50.00 MiB, -25.0 %");
        assert_eq!(change(1 << 30, 2 << 30), "+1.00 GiB, +100.0 %");
        assert_eq!(change(7, 7), "as recorded");
        assert_eq!(change(0, 512), "+512 bytes");
        assert_eq!(times(0, "retry", "retries"), "no retry");
        assert_eq!(times(2, "retry", "retries"), "2 retries");
    }
}
