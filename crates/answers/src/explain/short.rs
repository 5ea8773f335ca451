//! The explanation on one screen: what ran out, what used it, why, and what to do first.

use ghostgpu_explain::{Advice, Catalogue, Explanation, Kind, PartName, say};
use ghostgpu_text::{Sheet, columns, human, shortened, wrap};

use super::Answer;
use super::combinations;
use super::figures::{common, in_words as figure_in_words};
use super::picture::{mark, picture};
use super::rehearsed::{AsItIs, Rehearsed, Works};
use super::text::{device_name, listed, ranks_in_words, title, where_it_failed};
use crate::headline::Headline;
use crate::one_line::one_line;
use crate::style::{Colour, Style};

/// How many pieces of advice are shown.
const MOST_ADVICE: usize = 3;
/// Lines for the situation and its reasons; reasons without room are shown only by `--verbose`.
const MOST_REASONS: usize = 4;
/// The same if there are rehearsals to show.
const MOST_REASONS_WITH_REHEARSALS: usize = 3;
/// Lines for one command.
const MOST_COMMAND_LINES: usize = 2;
/// The indentation of commands.
const INDENT: usize = 3;

/// The first line, which is all that `--quiet` shows.
pub fn headline(answer: &Answer) -> Headline {
    match answer.rehearsed {
        None => ran_out(answer.explanation, answer.catalogue),
        Some(rehearsed) => outcome(rehearsed, answer.catalogue),
    }
}

/// What ran out, with its figures if there are any.
fn ran_out(explanation: &Explanation, catalogue: &Catalogue) -> Headline {
    let finding = &explanation.finding;
    let figures = &finding.figures;
    let text = match (finding.kind, figures.requested, figures.free, figures.total) {
        (Kind::CudaAllocator | Kind::HipAllocator, Some(requested), Some(free), Some(total)) => {
            let device = figures.device.map_or("GPU".to_owned(), |device| {
                device_name(Some(device), "the-card", catalogue)
            });
            say!(
                catalogue,
                "gpu-memory",
                device = device,
                requested = requested,
                free = free,
                total = total
            )
        }
        _ => title(finding, catalogue),
    };
    Headline {
        word: say!(catalogue, "label-ran-out").into(),
        colour: Colour::Bad,
        text,
    }
}

fn outcome(rehearsed: &Rehearsed, catalogue: &Catalogue) -> Headline {
    if let (Some(plan), Some(best)) = (&rehearsed.plan, rehearsed.best_combination()) {
        return Headline {
            word: say!(catalogue, "label-fits-with").into(),
            colour: Colour::Good,
            text: format!("{}: {}", best.in_words, plan.command.join(" ")),
        };
    }
    match (&rehearsed.as_it_is, rehearsed.works.first()) {
        (AsItIs::Fits { .. }, _) => Headline {
            word: say!(catalogue, "label-fits").into(),
            colour: Colour::Good,
            text: rehearsed.as_it_is(catalogue),
        },
        (_, Some(works)) => Headline {
            word: say!(catalogue, "label-works").into(),
            colour: Colour::Good,
            text: format!("{}: {}", works.what, works.command),
        },
        (_, None) => Headline {
            word: say!(catalogue, "label-does-not-fit").into(),
            colour: Colour::Bad,
            text: say!(catalogue, "nothing-rehearsed-works"),
        },
    }
}

pub fn short_text(answer: &Answer, style: Style) -> String {
    let mut sheet = style.sheet();
    let (explanation, catalogue) = (answer.explanation, answer.catalogue);
    let ran_out = ran_out(explanation, catalogue);
    ran_out.add(&mut sheet);
    place(&mut sheet, explanation, style, catalogue);
    if answer.rehearsed.is_none() {
        card(&mut sheet, explanation, catalogue);
        figures(&mut sheet, explanation, catalogue);
    }
    if let Some(ranks) = &explanation.ranks {
        let label = say!(catalogue, "label-ranks");
        sheet.section(&label, [ranks_in_words(ranks, catalogue)]);
    }
    why(
        &mut sheet,
        explanation,
        answer.rehearsed.is_some(),
        catalogue,
    );
    match answer.rehearsed {
        Some(rehearsed) => add_rehearsed(&mut sheet, rehearsed, style, catalogue),
        None => advice(&mut sheet, &explanation.advice, style, catalogue),
    }
    more(&mut sheet, answer);
    ran_out.paint(&sheet, style)
}

fn place(sheet: &mut Sheet, explanation: &Explanation, style: Style, catalogue: &Catalogue) {
    let width = sheet.text_width();
    let lines = where_it_failed(explanation, catalogue)
        .into_iter()
        .map(|line| shortened(&from_here(&line, style), width, width / 2));
    sheet.section(&say!(catalogue, "label-at"), lines);
}

/// What used the card's memory.
fn card(sheet: &mut Sheet, explanation: &Explanation, catalogue: &Catalogue) {
    let account = &explanation.account;
    let drawn = picture(account, None, catalogue);
    let Some(bar) = drawn.first() else { return };
    let mut lines = vec![bar.clone()];
    let legend: Vec<String> = account
        .parts
        .iter()
        .map(|part| {
            let name = match part.name {
                PartName::Allocated => say!(catalogue, "part-short-allocated"),
                PartName::Cached => say!(catalogue, "part-short-cached"),
                PartName::Context => say!(catalogue, "part-short-context"),
                PartName::Outside => say!(catalogue, "part-short-outside"),
                name => name.words(catalogue),
            };
            format!("{} {} {name}", mark(part.name), part.size)
        })
        .collect();
    lines.extend(wrap_parts(&legend, sheet.text_width()));
    sheet.section(&say!(catalogue, "label-card"), lines);
}

/// Parts separated by two spaces, as many on a line as there is room for.
fn wrap_parts(parts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if columns(line) + 2 + columns(part) <= width => {
                line.push_str("  ");
                line.push_str(part);
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

/// The figures of messages that do not describe a card's memory, on one line.
fn figures(sheet: &mut Sheet, explanation: &Explanation, catalogue: &Catalogue) {
    if explanation.account.total.is_some() {
        return;
    }
    let figures = &explanation.finding.figures;
    let known = common(figures, catalogue).into_iter();
    let known = known.map(|(name, amount)| say!(catalogue, "figure", name = name, value = amount));
    let more = figures.more.iter();
    let more = more.map(|figure| figure_in_words(figure, catalogue));
    let all: Vec<String> = known.chain(more).collect();
    if !all.is_empty() {
        let text = one_line(&all.join(&listed(catalogue)), sheet.text_width());
        sheet.section(&say!(catalogue, "label-figures"), [text]);
    }
}

/// The most likely situation, and its reasons.
fn why(sheet: &mut Sheet, explanation: &Explanation, is_short: bool, catalogue: &Catalogue) {
    let Some(first) = explanation.situations.first() else {
        return;
    };
    let width = sheet.text_width();
    let most = match is_short {
        true => MOST_REASONS_WITH_REHEARSALS,
        false => MOST_REASONS,
    };
    let mut lines = wrap(&first.situation.words(catalogue), width);
    for reason in &first.reasons {
        let wrapped = wrap(reason, width);
        if lines.len() + wrapped.len() > most {
            break;
        }
        lines.extend(wrapped);
    }
    sheet.section(&say!(catalogue, "label-why"), lines);
}

fn advice(sheet: &mut Sheet, all: &[Advice], style: Style, catalogue: &Catalogue) {
    let first = all.iter().take(MOST_ADVICE).enumerate();
    let lines: Vec<String> = first
        .flat_map(|(index, each)| {
            let text = say!(
                catalogue,
                "advice-line-short",
                number = index + 1,
                what = each.what,
                effect = each.effect.words(catalogue)
            );
            let command = from_here(&each.command, style);
            with_command(&text, &command, sheet.text_width())
        })
        .collect();
    sheet.section(&say!(catalogue, "label-do-first"), lines);
}

/// What was rehearsed: the script as it is, the three best combinations, what else works, and what did not help.
fn add_rehearsed(sheet: &mut Sheet, rehearsed: &Rehearsed, style: Style, catalogue: &Catalogue) {
    let width = sheet.text_width();
    let text = say!(
        catalogue,
        "as-it-is-on-card",
        card = rehearsed.card.clone(),
        total = human(rehearsed.total_bytes),
        text = rehearsed.as_it_is(catalogue)
    );
    sheet.section(
        &say!(catalogue, "label-as-it-is"),
        wrap(&text, width).into_iter().take(3),
    );
    match &rehearsed.plan {
        Some(plan) if plan.best().is_some() => {
            combinations::add_best(sheet, plan, catalogue);
            let names: Vec<&str> = rehearsed
                .works
                .iter()
                .map(|works| works.what.as_str())
                .collect();
            let names = names.join(&listed(catalogue));
            let lines = (!names.is_empty()).then(|| one_line(&names, width));
            sheet.section(&say!(catalogue, "label-also-works"), lines);
        }
        _ => works(sheet, rehearsed, style, catalogue),
    }
    if !rehearsed.fails.is_empty() {
        let names: Vec<&str> = rehearsed
            .fails
            .iter()
            .map(|fails| fails.what.as_str())
            .collect();
        let text = one_line(&names.join(&listed(catalogue)), width);
        sheet.section(&say!(catalogue, "label-did-not-help"), [text]);
    }
}

/// The three best pieces of advice, if there is no plan.
fn works(sheet: &mut Sheet, rehearsed: &Rehearsed, style: Style, catalogue: &Catalogue) {
    let width = sheet.text_width();
    let best = rehearsed.works.iter().take(MOST_ADVICE).enumerate();
    let mut lines: Vec<String> = best
        .flat_map(|(index, works)| {
            let text = format!("{}. {}", index + 1, in_words(works, catalogue));
            with_command(&text, &from_here(&works.command, style), width)
        })
        .collect();
    if !rehearsed.has_answer() {
        lines.push(say!(catalogue, "nothing-works"));
    }
    sheet.section(&say!(catalogue, "label-works"), lines);
}

/// `gradient checkpointing (same results): 7.00 GiB on the card`.
fn in_words(works: &Works, catalogue: &Catalogue) -> String {
    say!(
        catalogue,
        "works-short",
        what = works.what.clone(),
        effect = works.effect.words(catalogue),
        device = human(works.peaks.device_bytes)
    )
}

/// The text with files below the current folder named relative to it.
fn from_here(text: &str, style: Style) -> String {
    let folder = style.current_dir.and_then(|folder| folder.to_str());
    match folder.filter(|folder| folder.len() > 1) {
        Some(folder) => text.replace(&format!("{folder}/"), ""),
        None => text.to_owned(),
    }
}

/// A piece of advice on one line, with its command or code below.
fn with_command(text: &str, command: &str, width: usize) -> Vec<String> {
    let room = width - INDENT;
    // If there is no room for a remark after the command, only `--verbose` shows it.
    let command = match columns(command) <= room {
        true => command,
        false => command.split("   #").next().unwrap_or(command).trim_end(),
    };
    let mut lines = vec![one_line(text, width)];
    // Room for the shell's line continuation.
    let continued = if is_for_a_shell(command) { " \\" } else { "" };
    let mut wrapped = match columns(command) <= room {
        true => vec![command.to_owned()],
        false => wrap(command, room - continued.len()),
    };
    let last = wrapped.len().saturating_sub(1);
    for line in &mut wrapped[..last] {
        line.push_str(continued);
    }
    if wrapped.len() > MOST_COMMAND_LINES {
        wrapped.truncate(MOST_COMMAND_LINES);
        if let Some(last) = wrapped.last_mut() {
            let end = last.trim_end_matches(continued).len();
            last.truncate(end);
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

/// Whether a line is for a shell and not for a script.
fn is_for_a_shell(command: &str) -> bool {
    let first = command.split_whitespace().next().unwrap_or_default();
    let is_variable = first.split_once('=').is_some_and(|(name, _)| {
        name.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    });
    is_variable || ["ghostgpu", "python", "torchrun", "pip"].contains(&first)
}

/// What `--verbose` shows in addition.
fn more(sheet: &mut Sheet, answer: &Answer) {
    let (explanation, catalogue) = (answer.explanation, answer.catalogue);
    let counted = |count: usize, id: &str| (count > 0).then(|| say!(catalogue, id, count = count));
    let useless = counted(explanation.does_not_help.len(), "count-useless");
    let parts = match answer.rehearsed {
        Some(rehearsed) => {
            let works = match &rehearsed.plan {
                Some(plan) if plan.best().is_some() => combinations::not_shown(plan),
                _ => rehearsed.works.len().saturating_sub(MOST_ADVICE),
            };
            [
                counted(works, "count-works"),
                useless,
                counted(rehearsed.not_rehearsed.len(), "count-not-rehearsed"),
            ]
        }
        None => {
            let advice = explanation.advice.len().saturating_sub(MOST_ADVICE);
            let causes = explanation.situations.len().saturating_sub(1);
            [
                counted(advice, "count-more-to-do"),
                useless,
                counted(causes, "count-other-causes"),
            ]
        }
    };
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text = match parts.is_empty() {
        true => say!(catalogue, "more-message"),
        false => say!(
            catalogue,
            "more-parts",
            parts = parts.join(&listed(catalogue))
        ),
    };
    sheet.section(&say!(catalogue, "label-more"), [text]);
}
