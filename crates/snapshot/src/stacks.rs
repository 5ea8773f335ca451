//! Stacks and their frames, each kept once.

use std::collections::HashMap;

use ghostgpu_pickle::SeededState;

use crate::names::NameId;

/// A handle of a frame in [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// A handle of a stack in [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StackId(pub u32);

impl StackId {
    /// No stack was kept.
    pub const NONE: Self = Self(0);
}

/// One frame. A frame that the file has as a line of text has that text as its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub file: NameId,
    pub function: NameId,
    pub line: u64,
    /// What `torch.compile` generated this line from, where the snapshot was augmented with it.
    pub fx: Option<FxNode>,
}

/// The FX node behind a generated line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FxNode {
    pub operation: NameId,
    pub name: NameId,
    pub target: NameId,
    pub original_trace: NameId,
}

/// All stacks of a snapshot, innermost frame first.
#[derive(Debug, Clone)]
pub struct Stacks {
    frames: Vec<Frame>,
    frame_ids: HashMap<Frame, FrameId, SeededState>,
    /// The frames of all stacks, one stack after the other.
    members: Vec<FrameId>,
    /// Where in `members` each stack ends.
    ends: Vec<u32>,
    stack_ids: HashMap<Box<[u32]>, StackId, SeededState>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            frame_ids: HashMap::default(),
            members: Vec::new(),
            ends: vec![0],
            stack_ids: HashMap::from_iter([(Box::from([]), StackId::NONE)]),
        }
    }
}

impl Stacks {
    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, id: StackId) -> &[FrameId] {
        let at = id.0 as usize;
        let end = self.ends.get(at).copied().unwrap_or(0) as usize;
        let start = at
            .checked_sub(1)
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or(0);
        self.members.get(start as usize..end).unwrap_or(&[])
    }

    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }

    /// How many different stacks there are, the empty one included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.len() <= 1
    }

    /// How many different frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The handle of a frame, made if it is new.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        let next = FrameId(self.frames.len() as u32);
        let id = *self.frame_ids.entry(frame).or_insert(next);
        if id == next {
            self.frames.push(frame);
        }
        id
    }

    /// The handle of a stack, made if it is new. Frames are given by their numbers, innermost first.
    pub fn intern_stack(&mut self, frames: &[u32]) -> StackId {
        if let Some(id) = self.stack_ids.get(frames) {
            return *id;
        }
        let id = StackId(self.ends.len() as u32);
        self.members
            .extend(frames.iter().map(|frame| FrameId(*frame)));
        self.ends.push(self.members.len() as u32);
        self.stack_ids.insert(frames.into(), id);
        id
    }
}
