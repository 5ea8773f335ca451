//! The answer in one sentence, and what belongs to it, as HTML that needs no script to be read.

use std::fmt::Write;

use ghostgpu_recording::{Answer, Frame, FrameOwner, Recording, Source};
use ghostgpu_session::StackFrame;
use ghostgpu_text::human;

use super::counted::Counted;
use super::escape::Escaped;
use super::unknown;
use crate::text;

/// What stands on top of the page and at its end.
pub(super) struct Words<'a> {
    recording: &'a Recording,
    /// The rehearsal's own answer.
    answer: Option<&'a Answer>,
    counted: &'a [Counted],
}

impl<'a> Words<'a> {
    pub fn new(recording: &'a Recording, counted: &'a [Counted]) -> Self {
        Self {
            recording,
            answer: recording.about.answer.as_ref(),
            counted,
        }
    }

    fn fits(&self) -> Option<bool> {
        self.answer.and_then(|answer| answer.fits)
    }

    /// `fits`, `misfit` or `unknown`: what the sentence is coloured by.
    pub fn class(&self) -> &'static str {
        match self.fits() {
            Some(true) => "fits",
            Some(false) => "misfit",
            None if self.failure().is_some() => "misfit",
            None => "unknown",
        }
    }

    /// The verdict in a word or two, and the figures behind it; both plain text.
    pub fn sentence(&self) -> (&'static str, String) {
        match self.recording.about.source {
            Source::Rehearsal => self.of_rehearsal(),
            Source::Snapshot => self.of_snapshot(),
        }
    }

    fn of_rehearsal(&self) -> (&'static str, String) {
        let about = &self.recording.about;
        let gpu = match about.gpu.as_str() {
            "" => "the card",
            name => name,
        };
        let total = size(about.gpu_total_bytes);
        let in_use = self.answer.map(|answer| answer.peak_device_bytes);
        let peak = size(in_use.unwrap_or_else(|| self.recorded_peak_bytes()));
        let needed = self.answer.and_then(|answer| answer.needed_device_bytes);
        match (self.fits(), needed.map(size)) {
            (Some(true), _) => (
                "It fits:",
                format!("{gpu} has {total}, the job takes {peak}."),
            ),
            (Some(false), Some(needed)) => (
                "It does not fit:",
                format!("{gpu} has {total}, the job needs {needed}."),
            ),
            (Some(false), None) => (
                "It does not fit:",
                format!("{gpu} has {total}, and {peak} were in use when a request failed."),
            ),
            (None, _) => (
                "Peak:",
                format!("{peak} in use on {gpu}, which has {total}."),
            ),
        }
    }

    fn of_snapshot(&self) -> (&'static str, String) {
        if let Some((_, last)) = self.failure() {
            let left = match last.failure.driver_free_bytes {
                Some(bytes) => format!(" and {} left on the card", size(bytes)),
                None => String::new(),
            };
            return (
                "Out of memory:",
                format!(
                    "a request for {} failed with {} reserved{left}.",
                    size(last.failure.requested_bytes),
                    size(last.reserved_bytes)
                ),
            );
        }
        let highest = |bytes: fn(&Counted) -> u64| self.counted.iter().map(bytes).max();
        let live = highest(|one| one.peak.requested_bytes).unwrap_or(0);
        let reserved = highest(|one| one.peak_reserved.reserved_bytes).unwrap_or(0);
        (
            "Peak:",
            format!(
                "{} live and {} reserved by PyTorch's allocator.",
                size(live),
                size(reserved)
            ),
        )
    }

    /// The failed request of a snapshot that the page is about: the last of the first card that has one.
    fn failure(&self) -> Option<(usize, &'a super::counted::LastFailure)> {
        if self.recording.about.source == Source::Rehearsal {
            return None;
        }
        let cards = self.counted.iter().enumerate();
        let mut failed = cards.filter_map(|(at, one)| Some((at, one.last_failure.as_ref()?)));
        failed.next()
    }

    /// The most that the recording has on any card.
    fn recorded_peak_bytes(&self) -> u64 {
        let cards = self.recording.cards.iter().zip(self.counted);
        let peaks = cards.map(|(card, counted)| {
            let reserved = counted.peak_reserved.reserved_bytes;
            reserved.saturating_add(card.outside_bytes)
        });
        peaks.max().unwrap_or(0)
    }

    /// What was recorded, as HTML.
    pub fn about(&self) -> String {
        let about = &self.recording.about;
        let mut facts = Vec::new();
        match about.source {
            Source::Rehearsal => {
                if !about.torch.is_empty() {
                    facts.push(format!("torch {}", Escaped(&about.torch)));
                }
                if !about.capability.is_empty() {
                    facts.push(format!("compute capability {}", Escaped(&about.capability)));
                }
                facts.push(match about.steps {
                    0 => "no optimizer step completed".to_owned(),
                    1 => "1 optimizer step".to_owned(),
                    steps => format!("{steps} optimizer steps"),
                });
            }
            Source::Snapshot => {
                facts.push("a memory snapshot from PyTorch".to_owned());
                if !about.allocator_settings.is_empty() {
                    facts.push(format!(
                        "allocator set to {}",
                        Escaped(&about.allocator_settings)
                    ));
                }
            }
        }
        format!(
            "<code>{}</code> <span>{}</span>",
            Escaped(&about.command.join(" ")),
            facts.join(" · ")
        )
    }

    /// Where memory ran out, as HTML; empty when it did not.
    pub fn out_of_memory(&self) -> String {
        if let Some((card, last)) = self.failure() {
            return self.snapshot_failure(card, last);
        }
        let Some(oom) = self.answer.and_then(|answer| answer.oom.as_ref()) else {
            return String::new();
        };
        let mut html = format!(
            "<p class=\"failed\"><strong>Out of memory</strong> in step {} ({})",
            oom.step.saturating_add(1),
            Escaped(&oom.stage)
        );
        if let Some(frame) = user_frame(&oom.stack) {
            push(
                &mut html,
                format_args!(", at <code>{}:{}</code>", Escaped(&frame.file), frame.line),
            );
            if let Some(source) = &frame.source {
                push(
                    &mut html,
                    format_args!(": <code>{}</code>", Escaped(source.trim())),
                );
            }
        }
        push(
            &mut html,
            format_args!(
                ". It asked for <data value=\"{0}\">{1}</data>.</p>",
                oom.requested_bytes,
                human(oom.requested_bytes)
            ),
        );
        if !oom.message.is_empty() {
            push(
                &mut html,
                format_args!(
                    "<details class=\"words\"><summary>PyTorch's own words</summary><p>{}</p></details>",
                    Escaped(&oom.message)
                ),
            );
        }
        html
    }

    /// Where a snapshot's last request failed, with its stack.
    fn snapshot_failure(&self, card: usize, last: &super::counted::LastFailure) -> String {
        let index = self.recording.cards.get(card).map_or(0, |card| card.index);
        let mut html = format!(
            "<p class=\"failed\"><strong>The request that failed</strong> is event {} of device {index}",
            ghostgpu_text::grouped(last.event.into())
        );
        let frames: Vec<&Frame> = text::frames(&self.recording.names, last.failure.stack).collect();
        let line = frames.iter().min_by_key(|frame| frame.owner);
        if let Some(frame) = line.filter(|frame| frame.owner != FrameOwner::Native) {
            push(
                &mut html,
                format_args!(
                    ", made at <code>{}:{}</code> in {}",
                    Escaped(&frame.file),
                    frame.line,
                    Escaped(&frame.function)
                ),
            );
        }
        html.push_str(".</p>");
        if !frames.is_empty() {
            html.push_str(
                "<details class=\"words\"><summary>Its stack</summary><ol class=\"stack\">",
            );
            for frame in frames {
                push(
                    &mut html,
                    format_args!("<li>{}</li>", Escaped(&text::frame(frame))),
                );
            }
            html.push_str("</ol></details>");
        }
        html
    }

    /// A job that does not fit is recorded where it does: on a card without an end. As HTML.
    pub fn other_run(&self) -> &'static str {
        let is_misfit = self.fits() == Some(false);
        if is_misfit && self.recorded_peak_bytes() > self.recording.about.gpu_total_bytes {
            "<p class=\"rehearsed\">All figures and charts below are of a second run, on a card with \
             unlimited memory: they show what the job needs.</p>"
        } else {
            ""
        }
    }

    /// What the figures rest on, as HTML.
    pub fn remarks(&self) -> String {
        fn texts(list: &[String]) -> Vec<&str> {
            list.iter().map(String::as_str).collect()
        }
        let answered = |list: fn(&Answer) -> &[String]| {
            self.answer
                .map_or_else(Vec::new, |answer| texts(list(answer)))
        };
        let is_snapshot = self.recording.about.source == Source::Snapshot;
        let if_snapshot = |lines: &[&'static str]| match is_snapshot {
            true => lines.to_vec(),
            false => Vec::new(),
        };
        let mut html = String::new();
        for (title, sentences) in [
            ("What this snapshot says", if_snapshot(&unknown::KNOWN)),
            ("What no snapshot can say", if_snapshot(&unknown::UNKNOWN)),
            (
                "Missing from this recording",
                texts(&self.recording.warnings),
            ),
            ("Assumed", answered(|answer| &answer.assumptions)),
            ("Notes", answered(|answer| &answer.notes)),
        ] {
            if sentences.is_empty() {
                continue;
            }
            push(&mut html, format_args!("<h3>{title}</h3><ul>"));
            for sentence in sentences {
                push(&mut html, format_args!("<li>{}</li>", Escaped(sentence)));
            }
            html.push_str("</ul>");
        }
        html
    }
}

/// A number and its unit stay on one line.
fn size(bytes: u64) -> String {
    human(bytes).replace(' ', "\u{a0}")
}

/// The innermost line of the user's own code, else the innermost line; stacks are outermost first here.
fn user_frame(stack: &[StackFrame]) -> Option<&StackFrame> {
    let mut from_innermost = stack.iter().rev();
    from_innermost
        .find(|frame| frame.is_user_code)
        .or_else(|| stack.last())
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a `String` cannot fail.
    let _ = html.write_fmt(text);
}

#[cfg(test)]
mod tests;
