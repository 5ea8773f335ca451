//! What the library and the agent leave behind in the run's folder.
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
    /// The answer rests on this sentence.
    Assumption { text: String },
    /// Ranks cannot go on together: what a real job would hang or fail for. `is_consequence` if another rank has
    /// only ended, which it may have told itself.
    Ranks { text: String, is_consequence: bool },
    /// A process has become this rank of a job. One that then ends without a report was killed, or ended itself
    /// without a word.
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
    /// How many times the allocator gave its cache back and tried again.
    pub retries: u64,
    /// How many blocks were handed out.
    pub allocations: u64,
}

/// How much of a card PyTorch may take, by a memory fraction that the script has set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    pub device: u32,
    pub limit_bytes: u64,
    /// What the card has: the limit is a part of that.
    pub total_bytes: u64,
}

/// The allocator's peaks when an optimizer step had ended, since the start of the script.
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
    /// PyTorch's own words; empty when the script swallowed the error before we could read them.
    pub message: String,
    /// Optimizer steps completed before it.
    pub step: u64,
    /// `setup`, `moving the model`, `forward`, `backward`, `optimizer step` or `evaluation`.
    pub stage: String,
    pub stack: Vec<StackFrame>,
    /// The script ended because of it. False: it was caught, and the script went on.
    pub is_fatal: bool,
    /// What of a training it was, where that is followed and it was none of the first steps.
    #[serde(default)]
    pub moment: Option<TrainingPart>,
}

/// What the agent saw in one Python process.
///
/// A field that is missing from the file has its default: a report written by a process in
/// trouble still says what it can.
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
    /// The rehearsal ended the script after the steps that were asked for.
    pub stopped_by_step_limit: bool,
    pub peaks: Vec<AllocatorPeaks>,
    pub memory_limits: Vec<MemoryLimit>,
    pub step_peaks: Vec<StepPeaks>,
    pub ooms: Vec<OomReport>,
    /// Sentences on which the answer rests.
    pub assumptions: Vec<String>,
    /// Refused calls, each with the user's line if known.
    pub refused: Vec<RefusedCall>,
    /// The exception that ended the script, if one did (`KeyError: 'x'`).
    pub exception: Option<String>,
    /// Remarks the answer does not rest on: checkpoints that were redirected, faults of the agent.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Why whose memory it is was not recorded, though it was asked for.
    pub unrecorded: Option<String>,
    /// `CUDA_VISIBLE_DEVICES` at the process's end: the script itself may have set it.
    pub visible_devices: Option<String>,
    /// What was seen of the place at which a batch was to be set, if one was.
    pub size_point: Option<SizePointReport>,
    /// What became of the changes that were to be made.
    pub changes: Vec<ChangeReport>,
    /// What of a training was seen, where that was asked for.
    pub coverage: Option<Coverage>,
    /// What the script trains with, where it has a loader whose end is known.
    pub training_data: Option<TrainingData>,
    /// Everything that was ever allocated, freed or not: equal only in runs that do the same.
    pub total_allocated_bytes: u64,
    /// How many lines made something whose size depends on values that are not known.
    pub assumed_sizes: u64,
    /// Which rank of its job the process was, if it made a process group, and how many there were.
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    /// The groups that the job made, where not all of its ranks are run.
    pub families: Vec<GroupFamily>,
    /// For every rank of the job the first whose parts of the parameters are as large; empty where parameters are not
    /// spread over a mesh.
    pub shards: Vec<u32>,
    /// The line of a loop that waits for a value, at which the agent ended the script.
    pub waits_at: Option<String>,
    /// What a trick that cannot be right for the script has said, where one ended it.
    pub refused_trick: Option<TrickRefusal>,
}

/// Why a trick ended the script, for the user to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrickRefusal {
    pub reason: String,
    pub alternative: String,
}

/// Groups of ranks along one dimension of a job: equally large, with nothing in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFamily {
    pub groups: Vec<Vec<u32>>,
    /// Members send something to each other alone, as stages of a pipeline do.
    pub has_messages: bool,
}

/// The data of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingData {
    /// Of one pass.
    pub samples: u64,
    /// How many of them the loader puts into one batch.
    pub batch: Option<u64>,
}

/// What a rehearsal saw of a training, and what it did not come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// In the order in which it was first seen; each part once.
    pub covered: Vec<Covered>,
    pub not_reached: Vec<NotReached>,
    /// Batches were left out of passes over data.
    pub is_shortened: bool,
    /// Batches were left out of passes over training data: there are more steps than were made.
    pub is_training_shortened: bool,
    /// How many optimizer steps the shortened passes left out of a training that came to its end; none where that
    /// cannot be known.
    #[serde(default)]
    pub left_out_steps: Option<u64>,
    /// Later epochs were begun when nothing new was seen any more, and showed nothing new either.
    pub later_passes_are_alike: bool,
    /// Training batches have several sizes, the last one of a pass aside.
    #[serde(default)]
    pub do_batches_vary: bool,
    /// Memory grew with every training batch, all of one size, up to the last that was rehearsed, and others were left
    /// out: by how much, in a sentence without its full stop.
    pub growth_cut_short: Option<String>,
}

/// A part of a training that was rehearsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    pub part: TrainingPart,
    /// What of it, in a few words: `9`, `16×512`.
    pub detail: String,
}

/// A part of a training that was not rehearsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotReached {
    pub part: TrainingPart,
    /// As the end of a sentence: `the time budget of 60 s was spent`.
    pub because: String,
}

/// What a training consists of, as far as memory is concerned.
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

/// What became of a change that was to be made to what the script does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangeReport {
    /// As in the session.
    pub name: String,
    /// What was done, in words; none if there was no place for it.
    pub did: Option<String>,
    /// What to write in the script to the same effect.
    pub line: Option<String>,
    /// Why this script's results are others with it, though they usually are the same.
    pub other_results: Option<String>,
}

/// What the agent saw of the place at which it was to set the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SizePointReport {
    /// The batch was set, or is about to be.
    pub is_found: bool,
    /// The place in words: `the DataLoader iterated at train.py:41`.
    pub place: String,
    /// The script's own batch there.
    pub batch: Option<u64>,
    /// How many samples a pass over the data has, where that can be known.
    pub samples: Option<u64>,
    /// Tokens of a sample, where a script of ours says so or batches were seen to have them, and the most
    /// that there may be.
    pub seq: Option<u64>,
    pub longest_seq: Option<u64>,
    /// Which tensors of a batch are that long, in words.
    pub seq_place: String,
    /// Why a batch has no length that could be cut.
    pub no_sequence_because: Option<String>,
    /// Batches that are not full are left out.
    pub drops_last: bool,
    /// Why the batch cannot be set there, in a sentence.
    pub problem: Option<String>,
    /// Why the script cannot be forked there.
    pub unforkable: Option<String>,
    /// A loader was iterated, but only without gradients.
    pub has_other_loader: bool,
    /// Options of the script's command line that look as if they set a batch.
    pub batch_options: Vec<String>,
    /// Options that resemble the one that was named, which the script does not have.
    pub similar_options: Vec<String>,
}

/// A call that the stand-in refused, and where the script made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    pub function: String,
    pub stack: Vec<StackFrame>,
}

/// A file that the script wrote: a checkpoint of zeros, say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenFile {
    pub path: std::path::PathBuf,
    /// A checkpoint that is a folder full of files.
    #[serde(default)]
    pub is_folder: bool,
    /// The script's file of this name lies in the run's folder; the one under the name is somebody else's.
    #[serde(default)]
    pub is_redirected: bool,
    /// The script deleted it, and what was in it: whatever is there now is somebody else's.
    #[serde(default)]
    pub is_deleted: bool,
    /// Not written at all: the folder in which the script runs.
    #[serde(default)]
    pub is_workplace: bool,
    /// Another rehearsal, which began then (in seconds since 1970), left the folder to this one.
    #[serde(default)]
    pub since: Option<f64>,
}
