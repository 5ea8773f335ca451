//! What the command line asks of the library and the agent.

use std::path::{Path, PathBuf};

use ghostgpu_device::DeviceSheet;
use ghostgpu_tricks::Request as TrickRequest;
use serde::{Deserialize, Serialize};

/// The environment variable that holds the path of the session file.
///
/// A process that has the library preloaded but not this variable sees no CUDA device at all:
/// neither a virtual one nor, since the real driver is never opened, a real one.
pub const SESSION_VARIABLE: &str = "GHOSTGPU_SESSION";

/// Where convolution and attention sizes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CudnnSource {
    /// Ask the user's own cuDNN, in a child process, through its documented deviceless mode.
    Installed,
    /// Use recorded and modelled sizes only.
    Recorded,
}

/// What unknown values, which do not follow from the host, read as. The agent implements the policy (`plausible.py`), and
/// `docs/values.md` describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownValues {
    /// Ordinary numbers, and checks that find nothing unusual.
    #[default]
    Plausible,
    Zero,
}

/// One rehearsal, as the command line describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// A folder private to this run; removed by the command line afterwards.
    pub run_dir: PathBuf,
    /// The virtual cards, in device order, before `CUDA_VISIBLE_DEVICES` is applied.
    pub devices: Vec<DeviceSheet>,
    /// Allocations beyond the card's memory succeed and are counted, to find the need of a job that does not fit.
    pub unlimited_memory: bool,
    /// Stop after this many optimizer steps; 0 runs the script to its end.
    pub steps: u64,
    /// Shorten passes over data, and stop when nothing new is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageRequest>,
    /// Write every simulated call with its arguments to this file.
    pub call_log: Option<PathBuf>,
    pub cudnn: CudnnSource,
    /// The program that asks the installed cuDNN: `ghostgpu-cudnn`, beside the command line.
    pub cudnn_program: Option<PathBuf>,
    /// Persistent answers of the installed cuDNN; may be shared between runs.
    pub cudnn_cache_dir: Option<PathBuf>,
    /// Sizes recorded on real cards (`ghostgpu calibrate`); later tables take precedence.
    #[serde(default)]
    pub library_sizes: Vec<PathBuf>,
    /// The user asked for files written by the script to be kept.
    pub keep_checkpoints: bool,
    /// Run CPU weight initialisation in full, even where it only feeds the virtual card.
    pub full_initialisation: bool,
    /// Record whose memory it is: see [`memory_log`](crate::memory_log).
    #[serde(default)]
    pub attribution: bool,
    /// Run the script with other sizes than its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_point: Option<SizePointRequest>,
    /// The socket to which a copy of the script connects, made just before the script first uses the card. It waits
    /// there and forks for every further rehearsal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_socket: Option<PathBuf>,
    /// What unknown values read as.
    #[serde(default)]
    pub values: UnknownValues,
    /// Sizes that depend on unknown values are half as large as usually assumed.
    #[serde(default)]
    pub halves_sizes: bool,
    /// Tricks that the agent applies while the script runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tricks: Vec<TrickRequest>,
    /// Set if the job has several nodes or not all of its ranks are run: the agent starts them instead of the launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksRequest>,
    /// What NCCL takes of every card, if not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nccl_bytes: Option<u64>,
}

/// Which ranks of a job are run on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanksRequest {
    pub nodes: u32,
    /// How many cards a node has. The session lists the cards of all nodes whose ranks are run, node by node.
    pub cards_per_node: u32,
    /// The nodes have more cards than can be simulated. So the session has the cards of one node, followed by one card
    /// per rank, which replaces the node's card that the rank uses.
    pub shares_nodes: bool,
    pub chosen: ChosenRanks,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChosenRanks {
    All,
    /// The first and the last.
    Ends,
    /// These, in ascending order.
    Listed(Vec<u32>),
}

/// How the agent covers a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageRequest {
    /// The time budget for training steps, beginning with the first.
    pub budget_ms: u64,
    /// Skip batches in the middle of passes. Off for a script that fails with that.
    pub shortens_passes: bool,
    /// Do not sample later epochs: another rehearsal has shown that they show nothing new.
    #[serde(default)]
    pub skips_later_passes: bool,
    /// Only the first and last batches of a pass, evaluation, and one step after it: another rehearsal has shown that
    /// this gives the same figures.
    #[serde(default)]
    pub is_brief: bool,
}

/// How the agent changes the script's sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizePointRequest {
    pub place: SizePoint,
    /// The batch to use in this process.
    pub batch: Option<u64>,
    /// The tokens that batches are cut to in this process.
    #[serde(default)]
    pub seq: Option<u64>,
    /// The socket on which to ask for batches instead. The agent connects when the script reaches the size point, and
    /// forks for each batch that it is sent.
    pub socket: Option<PathBuf>,
}

/// Where the batch is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizePoint {
    /// The `DataLoader` that is first iterated with gradients enabled.
    TrainingLoader,
    /// The `DataLoader` that is first iterated at all.
    FirstLoader,
    /// The command line's option of this name: the script is forked when it reads its arguments.
    Option(String),
    /// In GhostGPU's own script (`estimate`), which marks its size point itself.
    Own,
}

/// Why a session file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    #[error("cannot read the session file {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the session file {path} is not valid: {source}")]
    Parse {
        path: PathBuf,
        source: serde_json::Error,
    },
}

impl Session {
    /// A session with these cards and defaults for everything else.
    pub fn plain(run_dir: PathBuf, devices: Vec<DeviceSheet>) -> Self {
        Self {
            run_dir,
            devices,
            unlimited_memory: false,
            steps: 0,
            coverage: None,
            call_log: None,
            cudnn: CudnnSource::Recorded,
            cudnn_program: None,
            cudnn_cache_dir: None,
            library_sizes: Vec::new(),
            keep_checkpoints: false,
            full_initialisation: false,
            attribution: false,
            size_point: None,
            copy_socket: None,
            values: UnknownValues::default(),
            halves_sizes: false,
            tricks: Vec::new(),
            ranks: None,
            nccl_bytes: None,
        }
    }

    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let text = std::fs::read(path).map_err(|source| LoadError::Read {
            path: path.to_owned(),
            source,
        })?;
        serde_json::from_slice(&text).map_err(|source| LoadError::Parse {
            path: path.to_owned(),
            source,
        })
    }
}
