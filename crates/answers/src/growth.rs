//! How memory grows with batch and sequence, as JSON and as text.

use ghostgpu_plan::growth::{Growth, Scaling as Measured, Series};
use ghostgpu_rehearse::{Outcome, Peaks};
use ghostgpu_text::{grouped, human};
use serde::Serialize;

use crate::style::Style;

/// The part of the answer about growth.
#[derive(Debug, Serialize)]
pub struct Scaling {
    batch: Sizes,
    sequence: Sizes,
}

/// The rehearsals of one kind of size, and the growth that follows from them.
#[derive(Debug, Default, Serialize)]
struct Sizes {
    /// Where the size was set, in words.
    set_through: Option<String>,
    /// The job's own size.
    own: Option<u64>,
    /// In ascending order.
    rehearsed: Vec<RehearsedSize>,
    /// How peak allocated memory grows.
    growth: Option<Growth>,
    unknown_because: Option<String>,
}

/// One size that was rehearsed.
#[derive(Clone, Debug, Serialize)]
struct RehearsedSize {
    size: u64,
    #[serde(flatten)]
    peaks: Option<Peaks>,
    /// Why there are no figures.
    failed_because: Option<String>,
}

impl Scaling {
    pub fn new(measured: &Measured) -> Self {
        Self {
            batch: Sizes::of(&measured.batch),
            sequence: Sizes::of(&measured.sequence),
        }
    }

    /// The section about growth, at the end of the text.
    pub fn text(&self, style: Style) -> String {
        let mut sheet = style.sheet();
        sheet.list("by batch", &self.batch.sentences("batch", "sample"));
        sheet.list("by sequence", &self.sequence.sentences("sequence", "token"));
        sheet.render()
    }
}

impl Sizes {
    fn of(series: &Series) -> Self {
        let (set_through, own, outcomes) = match series {
            Series::Measured {
                set_through,
                own,
                outcomes,
            } => (set_through, own, outcomes),
            Series::Unknown(because) => {
                return Self {
                    unknown_because: Some(because.to_string()),
                    ..Self::default()
                };
            }
        };
        let rehearsed: Vec<RehearsedSize> = outcomes
            .iter()
            .map(|(size, outcome)| RehearsedSize::new(*size, outcome))
            .collect();
        let growth = series.growth();
        let failed = rehearsed
            .iter()
            .find_map(|each| each.failed_because.as_ref());
        let unknown_because = match (&growth, failed) {
            (Some(_), _) => None,
            (None, Some(because)) => Some(format!("the job fails at other sizes: {because}")),
            (None, None) => Some("it could be run at one size only".to_owned()),
        };
        Self {
            set_through: Some(set_through.to_string()),
            own: Some(*own),
            rehearsed,
            growth,
            unknown_because,
        }
    }

    fn sentences(&self, size: &str, one: &str) -> Vec<String> {
        if let Some(because) = &self.unknown_because {
            return vec![format!("unknown: {because}")];
        }
        let mut sentences = match &self.growth {
            Some(growth) => growth_sentences(growth, size, one),
            None => Vec::new(),
        };
        let failed = self
            .rehearsed
            .iter()
            .find_map(|each| Some((each.size, each.failed_because.as_ref()?)));
        if let Some((size, because)) = failed {
            sentences.push(format!("with {size} the job fails: {because}"));
        }
        if let Some(place) = &self.set_through {
            sentences.push(format!("set through {place}"));
        }
        sentences
    }
}

impl RehearsedSize {
    fn new(size: u64, outcome: &Outcome) -> Self {
        Self {
            size,
            peaks: outcome.peaks().copied(),
            failed_because: match outcome {
                Outcome::Fits(_) => None,
                Outcome::DoesNotFit(place) => Some(format!("out of memory {place}")),
                Outcome::Fails { reason, .. } => Some(reason.to_string()),
            },
        }
    }
}

/// Sentences about the growth, and how certain it is.
pub fn growth_sentences(growth: &Growth, size: &str, one: &str) -> Vec<String> {
    let each = growth.bytes_each.max(0) as u64;
    let (from, to) = (growth.linear_from, growth.linear_to);
    if growth.points < 3 && growth.off_the_line.is_empty() {
        return vec![format!(
            "each {one} takes {} between {from} and {to}; two sizes do not show whether that is linear",
            human(each)
        )];
    }
    if growth.points < 3 {
        let first = growth.bytes_each_at_first.max(0) as u64;
        return vec![
            format!(
                "not linear: each {one} takes {} at the smallest sizes, {} between {from} and {to}",
                human(first),
                human(each)
            ),
            off_the_line(growth),
        ];
    }
    let fixed = match growth.bytes_fixed {
        fixed @ 0.. => format!(
            "and {} ({} bytes) do not depend on the {size}",
            human(fixed as u64),
            grouped(fixed as u64)
        ),
        below => format!(
            "which would leave {} less than nothing for none: below {from} it grows more slowly",
            human(below.unsigned_abs())
        ),
    };
    let mut sentences = vec![
        format!(
            "each {one} takes {} ({} bytes), {fixed}",
            human(each),
            grouped(each)
        ),
        format!(
            "linear from {from} to {to}: {} sizes are at most {} off that line",
            growth.points,
            human(growth.largest_error_bytes)
        ),
    ];
    if !growth.off_the_line.is_empty() {
        sentences.push(off_the_line(growth));
    }
    sentences
}

fn off_the_line(growth: &Growth) -> String {
    let named: Vec<String> = growth
        .off_the_line
        .iter()
        .map(|off| {
            let side = if off.bytes < 0 { "below" } else { "above" };
            format!("{} is {} {side}", off.size, human(off.bytes.unsigned_abs()))
        })
        .collect();
    format!("not on that line: {}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_plan::growth::{NoSeries, SetThrough, growth};
    use ghostgpu_rehearse::Reason;

    fn sentences(points: &[(u64, u64)]) -> String {
        let found = growth(points).expect("two sizes or more");
        growth_sentences(&found, "batch", "sample").join("; ")
    }

    #[test]
    fn a_line_is_told_with_what_does_not_grow() {
        let points = [1, 2, 4, 8].map(|size| (size, (100 + 10 * size) << 20));
        assert_eq!(
            sentences(&points),
            "each sample takes 10.00 MiB (10,485,760 bytes), and 100.00 MiB (104,857,600 bytes) do \
             not depend on the batch; linear from 1 to 8: 4 sizes are at most 0 bytes off that line"
        );
    }

    #[test]
    fn what_is_no_line_is_not_called_one() {
        let squares = [1, 2, 4, 8].map(|size| (size, (size * size) << 20));
        let text = sentences(&squares);
        assert!(text.starts_with("not linear: each sample takes 3.00 MiB at the smallest sizes"));
        assert!(text.contains("not on that line: 1 is"), "{text}");
        let two = [1, 4].map(|size| (size, size << 20));
        assert!(sentences(&two).ends_with("two sizes do not show whether that is linear"));
    }

    fn fits(size: u64, allocated_bytes: u64) -> (u64, Outcome) {
        let peaks = Peaks {
            allocated_bytes,
            reserved_bytes: allocated_bytes,
            device_bytes: allocated_bytes,
        };
        (size, Outcome::Fits(peaks))
    }

    fn series(outcomes: Vec<(u64, Outcome)>) -> Sizes {
        Sizes::of(&Series::Measured {
            set_through: SetThrough::Argument("--length".to_owned()),
            own: 16,
            outcomes,
        })
    }

    #[test]
    fn a_size_that_fails_is_named_beside_those_that_do_not() {
        let failed = Outcome::Fails {
            reason: Reason::Exception("RuntimeError: shape".to_owned()),
            code: 1,
        };
        let sizes = series(vec![
            fits(8, 90 << 20),
            fits(16, 100 << 20),
            fits(32, 120 << 20),
            (64, failed),
        ]);
        let text = sizes.sentences("sequence", "token").join("; ");
        assert!(text.starts_with("each token takes 1.25 MiB"), "{text}");
        assert!(
            text.contains("with 64 the job fails: RuntimeError: shape"),
            "{text}"
        );
        assert!(
            text.ends_with("set through the argument --length"),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_known_says_why() {
        assert_eq!(
            series(vec![fits(1, 5)]).sentences("batch", "sample"),
            ["unknown: it could be run at one size only"]
        );
        let none = Sizes::of(&Series::Unknown(NoSeries::NoSequences));
        assert_eq!(
            none.sentences("sequence", "token"),
            ["unknown: the model takes no sequences"]
        );
    }
}
