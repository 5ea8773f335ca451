//! One block of memory, from its allocation to its free.

use crate::events::PoolId;
use crate::names::{ModuleId, NameId, OperatorId, StackId};
use crate::recording::Source;

/// An index in [`CardMemory::allocations`](crate::CardMemory::allocations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationId(pub u32);

/// What an allocation is used for; it has one category for life.
///
/// A gradient, for example, is made by an operator like any temporary tensor, but later becomes a parameter's `.grad`,
/// which decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The storage of a module's parameter.
    Parameter,
    /// The storage of a module's buffer (running means, position numbers).
    Buffer,
    /// The storage of a parameter's `.grad`.
    Gradient,
    /// A tensor in an optimizer's `state`.
    OptimizerState,
    /// Saved by autograd until the backward pass needs it.
    Activation,
    /// What a script passes to its model or copies from the host.
    Input,
    /// A workspace of cuBLAS, cuDNN or a similar library.
    Workspace,
    /// None of the above, and still live at the end of the step that made it.
    Kept,
    /// None of the above, and freed before the end of its step.
    Temporary,
    /// Not known, because a snapshot does not say whose memory it is.
    Unknown,
    /// Whole parameters that a rank gathers from the shards of all ranks, for as long as a layer needs them.
    Gathered,
    /// Memory for communication between ranks: gradient buckets, and inputs and outputs of collectives.
    Communication,
}

impl Category {
    /// All categories, in the order of reports and of their numbers in files.
    pub const ALL: [Self; 12] = [
        Self::Parameter,
        Self::Buffer,
        Self::Gradient,
        Self::OptimizerState,
        Self::Activation,
        Self::Input,
        Self::Workspace,
        Self::Kept,
        Self::Temporary,
        Self::Unknown,
        Self::Gathered,
        Self::Communication,
    ];

    /// Whether recordings from this source can have allocations of this category.
    pub fn is_known_to(self, source: Source) -> bool {
        (self == Self::Unknown) == (source == Source::Snapshot)
    }

    /// Its name in JSON and in the exchange with the agent.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::Buffer => "buffer",
            Self::Gradient => "gradient",
            Self::OptimizerState => "optimizer_state",
            Self::Activation => "activation",
            Self::Input => "input",
            Self::Workspace => "workspace",
            Self::Kept => "kept",
            Self::Temporary => "temporary",
            Self::Unknown => "unknown",
            Self::Gathered => "gathered",
            Self::Communication => "communication",
        }
    }

    /// Its title in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Parameter => "parameters",
            Self::Buffer => "buffers",
            Self::Gradient => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activation => "activations kept for backward",
            Self::Input => "inputs",
            Self::Workspace => "library workspaces",
            Self::Kept => "kept by the script",
            Self::Temporary => "temporaries",
            Self::Unknown => "owner unknown",
            Self::Gathered => "gathered parameters",
            Self::Communication => "communication buffers",
        }
    }
}

/// One block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub address: u64,
    /// What the program requested.
    pub requested_bytes: u64,
    /// The size of the block, which is never smaller.
    pub block_bytes: u64,
    /// The event that began it, as an index; `None` if it is older than the recording.
    pub allocated_at: Option<u32>,
    /// The event that ended it, as an index; `None` if it lived to the recording's end.
    pub freed_at: Option<u32>,
    pub category: Category,
    /// Its name, if it has one: that of a parameter, or of the parameter that a gradient belongs to. In a snapshot, an
    /// annotation, or the range of `record_function` in which it was made.
    pub name: NameId,
    /// The module that was running, or the one whose gradients were being computed.
    pub module: ModuleId,
    pub operator: OperatorId,
    pub stack: StackId,
    pub pool: PoolId,
}
