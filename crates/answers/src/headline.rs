//! The first line of every answer: does it fit, how much does it need, how much is left?

use std::borrow::Cow;

use ghostgpu_text::{human, wrap};

use crate::fits::Answer;
use crate::style::{Colour, Style};
use ghostgpu_recording::Verdict;
use ghostgpu_text::Sheet;

/// The first line of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The word in the column of labels.
    pub word: Cow<'static, str>,
    pub colour: Colour,
    pub text: String,
}

impl Headline {
    pub fn fitting(needed_bytes: u64, card: &str, total_bytes: u64, count: usize) -> Self {
        let text = format!(
            "needs {} of {}",
            human(needed_bytes),
            cards(card, total_bytes, count, 0)
        );
        Self::plain(Verdict::Fits, text)
    }

    /// The headline of a job that completed, by its verdict.
    pub fn judged(verdict: Verdict, needed_bytes: u64, card: &str, total_bytes: u64) -> Self {
        let fitting = Self::fitting(needed_bytes, card, total_bytes, 1);
        let mut line = Self::plain(verdict, fitting.text);
        match verdict {
            Verdict::NotKnown => line.text = line.text.replacen("needs", "needs at least", 1),
            Verdict::WillRunOut => line.text += " so far",
            _ => {}
        }
        line
    }

    pub fn not_fitting(
        needed_bytes: Option<u64>,
        card: &str,
        total_bytes: u64,
        count: usize,
    ) -> Self {
        let has = match count {
            0 | 1 => format!("{} has {}", short_name(card), human(total_bytes)),
            count => format!(
                "{count} × {} have {} each",
                short_name(card),
                human(total_bytes)
            ),
        };
        let text = match needed_bytes {
            Some(bytes) => format!("needs {}, {has}", human(bytes)),
            None => format!("needs more: {has}"),
        };
        Self::plain(Verdict::DoesNotFit, text)
    }

    pub fn unknown(text: String) -> Self {
        Self::plain(Verdict::ScriptFailed, text)
    }

    fn plain(verdict: Verdict, text: String) -> Self {
        let (word, colour) = word(verdict);
        Self {
            word: word.into(),
            colour,
            text,
        }
    }

    /// Adds the line to a sheet.
    pub fn add(&self, sheet: &mut Sheet) {
        sheet.paragraph(&self.word, &self.text);
    }

    /// Only this line, for `--quiet`; it is not wrapped.
    pub fn alone(&self, style: Style) -> String {
        let mut sheet = style.sheet();
        sheet.section(&self.word, [self.text.clone()]);
        self.paint(&sheet, style)
    }

    /// A sheet that begins with this line, with its word in colour.
    pub fn paint(&self, sheet: &Sheet, style: Style) -> String {
        style.paint_label(&self.word, self.colour, &sheet.render())
    }
}

/// The headline of a verdict, with its reason or with what is left of the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictHeadline {
    line: Headline,
    detail: Option<String>,
    /// The text after the headline says the same in more detail.
    is_detail_below: bool,
}

impl VerdictHeadline {
    pub fn of(answer: &Answer) -> Self {
        let gpu = &answer.gpu;
        let because = Some(answer.reason.clone()).filter(|reason| !reason.is_empty());
        let (text, detail) = match answer.verdict {
            Verdict::Fits | Verdict::FitsTightly => (needs("needs", answer), because),
            Verdict::WillRunOut => (needs("needs", answer) + " so far", because),
            Verdict::NotKnown => (needs("needs at least", answer), because),
            Verdict::DoesNotFit => {
                let needed = answer.needed_device_bytes;
                let total = gpu.total_bytes.saturating_sub(answer.reserve_bytes);
                let name = less(&gpu.name, answer.reserve_bytes);
                let line = Headline::not_fitting(needed, &name, total, gpu.count);
                (line.text, because)
            }
            _ => (answer.reason.clone(), None),
        };
        Self {
            line: Headline::plain(answer.verdict, text),
            detail,
            is_detail_below: answer.verdict == Verdict::DoesNotFit,
        }
    }

    /// Adds it to a sheet: on one line if there is room, else with the detail below.
    pub fn add(&self, sheet: &mut Sheet) {
        let width = sheet.text_width();
        let text = &self.line.text;
        let Some(detail) = self.detail.as_deref().filter(|_| !self.is_detail_below) else {
            return self.line.add(sheet);
        };
        let one = self.in_one_line();
        let lines = match one.chars().count() <= width {
            true => vec![one],
            false => [wrap(text, width), wrap(detail, width)].concat(),
        };
        sheet.section(&self.line.word, lines);
    }

    /// Only the headline, for `--quiet`: one line, which is not wrapped.
    pub fn alone(&self, style: Style) -> String {
        let mut sheet = style.sheet();
        sheet.section(&self.line.word, [self.in_one_line()]);
        self.paint(&sheet, style)
    }

    fn in_one_line(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.line.text),
            None => self.line.text.clone(),
        }
    }

    /// A sheet that begins with it, with its word in colour.
    pub fn paint(&self, sheet: &Sheet, style: Style) -> String {
        self.paint_text(&sheet.render(), style)
    }

    /// A text that begins with it, with its word in colour.
    pub fn paint_text(&self, text: &str, style: Style) -> String {
        style.paint_label(&self.line.word, self.line.colour, text)
    }
}

/// The word for a verdict in the column of labels.
pub(crate) fn word(verdict: Verdict) -> (&'static str, Colour) {
    match verdict {
        Verdict::Fits => ("fits", Colour::Good),
        Verdict::FitsTightly => ("fits tightly", Colour::Unknown),
        Verdict::WillRunOut => ("will run out", Colour::Bad),
        Verdict::DoesNotFit => ("does not fit", Colour::Bad),
        Verdict::DidNotUseCard => ("card not used", Colour::Unknown),
        Verdict::CannotRun => ("cannot run", Colour::Bad),
        Verdict::NotKnown => ("not known", Colour::Unknown),
        Verdict::ScriptFailed
        | Verdict::ScriptKilled
        | Verdict::TimedOut
        | Verdict::Refused
        | Verdict::PreloadBlocked => ("unknown", Colour::Unknown),
    }
}

/// `needs 5.21 GiB of 11.76 GiB (GeForce RTX 3060)`.
fn needs(how: &str, answer: &Answer) -> String {
    // If the need is unknown, the peak is given instead; less may be enough.
    let (how, bytes) = match answer.needed_device_bytes {
        Some(bytes) => (how, bytes),
        None => ("took", answer.peak_device_bytes),
    };
    let gpu = &answer.gpu;
    format!(
        "{how} {} of {}",
        human(bytes),
        cards(&gpu.name, gpu.total_bytes, gpu.count, answer.reserve_bytes)
    )
}

/// The memory that the job may use, and the card.
fn cards(name: &str, total_bytes: u64, count: usize, reserve_bytes: u64) -> String {
    let capacity = human(total_bytes.saturating_sub(reserve_bytes));
    let name = short_name(name);
    let name = match count {
        0 | 1 => name.to_owned(),
        count => format!("each of {count} × {name}"),
    };
    format!("{capacity} ({})", less(&name, reserve_bytes))
}

/// The card's name, with what others use of it.
fn less(name: &str, reserve_bytes: u64) -> String {
    match reserve_bytes {
        0 => name.to_owned(),
        reserve => format!("{name} less {}", human(reserve)),
    }
}

/// A card's name without the vendor, which is the same for all.
fn short_name(name: &str) -> &str {
    name.strip_prefix("NVIDIA ").unwrap_or(name)
}
