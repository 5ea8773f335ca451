//! What is the largest batch that fits? The answer of `max-batch`, as data and as text.

mod none;

pub use none::{BeforeFirstBatch, NotEvenOne};

use serde::Serialize;

use crate::fits::Answer;
use crate::growth::growth_sentences;
use crate::headline::Headline;
use crate::one_line;
use crate::peak::figures;
use crate::style::{Colour, Detail, Style};
use ghostgpu_plan::growth::{Growth, growth};
use ghostgpu_plan::largest_batch::{Confirmation, Found};
use ghostgpu_recording::Verdict;
use ghostgpu_rehearse::{Outcome, Peaks, SizePoint};
use ghostgpu_text::{Sheet, Table, grouped, human};

/// The label of the first line.
const LABEL: &str = "largest batch";

/// Adding a field keeps the version; changing the meaning of a field or removing one raises it.
const SCHEMA: &str = "ghostgpu.max-batch/1";

/// The JSON document of `--json`, which `docs/run-json.md` describes; the text shows the same.
#[derive(Debug, Serialize)]
pub struct MaxBatch {
    /// Name and version of the document.
    pub schema: &'static str,
    pub largest_batch: Option<u64>,
    /// Where the batch was set, in words.
    pub set_through: String,
    /// The script's own batch there.
    pub own_batch: Option<u64>,
    /// The batch that contains all samples of the data.
    pub samples: Option<u64>,
    /// What the search left free of the card (`--margin`).
    pub margin_bytes: u64,
    /// What keeps the batch from being larger.
    pub limited_by: Limit,
    pub confirmation: Confirmation,
    /// Every batch that was rehearsed with the job's own extent or ran out of memory in its first steps, in ascending
    /// order.
    pub rehearsed: Vec<RehearsedBatch>,
    /// How peak allocated memory grows with the batch.
    pub growth: Option<Growth>,
    /// A smaller batch that does not fit: memory does not grow monotonically with the batch.
    pub smaller_that_does_not_fit: Option<u64>,
    /// Why every batch was a whole run of the script.
    pub not_forked: Option<String>,
    /// What `ghostgpu run` answers for the largest batch.
    pub answer: Answer,
    pub exit_code: u8,
}

/// What keeps a batch from being larger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Limit {
    /// A larger batch does not fit: where it runs out of memory, and in which part of the training.
    Memory {
        out_of_memory: String,
        part: Option<String>,
    },
    /// The script fails with a larger batch.
    Script { exception: String },
    /// Whether larger batches, up to this one, fit depends on where the driver places segments.
    Placement { fits_here: u64 },
    /// The data has no more samples.
    Data,
    /// The script does the same with every larger batch.
    SameBatch,
    /// `--at-most`.
    Asked,
}

/// One batch that was rehearsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RehearsedBatch {
    pub batch: u64,
    /// Null when the script failed for another reason.
    pub fits: Option<bool>,
    #[serde(flatten)]
    pub peaks: Option<Peaks>,
    /// Where it ran out of memory, or the exception.
    pub because: Option<String>,
}

impl MaxBatch {
    pub fn new(
        found: &Found,
        confirmation: Confirmation,
        margin_bytes: u64,
        answer: Answer,
    ) -> Self {
        let limited_by = match found.outcomes.range(found.batch + 1..).next() {
            Some((_, Outcome::Fails { reason, .. })) => Limit::Script {
                exception: reason.to_string(),
            },
            Some((_, Outcome::DoesNotFit(place))) => Limit::Memory {
                out_of_memory: place.to_string(),
                part: place.limiting_part(),
            },
            _ if found.lowered_from.is_some() => Limit::Placement {
                fits_here: found.lowered_from.unwrap_or_default(),
            },
            _ if found.samples == Some(found.batch) => Limit::Data,
            _ if found.is_all_there_is => Limit::SameBatch,
            _ => Limit::Asked,
        };
        let points: Vec<(u64, u64)> = found
            .outcomes
            .iter()
            .filter_map(|(&batch, outcome)| Some((batch, outcome.peaks()?.allocated_bytes)))
            .collect();
        Self {
            schema: SCHEMA,
            largest_batch: Some(found.batch),
            set_through: place_in_words(&found.point, &found.seen.place),
            own_batch: found.seen.batch,
            samples: found.samples,
            margin_bytes,
            limited_by,
            confirmation,
            rehearsed: found.outcomes.iter().map(RehearsedBatch::new).collect(),
            growth: growth(&points),
            smaller_that_does_not_fit: found.gap,
            not_forked: found.whole_because.as_ref().map(ToString::to_string),
            exit_code: match (confirmation, answer.verdict) {
                (Confirmation::Contradicts, _) => ghostgpu_rehearse::EXIT_FAILURE,
                // The largest batch naturally leaves little room.
                (_, Verdict::Fits | Verdict::FitsTightly) => 0,
                (_, verdict) => verdict
                    .exit_code()
                    .unwrap_or(ghostgpu_rehearse::EXIT_FAILURE),
            },
            answer,
        }
    }

    pub fn text(&self, style: Style) -> String {
        let batch = self.largest_batch.unwrap_or_default();
        let headline = self.headline(batch);
        let mut sheet = style.sheet();
        match style.detail {
            Detail::Quiet => return headline.alone(style),
            Detail::Screen => self.screen(&mut sheet, &headline, batch),
            Detail::Everything => self.everything(&mut sheet, &headline, batch),
        }
        headline.paint(&sheet, style)
    }

    fn headline(&self, batch: u64) -> Headline {
        let gpu = &self.answer.gpu;
        let (name, size) = (&gpu.name, human(gpu.total_bytes));
        let cards = match gpu.count {
            0 | 1 => format!("{name} ({size})"),
            // The batch of a rank's `DataLoader` is per rank.
            count if !self.answer.ranks.is_empty() => format!("each of {count} × {name} ({size})"),
            count => format!("{count} × {name} ({size} each)"),
        };
        Headline {
            word: LABEL.into(),
            colour: match self.exit_code {
                0 => Colour::Good,
                _ => Colour::Unknown,
            },
            text: match self.margin_bytes {
                0 => format!("{batch} on {cards}"),
                margin => format!("{batch} on {cards}, with {} to spare", human(margin)),
            },
        }
    }

    /// What fits one screen.
    fn screen(&self, sheet: &mut Sheet, headline: &Headline, batch: u64) {
        headline.add(sheet);
        let answer = &self.answer;
        sheet.section(
            "peak",
            [figures(
                answer.peak_allocated_bytes,
                answer.peak_reserved_bytes,
                answer.peak_device_bytes,
            )],
        );
        self.what_is_beyond(sheet, batch);
        if let Some(growth) = &self.growth {
            sheet.paragraph("grows", &growth_in_short(growth));
        }
        let set = match self.own_batch {
            Some(own) => format!("{} (its own batch is {own})", self.set_through),
            None => self.set_through.clone(),
        };
        sheet.paragraph("set through", &set);
        sheet.paragraph("confirmed", &self.confirmed(batch));
        one_line::add(sheet, "assumes", &answer.assumptions);
        one_line::add(sheet, "notes", &self.notes(batch));
    }

    fn everything(&self, sheet: &mut Sheet, headline: &Headline, batch: u64) {
        headline.add(sheet);
        let own = self
            .own_batch
            .map(|own| format!(", which has {own} itself"));
        sheet.paragraph(
            "set through",
            &format!("{}{}", self.set_through, own.unwrap_or_default()),
        );
        self.what_is_beyond(sheet, batch);
        sheet.paragraph("confirmed", &self.confirmed(batch));
        sheet.table("rehearsed", &self.table());
        if let Some(growth) = &self.growth {
            sheet.list("grows", &growth_sentences(growth, "batch", "sample"));
        }
        sheet.list("assumes", &self.answer.assumptions);
        sheet.list("notes", &self.notes(batch));
    }

    fn what_is_beyond(&self, sheet: &mut Sheet, batch: u64) {
        sheet.paragraph("beyond", &self.beyond(batch));
        if let Limit::Memory {
            part: Some(part), ..
        } = &self.limited_by
        {
            sheet.paragraph("limited by", part);
        }
    }

    fn notes(&self, batch: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.exit_code != 0 && !self.answer.reason.is_empty() {
            notes.push(self.answer.reason.clone());
        }
        for part in &self.answer.not_reached {
            notes.push(format!("not everything was rehearsed: {}", part.because));
        }
        if let Some(gap) = self.smaller_that_does_not_fit {
            notes.push(format!(
                "memory does not simply grow with the batch: {gap} does not fit, though {batch} does"
            ));
        }
        // Coverage goes on to a second pass, whose batches are full again.
        let drawn = batch.saturating_mul(self.answer.steps.max(1));
        let is_covered = !self.answer.covered.is_empty();
        if let Some(samples) = self
            .samples
            .filter(|samples| drawn > *samples && !is_covered)
        {
            notes.push(format!(
                "a pass over the data has only {samples} samples, so that later steps may have had \
                 smaller batches than {batch}"
            ));
        }
        if let Some(because) = &self.not_forked {
            notes.push(format!(
                "the script was started from the beginning for every batch, {because}"
            ));
        }
        notes.extend(self.answer.notes.iter().cloned());
        notes
    }

    fn beyond(&self, batch: u64) -> String {
        let next = batch + 1;
        match &self.limited_by {
            Limit::Memory { out_of_memory, .. } => {
                format!("{next} does not fit: out of memory {out_of_memory}")
            }
            Limit::Script { exception } => {
                format!("{next} makes the script fail, for another reason: {exception}")
            }
            Limit::Placement { fits_here } => format!(
                "up to {fits_here} fits here, but not on every machine: it depends on where the driver \
                 puts segments"
            ),
            Limit::Data => {
                format!(
                    "all {} samples of the data set are one batch",
                    grouped(batch)
                )
            }
            Limit::SameBatch => "the script does the same with every larger batch".to_owned(),
            Limit::Asked => "nothing larger was rehearsed (--at-most)".to_owned(),
        }
    }

    fn confirmed(&self, batch: u64) -> String {
        match self.confirmation {
            Confirmation::Equal => {
                format!("by a whole run with {batch}: the same figures to the byte")
            }
            Confirmation::FitsDifferently => format!(
                "by a whole run with {batch}, which fits, but has {} bytes on the card at most: \
                 the script does not do the same every time",
                grouped(self.answer.peak_device_bytes)
            ),
            Confirmation::NotCompared => format!("by a whole run with {batch}"),
            Confirmation::Contradicts => format!(
                "not: a whole run with {batch} does not fit, or fails; `--no-fork` searches with \
                 whole runs"
            ),
            Confirmation::FoundByRuns => "every batch was rehearsed as a whole run".to_owned(),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[">batch", ">allocated", ">reserved", ">on card", ""]);
        for each in &self.rehearsed {
            let figure = |bytes: Option<u64>| bytes.map(human).unwrap_or_default();
            let peaks = each.peaks;
            table.push(vec![
                each.batch.to_string(),
                figure(peaks.map(|peaks| peaks.allocated_bytes)),
                figure(peaks.map(|peaks| peaks.reserved_bytes)),
                figure(peaks.map(|peaks| peaks.device_bytes)),
                match each.fits {
                    Some(true) => "fits".to_owned(),
                    Some(false) => "does not fit".to_owned(),
                    None => "fails".to_owned(),
                },
            ]);
        }
        table
    }
}

impl RehearsedBatch {
    fn new((&batch, outcome): (&u64, &Outcome)) -> Self {
        let (fits, because) = match outcome {
            Outcome::Fits(_) => (Some(true), None),
            Outcome::DoesNotFit(place) => (Some(false), Some(place.to_string())),
            Outcome::Fails { reason, .. } => (None, Some(reason.to_string())),
        };
        Self {
            batch,
            fits,
            peaks: outcome.peaks().copied(),
            because,
        }
    }
}

/// The name of a size point in answers.
pub fn place_in_words(point: &SizePoint, place: &str) -> String {
    match point {
        SizePoint::Option(option) => format!("the argument {option}"),
        _ => place.to_owned(),
    }
}

/// Growth in half a line; the sentences say how certain it is.
fn growth_in_short(growth: &Growth) -> String {
    let each = human(growth.bytes_each.max(0) as u64);
    let is_line = growth.points >= 3 && growth.off_the_line.is_empty();
    match u64::try_from(growth.bytes_fixed) {
        Ok(fixed) if is_line => format!("{each} per sample, plus {}", human(fixed)),
        _ => format!(
            "{each} per sample between {} and {}",
            growth.linear_from, growth.linear_to
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::tests::fitting;
    use crate::style::{PLAIN, assert_fits_one_screen};

    fn answer() -> MaxBatch {
        let fits = |batch: u64| RehearsedBatch {
            batch,
            fits: Some(true),
            peaks: Some(Peaks {
                allocated_bytes: (100 + 10 * batch) << 20,
                reserved_bytes: (120 + 10 * batch) << 20,
                device_bytes: (600 + 10 * batch) << 20,
            }),
            because: None,
        };
        let points = [1, 2, 4, 64].map(|batch| (batch, (100 + 10 * batch) << 20));
        let mut answer = fitting();
        answer.assumptions = vec!["the CUDA context takes 254.00 MiB".to_owned()];
        let place = "in step 1 (forward), at src/model.py:41 in forward";
        MaxBatch {
            schema: SCHEMA,
            largest_batch: Some(64),
            set_through: "the DataLoader iterated at train.py:8".to_owned(),
            own_batch: Some(32),
            samples: Some(100),
            margin_bytes: 0,
            limited_by: Limit::Memory {
                out_of_memory: place.to_owned(),
                part: Some("the first step (forward) at src/model.py:41".to_owned()),
            },
            confirmation: Confirmation::Equal,
            rehearsed: vec![
                fits(1),
                fits(2),
                fits(4),
                fits(64),
                RehearsedBatch {
                    batch: 65,
                    fits: Some(false),
                    peaks: None,
                    because: Some(place.to_owned()),
                },
            ],
            growth: growth(&points),
            smaller_that_does_not_fit: None,
            not_forked: Some("because other threads are running".to_owned()),
            answer,
            exit_code: 0,
        }
    }

    #[test]
    fn the_largest_batch_is_told_on_one_screen_in_full_or_in_one_line() {
        let with = |detail| answer().text(Style { detail, ..PLAIN });
        let screen = with(Detail::Screen);
        assert_fits_one_screen(&screen);
        assert_eq!(with(Detail::Quiet).lines().count(), 1);
        let full = with(Detail::Everything);
        insta::assert_snapshot!(format!("{screen}\n--verbose\n{full}"));
    }
}
