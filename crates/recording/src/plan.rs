//! A plan: the combinations that were rehearsed to make a job fit, and the recommended one.

use serde::{Deserialize, Serialize};

/// The candidates of a plan, best first, and what the job needs as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    pub candidates: Vec<PlanCandidate>,
    /// The most that a candidate may need: the card without what others use of it.
    pub available_bytes: u64,
    /// The job's peak without a change, by category.
    pub before: Vec<CategoryBytes>,
}

/// One combination that was rehearsed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanCandidate {
    /// What changes, in a few words: "bf16 autocast, 6 blocks checkpointed".
    pub what: String,
    /// Its peak on the card.
    pub peak_bytes: u64,
    /// The predicted time for the same samples, relative to the job as it is; null if unknown.
    pub relative_time: Option<f64>,
    pub fits: bool,
    /// It is the recommended one.
    pub chosen: bool,
    /// What it does to the numbers: a class of `ghostgpu tricks`.
    pub numbers: String,
    /// The peak by category.
    pub categories: Vec<CategoryBytes>,
}

/// The part of one category in a peak.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CategoryBytes {
    /// The name of a [`Category`](crate::Category), `rounding` or `cached` for the rest of PyTorch's memory, or `outside`
    /// for memory that is not PyTorch's.
    pub category: String,
    pub bytes: u64,
}

impl Plan {
    /// The candidate that is recommended.
    pub fn chosen(&self) -> Option<&PlanCandidate> {
        self.candidates.iter().find(|candidate| candidate.chosen)
    }
}
