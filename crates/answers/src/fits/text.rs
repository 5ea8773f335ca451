//! The answer in full, for `--verbose`: aligned, and understandable without colour.

use std::path::Path;

use ghostgpu_session::{OomReport, StackFrame};

use super::covered;
use super::short::{comfortable_from, steps};
use crate::breakdown::add_breakdown;
use crate::fits::Answer;
use crate::headline::VerdictHeadline;
use crate::ranks::add_ranks;
use crate::style::Style;
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{Memory, user_frame};
use ghostgpu_text::{Sheet, grouped, human, wrap};

/// Everything that is known, with the breakdown of the run's memory if it was recorded.
pub fn full_answer(answer: &Answer, memory: &Memory, style: Style) -> String {
    let mut full = FullText {
        style,
        sheet: style.sheet(),
    };
    let headline = VerdictHeadline::of(answer);
    headline.add(&mut full.sheet);
    full.coverage(answer);
    full.peaks(answer);
    full.step_time(answer);
    if let Some(oom) = &answer.oom {
        full.out_of_memory(oom);
    }
    full.need(answer);
    full.recovered(answer);
    full.refused(answer);
    match memory {
        Memory::Recorded(recording) => {
            add_breakdown(&mut full.sheet, recording, style);
            full.sheet.list("warnings", &recording.warnings);
        }
        // For a script without memory on the card, that is said below.
        Memory::Unrecorded(because) if answer.peak_reserved_bytes != Some(0) => {
            let text = format!("what the memory was made of is unknown: {because}");
            full.sheet.paragraph("at the peak", &text);
            add_ranks(&mut full.sheet, &answer.ranks, true);
        }
        Memory::Unrecorded(_) | Memory::Unwanted => {
            add_ranks(&mut full.sheet, &answer.ranks, true);
        }
    }
    full.sheet.list("assumes", &answer.assumptions);
    full.sheet.list("notes", &answer.notes);
    headline.paint(&full.sheet, style)
}

/// The only card whose step times predictions were compared with.
const MEASURED_CARD: &str = "NVIDIA H200";

struct FullText<'a> {
    style: Style<'a>,
    sheet: Sheet,
}

impl FullText<'_> {
    fn coverage(&mut self, answer: &Answer) {
        match answer.covered.is_empty() {
            true => steps(&mut self.sheet, answer),
            false => self.sheet.paragraph("covered", &covered::covered(answer)),
        }
        match covered::not_reached(answer).as_slice() {
            [] => {}
            [only] => self.sheet.paragraph("not reached", only),
            several => self.sheet.list("not reached", several),
        }
    }

    fn peaks(&mut self, answer: &Answer) {
        let mut lines = vec![
            figure("allocated", answer.peak_allocated_bytes, ""),
            figure("reserved", answer.peak_reserved_bytes, ""),
            figure(
                "on card",
                Some(answer.peak_device_bytes),
                "  (with the CUDA context and libraries)",
            ),
        ];
        if answer.devices.len() > 1 {
            lines.extend(answer.devices.iter().map(|device| {
                figure(
                    &format!("  card {}", device.device),
                    Some(device.peak_device_bytes),
                    "",
                )
            }));
        }
        if answer.retries > 0 {
            lines.push(format!(
                "PyTorch flushed its cache and retried {}",
                times(answer.retries)
            ));
        }
        self.sheet.section("peak", lines);
    }

    fn step_time(&mut self, answer: &Answer) {
        let Some(seconds) = answer.predicted_step_seconds else {
            return;
        };
        let time = match seconds {
            ..0.01 => format!("{:.1} ms", 1e3 * seconds),
            ..1.0 => format!("{:.0} ms", 1e3 * seconds),
            _ => format!("{seconds:.1} s"),
        };
        let error = match answer.gpu.name.as_str() {
            MEASURED_CARD => "usually within 10 %",
            _ => "the error is only known on an H200",
        };
        let text = format!("{time} (predicted; {error})");
        self.sheet.paragraph("step time", &text);
    }

    fn out_of_memory(&mut self, oom: &OomReport) {
        let mut place = stage_of(oom);
        if oom.device > 0 {
            place.push_str(&format!(", on card {}", oom.device));
        }
        let frame = user_frame(&oom.stack);
        if let Some(frame) = frame {
            place.push_str(&format!(", at {}", place_of(frame, self.style)));
        }
        let mut lines = vec![place];
        if let Some(source) = frame.and_then(|frame| frame.source.as_deref()) {
            lines.push(format!("    {}", source.trim()));
        }
        if oom.requested_bytes > 0 {
            lines.push(format!(
                "asked for {} ({} bytes)",
                human(oom.requested_bytes),
                grouped(oom.requested_bytes)
            ));
        }
        lines.extend(wrap(&oom.message, self.sheet.text_width()));
        self.sheet.section("out of memory", lines);
    }

    fn need(&mut self, answer: &Answer) {
        match (answer.needed_device_bytes, &answer.needed_unknown_because) {
            // If no smaller need was found, it is the same as the peak, which is already shown.
            (Some(bytes), _) if bytes == answer.peak_device_bytes => {}
            (Some(device_bytes), _) => {
                let mut lines = vec![
                    figure("allocated", answer.needed_allocated_bytes, ""),
                    figure("reserved", answer.needed_reserved_bytes, ""),
                    figure("on card", Some(device_bytes), ""),
                ];
                if let Some(text) = comfortable_from(answer) {
                    lines.extend(wrap(
                        &format!("comfortable {text}"),
                        self.sheet.text_width(),
                    ));
                }
                self.sheet.section("needed", lines);
            }
            (None, Some(because)) if answer.verdict == Verdict::DoesNotFit => {
                self.sheet
                    .paragraph("needed", &format!("unknown: {because}"));
            }
            (None, _) => {}
        }
        if answer.margin_bytes > 0 && answer.fits == Some(true) {
            let margin = figure("to leave", Some(answer.margin_bytes), "");
            self.sheet.section("margin", [margin]);
        }
    }

    fn recovered(&mut self, answer: &Answer) {
        if answer.workspace_retries > 0 {
            let sentence = format!(
                "PyTorch used a smaller workspace {} because memory ran out for a larger one",
                times(answer.workspace_retries)
            );
            self.sheet.paragraph("workspaces", &sentence);
        }
        let Some(first) = answer.recovered_ooms.first() else {
            return;
        };
        let place = user_frame(&first.stack)
            .map(|frame| format!(", first at {}", place_of(frame, self.style)))
            .unwrap_or_default();
        let sentence = format!(
            "the script went on after running out of memory {}{place}",
            times(answer.recovered_ooms.len() as u64)
        );
        self.sheet.paragraph("recovered", &sentence);
    }

    fn refused(&mut self, answer: &Answer) {
        if answer.verdict != Verdict::Refused {
            return;
        }
        let lines: Vec<String> = answer
            .refused
            .iter()
            .map(|call| match user_frame(&call.stack) {
                Some(frame) => format!(
                    "{} called from {}",
                    call.function,
                    place_of(frame, self.style)
                ),
                None => call.function.clone(),
            })
            .collect();
        self.sheet.section("not simulated", lines);
    }
}

/// `train.py:41 in forward`.
pub(super) fn place_of(frame: &StackFrame, style: Style) -> String {
    let file = Path::new(&frame.file);
    let shown = style
        .current_dir
        .and_then(|folder| file.strip_prefix(folder).ok())
        .unwrap_or(file);
    let place = format!("{}:{}", shown.display(), frame.line);
    match frame.function.as_str() {
        "" | "<module>" => place,
        function => format!("{place} in {function}"),
    }
}

/// When memory ran out: `in step 1 (forward)`, `while moving the model`.
pub(super) fn stage_of(oom: &OomReport) -> String {
    match oom.stage.as_str() {
        "setup" => "while setting up".to_owned(),
        "moving the model" => "while moving the model".to_owned(),
        stage => format!("in step {} ({stage})", oom.step + 1),
    }
}

fn figure(name: &str, bytes: Option<u64>, remark: &str) -> String {
    match bytes {
        Some(bytes) => {
            let exact = grouped(bytes);
            let text = human(bytes);
            format!("{name:<9}  {text:>10}  {exact:>15} bytes{remark}")
        }
        None => format!("{name:<9}  {:>10}", "unknown"),
    }
}

pub(super) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}
