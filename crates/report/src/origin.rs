//! Frames of an allocation's origin, also where there is no stack.

use ghostgpu_trace::{FrameId, Snapshot};

use crate::holdings::Origin;
use crate::text;

/// A frame of a stack, or what is said in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum OriginFrame {
    Recorded(FrameId),
    NoStack,
    BeforeTrace,
}

impl OriginFrame {
    /// Said where no stack was recorded.
    const NO_STACK: &str = "(no stack recorded)";
    /// Said where nobody saw it being made.
    const BEFORE_TRACE: &str = "(allocated before the trace)";

    pub(crate) fn text(self, snapshot: &Snapshot) -> String {
        match self {
            Self::Recorded(id) => text::frame(snapshot.stacks.frame(id), &snapshot.names),
            _ => self.function(snapshot).to_owned(),
        }
    }

    pub(crate) fn function(self, snapshot: &Snapshot) -> &str {
        match self {
            Self::Recorded(id) => {
                let frame = snapshot.stacks.frame(id);
                match snapshot.names.text(frame.function) {
                    "" => snapshot.names.text(frame.file),
                    function => function,
                }
            }
            Self::NoStack => Self::NO_STACK,
            Self::BeforeTrace => Self::BEFORE_TRACE,
        }
    }

    pub(crate) fn file(self, snapshot: &Snapshot) -> &str {
        match self {
            Self::Recorded(id) => snapshot.names.text(snapshot.stacks.frame(id).file),
            _ => "",
        }
    }

    pub(crate) fn line(self, snapshot: &Snapshot) -> u64 {
        match self {
            Self::Recorded(id) => snapshot.stacks.frame(id).line,
            _ => 0,
        }
    }
}

/// The frames of an origin, innermost first.
pub(crate) fn frames_from_innermost(
    snapshot: &Snapshot,
    origin: Origin,
) -> impl DoubleEndedIterator<Item = OriginFrame> + '_ {
    let (recorded, instead) = match origin {
        Origin::Stack(id) => (snapshot.stacks.frames_of(id), None),
        Origin::NoStack => (&[][..], Some(OriginFrame::NoStack)),
        Origin::BeforeTrace => (&[][..], Some(OriginFrame::BeforeTrace)),
    };
    recorded
        .iter()
        .map(|id| OriginFrame::Recorded(*id))
        .chain(instead)
}

/// The frames of an origin, outermost first.
pub(crate) fn frames_from_outermost(
    snapshot: &Snapshot,
    origin: Origin,
) -> impl Iterator<Item = OriginFrame> + '_ {
    frames_from_innermost(snapshot, origin).rev()
}
