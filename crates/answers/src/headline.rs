//! The line that every answer begins with: does it fit?

use ghostgpu_text::human;

use crate::fits::Answer;
use crate::look::{Colour, Look};
use ghostgpu_recording::Verdict;
use ghostgpu_text::Sheet;

/// What the first line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Stands in the column of labels.
    pub word: &'static str,
    pub colour: Colour,
    pub text: String,
}

impl Headline {
    pub fn of(answer: &Answer) -> Self {
        let gpu = &answer.gpu;
        match answer.fits {
            Some(true) => Self::fitting(
                answer.peak_device_bytes,
                &gpu.name,
                gpu.total_bytes,
                gpu.count,
            ),
            Some(false) => Self::not_fitting(
                answer.needed_device_bytes,
                &gpu.name,
                gpu.total_bytes,
                gpu.count,
            ),
            None => Self::unknown(unknown_because(answer)),
        }
    }

    pub fn fitting(needed_bytes: u64, card: &str, total_bytes: u64, count: usize) -> Self {
        Self {
            word: "fits",
            colour: Colour::Good,
            text: format!(
                "needs {}, {}",
                human(needed_bytes),
                cards(card, total_bytes, count)
            ),
        }
    }

    pub fn not_fitting(
        needed_bytes: Option<u64>,
        card: &str,
        total_bytes: u64,
        count: usize,
    ) -> Self {
        Self {
            word: "does not fit",
            colour: Colour::Bad,
            text: match needed_bytes {
                Some(bytes) => format!(
                    "needs {}, {}",
                    human(bytes),
                    cards(card, total_bytes, count)
                ),
                None => format!("needs more: {}", cards(card, total_bytes, count)),
            },
        }
    }

    pub fn unknown(text: String) -> Self {
        Self {
            word: "unknown",
            colour: Colour::Unknown,
            text,
        }
    }

    /// Adds the line to a sheet.
    pub fn add(&self, sheet: &mut Sheet) {
        sheet.paragraph(self.word, &self.text);
    }

    /// The line alone, for `--quiet`; it is not wrapped.
    pub fn alone(&self, look: Look) -> String {
        let mut sheet = look.sheet();
        sheet.section(self.word, [self.text.clone()]);
        self.paint(&sheet, look)
    }

    /// A sheet that begins with this line, with its word in colour.
    pub fn paint(&self, sheet: &Sheet, look: Look) -> String {
        look.paint_label(self.word, self.colour, &sheet.render())
    }
}

fn cards(name: &str, total_bytes: u64, count: usize) -> String {
    match count {
        0 | 1 => format!("{name} has {}", human(total_bytes)),
        count => format!("{count} × {name} have {} each", human(total_bytes)),
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
