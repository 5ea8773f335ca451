//! The answer in one sentence, and what belongs to it, as HTML that needs no script to be read.
//!
//! The rehearsal's answer is a document from a file: a key that is missing or of another kind leaves its
//! sentence out, and where nothing is known about fitting, the recording's own peak is said.

use std::fmt::Write;

use ghostgpu_recording::Recording;
use serde_json::Value;

use super::escape::Escaped;
use super::sweep::Swept;
use ghostgpu_text::human;

pub(super) struct Answer {
    document: Value,
    gpu: String,
    gpu_total_bytes: u64,
    /// The most that was in use on any card, as the rehearsal says.
    peak_device_bytes: u64,
    /// The same, as the recording says.
    recorded_peak_bytes: u64,
}

impl Answer {
    pub fn new(recording: &Recording, swept: &[Swept]) -> Self {
        let document: Value =
            serde_json::from_str(&recording.about.answer_json).unwrap_or(Value::Null);
        let recorded_peak = recording
            .cards
            .iter()
            .zip(swept)
            .map(|(card, swept)| {
                let reserved = swept.reserved_peak.reserved_bytes;
                reserved.saturating_add(card.outside_bytes)
            })
            .max()
            .unwrap_or(0);
        Self {
            peak_device_bytes: document["peak_device_bytes"]
                .as_u64()
                .unwrap_or(recorded_peak),
            gpu: match recording.about.gpu.as_str() {
                "" => "the card".to_owned(),
                name => name.to_owned(),
            },
            gpu_total_bytes: recording.about.gpu_total_bytes,
            recorded_peak_bytes: recorded_peak,
            document,
        }
    }

    /// `fits`, `misfit` or `unknown`: what the sentence is coloured by.
    pub fn class(&self) -> &'static str {
        match self.document["fits"].as_bool() {
            Some(true) => "fits",
            Some(false) => "misfit",
            None => "unknown",
        }
    }

    /// The verdict in a word or two, and the figures behind it; both plain text.
    pub fn sentence(&self) -> (&'static str, String) {
        // A number and its unit stay on one line.
        let size = |bytes| human(bytes).replace(' ', "\u{a0}");
        let (gpu, total) = (&self.gpu, human(self.gpu_total_bytes));
        let peak = human(self.peak_device_bytes);
        let needed = self.document["needed_device_bytes"].as_u64().map(size);
        match (self.document["fits"].as_bool(), needed) {
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

    /// Where memory ran out, as HTML; empty when it did not.
    pub fn out_of_memory(&self) -> String {
        let oom = &self.document["oom"];
        let Some(requested) = oom["requested_bytes"].as_u64() else {
            return String::new();
        };
        let mut html = String::from("<p class=\"failed\"><strong>Out of memory</strong>");
        if let (Some(step), Some(stage)) = (oom["step"].as_u64(), oom["stage"].as_str()) {
            let step = step.saturating_add(1);
            push(
                &mut html,
                format_args!(" in step {step} ({})", Escaped(stage)),
            );
        }
        if let Some(frame) = user_frame(oom["stack"].as_array().map_or(&[], Vec::as_slice)) {
            let file = frame["file"].as_str().unwrap_or("?");
            let line = frame["line"].as_u64().unwrap_or(0);
            push(
                &mut html,
                format_args!(", at <code>{}:{line}</code>", Escaped(file)),
            );
            if let Some(source) = frame["source"].as_str().map(str::trim) {
                push(
                    &mut html,
                    format_args!(": <code>{}</code>", Escaped(source)),
                );
            }
        }
        push(
            &mut html,
            format_args!(
                ". It asked for <data value=\"{requested}\">{}</data>.</p>",
                human(requested)
            ),
        );
        if let Some(message) = oom["message"].as_str().filter(|text| !text.is_empty()) {
            push(
                &mut html,
                format_args!(
                    "<details class=\"words\"><summary>PyTorch's own words</summary><p>{}</p></details>",
                    Escaped(message)
                ),
            );
        }
        html
    }

    /// A job that does not fit is recorded where it does: on a card without an end. As HTML.
    pub fn other_run(&self) -> &'static str {
        let is_misfit = self.document["fits"].as_bool() == Some(false);
        if is_misfit && self.recorded_peak_bytes > self.gpu_total_bytes {
            "<p class=\"rehearsed\">All figures and charts below are of a second run, on a card with \
             unlimited memory: they show what the job needs.</p>"
        } else {
            ""
        }
    }

    /// What the figures rest on, as HTML.
    pub fn remarks(&self, warnings: &[String]) -> String {
        let texts = |key: &str| -> Vec<&str> {
            let list = self.document[key].as_array();
            list.map_or(&[][..], Vec::as_slice)
                .iter()
                .filter_map(Value::as_str)
                .collect()
        };
        let warnings: Vec<&str> = warnings.iter().map(String::as_str).collect();
        let mut html = String::new();
        for (title, sentences) in [
            ("Missing from this recording", warnings),
            ("Assumed", texts("assumptions")),
            ("Notes", texts("notes")),
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

/// The innermost line of the user's own code, else the innermost line; stacks are outermost first here.
fn user_frame(stack: &[Value]) -> Option<&Value> {
    stack
        .iter()
        .rev()
        .find(|frame| frame["is_user_code"].as_bool() == Some(true))
        .or_else(|| stack.last())
}

fn push(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a `String` cannot fail.
    let _ = html.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::About;

    use super::*;

    fn answer(json: &str) -> Answer {
        let recording = Recording {
            about: About {
                gpu: "T4".to_owned(),
                gpu_total_bytes: 15 << 30,
                answer_json: json.to_owned(),
                ..About::default()
            },
            ..Recording::default()
        };
        Answer::new(&recording, &[])
    }

    fn sentence(json: &str) -> String {
        let (verdict, figures) = answer(json).sentence();
        format!("{verdict} {figures}").replace('\u{a0}', " ")
    }

    #[test]
    fn the_sentence_says_what_is_known() {
        assert_eq!(
            sentence(r#"{"fits": true, "peak_device_bytes": 1073741824}"#),
            "It fits: T4 has 15.00 GiB, the job takes 1.00 GiB."
        );
        assert_eq!(
            sentence(r#"{"fits": false, "needed_device_bytes": 17179869184}"#),
            "It does not fit: T4 has 15.00 GiB, the job needs 16.00 GiB."
        );
        assert_eq!(
            sentence(r#"{"fits": false, "peak_device_bytes": 1073741824}"#),
            "It does not fit: T4 has 15.00 GiB, and 1.00 GiB were in use when a request failed."
        );
    }

    #[test]
    fn without_an_answer_only_the_peak_is_said() {
        for nothing in ["{}", "", "not json", "[1]", r#"{"fits": "yes"}"#] {
            assert_eq!(
                sentence(nothing),
                "Peak: 0 bytes in use on T4, which has 15.00 GiB."
            );
            assert_eq!(answer(nothing).out_of_memory(), "");
            assert_eq!(answer(nothing).remarks(&[]), "");
        }
    }

    #[test]
    fn a_failed_request_is_told_with_its_line_and_nothing_of_it_is_markup() {
        let json = r#"{"oom": {"requested_bytes": 2048, "step": 0, "stage": "forward", "message": "<b>",
            "stack": [{"file": "<i>.py", "line": 7, "source": " x = y ", "is_user_code": true},
                      {"file": "torch/f.py", "line": 9, "is_user_code": false}]}}"#;
        let html = answer(json).out_of_memory();
        assert!(
            html.contains(
                "in step 1 (forward), at <code>&lt;i&gt;.py:7</code>: <code>x = y</code>"
            )
        );
        assert!(html.contains("<p>&lt;b&gt;</p>"));
    }

    #[test]
    fn a_recording_beyond_the_card_is_said_to_be_of_another_run() {
        let mut misfit = answer(r#"{"fits": false}"#);
        assert_eq!(misfit.other_run(), "");
        misfit.recorded_peak_bytes = 16 << 30;
        assert!(misfit.other_run().contains("a second run"));
        let mut fitting = answer(r#"{"fits": true}"#);
        fitting.recorded_peak_bytes = 16 << 30;
        assert_eq!(fitting.other_run(), "");
    }

    #[test]
    fn warnings_and_assumptions_are_listed() {
        let html = answer(r#"{"assumptions": ["a & b", 7]}"#).remarks(&["late".to_owned()]);
        assert_eq!(
            html,
            "<h3>Missing from this recording</h3><ul><li>late</li></ul>\
             <h3>Assumed</h3><ul><li>a &amp; b</li></ul>"
        );
    }
}
