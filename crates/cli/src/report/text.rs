//! The answer as people read it: aligned, and understandable without colour.

use std::path::Path;

use ghostgpu_session::{OomReport, StackFrame};

use super::breakdown::add_breakdown;
use crate::answer::{Answer, user_frame};
use ghostgpu_rehearse::{Memory, Verdict};
use ghostgpu_text::{Sheet, TEXT_WIDTH, grouped, human, wrap};

/// How a report is to look.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    pub has_colour: bool,
    /// Files below this folder are named relative to it.
    pub current_dir: Option<&'a Path>,
}

/// The whole report, with what the memory of the run was made of if that was recorded.
pub fn text_report(answer: &Answer, memory: &Memory, look: Look) -> String {
    let mut report = Report {
        look,
        sheet: Sheet::default(),
    };
    report.headline(answer);
    report.steps(answer);
    report.peaks(answer);
    if let Some(oom) = &answer.oom {
        report.out_of_memory(oom);
    }
    if answer.fits == Some(false) {
        report.need(answer);
    }
    report.recovered(answer);
    report.refused(answer);
    match memory {
        Memory::Recorded(recording) => {
            add_breakdown(&mut report.sheet, recording, look);
            report.sheet.list("warnings", &recording.warnings);
        }
        // A script that had no memory is told so below.
        Memory::Unrecorded(because) if answer.peak_reserved_bytes != Some(0) => {
            let text = format!("nobody knows whose memory it was: {because}");
            report.sheet.paragraph("at the peak", &text);
        }
        Memory::Unrecorded(_) | Memory::Unwanted => {}
    }
    report.sheet.list("assumes", &answer.assumptions);
    report.sheet.list("notes", &answer.notes);
    report.sheet.render()
}

struct Report<'a> {
    look: Look<'a>,
    sheet: Sheet,
}

impl Report<'_> {
    fn headline(&mut self, answer: &Answer) {
        let gpu = &answer.gpu;
        let card = match gpu.count {
            1 => format!("{} has {}", gpu.name, human(gpu.total_bytes)),
            count => format!(
                "{count} × {} have {} each",
                gpu.name,
                human(gpu.total_bytes)
            ),
        };
        let (word, colour, rest) = match (answer.fits, answer.needed_device_bytes) {
            (Some(true), _) => (
                "yes",
                "32",
                format!("{card}, the job needs {}", human(answer.peak_device_bytes)),
            ),
            (Some(false), Some(need)) => {
                ("no", "31", format!("{card}, the job needs {}", human(need)))
            }
            (Some(false), None) => ("no", "31", format!("{card}, the job needs more")),
            (None, _) => ("unknown", "33", unknown_because(answer)),
        };
        let word = if self.look.has_colour {
            format!("\x1b[1;{colour}m{word}\x1b[0m")
        } else {
            word.to_owned()
        };
        self.sheet.section("fits", [format!("{word}: {rest}")]);
    }

    fn steps(&mut self, answer: &Answer) {
        let count = match answer.steps {
            0 => "no optimizer step".to_owned(),
            1 => "1 optimizer step".to_owned(),
            steps => format!("{steps} optimizer steps"),
        };
        let end = match answer.verdict {
            _ if answer.stopped_by_step_limit => ", then stopped (--steps 0 runs to the end)",
            Verdict::Fits => ", to the script's end",
            _ => " completed",
        };
        self.sheet.section("steps", [format!("{count}{end}")]);
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
                "PyTorch gave its cache back and tried again {}",
                times(answer.retries)
            ));
        }
        self.sheet.section("peak", lines);
    }

    fn out_of_memory(&mut self, oom: &OomReport) {
        let mut place = match oom.stage.as_str() {
            "setup" | "moving the model" => format!("while {}", gerund(&oom.stage)),
            stage => format!("in step {} ({stage})", oom.step + 1),
        };
        if oom.device > 0 {
            place.push_str(&format!(", on card {}", oom.device));
        }
        let frame = user_frame(&oom.stack);
        if let Some(frame) = frame {
            place.push_str(&format!(", at {}", self.place_of(frame)));
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
        lines.extend(wrap(&oom.message, TEXT_WIDTH));
        self.sheet.section("out of memory", lines);
    }

    fn need(&mut self, answer: &Answer) {
        match (answer.needed_device_bytes, &answer.needed_unknown_because) {
            (Some(device_bytes), _) => self.sheet.section(
                "needed",
                [
                    figure("allocated", answer.needed_allocated_bytes, ""),
                    figure("reserved", answer.needed_reserved_bytes, ""),
                    figure("on card", Some(device_bytes), ""),
                    "found by running it again on a card with unlimited memory".to_owned(),
                ],
            ),
            (None, Some(because)) => {
                self.sheet
                    .section("needed", wrap(&format!("unknown: {because}"), TEXT_WIDTH));
            }
            (None, None) => {}
        }
    }

    fn recovered(&mut self, answer: &Answer) {
        let Some(first) = answer.recovered_ooms.first() else {
            return;
        };
        let place = user_frame(&first.stack)
            .map(|frame| format!(", first at {}", self.place_of(frame)))
            .unwrap_or_default();
        let sentence = format!(
            "the script went on after running out of memory {}{place}",
            times(answer.recovered_ooms.len() as u64)
        );
        self.sheet.section("recovered", wrap(&sentence, TEXT_WIDTH));
    }

    fn refused(&mut self, answer: &Answer) {
        if answer.verdict != Verdict::Refused {
            return;
        }
        let lines: Vec<String> = answer
            .refused
            .iter()
            .map(|call| match user_frame(&call.stack) {
                Some(frame) => format!("{} called from {}", call.function, self.place_of(frame)),
                None => call.function.clone(),
            })
            .collect();
        self.sheet.section("not simulated", lines);
    }

    /// `train.py:41 in forward`.
    fn place_of(&self, frame: &StackFrame) -> String {
        let file = Path::new(&frame.file);
        let shown = self
            .look
            .current_dir
            .and_then(|folder| file.strip_prefix(folder).ok())
            .unwrap_or(file);
        let place = format!("{}:{}", shown.display(), frame.line);
        match frame.function.as_str() {
            "" | "<module>" => place,
            function => format!("{place} in {function}"),
        }
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

fn unknown_because(answer: &Answer) -> String {
    let exception = answer
        .exception
        .as_deref()
        .map(|text| {
            let first_line = text.lines().next().unwrap_or_default();
            format!(": {first_line}")
        })
        .unwrap_or_default();
    match answer.verdict {
        Verdict::TimedOut => "the script did not end in time".to_owned(),
        Verdict::Refused => "the script stopped at a call that is not simulated".to_owned(),
        Verdict::PreloadBlocked => "the stand-in library was not loaded".to_owned(),
        Verdict::ScriptKilled => format!(
            "the script was killed by signal {}",
            answer.script_exit_code.saturating_sub(128)
        ),
        _ => format!(
            "the script failed with exit code {}{exception}",
            answer.script_exit_code
        ),
    }
}

fn gerund(stage: &str) -> &str {
    match stage {
        "setup" => "setting up",
        other => other,
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests;
