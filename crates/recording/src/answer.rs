//! The answer of a rehearsal: does it fit?

use ghostgpu_session::{AllocatorPeaks, Covered, NotReached, OomReport, RefusedCall, StepPeaks};
use serde::{Deserialize, Serialize};

use crate::plan::{CategoryBytes, Plan};

/// The answer of a rehearsal as data: the document of `ghostgpu run --json`, which `docs/run-json.md` describes. The text
/// of `run` and the report page show the same.
///
/// Adding a field keeps the version of the document; changing the meaning of a field or removing one raises it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Name and version of the document.
    pub schema: String,
    /// Null if the run ended before that was known.
    pub fits: Option<bool>,
    pub verdict: Verdict,
    /// The reason, in a sentence.
    pub reason: String,
    /// The highest of any process on any device; null if no process reported.
    pub peak_allocated_bytes: Option<u64>,
    pub peak_reserved_bytes: Option<u64>,
    /// The range of the peak, if it depends on where the driver places segments.
    pub peak_allocated_range_bytes: Option<[u64; 2]>,
    pub peak_reserved_range_bytes: Option<[u64; 2]>,
    /// The highest of any device: all processes, with context and libraries.
    pub peak_device_bytes: u64,
    /// What is left of the card after the job's need and `--reserve`; null if it does not fit or the need is unknown.
    pub headroom_bytes: Option<u64>,
    /// How much must be left for it to count as fitting: `--margin`, or the uncertainty of the card's figures.
    pub margin_bytes: u64,
    /// What others use of every card (`--reserve`).
    pub reserve_bytes: u64,
    /// The smallest card on which the job completes; null if unknown.
    pub needed_device_bytes: Option<u64>,
    pub needed_allocated_bytes: Option<u64>,
    /// The part of it that is PyTorch's.
    pub needed_reserved_bytes: Option<u64>,
    /// The smallest card on which PyTorch never flushes its cache.
    pub comfortable_device_bytes: Option<u64>,
    /// How often PyTorch flushed its cache per step on this card.
    pub cache_flushes_per_step: Option<f64>,
    /// The same with the smallest memory.
    pub needed_flushes_per_step: Option<f64>,
    /// With the smallest memory, convolutions fall back to smaller workspaces and are slower.
    #[serde(default)]
    pub needed_with_smaller_workspaces: bool,
    /// Why the need is unknown.
    pub needed_unknown_because: Option<String>,
    /// The predicted time of a step on this card, in seconds; `docs/step-time.md` gives the error. Null if no step was
    /// rehearsed.
    pub predicted_step_seconds: Option<f64>,
    pub steps: u64,
    pub stopped_by_step_limit: bool,
    /// The parts of the training that were rehearsed; empty if the number of steps was given.
    pub covered: Vec<Covered>,
    pub not_reached: Vec<NotReached>,
    pub oom: Option<OomReport>,
    pub recovered_ooms: Vec<OomReport>,
    /// How often PyTorch ran out of memory for a workspace and went on with a smaller one.
    #[serde(default)]
    pub workspace_retries: u64,
    pub gpu: Gpu,
    pub torch: Option<String>,
    pub versions: Versions,
    /// What depends on assumed sizes; null if none were assumed, or if that was not measured.
    pub assumed_sizes: Option<AssumedSizes>,
    /// Assumptions behind the figures, in sentences.
    pub assumptions: Vec<String>,
    /// Remarks that do not affect the figures.
    pub notes: Vec<String>,
    pub refused: Vec<RefusedCall>,
    pub retries: u64,
    pub allocations: u64,
    pub devices: Vec<DevicePeak>,
    /// The peak of each rank, if the job has several.
    pub ranks: Vec<RankPeak>,
    /// The allocator's peaks on each device of the process that reserved most.
    pub allocator_peaks: Vec<AllocatorPeaks>,
    pub step_peaks: Vec<StepPeaks>,
    /// How many Python processes used torch.
    pub process_count: usize,
    /// The exception that ended the script.
    pub exception: Option<String>,
    /// The script's own exit code; 128 plus the signal if it was killed.
    pub script_exit_code: u8,
    pub exit_code: u8,
    /// The command to type next.
    pub next: Option<NextCommand>,
    /// The plan for making it fit, if one was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

/// Sizes that depend on unknown values, which are assumed to be the largest possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AssumedSizes {
    /// How many lines of the script make tensors of such sizes.
    pub lines: u64,
    /// Peak allocated memory with the assumed sizes.
    pub allocated_bytes: u64,
    /// The same with half of the assumed sizes.
    pub half_allocated_bytes: u64,
}

/// A command that may follow an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NextCommand {
    /// Quoted for a shell.
    pub command: String,
    /// What it does, in a few words.
    pub finds: String,
}

/// Does it fit? In degrees, each with an exit code ([`Verdict::exit_code`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Fits,
    /// It completes, but PyTorch flushes its cache in every step, or less than the margin is left.
    FitsTightly,
    /// Memory grows with every step, and the card is full before the training ends.
    WillRunOut,
    DoesNotFit,
    /// The script ran without the card.
    DidNotUseCard,
    /// The installed torch has no code for this card.
    CannotRun,
    /// A decisive part of the training was not reached.
    NotKnown,
    /// The script ended with a nonzero exit code.
    #[default]
    ScriptFailed,
    /// The script was killed by a signal that was not ours.
    ScriptKilled,
    TimedOut,
    /// The script stopped at a call that is not simulated.
    Refused,
    /// The library was not loaded into the script.
    PreloadBlocked,
}

impl Verdict {
    /// Whether it fits, if known.
    pub fn fits(self) -> Option<bool> {
        match self {
            Self::Fits | Self::FitsTightly => Some(true),
            Self::DoesNotFit | Self::WillRunOut => Some(false),
            _ => None,
        }
    }

    /// The exit code, unless it depends on how the script ended.
    pub fn exit_code(self) -> Option<u8> {
        Some(match self {
            Self::Fits => 0,
            Self::TimedOut | Self::Refused | Self::PreloadBlocked => 2,
            Self::DoesNotFit => 3,
            Self::FitsTightly => 4,
            Self::WillRunOut => 5,
            Self::DidNotUseCard => 6,
            Self::CannotRun => 7,
            Self::NotKnown => 8,
            Self::ScriptFailed | Self::ScriptKilled => return None,
        })
    }
}

/// The virtual card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    pub name: String,
    pub total_bytes: u64,
    pub capability: String,
    pub count: usize,
}

/// The versions behind the figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Versions {
    pub ghostgpu: String,
    pub torch_cuda: Option<String>,
    pub cudnn: Option<String>,
    pub code_architectures: Vec<String>,
}

/// The peak use of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DevicePeak {
    pub device: usize,
    pub peak_device_bytes: u64,
    /// The part of it that other processes than the main one used.
    pub other_processes_bytes: u64,
}

/// The peak of one rank of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankPeak {
    pub rank: u32,
    /// How many ranks the job has, including those that were not run.
    pub world_size: u32,
    /// The card on which it used most.
    pub device: usize,
    pub peak_allocated_bytes: u64,
    pub peak_reserved_bytes: u64,
    /// What it used of that card, with its context and libraries.
    pub peak_device_bytes: u64,
    pub steps: u64,
    /// It ended because memory ran out.
    pub ran_out: bool,
    /// Its memory at its peak, by part; empty if it was not recorded.
    pub made_of: Vec<CategoryBytes>,
    /// It holds shards of parameters, and gathers whole ones when a layer needs them.
    pub is_sharded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_fields_are_those_of_the_document_that_is_described() {
        let described = include_str!("../../../docs/run-json.md");
        let with_plan = Answer {
            plan: Some(Plan::default()),
            ..Answer::default()
        };
        let answer = serde_json::to_value(with_plan).expect("an answer");
        let fields: Vec<&String> = answer.as_object().expect("fields").keys().collect();
        assert!(fields.len() > 25);
        for field in fields {
            assert!(described.contains(&format!("`{field}`")), "{field}");
        }
        // The fields of the document that do not belong to the answer itself.
        let others = ["breakdown", "breakdown_missing_because", "grows_with"];
        let table = described
            .split("\n## ")
            .find(|part| part.contains("`schema`"));
        for line in table.unwrap_or_default().lines() {
            let Some(cell) = line.strip_prefix("| `") else {
                continue;
            };
            let first = cell.split('`').next().unwrap_or_default();
            let is_known = answer.get(first).is_some() || others.contains(&first);
            assert!(is_known, "{first}");
        }
    }
}
