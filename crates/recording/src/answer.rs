//! The answer of a rehearsal: does it fit?

use ghostgpu_session::{AllocatorPeaks, Covered, NotReached, OomReport, RefusedCall, StepPeaks};
use serde::{Deserialize, Serialize};

use crate::plan::{CategoryBytes, Plan};

/// What a rehearsal came to, as plain data: the document of `ghostgpu run --json`, which `docs/run-json.md`
/// describes. The text of `run` and the report page show the same.
///
/// A field that is added keeps the version of the document; one that changes its meaning or goes raises it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Name and version of the document.
    pub schema: String,
    /// Null when the run ended before that was known.
    pub fits: Option<bool>,
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// Highest of any process on any device; null when no process could report.
    pub peak_allocated_bytes: Option<u64>,
    pub peak_reserved_bytes: Option<u64>,
    /// The least and the most that the peaks come to, where they depend on where the driver puts segments.
    pub peak_allocated_range_bytes: Option<[u64; 2]>,
    pub peak_reserved_range_bytes: Option<[u64; 2]>,
    /// Highest of any device, all processes, context and libraries included.
    pub peak_device_bytes: u64,
    /// What is left of the card beside what the job needs and `--reserve`; null where it does not fit or the need is
    /// not known.
    pub headroom_bytes: Option<u64>,
    /// How much has to be left for it to fit with room: `--margin`, or what is not exactly known of the card.
    pub margin_bytes: u64,
    /// What others hold of every card (`--reserve`).
    pub reserve_bytes: u64,
    /// The smallest card on which the job ends; null when unknown.
    pub needed_device_bytes: Option<u64>,
    pub needed_allocated_bytes: Option<u64>,
    /// The smallest memory for PyTorch with which the job ends.
    pub needed_reserved_bytes: Option<u64>,
    /// The smallest card on which PyTorch never flushes its cache.
    pub comfortable_device_bytes: Option<u64>,
    /// How often PyTorch flushed its cache on this card, for each step.
    pub cache_flushes_per_step: Option<f64>,
    /// The same with the smallest memory.
    pub needed_flushes_per_step: Option<f64>,
    /// With the smallest memory, convolutions take smaller workspaces than they would otherwise, and are slower.
    #[serde(default)]
    pub needed_with_smaller_workspaces: bool,
    /// Why the need is unknown.
    pub needed_unknown_because: Option<String>,
    /// How long a step takes on this card, in seconds: a prediction, whose error `docs/step-time.md` has. Null where
    /// no step was rehearsed.
    pub predicted_step_seconds: Option<f64>,
    pub steps: u64,
    pub stopped_by_step_limit: bool,
    /// What of a training was rehearsed; empty where the number of steps was given.
    pub covered: Vec<Covered>,
    pub not_reached: Vec<NotReached>,
    pub oom: Option<OomReport>,
    pub recovered_ooms: Vec<OomReport>,
    pub gpu: Gpu,
    pub torch: Option<String>,
    pub versions: Versions,
    /// What hangs on sizes that depend on values; null where none were assumed, or it was not looked for.
    pub assumed_sizes: Option<AssumedSizes>,
    /// Sentences on which the figures rest.
    pub assumptions: Vec<String>,
    /// Remarks on which they do not.
    pub notes: Vec<String>,
    pub refused: Vec<RefusedCall>,
    pub retries: u64,
    pub allocations: u64,
    pub devices: Vec<DevicePeak>,
    /// What each rank had, where the job has several.
    pub ranks: Vec<RankPeak>,
    /// The allocator's peaks on each device of the process that reserved most.
    pub allocator_peaks: Vec<AllocatorPeaks>,
    pub step_peaks: Vec<StepPeaks>,
    /// How many Python processes used torch.
    pub process_count: usize,
    /// The exception that ended the script.
    pub exception: Option<String>,
    /// The script's own code; 128 and the signal for one that was killed.
    pub script_exit_code: u8,
    pub exit_code: u8,
    /// What to do about it.
    pub next: Option<NextCommand>,
    /// The ways to make it fit that were rehearsed; not there where nobody looked for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
}

/// Sizes that depend on values nobody knows: the largest were assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AssumedSizes {
    /// How many lines of the script make something of such a size.
    pub lines: u64,
    /// The most that is allocated, as it was assumed.
    pub allocated_bytes: u64,
    /// The same with half of the assumed sizes.
    pub half_allocated_bytes: u64,
}

/// A command that leads on from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NextCommand {
    /// As a shell reads it.
    pub command: String,
    /// What it is good for, in a few words.
    pub finds: String,
}

/// Does it fit? In degrees, each with an exit code ([`Verdict::exit_code`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Fits,
    /// It ends, but flushes PyTorch's cache every step, or has less left than is known of the card.
    FitsTightly,
    /// It grows with every step, and the card is full before the training ends.
    WillRunOut,
    DoesNotFit,
    /// The script ran without the card.
    DidNotUseCard,
    /// The installed torch has no code for this card.
    CannotRun,
    /// What decides was not reached.
    NotKnown,
    /// The script ended with a code of its own.
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
    /// Whether it fits, where that is known.
    pub fn fits(self) -> Option<bool> {
        match self {
            Self::Fits | Self::FitsTightly => Some(true),
            Self::DoesNotFit | Self::WillRunOut => Some(false),
            _ => None,
        }
    }

    /// The exit code, where it does not depend on how the script ended.
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

/// Whose figures these are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Versions {
    pub ghostgpu: String,
    pub torch_cuda: Option<String>,
    pub cudnn: Option<String>,
    pub code_architectures: Vec<String>,
}

/// The most that was in use on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DevicePeak {
    pub device: usize,
    pub peak_device_bytes: u64,
    /// Of that, what processes hold beside the one that reserved most.
    pub other_processes_bytes: u64,
}

/// The most that one rank of a job had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankPeak {
    pub rank: u32,
    /// How many ranks the job has, those included that were not run.
    pub world_size: u32,
    /// The card on which it had most.
    pub device: usize,
    pub peak_allocated_bytes: u64,
    pub peak_reserved_bytes: u64,
    /// What it had of that card, with its context and libraries.
    pub peak_device_bytes: u64,
    pub steps: u64,
    /// It ended because memory ran out.
    pub ran_out: bool,
    /// What it had when most was allocated, by part; empty where that was not recorded.
    pub made_of: Vec<CategoryBytes>,
    /// It holds parts of parameters, and gathers them where a layer needs them whole.
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
        // Those of the document that are no part of the answer itself.
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
