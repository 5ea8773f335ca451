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
    /// The card, as people call it; none is refused with a sentence.
    pub card: Option<String>,
    /// The card's memory, where it is not its own.
    pub memory_bytes: Option<u64>,
    /// What others (a desktop, another job) hold of every card.
    pub reserve_bytes: u64,
    /// How many such cards a machine has.
    pub card_count: u32,
    /// How many such machines the job is started on.
    pub nodes: u32,
    /// Which ranks of the job are run.
    pub ranks: RankChoice,
    /// What NCCL takes of every card, where it is not what the rule says.
    pub nccl_bytes: Option<u64>,
    pub extent: Extent,
    /// The python to use, where it is not the first with torch.
    pub python: Option<OsString>,
    pub timeout: Option<Duration>,
    /// Weight initialisation runs in full, even where it only feeds the virtual card.
    pub has_full_initialisation: bool,
    /// What values read as that nobody knows.
    pub values: UnknownValues,
    /// The installed cuDNN is asked for workspace sizes.
    pub asks_cudnn: bool,
    /// Sizes that libraries answered on a real card, the most important last.
    pub library_sizes: Vec<PathBuf>,
    /// Every CUDA call goes to this file, which must be absolute.
    pub call_log: Option<PathBuf>,
    /// Checkpoints that the script writes are left where they are.
    pub keeps_checkpoints: bool,
    /// Whose memory it is, is recorded.
    pub records_memory: bool,
    /// Tricks that the agent applies in every rehearsal of this job.
    pub tricks: Vec<TrickRequest>,
}

/// Which ranks of a job are run. The others are present in the store, and silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankChoice {
    All,
    /// The first and the last: what they have in common with others says which are distinct.
    Ends,
    /// These, in ascending order.
    Listed(Vec<u32>),
}

/// How much of a training one rehearsal goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything that can matter to memory: passes over data are shortened, and the script ends when nothing
    /// new is seen, or when its steps have taken this long.
    Coverage { budget: Duration },
    /// So many optimizer steps.
    Steps(u64),
    /// The script runs to its end.
    Whole,
}

impl Extent {
    /// So many steps are the beginning of this, where it goes on after them: what runs out of memory in them does
    /// so here too.
    pub fn first_steps(self) -> Option<u64> {
        match self {
            Self::Steps(steps) if steps <= Job::STEPS => None,
            _ => Some(Job::STEPS),
        }
    }
}

impl Job {
    /// How many optimizer steps show what a step takes, where a training as a whole is not asked about.
    pub const STEPS: u64 = 3;

    /// How long training steps may take unless somebody says otherwise.
    pub const BUDGET: Duration = Duration::from_secs(60);
    /// The same, as it is typed.
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
