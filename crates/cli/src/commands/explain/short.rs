//! The explanation on one screen: what ran out, who had it, why, and what to do first.

use ghostgpu_explain::{Advice, Explanation, FigureValue};
use ghostgpu_text::{Sheet, human, shortened, wrap};

use super::picture::{mark, picture};
use super::text::{Answer, ranks_in_words, title, where_it_failed};
use super::trials::{AsItIs, Trials, Works};
use crate::report::{Headline, one_line};
use crate::terminal::{Colour, Look};

/// Things to do that are shown.
const MOST_ADVICE: usize = 3;
/// Lines for the reasons.
const MOST_REASONS: usize = 4;
/// Lines for one command.
const MOST_COMMAND_LINES: usize = 2;
/// Commands stand this far to the right.
const INDENT: usize = 3;

/// The first line, which is all that `--quiet` shows.
pub fn headline(answer: &Answer) -> Headline {
    match answer.trials {
        None => Headline {
            word: "ran out",
            colour: Colour::Bad,
            text: title(&answer.explanation.finding),
        },
        Some(trials) => outcome(trials),
    }
}

fn outcome(trials: &Trials) -> Headline {
    match (&trials.as_it_is, trials.works.first()) {
        (AsItIs::Fits { .. }, _) => Headline {
            word: "fits",
            colour: Colour::Good,
            text: trials.as_it_is(),
        },
        (_, Some(works)) => Headline {
            word: "works",
            colour: Colour::Good,
            text: format!("{}: {}", works.what, works.command),
        },
        (_, None) => Headline {
            word: "does not fit",
            colour: Colour::Bad,
            text: "nothing that was rehearsed works".to_owned(),
        },
    }
}

pub fn short_text(answer: &Answer, look: Look) -> String {
    let mut sheet = look.sheet();
    let explanation = answer.explanation;
    let ran_out = Headline {
        word: "ran out",
        colour: Colour::Bad,
        text: title(&explanation.finding),
    };
    ran_out.add(&mut sheet);
    place(&mut sheet, explanation);
    if answer.trials.is_none() {
        card(&mut sheet, explanation);
        figures(&mut sheet, explanation);
    }
    if let Some(ranks) = &explanation.ranks {
        sheet.section("ranks", [ranks_in_words(ranks)]);
    }
    why(&mut sheet, explanation, answer.trials.is_some());
    match answer.trials {
        Some(trials) => rehearsed(&mut sheet, trials),
        None => advice(&mut sheet, &explanation.advice),
    }
    more(&mut sheet, answer);
    ran_out.paint(&sheet, look)
}

fn place(sheet: &mut Sheet, explanation: &Explanation) {
    let width = sheet.text_width();
    let lines = where_it_failed(explanation)
        .into_iter()
        .map(|line| shortened(&line, width, width / 2));
    sheet.section("at", lines);
}

/// Who had the card's memory.
fn card(sheet: &mut Sheet, explanation: &Explanation) {
    let account = &explanation.account;
    let figures = &explanation.finding.figures;
    let drawn = picture(account, None);
    let (Some(bar), Some(total)) = (drawn.first(), account.total) else {
        return;
    };
    let asked = figures
        .asked
        .map(|asked| format!(", {asked} asked for"))
        .unwrap_or_default();
    let device = figures
        .device
        .map_or("the card".to_owned(), |device| format!("GPU {device}"));
    let mut lines = vec![format!("{device} has {total}{asked}"), bar.clone()];
    // A part is not broken between lines.
    let legend: Vec<String> = account
        .parts
        .iter()
        .map(|part| {
            let text = format!("{} {} {}", mark(part.name), part.size, part.name.words());
            text.replace(' ', "\u{a0}")
        })
        .collect();
    let wrapped = wrap_parts(&legend, sheet.text_width());
    lines.extend(wrapped.iter().map(|line| line.replace('\u{a0}', " ")));
    sheet.section("card", lines);
}

/// Parts with two blanks between them, as many on a line as there is room for.
fn wrap_parts(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + part.chars().count() <= width => {
                line.push_str("  ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

/// Figures of messages that account for no card, on one line.
fn figures(sheet: &mut Sheet, explanation: &Explanation) {
    if explanation.account.total.is_some() {
        return;
    }
    let figures = &explanation.finding.figures;
    let named = [
        ("asked for", figures.asked),
        ("allocated", figures.allocated),
        ("allowed", figures.allowed),
        ("free", figures.free),
        ("total", figures.total),
    ];
    let known = named
        .into_iter()
        .filter_map(|(name, amount)| Some(format!("{name} {}", amount?)));
    let more = figures.more.iter().map(|figure| match &figure.value {
        FigureValue::Amount(amount) => format!("{} {amount}", figure.name),
        FigureValue::Count(count) => format!("{} {count}", figure.name),
        FigureValue::Text(text) => format!("{} {text}", figure.name),
    });
    let all: Vec<String> = known.chain(more).collect();
    if !all.is_empty() {
        let text = one_line(&all.join(", "), sheet.text_width());
        sheet.section("figures", [text]);
    }
}

/// The likeliest situation, and the figures that say so.
fn why(sheet: &mut Sheet, explanation: &Explanation, is_short: bool) {
    let Some(first) = explanation.situations.first() else {
        return;
    };
    let width = sheet.text_width();
    let most = if is_short { 2 } else { MOST_REASONS };
    let mut lines = wrap(first.situation.words(), width);
    let mut room = most;
    for (index, reason) in first.reasons.iter().take(2).enumerate() {
        let mut wrapped = wrap(reason, width);
        if index > 0 && wrapped.len() > room {
            break;
        }
        if wrapped.len() > room {
            // What is left of a long sentence ends after a clause.
            let text = wrapped.split_off(room - 1).join(" ") + " and so on";
            wrapped.push(one_line(&text, width));
        }
        room -= wrapped.len();
        lines.extend(wrapped);
    }
    sheet.section("why", lines);
}

fn advice(sheet: &mut Sheet, all: &[Advice]) {
    let first = all.iter().take(MOST_ADVICE).enumerate();
    let lines: Vec<String> = first
        .flat_map(|(index, each)| {
            let text = format!("{}. {} ({})", index + 1, each.what, each.effect.words());
            with_command(&text, &each.command, sheet.text_width())
        })
        .collect();
    sheet.section("do first", lines);
}

/// What was rehearsed: the script as it is, the three best changes, and what did not help.
fn rehearsed(sheet: &mut Sheet, trials: &Trials) {
    sheet.paragraph(
        "as it is",
        &format!(
            "{} on a virtual {} ({})",
            trials.as_it_is(),
            trials.card,
            human(trials.total_bytes)
        ),
    );
    let width = sheet.text_width();
    let lines: Vec<String> = trials
        .works
        .iter()
        .take(MOST_ADVICE)
        .enumerate()
        .flat_map(|(index, works)| {
            let text = format!("{}. {}", index + 1, in_words(works));
            with_command(&text, &works.command, width)
        })
        .collect();
    if lines.is_empty() && !matches!(trials.as_it_is, AsItIs::Fits { .. }) {
        sheet.section("works", ["nothing that was rehearsed".to_owned()]);
    }
    sheet.section("works", lines);
    if !trials.fails.is_empty() {
        let names: Vec<&str> = trials
            .fails
            .iter()
            .map(|fails| fails.what.as_str())
            .collect();
        let text = one_line(&names.join(", "), width);
        sheet.section("did not help", [text]);
    }
}

/// `gradient checkpointing (same results): 7.00 GiB on the card`.
fn in_words(works: &Works) -> String {
    format!(
        "{} ({}): {}",
        works.what,
        works.effect.words(),
        human(works.peaks.device_bytes)
    )
}

/// A thing to do on one line, and below it the command or the code.
fn with_command(text: &str, command: &str, width: usize) -> Vec<String> {
    let room = width - INDENT;
    // A remark behind the command is left to `--verbose` where there is no room for it.
    let command = match command.chars().count() <= room {
        true => command,
        false => command.split("   #").next().unwrap_or(command).trim_end(),
    };
    let mut lines = vec![one_line(text, width)];
    let mut wrapped = wrap(command, room);
    if wrapped.len() > MOST_COMMAND_LINES {
        wrapped.truncate(MOST_COMMAND_LINES);
        if let Some(last) = wrapped.last_mut() {
            last.push_str(" …");
        }
    }
    let shown = wrapped.iter().map(|line| {
        let line = shortened(line, room, room / 2);
        format!("{:INDENT$}{line}", "")
    });
    lines.extend(shown);
    lines
}

/// What `--verbose` has beside this.
fn more(sheet: &mut Sheet, answer: &Answer) {
    let explanation = answer.explanation;
    let counted = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let (shown, all) = match answer.trials {
        Some(trials) => (trials.works.len().min(MOST_ADVICE), trials.works.len()),
        None => {
            let all = explanation.advice.len();
            (all.min(MOST_ADVICE), all)
        }
    };
    let parts: Vec<String> = [
        counted(all - shown, "other thing to do", "other things to do"),
        counted(
            explanation.does_not_help.len(),
            "that does not help",
            "that do not help",
        ),
        answer
            .trials
            .and_then(|trials| counted(trials.untried.len(), "not rehearsed", "not rehearsed")),
        counted(
            explanation.situations.len().saturating_sub(1),
            "other possible cause",
            "other possible causes",
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let text = match parts.is_empty() {
        true => "the message and its figures: --verbose".to_owned(),
        false => format!("{}: --verbose", parts.join(", ")),
    };
    sheet.paragraph("more", &text);
}
