//! What a snapshot does not say, or says in a way that is new: beside the answer, never instead of it.

use std::fmt;

/// A part of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Top,
    Segment,
    Block,
    TraceEntry,
    Frame,
    Settings,
    Annotation,
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Top => "the snapshot",
            Self::Segment => "a segment",
            Self::Block => "a block",
            Self::TraceEntry => "a trace entry",
            Self::Frame => "a frame",
            Self::Settings => "the allocator's settings",
            Self::Annotation => "an annotation",
        })
    }
}

/// What releases before some version did not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    Traces,
    Settings,
    Annotations,
    RequestedSizes,
    Times,
    Pools,
}

/// One thing that a reader of the answer should know about the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A key that this version does not know. It was passed over.
    UnknownKey { part: Part, key: String, count: u64 },
    /// An action that this version does not know. Its entries are of the kind `Other`.
    UnknownAction { action: String, count: u64 },
    /// A key that should be there and is not, or has a value of another type; 0 stands for it.
    MissingKey {
        part: Part,
        key: &'static str,
        count: u64,
    },
    WrongType {
        part: Part,
        key: String,
        found: &'static str,
        count: u64,
    },
    /// The release that wrote the file did not write this.
    NotRecorded(Missing),
    /// There are segments, and not one event: recording was never switched on, or was ended first.
    NoEvents { device: usize },
    /// The ring of events was full, and PyTorch says so: the oldest are lost.
    RingOverflowed {
        device: Option<usize>,
        max_entries: Option<u64>,
    },
    /// Blocks were freed that the trace does not allocate: they are older than its first event.
    FreesWithoutAlloc { device: usize, count: u64 },
    /// Live blocks that the trace does not allocate: they are older than its first event.
    BlocksOlderThanTrace {
        device: usize,
        count: u64,
        bytes: u64,
    },
    /// Time runs backwards inside the trace: the ring was resized while recording.
    TimeRunsBackwards {
        device: usize,
        event: usize,
        count: u64,
    },
    /// Kinds of events that must occur do not: they were left out (`skip_actions`).
    ActionsLeftOut { device: usize, action: &'static str },
    /// No event and no block has a stack (`context=None`, or stacks were switched off).
    NoStacks,
    /// The blocks of a segment do not cover it exactly.
    BlocksDoNotCover { count: u64 },
    /// More bytes follow the pickle.
    TrailingBytes { after_bytes: u64 },
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { part, key, count } => write!(
                out,
                "{part} has the key `{key}`, which is newer than this version and was passed over ({count} ×)"
            ),
            Self::UnknownAction { action, count } => write!(
                out,
                "the trace has the action `{action}`, which is newer than this version and was passed over ({count} ×)"
            ),
            Self::MissingKey { part, key, count } => {
                write!(out, "{part} lacks the key `{key}`; 0 was taken ({count} ×)")
            }
            Self::WrongType { part, key, found, count } => write!(
                out,
                "{part} has a value of the type {found} under `{key}`, which was not understood ({count} ×)"
            ),
            Self::NotRecorded(missing) => out.write_str(match missing {
                Missing::Traces => "the file has no traces: there is a state, and no history",
                Missing::Settings => "the file does not say how the allocator was set (before torch 2.3)",
                Missing::Annotations => "the file has no annotations (before torch 2.5)",
                Missing::RequestedSizes => {
                    "the file does not say what was asked for, only the blocks' sizes (before torch 2.0)"
                }
                Missing::Times => "the events have no times (before torch 2.2)",
                Missing::Pools => "the segments do not say their pool (before torch 2.1)",
            }),
            Self::NoEvents { device } => write!(
                out,
                "device {device} has memory and no events: recording was not on when the snapshot was taken"
            ),
            Self::RingOverflowed { device, max_entries } => {
                write!(out, "the ring of events")?;
                if let Some(device) = device {
                    write!(out, " of device {device}")?;
                }
                if let Some(max_entries) = max_entries {
                    write!(out, " ({max_entries} entries)")?;
                }
                write!(out, " was full, and the oldest are lost: a peak among them cannot be seen")
            }
            Self::FreesWithoutAlloc { device, count } => write!(
                out,
                "device {device}: {count} blocks were freed that the trace does not allocate; they are older than its first event"
            ),
            Self::BlocksOlderThanTrace { device, count, bytes } => write!(
                out,
                "device {device}: {count} live blocks ({bytes} bytes) are older than the trace's first event"
            ),
            Self::TimeRunsBackwards { device, event, count } => write!(
                out,
                "device {device}: time runs backwards at event {event} ({count} × in all): the ring was resized while recording, and the order of events is not reliable"
            ),
            Self::ActionsLeftOut { device, action } => write!(
                out,
                "device {device}: the trace has no `{action}` at all: such events were left out when recording"
            ),
            Self::NoStacks => out.write_str("no stack was recorded: memory cannot be told apart by line"),
            Self::BlocksDoNotCover { count } => {
                write!(out, "the blocks of {count} segments do not cover them exactly")
            }
            Self::TrailingBytes { after_bytes } => {
                write!(out, "more bytes follow the pickle, which ends after {after_bytes}; they were not read")
            }
        }
    }
}
