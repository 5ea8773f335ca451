//! A plan: the ways to make a job fit that were rehearsed, and the one that is recommended.

use serde::{Deserialize, Serialize};

/// The candidates of a plan, best first, and what the job needs as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub candidates: Vec<PlanCandidate>,
    /// What a candidate may need at most: the card, less what others hold of it.
    pub available_bytes: u64,
    /// The most that the job needs without a change, by category.
    pub before: Vec<CategoryBytes>,
}

/// One way to make a job fit, as it was rehearsed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanCandidate {
    /// What changes, in a few words: "bf16 autocast, 6 blocks checkpointed".
    pub what: String,
    /// The most that is in use on the card.
    pub peak_bytes: u64,
    /// Predicted time for the same samples, in units of the job as it is; null where it is not known.
    pub relative_time: Option<f64>,
    pub fits: bool,
    /// The one that is recommended.
    pub chosen: bool,
    /// What it does to the numbers: a class of `ghostgpu tricks`.
    pub numbers: String,
    /// The peak by category.
    pub categories: Vec<CategoryBytes>,
}

/// What one category has of a peak.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CategoryBytes {
    /// The name of a [`Category`](crate::Category), `rounding` or `cached` for what PyTorch has beyond them, `outside`
    /// for what is not PyTorch's.
    pub category: String,
    pub bytes: u64,
}

impl Plan {
    /// The candidate that is recommended.
    pub fn chosen(&self) -> Option<&PlanCandidate> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }
}
