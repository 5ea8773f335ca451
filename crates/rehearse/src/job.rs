//! What is to be rehearsed, as plain data.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ghostgpu_session::UnknownValues;

use crate::TrickRequest;

/// A command on a card, with its limits.
///
/// These defaults are the only ones: the command line and every other caller take theirs from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The script with its arguments, or a command such as `python -m pkg.train`.
    pub command: Vec<OsString>,
    /// The name of the card; `prepare` fails without one.
    pub card: Option<String>,
    /// Another amount of memory than the card's own.
    pub memory_bytes: Option<u64>,
    /// What others (a desktop, another job) use of every card.
    pub reserve_bytes: u64,
    /// How many such cards a machine has.
    pub card_count: u32,
    /// How many such machines the job is started on.
    pub nodes: u32,
    /// Which ranks of the job are run.
    pub ranks: RankChoice,
    /// What NCCL takes of every card, if not the default.
    pub nccl_bytes: Option<u64>,
    pub extent: Extent,
    /// The python to use, if not the first that has torch.
    pub python: Option<OsString>,
    pub timeout: Option<Duration>,
    /// Weight initialisation runs in full, even where it only feeds the virtual card.
    pub has_full_initialisation: bool,
    /// What unknown values read as.
    pub values: UnknownValues,
    /// The installed cuDNN is asked for workspace sizes.
    pub asks_cudnn: bool,
    /// Tables of library sizes recorded on a real card; later ones take precedence.
    pub library_sizes: Vec<PathBuf>,
    /// Every CUDA call is logged to this file. The path must be absolute.
    pub call_log: Option<PathBuf>,
    /// Checkpoints that the script writes are not removed.
    pub keeps_checkpoints: bool,
    /// The memory of each run is recorded, with its owners.
    pub records_memory: bool,
    /// Tricks that the agent applies in every rehearsal of this job.
    pub tricks: Vec<TrickRequest>,
}

/// Which ranks of a job are run. The others are present in the store, and silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankChoice {
    All,
    /// The first and the last rank: what they report shows which other ranks are distinct.
    Ends,
    /// These, in ascending order.
    Listed(Vec<u32>),
}

/// How much of a training one rehearsal runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything that can affect memory: passes over data are shortened, and the script is ended when nothing new is
    /// seen any more, or when its steps have taken this long.
    Coverage { budget: Duration },
    /// A number of optimizer steps.
    Steps(u64),
    /// The script runs to its end.
    Whole,
}

impl Extent {
    /// A number of steps with which this extent begins; `None` if it is no longer than that. A job that runs out of
    /// memory in these steps also runs out with the whole extent.
    pub fn first_steps(self) -> Option<u64> {
        match self {
            Self::Steps(steps) if steps <= Job::STEPS => None,
            _ => Some(Job::STEPS),
        }
    }
}

impl Job {
    /// How many optimizer steps show what a step takes, where the training as a whole is not in question.
    pub const STEPS: u64 = 3;

    /// How long training steps may take by default.
    pub const BUDGET: Duration = Duration::from_secs(60);
    /// The same, as users type it.
    pub const BUDGET_WORDS: &str = "60s";
}

impl Default for Job {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            card: None,
            memory_bytes: None,
            reserve_bytes: 0,
            card_count: 1,
            nodes: 1,
            ranks: RankChoice::All,
            nccl_bytes: None,
            extent: Extent::Coverage {
                budget: Self::BUDGET,
            },
            python: None,
            timeout: None,
            has_full_initialisation: false,
            values: UnknownValues::default(),
            asks_cudnn: true,
            library_sizes: Vec::new(),
            call_log: None,
            keeps_checkpoints: false,
            records_memory: true,
            tricks: Vec::new(),
        }
    }
}
