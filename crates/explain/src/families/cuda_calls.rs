//! CUDA calls that run out of memory without giving figures: contexts, code, mappings, pinned memory.

use super::{Family, Message, pattern, range};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "out of memory",
        "Out of memory",
        "OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        "pin memory thread",
        "host-pinned",
        "pinned host memory",
        "cudaHostAlloc",
        "failed with error 2",
    ],
    read,
};

pattern!(
    CALL,
    r"(?i)CUDA(?:runtime)?error(?:\(2\)|2)?:?'?(?:outofmemory|memoryallocation)|error=2:outofmemory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc(?:retry)?failed:outofmemory|CUDAError2,outofmemory|cudafailedwitherror2outofmemory|cudaHostAllocfailed,ret\[2\],outofmemory|HIPerror:outofmemory|hipErrorOutOfMemory"
);
pattern!(MAPPING, r"CUDAdrivererror:outofmemory");
pattern!(
    PINNED,
    r"could not allocate pinned host memory|[Ff]ailed to alloc(?:ate)? \d+ bytes on host|cudaHostAlloc|cudaHostRegister|in pin memory thread|pin_memory\.py|\.pin_memory\(|\bpin_memory=True"
);
pattern!(BYTES, r"(?:of size: |alloc(?:ate)? )(\d+)");

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for found in MAPPING.all(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::CudaMapping, start, end));
    }
    for found in CALL.printed(text) {
        let (start, end) = range(&found);
        let is_known = |message: &Message| message.start <= start && start < message.end + 400;
        // The same failure appears twice: in words, and as CUDA's error name.
        if messages.iter().any(is_known) {
            continue;
        }
        // NCCL's own message says more.
        let before = text[..start].chars().rev().take(60).collect::<String>();
        if before.to_ascii_lowercase().contains("lccn") {
            continue;
        }
        messages.push(Message::new(Kind::CudaCall, start, end));
    }
    pinned(window, messages)
}

/// A failed call concerns pinned host memory if the lines around it say so.
fn pinned(window: &Window, mut messages: Vec<Message>) -> Vec<Message> {
    for message in &mut messages {
        let first = window.line_at(message.start).saturating_sub(3);
        let last = window.line_at(message.start);
        let lines = window.lines().get(first..=last).unwrap_or_default();
        if lines.iter().any(|line| PINNED.find(line).is_some()) {
            message.kind = Kind::PinnedMemory;
            let line = lines.last().copied().unwrap_or_default();
            let bytes = BYTES
                .captures(line)
                .and_then(|found| super::number(&found, 1));
            message.figures.requested = bytes.map(crate::amount::Amount::exact);
        }
    }
    messages
}
