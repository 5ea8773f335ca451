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
        "CUresult error",
        "unable to allocate enough memory",
        "NVML_SUCCESS ==",
    ],
    read,
};

pattern!(
    CALL,
    r"(?i)CUDA(?:runtime)?error(?:\(2\)|2)?:?'?(?:outofmemory|memoryallocation)|error=2:outofmemory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc(?:retry)?failed:outofmemory|CUDAError2,outofmemory|cudafailedwitherror2outofmemory|cudaHostAllocfailed,ret\[2\],outofmemory|HIPerror:outofmemory|hipErrorOutOfMemory"
);
// What CUDA calls the error, in programs of any kind.
pattern!(
    NATIVE,
    r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc(?:retry)?failed:outofmemory|hipErrorOutOfMemory|CUresulterrorresult=2|unabletoallocateenoughmemory(?:orotherresources)?toperformtherequestedoperation|CUDA::error'?[^\n]{0,20}\n?[^\n]{0,300}?\n?error:outofmemory"
);
// PyTorch fails on the way to its message: NVML is missing, as on Jetson boards and in some containers.
pattern!(
    WITHOUT_NVML,
    r"NVML_SUCCESS==[^\n]{0,120}?INTERNALASSERTFAILED[^\n]{0,20}?at[^\n]{0,120}?CUDACachingAllocator"
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
        if is_explained(text, end) {
            continue;
        }
        // NCCL's own message says more.
        let before = text[..start].chars().rev().take(60).collect::<String>();
        if before.to_ascii_lowercase().contains("lccn") {
            continue;
        }
        messages.push(Message::new(Kind::CudaCall, start, end));
    }
    for found in NATIVE.printed(text) {
        let (start, end) = range(&found);
        if is_explained(text, end) {
            continue;
        }
        let known = messages
            .iter_mut()
            .find(|message| message.start < end && start < message.end);
        match known {
            Some(message) if message.start == start && !has_pytorch(text) => {
                message.kind = Kind::CudaProgram;
                message.end = end;
            }
            Some(_) => {}
            None => {
                let is_echo =
                    |message: &Message| message.start <= start && start < message.end + 400;
                if !messages.iter().any(is_echo) {
                    let kind = match has_pytorch(text) {
                        true => Kind::CudaCall,
                        false => Kind::CudaProgram,
                    };
                    messages.push(Message::new(kind, start, end));
                }
            }
        }
    }
    for found in WITHOUT_NVML.all(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::CudaAllocatorBare, start, end));
    }
    pinned(window, messages)
}

/// A manual says what the error means.
fn is_explained(text: &str, end: usize) -> bool {
    let after = text.get(end..).unwrap_or_default().to_ascii_lowercase();
    ["means", "isreturned", "indicates", "isnot", "israised"]
        .iter()
        .any(|word| after.starts_with(word))
}

/// PyTorch's words, or a path of its own, stand around the call.
fn has_pytorch(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["torch", "/aten/", "/thc/", "c10::"]
        .iter()
        .any(|sign| text.contains(sign))
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
