//! Stacks by number, whatever holds them.

use ghostgpu_recording::Names;
use ghostgpu_trace::{FrameId, Snapshot, StackId};

use crate::text;

/// Something with numbered stacks of numbered frames.
pub(crate) trait Stacks {
    /// The frames of a stack, innermost first.
    fn frames(&self, stack: u32) -> Vec<u32>;

    /// A frame in one line.
    fn frame_text(&self, frame: u32) -> String;
}

impl Stacks for Snapshot {
    fn frames(&self, stack: u32) -> Vec<u32> {
        let frames = self.stacks.frames_of(StackId(stack));
        frames.iter().map(|frame| frame.0).collect()
    }

    fn frame_text(&self, frame: u32) -> String {
        text::frame(self.stacks.frame(FrameId(frame)), &self.names)
    }
}

impl Stacks for Names {
    fn frames(&self, stack: u32) -> Vec<u32> {
        let frames = self.stacks.get(stack as usize);
        frames.map_or_else(Vec::new, |all| all.iter().map(|frame| frame.0).collect())
    }

    fn frame_text(&self, frame: u32) -> String {
        match self.frames.get(frame as usize) {
            Some(frame) => format!("{} ({}:{})", frame.function, frame.file, frame.line),
            None => "(unknown)".to_owned(),
        }
    }
}
