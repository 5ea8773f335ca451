//! The answer in one sentence with its details, as HTML that is readable without scripts.

use ghostgpu_ledger::RanOut;
use ghostgpu_recording::{Answer, Recording, Source, Verdict};

use super::counted::{Counted, RunShown};
use super::escape::Escaped;
use super::{push, ran_out, size, unknown};

/// The texts at the top and the end of the page.
pub(super) struct Words<'a> {
    recording: &'a Recording,
    /// The rehearsal's own answer.
    answer: Option<&'a Answer>,
    counted: &'a [Counted<'a>],
}

impl<'a> Words<'a> {
    pub fn new(recording: &'a Recording, counted: &'a [Counted<'a>]) -> Self {
        Self {
            recording,
            answer: recording.about.answer.as_ref(),
            counted,
        }
    }

    /// `fits`, `tight`, `misfit` or `unknown`, which decides the colour of the sentence.
    pub fn class(&self) -> &'static str {
        match self.answer.map(|answer| (answer.verdict, answer.fits)) {
            Some((Verdict::FitsTightly, _)) => "tight",
            Some((_, Some(true))) => "fits",
            Some((_, Some(false)) | (Verdict::CannotRun, _)) => "misfit",
            None if self.failure().is_some() => "misfit",
            _ => "unknown",
        }
    }

    /// The verdict in a few words, and its figures; both plain text.
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
        let figures = match needed.map(size) {
            Some(needed) => format!("{gpu} has {total}, the job needs {needed}."),
            None => format!("{gpu} has {total}, the job takes {peak}."),
        };
        let seen = format!("{peak} in use on {gpu}, which has {total}.");
        let Some(answer) = self.answer else {
            return ("Peak:", seen);
        };
        match (answer.verdict, answer.fits) {
            (Verdict::FitsTightly, _) => ("It fits tightly:", figures),
            (Verdict::WillRunOut, _) => {
                let so_far = format!("{} so far.", figures.trim_end_matches('.'));
                ("It will run out of memory:", so_far)
            }
            (Verdict::DidNotUseCard, _) => ("It did not use the card:", seen),
            (Verdict::CannotRun, _) => ("It cannot run:", seen),
            (Verdict::NotKnown, _) => ("It is not known whether it fits:", seen),
            (_, Some(true)) => ("It fits:", figures),
            (_, Some(false)) if needed.is_none() => (
                "It does not fit:",
                format!("{gpu} has {total}, and {peak} were in use when a request failed."),
            ),
            (_, Some(false)) => ("It does not fit:", figures),
            (_, None) => ("Peak:", seen),
        }
    }

    /// The reason of the verdict as HTML; empty if the sentence says everything.
    pub fn reason(&self) -> String {
        match self.answer.map(|answer| answer.reason.trim()) {
            None | Some("") => String::new(),
            Some(reason) => {
                let stop = if reason.ends_with('.') { "" } else { "." };
                let mut letters = reason.chars();
                let first: String = letters
                    .next()
                    .into_iter()
                    .flat_map(char::to_uppercase)
                    .collect();
                let sentence = format!("{first}{}{stop}", letters.as_str());
                format!("<p class=\"reason\">{}</p>", Escaped(&sentence))
            }
        }
    }

    fn of_snapshot(&self) -> (&'static str, String) {
        if let Some(last) = self.failure() {
            let left = match last.failure.driver_free_bytes {
                Some(bytes) => format!(" and {} left on the card", size(bytes)),
                None => String::new(),
            };
            return (
                "Out of memory:",
                format!(
                    "a request for {} failed with {} reserved{left}.",
                    size(last.failure.requested_bytes),
                    size(last.accounts.reserved_bytes)
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

    /// The failed request of a snapshot.
    fn failure(&self) -> Option<&'a RanOut> {
        let is_snapshot = self.recording.about.source == Source::Snapshot;
        let found = ran_out::first(self.counted).filter(|_| is_snapshot);
        found.map(|(_, ran_out)| ran_out)
    }

    /// The highest peak of the recorded run on any card.
    fn recorded_peak_bytes(&self) -> u64 {
        let cards = self.counted.iter();
        let recorded = cards.filter(|counted| counted.run == RunShown::Recorded);
        let peaks = recorded.map(|counted| {
            let reserved = counted.peak_reserved.reserved_bytes;
            reserved.saturating_add(counted.card.outside_bytes)
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
                let steps = match about.steps {
                    0 => "no optimizer step completed".to_owned(),
                    1 => "1 optimizer step".to_owned(),
                    steps => format!("{steps} optimizer steps"),
                };
                facts.push(match self.recording.failed_run {
                    Some(_) => format!("{steps} with unlimited memory"),
                    None => steps,
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

    /// Which run is shown, as HTML; empty if there is only one. A job that does not fit is recorded again with unlimited
    /// memory.
    pub fn runs(&self) -> &'static str {
        let answer = self.answer;
        let is_misfit = answer.is_some_and(|answer| answer.verdict == Verdict::DoesNotFit);
        if self.recording.failed_run.is_some() {
            "<div class=\"runs\" role=\"group\" aria-label=\"Run\">\
             <button type=\"button\" data-run=\"failed\" aria-pressed=\"true\">Until it ran out of memory</button>\
             <button type=\"button\" data-run=\"recorded\" aria-pressed=\"false\">With unlimited memory</button></div>"
        } else if is_misfit && self.recorded_peak_bytes() > self.recording.about.gpu_total_bytes {
            "<p class=\"rehearsed\">All figures and charts below are of a second run, on a card with \
             unlimited memory.</p>"
        } else {
            ""
        }
    }

    /// Warnings and assumptions as HTML.
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

#[cfg(test)]
mod tests;
