//! What the library and the agent write to the run folder.
//!
//! * `agent-<pid>.json`: one [`ProcessReport`] per Python process that used CUDA, written by the
//!   agent when the process ends (to a temporary name first, then renamed).
//! * `notes-<pid>.jsonl`: one [`Note`] per line, appended by the library as things happen.
//! * `card.usage`: the cards' memory counters, shared by all processes of the run.

use serde::{Deserialize, Serialize};

/// One thing the stand-in library has to tell the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Note {
    /// An assumption of the answer.
    Assumption { text: String },
    /// Ranks cannot go on together; a real job would hang or fail. `is_consequence` if this is only because another rank
    /// has ended, which that rank may have reported itself.
    Ranks { text: String, is_consequence: bool },
    /// A process has become this rank of a job. If it then ends without a report, it was killed or exited hard.
    Rank { rank: u32, process: u32 },
    /// The script called a function that is not simulated.
    Refused { function: String, library: String },
}

/// The highest values of PyTorch's allocator statistics on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatorPeaks {
    pub device: u32,
    pub peak_allocated_bytes: u64,
    pub peak_reserved_bytes: u64,
    /// How many times the allocator flushed its cache and retried.
    pub retries: u64,
    /// How many blocks were handed out.
    pub allocations: u64,
}

/// How much of a card PyTorch may use, according to the memory fraction that the script set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    pub device: u32,
    pub limit_bytes: u64,
    /// The card's memory, of which the limit is a part.
    pub total_bytes: u64,
}

/// The allocator's peaks since the start of the script, at the end of an optimizer step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPeaks {
    pub step: u64,
    pub devices: Vec<AllocatorPeaks>,
}

/// One frame of the Python stack, innermost last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    pub file: String,
    pub line: u64,
    pub function: String,
    /// The source text of the line, if it could be read.
    pub source: Option<String>,
    /// The frame belongs to the user's own code, not to an installed package or Python itself.
    pub is_user_code: bool,
}

/// An out-of-memory error raised by PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomReport {
    pub device: u32,
    /// What the allocator asked the card for.
    pub requested_bytes: u64,
    /// PyTorch's message; empty if the script caught the error before the agent could read it.
    pub message: String,
    /// Optimizer steps completed before it.
    pub step: u64,
    /// `setup`, `moving the model`, `forward`, `backward`, `optimizer step` or `evaluation`.
    pub stage: String,
    pub stack: Vec<StackFrame>,
    /// Whether it ended the script. If not, it was caught, and the script went on.
    pub is_fatal: bool,
    /// The part of the training it was in, if coverage is followed and it was not in the first steps.
    #[serde(default)]
    pub moment: Option<TrainingPart>,
}

/// What the agent saw in one Python process.
///
/// A field that is missing from the file has its default, so that an incomplete report can still be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessReport {
    pub pid: u32,
    /// The name of the script that it ran, without its folder.
    pub script: Option<String>,
    pub torch: Option<String>,
    pub torch_cuda: Option<String>,
    pub cudnn: Option<String>,
    /// Architectures the installed torch ships code for, such as `sm_90`.
    pub code_architectures: Vec<String>,
    /// Completed optimizer steps.
    pub steps: u64,
    /// The rehearsal ended the script after its extent.
    pub stopped_by_step_limit: bool,
    pub peaks: Vec<AllocatorPeaks>,
    pub memory_limits: Vec<MemoryLimit>,
    pub step_peaks: Vec<StepPeaks>,
    pub ooms: Vec<OomReport>,
    /// How often PyTorch ran out of memory for a workspace and went on with a smaller one.
    pub workspace_retries: u64,
    /// Assumptions of the answer, one sentence each.
    pub assumptions: Vec<String>,
    /// Refused calls, each with the user's line if known.
    pub refused: Vec<RefusedCall>,
    /// The exception that ended the script, if one did (`KeyError: 'x'`).
    pub exception: Option<String>,
    /// The user's line that raised it, as `train.py:41`.
    pub exception_at: Option<String>,
    /// The user's line at which `SIGTERM` found the process.
    pub terminated_at: Option<String>,
    /// Of a launcher: how the processes ended that made it give up.
    pub child_exits: Vec<ChildExit>,
    /// Remarks that do not affect the answer: redirected checkpoints, faults of the agent.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Why memory was not recorded although it was requested.
    pub unrecorded: Option<String>,
    /// `CUDA_VISIBLE_DEVICES` when the process ended, because the script may set it itself.
    pub visible_devices: Option<String>,
    /// The size point, if the session asks for one.
    pub size_point: Option<SizePointReport>,
    /// What each requested change did.
    pub changes: Vec<ChangeReport>,
    /// Which parts of the training were reached, if the session asks for coverage.
    pub coverage: Option<Coverage>,
    /// The training data, if there is a loader of known length.
    pub training_data: Option<TrainingData>,
    /// The sum of all allocations, freed or not. It is equal only in runs that do the same.
    pub total_allocated_bytes: u64,
    /// How many lines made tensors whose size depends on unknown values.
    pub assumed_sizes: u64,
    /// The process's rank and the number of ranks, if it made a process group.
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    /// The groups that the job made, if not all of its ranks are run.
    pub families: Vec<GroupFamily>,
    /// For every rank of the job, the first rank whose shards have the same sizes; empty if parameters are not sharded
    /// over a mesh.
    pub shards: Vec<u32>,
    /// The line of a loop that waits for an unknown value, if the agent ended the script there.
    pub waits_at: Option<String>,
    /// The message of a trick that ended the script because it cannot be applied correctly.
    pub refused_trick: Option<TrickRefusal>,
    /// Why the script declines what it was asked to do, if it does: `estimate`, whose script is ours.
    pub declined: Option<Declined>,
}

/// How a process ended, as the one that started it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildExit {
    pub pid: u32,
    /// Negative: the signal that ended it.
    pub exit_code: i32,
}

/// What a script says that declines, and what the user may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declined {
    pub sentence: String,
    pub hint: Option<String>,
}

/// Why a trick ended the script, for the user to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrickRefusal {
    pub reason: String,
    pub alternative: String,
}

/// Groups of ranks along one dimension of a job: of equal size and disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFamily {
    pub groups: Vec<Vec<u32>>,
    /// Members send messages to single other members, as stages of a pipeline do.
    pub has_messages: bool,
}

/// The data of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingData {
    /// Samples of one pass.
    pub samples: u64,
    /// Samples of one batch of the loader.
    pub batch: Option<u64>,
}

/// Which parts of a training a rehearsal reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// In the order in which they were first reached; each part once.
    pub covered: Vec<Covered>,
    pub not_reached: Vec<NotReached>,
    /// Batches were skipped in some passes.
    pub is_shortened: bool,
    /// Batches were skipped in training passes, so the training has more steps than were rehearsed.
    pub is_training_shortened: bool,
    /// How many optimizer steps the shortened passes skipped, in a training that ran to its end; `None` if unknown.
    #[serde(default)]
    pub left_out_steps: Option<u64>,
    /// When nothing new was seen any more, later epochs were still sampled, and showed nothing new either.
    pub later_passes_are_alike: bool,
    /// Training batches differ in size, not counting the last one of a pass.
    #[serde(default)]
    pub do_batches_vary: bool,
    /// Memory grew with every training batch, all of one size, up to the last that was rehearsed, and more batches were
    /// skipped. The text says by how much, as a sentence without its full stop.
    pub growth_cut_short: Option<String>,
}

/// A part of a training that was rehearsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    pub part: TrainingPart,
    /// A detail in a few words: `9`, `16×512`.
    pub detail: String,
}

/// A part of a training that was not rehearsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotReached {
    pub part: TrainingPart,
    /// As a sentence ending: `the time budget of 60 s was spent`.
    pub because: String,
}

/// A part of a training that matters to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrainingPart {
    Steps,
    LargestBatch,
    SmallestBatch,
    /// The last batch of a pass over the training data.
    LastBatch,
    Evaluation,
    Checkpoint,
    /// The first steps after the end of a pass, evaluation and checkpoint included.
    NextEpoch,
    EndOfScript,
}

impl TrainingPart {
    /// As users read it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Steps => "optimizer steps",
            Self::LargestBatch => "largest batch",
            Self::SmallestBatch => "smallest batch",
            Self::LastBatch => "last batch",
            Self::Evaluation => "evaluation",
            Self::Checkpoint => "checkpoint",
            Self::NextEpoch => "next epoch",
            Self::EndOfScript => "end of the script",
        }
    }
}

/// What a requested change did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeReport {
    /// As in the session.
    pub name: String,
    /// What was done, in words; `None` if there was nothing to change.
    pub did: Option<String>,
    /// A line of code with the same effect.
    pub line: Option<String>,
    /// Why it changes the results of this script, although it usually does not.
    pub other_results: Option<String>,
}

/// The agent's report about a size point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SizePointReport {
    /// The batch was set, or is about to be.
    pub is_found: bool,
    /// The place in words: `the DataLoader iterated at train.py:41`.
    pub place: String,
    /// The script's own batch there.
    pub batch: Option<u64>,
    /// How many samples a pass over the data has, if known.
    pub samples: Option<u64>,
    /// Tokens per sample, reported by GhostGPU's own script or seen in batches, and the largest possible number.
    pub seq: Option<u64>,
    pub longest_seq: Option<u64>,
    /// Which tensors of a batch are that long, in words.
    pub seq_place: String,
    /// Why batches have no sequence to cut.
    pub no_sequence_because: Option<String>,
    /// The loader drops incomplete batches.
    pub drops_last: bool,
    /// Why the batch cannot be set there, in a sentence.
    pub problem: Option<String>,
    /// Why the script cannot be forked there.
    pub unforkable: Option<String>,
    /// A loader was iterated, but only without gradients.
    pub has_other_loader: bool,
    /// Options of the script's command line that look as if they set a batch.
    pub batch_options: Vec<String>,
    /// Options that resemble the named one, if the script does not have that one.
    pub similar_options: Vec<String>,
}

/// A call that the stand-in refused, and where the script made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    pub function: String,
    pub stack: Vec<StackFrame>,
}

/// A file that the script wrote, such as a checkpoint of zeros.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenFile {
    pub path: std::path::PathBuf,
    /// A checkpoint that is a folder full of files.
    #[serde(default)]
    pub is_folder: bool,
    /// The script's file of this name is in the run folder; a file at `path` itself is not the script's.
    #[serde(default)]
    pub is_redirected: bool,
    /// The script deleted it with its contents; a file at `path` now is not the script's.
    #[serde(default)]
    pub is_deleted: bool,
    /// Not a written file, but the folder in which the script runs.
    #[serde(default)]
    pub is_workplace: bool,
    /// Another rehearsal, which began at this time (in seconds since 1970), left the folder to this one.
    #[serde(default)]
    pub since: Option<f64>,
}
