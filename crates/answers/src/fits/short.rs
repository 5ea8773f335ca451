//! The answer on one screen of 24 lines and 80 columns: does it fit, why not, what is it made of, what next.

use ghostgpu_ledger::CardLedger;
use ghostgpu_session::OomReport;
use ghostgpu_text::{Sheet, human, shortened};

use super::covered;
use super::next::{self, FollowUps};
use super::text::{place_of, stage_of, times};
use crate::fits::Answer;
use crate::headline::VerdictHeadline;
use crate::one_line;
use crate::peak;
use crate::ranks::add_ranks;
use crate::style::Style;
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{Memory, user_frame};

const SCREEN_LINES: usize = 24;

/// How many calls that are not simulated are shown; the others are only counted.
const MOST_CALLS: usize = 3;

/// How much of the peak one screen shows: less if other things need the room.
#[derive(Clone, Copy, Debug)]
struct Room {
    parts: usize,
    has_largest_line: bool,
}

const ROOMS: [Room; 3] = [
    Room {
        parts: peak::MOST_PARTS,
        has_largest_line: true,
    },
    Room {
        parts: peak::MOST_PARTS,
        has_largest_line: false,
    },
    Room {
        parts: 2,
        has_largest_line: false,
    },
];

pub fn short_answer(
    answer: &Answer,
    memory: &Memory,
    follow_ups: &FollowUps,
    style: Style,
) -> String {
    let ledger = memory.recording().and_then(CardLedger::of_fullest);
    let screens = ROOMS.map(|room| {
        let mut screen = Screen {
            answer,
            memory,
            style,
            sheet: style.sheet(),
        };
        screen.fill(ledger.as_ref(), follow_ups, room);
        screen.sheet
    });
    let has_room = |sheet: &&Sheet| sheet.render().lines().count() <= SCREEN_LINES;
    let sheet = screens.iter().find(has_room).or(screens.last());
    let headline = VerdictHeadline::of(answer);
    sheet.map_or_else(String::new, |sheet| headline.paint(sheet, style))
}

struct Screen<'a> {
    answer: &'a Answer,
    memory: &'a Memory,
    style: Style<'a>,
    sheet: Sheet,
}

impl Screen<'_> {
    fn fill(&mut self, ledger: Option<&CardLedger>, follow_ups: &FollowUps, room: Room) {
        let (answer, style, sheet) = (self.answer, self.style, &mut self.sheet);
        VerdictHeadline::of(answer).add(sheet);
        match &answer.oom {
            Some(oom) => out_of_memory(sheet, oom, style),
            None if answer.verdict == Verdict::DoesNotFit => sheet.paragraph(
                "out of memory",
                "in the CUDA context or a library, outside what PyTorch had reserved",
            ),
            None => coverage(sheet, answer),
        }
        comfortable(sheet, answer);
        recovered(sheet, answer, style);
        refused(sheet, answer, style);
        if answer.verdict != Verdict::DidNotUseCard {
            figures(sheet, answer);
        }
        let mut grows = false;
        match ledger {
            Some(ledger) => {
                peak::add_largest_parts(sheet, ledger, circumstance(answer), room.parts);
                if answer.oom.is_none() && room.has_largest_line {
                    peak::add_largest_line(sheet, ledger, style);
                }
                let growth = ledger.growth();
                grows = peak::matters(&growth);
                // The reason of that verdict already names the line and the number of steps.
                if answer.verdict != Verdict::WillRunOut {
                    peak::add_growth(sheet, ledger, &growth, style);
                }
            }
            None => unrecorded(sheet, answer, self.memory),
        }
        add_ranks(sheet, &answer.ranks, false);
        let next = follow_ups.choose(answer, grows);
        let next = next.map(|next| next::lines(&next, self.sheet.text_width()));
        let next = next.unwrap_or_default();
        self.assumptions(next.len());
        if !next.is_empty() {
            self.sheet.section("next", next);
        }
    }

    /// Adds as many assumptions as there is room for, given the number of lines to come.
    fn assumptions(&mut self, to_come: usize) {
        let mut sentences = self.answer.assumptions.clone();
        if let Some(recording) = self.memory.recording() {
            sentences.extend(recording.warnings.iter().cloned());
        }
        let sentences: Vec<String> = sentences
            .iter()
            .map(|sentence| without_folders(sentence, self.style))
            .collect();
        let taken = self.sheet.render().lines().count() + to_come;
        // One more line says how many are not shown.
        let most = SCREEN_LINES.saturating_sub(taken + 1).max(1);
        one_line::add_at_most(&mut self.sheet, "assumes", &sentences, most);
    }
}

/// Which parts of the training were rehearsed, and which were not: one line each.
fn coverage(sheet: &mut Sheet, answer: &Answer) {
    let width = sheet.text_width();
    if answer.covered.is_empty() {
        steps(sheet, answer);
    } else {
        sheet.section("covered", [covered::covered_in_one_line(answer, width)]);
    }
    let reasons = covered::not_reached(answer);
    if !reasons.is_empty() {
        let line = one_line::one_line(&reasons.join("; "), width);
        sheet.section("not reached", [line]);
    }
}

/// From which memory on PyTorch never flushes its cache, if that is clearly more than the job's need.
fn comfortable(sheet: &mut Sheet, answer: &Answer) {
    if let Some(text) = comfortable_from(answer) {
        sheet.paragraph("comfortable", &text);
    }
}

/// `7.10 GiB or more; with 5.21 GiB, 1.2 cache flushes per step`.
pub(super) fn comfortable_from(answer: &Answer) -> Option<String> {
    let needed = answer.needed_device_bytes?;
    let comfortable = answer.comfortable_device_bytes?;
    let is_clearly_more = comfortable > needed.saturating_add(needed / 32);
    let flushes = answer
        .needed_flushes_per_step
        .filter(|flushes| *flushes > 0.0)
        .map(|flushes| {
            let workspaces = match answer.needed_with_smaller_workspaces {
                true => " and smaller workspaces for convolutions",
                false => "",
            };
            format!(
                "; with {}, {flushes:.1} cache flushes per step{workspaces}",
                human(needed)
            )
        });
    is_clearly_more.then(|| {
        let flushes = flushes.unwrap_or_default();
        format!("{} or more{flushes}", human(comfortable))
    })
}

fn out_of_memory(sheet: &mut Sheet, oom: &OomReport, style: Style) {
    let width = sheet.text_width();
    let card = match oom.device {
        0 => String::new(),
        device => format!(", on card {device}"),
    };
    let mut lines = vec![match oom.requested_bytes {
        0 => format!("{}{card}", stage_of(oom)),
        bytes => format!("asked for {} {}{card}", human(bytes), stage_of(oom)),
    }];
    if let Some(frame) = user_frame(&oom.stack) {
        lines.push(shortened(&place_of(frame, style), width, 0));
        if let Some(source) = &frame.source {
            lines.push(shortened(&format!("    {}", source.trim()), width, width));
        }
    }
    sheet.section("out of memory", lines);
}

/// How far the script ran.
pub(super) fn steps(sheet: &mut Sheet, answer: &Answer) {
    let count = match answer.steps {
        0 => "no optimizer step".to_owned(),
        1 => "1 optimizer step".to_owned(),
        steps => format!("{steps} optimizer steps"),
    };
    let end = match answer.verdict {
        _ if answer.stopped_by_step_limit => ", then stopped (--steps 0 runs to the end)",
        Verdict::Fits | Verdict::FitsTightly | Verdict::WillRunOut | Verdict::DidNotUseCard => {
            ", to the end of the script"
        }
        _ => " completed",
    };
    sheet.section("steps", [format!("{count}{end}")]);
}

fn recovered(sheet: &mut Sheet, answer: &Answer, style: Style) {
    let Some(first) = answer.recovered_ooms.first() else {
        return;
    };
    let count = times(answer.recovered_ooms.len() as u64);
    let width = sheet.text_width();
    let mut lines = vec![format!(
        "the script ran out of memory {count} and continued"
    )];
    lines.extend(
        user_frame(&first.stack)
            .map(|frame| shortened(&format!("first at {}", place_of(frame, style)), width, 9)),
    );
    sheet.section("recovered", lines);
}

fn refused(sheet: &mut Sheet, answer: &Answer, style: Style) {
    if answer.verdict != Verdict::Refused {
        return;
    }
    let width = sheet.text_width();
    let mut lines: Vec<String> = answer
        .refused
        .iter()
        .take(MOST_CALLS)
        .map(|call| match user_frame(&call.stack) {
            Some(frame) => format!("{} at {}", call.function, place_of(frame, style)),
            None => call.function.clone(),
        })
        .map(|line| shortened(&line, width, width / 2))
        .collect();
    if let more @ 1.. = answer.refused.len().saturating_sub(MOST_CALLS) {
        lines.push(format!("… {more} more: --verbose"));
    }
    sheet.section("not simulated", lines);
}

/// The run's peak memory; for a job that does not fit, that of the run with unlimited memory.
fn figures(sheet: &mut Sheet, answer: &Answer) {
    // The parts come from the run with unlimited memory, in which PyTorch never flushes its cache.
    let of_second_run = answer
        .comfortable_device_bytes
        .filter(|_| answer.verdict == Verdict::DoesNotFit);
    let mut lines = vec![match of_second_run {
        Some(device_bytes) => peak::figures(
            answer.needed_allocated_bytes,
            answer
                .needed_reserved_bytes
                .zip(answer.needed_device_bytes)
                .map(|(reserved, device)| {
                    device_bytes.saturating_sub(device.saturating_sub(reserved))
                }),
            device_bytes,
        ),
        None => peak::figures(
            answer.peak_allocated_bytes,
            answer.peak_reserved_bytes,
            answer.peak_device_bytes,
        ),
    }];
    if let (Some(because), Some(false)) = (&answer.needed_unknown_because, answer.fits) {
        let text = format!("up to the failure; the need is unknown: {because}");
        lines.extend(
            ghostgpu_text::wrap(&text, sheet.text_width())
                .into_iter()
                .take(2),
        );
    }
    if let (Some(true), [_, _, ..], []) = (
        answer.fits,
        answer.devices.as_slice(),
        answer.ranks.as_slice(),
    ) {
        let each = answer.devices.iter().map(|device| device.peak_device_bytes);
        lines.push(format!(
            "on the fullest of {} cards; {} on the emptiest",
            answer.devices.len(),
            human(each.min().unwrap_or_default())
        ));
    }
    if let (Verdict::Fits, retries @ 1..) = (answer.verdict, answer.retries) {
        lines.push(format!(
            "PyTorch flushed its cache and retried {}, which is slow",
            times(retries)
        ));
    }
    sheet.section("peak", lines);
}

/// What was special about the run that the parts come from.
fn circumstance(answer: &Answer) -> &'static str {
    match (answer.verdict, answer.needed_device_bytes) {
        (Verdict::DoesNotFit, Some(_)) => ", with unlimited memory",
        (Verdict::DoesNotFit, None) => ", before it ran out of memory",
        _ => "",
    }
}

fn unrecorded(sheet: &mut Sheet, answer: &Answer, memory: &Memory) {
    if let (Memory::Unrecorded(because), false) = (memory, answer.peak_reserved_bytes == Some(0)) {
        let text = one_line::one_line(&format!("unknown: {because}"), sheet.text_width());
        sheet.section("made of", [text]);
    }
}

/// Shortens the place at the beginning of a sentence (`/home/me/job/model.py:12: …`) to the file's name, or to its path
/// relative to the current folder.
fn without_folders(sentence: &str, style: Style) -> String {
    let Some((place, rest)) = sentence.split_once(": ") else {
        return sentence.to_owned();
    };
    if !place.starts_with('/') || place.contains(char::is_whitespace) {
        return sentence.to_owned();
    }
    let below = style
        .current_dir
        .and_then(|folder| place.strip_prefix(folder.to_str()?)?.strip_prefix('/'));
    let shown = below.unwrap_or_else(|| place.rsplit('/').next().unwrap_or(place));
    format!("{shown}: {rest}")
}
