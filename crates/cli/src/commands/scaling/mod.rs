//! How the memory of a job grows with its batch and with its sequence: found by running it at a few sizes,
//! on a card whose memory does not end.

mod measure;
mod sequence;

use ghostgpu_session::ProbePlace;
use serde::Serialize;

use super::max_batch::growth_sentences;
use crate::probing::growth::{Growth, growth};
use crate::probing::{Outcome, Peaks};

pub use measure::measure;

/// Which sizes of a job are to be changed, and where.
#[derive(Clone, Debug)]
pub struct Wish {
    pub batch: ProbePlace,
    pub sequence: SequencePlace,
}

/// Where the length of sequences is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequencePlace {
    /// A script of ours, which takes it with the batch.
    Own,
    /// An argument of the script's.
    Argument(String),
    /// Nowhere: the batches are cut to fewer tokens as they come from the `DataLoader`.
    InBatches,
}

/// The part of the answer about growth.
#[derive(Debug, Serialize)]
pub struct Scaling {
    pub batch: Sizes,
    pub sequence: Sizes,
}

/// What was tried of one size, and what follows from it.
#[derive(Debug, Default, Serialize)]
pub struct Sizes {
    /// Where the size was set, in words.
    pub set_through: Option<String>,
    /// The job's own.
    pub own: Option<u64>,
    /// In rising order.
    pub tried: Vec<Tried>,
    /// How peak allocated grows.
    pub growth: Option<Growth>,
    pub unknown_because: Option<String>,
}

/// One size that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    pub size: u64,
    #[serde(flatten)]
    pub peaks: Option<Peaks>,
    /// Why there are no figures.
    pub failed_because: Option<String>,
}

impl Sizes {
    pub fn unknown(because: impl Into<String>) -> Self {
        Self {
            unknown_because: Some(because.into()),
            ..Self::default()
        }
    }

    fn of(set_through: String, own: u64, tried: Vec<Tried>) -> Self {
        let points: Vec<(u64, u64)> = tried
            .iter()
            .filter_map(|each| Some((each.size, each.peaks?.allocated_bytes)))
            .collect();
        let growth = growth(&points);
        let unknown_because = match (
            &growth,
            tried.iter().find_map(|each| each.failed_because.clone()),
        ) {
            (Some(_), _) => None,
            (None, Some(because)) => Some(format!("the job fails at other sizes: {because}")),
            (None, None) => Some("it could be run at one size only".to_owned()),
        };
        Self {
            set_through: Some(set_through),
            own: Some(own),
            tried,
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
            .tried
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

impl Tried {
    fn new(size: u64, outcome: &Outcome) -> Self {
        Self {
            size,
            peaks: outcome.peaks().copied(),
            failed_because: match outcome {
                Outcome::Fits(_) => None,
                Outcome::DoesNotFit(place) => Some(format!("out of memory {place}")),
                Outcome::Fails { because, .. } => Some(because.clone()),
            },
        }
    }
}

impl Scaling {
    pub fn unknown(because: &str) -> Self {
        Self {
            batch: Sizes::unknown(because),
            sequence: Sizes::unknown(because),
        }
    }

    /// The end of the text report.
    pub fn text(&self) -> String {
        let mut sheet = crate::terminal::sheet();
        sheet.list("by batch", &self.batch.sentences("batch", "sample"));
        sheet.list("by sequence", &self.sequence.sentences("sequence", "token"));
        sheet.render()
    }
}

/// Sizes below and above one that is asked about.
fn around(size: u64, most: Option<u64>) -> Vec<u64> {
    let mut sizes = vec![
        size / 4,
        size / 2,
        size,
        size.saturating_mul(3) / 2,
        size.saturating_mul(2),
    ];
    sizes.retain(|&each| each > 0 && most.is_none_or(|most| each <= most));
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_tried_on_both_sides_as_far_as_they_go() {
        assert_eq!(around(32, None), [8, 16, 32, 48, 64]);
        assert_eq!(around(512, Some(512)), [128, 256, 512]);
        assert_eq!(around(1, None), [1, 2]);
        assert_eq!(around(8, Some(4)), [2, 4]);
    }

    fn fits(size: u64, allocated_bytes: u64) -> Tried {
        let peaks = Peaks {
            allocated_bytes,
            reserved_bytes: allocated_bytes,
            device_bytes: allocated_bytes,
        };
        Tried::new(size, &Outcome::Fits(peaks))
    }

    #[test]
    fn a_size_that_fails_is_named_beside_those_that_do_not() {
        let failed = Outcome::Fails {
            because: "RuntimeError: shape".to_owned(),
            code: 1,
        };
        let tried = vec![
            fits(8, 90 << 20),
            fits(16, 100 << 20),
            fits(32, 120 << 20),
            Tried::new(64, &failed),
        ];
        let sizes = Sizes::of("the argument --length".to_owned(), 16, tried);
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
        let one = Sizes::of("here".to_owned(), 1, vec![fits(1, 5)]);
        assert_eq!(
            one.sentences("batch", "sample"),
            ["unknown: it could be run at one size only"]
        );
        let none = Sizes::unknown("there is no batch");
        assert_eq!(
            none.sentences("batch", "sample"),
            ["unknown: there is no batch"]
        );
    }
}
