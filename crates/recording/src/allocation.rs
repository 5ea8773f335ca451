//! One block of memory, from the moment that it was handed out to the moment that it came back.

use crate::events::PoolId;
use crate::names::{ModuleId, NameId, OperatorId, StackId};
use crate::recording::Source;

/// A place in [`CardMemory::allocations`](crate::CardMemory::allocations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationId(pub u32);

/// What an allocation turned out to be: one thing for its whole life.
///
/// A gradient is made by an operator like any temporary; that it became a parameter's `.grad` decides.
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
    /// What a script hands to its model or brings from the host.
    Input,
    /// What cuBLAS, cuDNN and their like were given to work in.
    Workspace,
    /// Nothing of the above, and still there when the step that made it was over.
    Kept,
    /// Nothing of the above, and gone by then.
    Temporary,
    /// Nobody looked: a snapshot does not say whose memory it is.
    Unknown,
    /// Whole parameters that a rank puts together from all ranks' parts, for as long as a layer needs them.
    Gathered,
    /// What ranks exchange in: buckets of gradients, and what goes into collectives and comes out of them.
    Communication,
}

impl Category {
    /// All of them, in the order in which reports show them, and of their numbers in files.
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

    /// Whether a recording from this source can say that an allocation is of the category.
    pub fn is_known_to(self, source: Source) -> bool {
        (self == Self::Unknown) == (source == Source::Snapshot)
    }

    /// The word for it in JSON, and in the interchange with the agent.
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

    /// The words for it in reports.
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
    /// What the program asked for.
    pub requested_bytes: u64,
    /// What the allocator handed out; never less.
    pub block_bytes: u64,
    /// The event that began it, as an index; `None` if it is older than the recording.
    pub allocated_at: Option<u32>,
    /// The event that ended it, as an index; `None` if it lived to the recording's end.
    pub freed_at: Option<u32>,
    pub category: Category,
    /// Its name among its kind (a parameter's, that of the parameter a gradient belongs to), or none. Of a
    /// snapshot's, what the snapshot calls it: an annotation, or the range of `record_function` it was made in.
    pub name: NameId,
    /// The module that was running, or the one whose gradients were being computed.
    pub module: ModuleId,
    pub operator: OperatorId,
    pub stack: StackId,
    pub pool: PoolId,
}
