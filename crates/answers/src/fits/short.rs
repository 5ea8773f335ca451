//! The answer on one screen of 24 lines and 80 columns: does it fit, why not, what is it made of, what next.

use ghostgpu_ledger::CardLedger;
use ghostgpu_session::OomReport;
use ghostgpu_text::{Sheet, human, shortened};

use super::next::{self, FollowUps};
use super::text::{place_of, stage_of, times};
use crate::fits::Answer;
use crate::headline::Headline;
use crate::look::Look;
use crate::one_line;
use crate::peak;
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{Memory, user_frame};

/// More calls that are not simulated are counted, not shown.
const MOST_CALLS: usize = 3;

pub fn short_answer(
    answer: &Answer,
    memory: &Memory,
    follow_ups: &FollowUps,
    look: Look,
) -> String {
    let mut sheet = look.sheet();
    let ledger = memory.recording().and_then(CardLedger::of_fullest);
    let headline = Headline::of(answer);
    headline.add(&mut sheet);
    match &answer.oom {
        Some(oom) => out_of_memory(&mut sheet, oom, look),
        None if answer.verdict == Verdict::DoesNotFit => sheet.paragraph(
            "out of memory",
            "CUDA's context or one of its libraries, beside what PyTorch had reserved",
        ),
        None => steps(&mut sheet, answer),
    }
    recovered(&mut sheet, answer, look);
    refused(&mut sheet, answer, look);
    figures(&mut sheet, answer);
    let mut grows = false;
    match &ledger {
        Some(ledger) => {
            peak::add_parts(&mut sheet, ledger, circumstance(answer));
            if answer.oom.is_none() {
                peak::add_largest_line(&mut sheet, ledger, look);
            }
            let growth = ledger.growth();
            grows = peak::matters(&growth);
            peak::add_growth(&mut sheet, ledger, &growth, look);
        }
        None => unrecorded(&mut sheet, answer, memory),
    }
    let mut sentences = answer.assumptions.clone();
    if let Some(recording) = memory.recording() {
        sentences.extend(recording.warnings.iter().cloned());
    }
    let sentences: Vec<String> = sentences
        .iter()
        .map(|sentence| without_folders(sentence, look))
        .collect();
    one_line::add(&mut sheet, "assumes", &sentences);
    if let Some(next) = follow_ups.choose(answer, grows) {
        next::add(&mut sheet, &next);
    }
    headline.paint(&sheet, look)
}

fn out_of_memory(sheet: &mut Sheet, oom: &OomReport, look: Look) {
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
        lines.push(shortened(&place_of(frame, look), width, 0));
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
        Verdict::Fits => ", to the end of the script",
        _ => " completed",
    };
    sheet.section("steps", [format!("{count}{end}")]);
}

fn recovered(sheet: &mut Sheet, answer: &Answer, look: Look) {
    let Some(first) = answer.recovered_ooms.first() else {
        return;
    };
    let count = times(answer.recovered_ooms.len() as u64);
    let width = sheet.text_width();
    let mut lines = vec![format!("the script ran out of memory {count} and went on")];
    lines.extend(
        user_frame(&first.stack)
            .map(|frame| shortened(&format!("first at {}", place_of(frame, look)), width, 9)),
    );
    sheet.section("recovered", lines);
}

fn refused(sheet: &mut Sheet, answer: &Answer, look: Look) {
    if answer.verdict != Verdict::Refused {
        return;
    }
    let width = sheet.text_width();
    let mut lines: Vec<String> = answer
        .refused
        .iter()
        .take(MOST_CALLS)
        .map(|call| match user_frame(&call.stack) {
            Some(frame) => format!("{} at {}", call.function, place_of(frame, look)),
            None => call.function.clone(),
        })
        .map(|line| shortened(&line, width, width / 2))
        .collect();
    if let more @ 1.. = answer.refused.len().saturating_sub(MOST_CALLS) {
        lines.push(format!("… {more} more: --verbose"));
    }
    sheet.section("not simulated", lines);
}

/// The figures of the whole job where they are known, else of what was seen of it.
fn figures(sheet: &mut Sheet, answer: &Answer) {
    let mut lines = vec![match answer.needed_device_bytes {
        Some(device_bytes) => peak::figures(
            answer.needed_allocated_bytes,
            answer.needed_reserved_bytes,
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
    if let (Some(true), [_, _, ..]) = (answer.fits, answer.devices.as_slice()) {
        let each = answer.devices.iter().map(|device| device.peak_device_bytes);
        lines.push(format!(
            "on the fullest of {} cards; {} on the emptiest",
            answer.devices.len(),
            human(each.min().unwrap_or_default())
        ));
    }
    if let (Some(true), retries @ 1..) = (answer.fits, answer.retries) {
        lines.push(format!(
            "PyTorch emptied its cache and tried again {}, which is slow",
            times(retries)
        ));
    }
    sheet.section("peak", lines);
}

/// What was special about the rehearsal that the parts come from.
fn circumstance(answer: &Answer) -> &'static str {
    match (answer.fits, answer.needed_device_bytes) {
        (Some(false), Some(_)) => ", with unlimited memory",
        (Some(false), None) => ", before it ran out of memory",
        _ => "",
    }
}

fn unrecorded(sheet: &mut Sheet, answer: &Answer, memory: &Memory) {
    if let (Memory::Unrecorded(because), false) = (memory, answer.peak_reserved_bytes == Some(0)) {
        let text = one_line::one_line(&format!("unknown: {because}"), sheet.text_width());
        sheet.section("made of", [text]);
    }
}

/// A sentence that begins with a place (`/home/me/job/model.py:12: …`) with the file's name alone, or as seen
/// from the current folder.
fn without_folders(sentence: &str, look: Look) -> String {
    let Some((place, rest)) = sentence.split_once(": ") else {
        return sentence.to_owned();
    };
    if !place.starts_with('/') || place.contains(char::is_whitespace) {
        return sentence.to_owned();
    }
    let below = look
        .current_dir
        .and_then(|folder| place.strip_prefix(folder.to_str()?)?.strip_prefix('/'));
    let shown = below.unwrap_or_else(|| place.rsplit('/').next().unwrap_or(place));
    format!("{shown}: {rest}")
}
