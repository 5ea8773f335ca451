//! CUDA calls that run out of memory without giving figures: contexts, code, mappings, pinned memory.

use super::{Family, Message, pattern, range};
use crate::kind::Kind;
use crate::window::Window;
use crate::wording::Wording;

pub const FAMILY: Family = Family {
    needles: &[
        "out of memory",
        "Out of memory",
        "OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        "hipErrorOutOfMemory",
        "cuMemAlloc",
        "cudaMalloc",
        "CUDA error",
        "nsufficient GPU memory",
        "nsufficient device memory",
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
    r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc(?:retry)?failed:outofmemory|hipErrorOutOfMemory|CUresulterrorresult=2|hasinsufficient(?:GPU|device|video)memory|cu(?:da)?M(?:em)?Alloc\w{0,16}(?:failed|returned)[^\n]{0,24}?outofmemory|\bCUDA(?:driver)?error(?:code|number)?[:=#(]{0,2}2(?:[^0-9.%\w]|at\b|$)|cuda运行时错误\(2\):?(?:内存不足)?|unabletoallocateenoughmemory(?:orotherresources)?toperformtherequestedoperation|\bCUDA(?:driver)?error\d{0,3}infile\n?[^\n]{1,200}?\n?line\d+:\n?outof\n?memory|CUDA::error'?[^\n]{0,20}\n?[^\n]{0,300}?\n?error:outofmemory"
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
        if is_explained(text, start, end) {
            continue;
        }
        // NCCL's own message says more.
        let before = text[..start].chars().rev().take(60).collect::<String>();
        if before.to_ascii_lowercase().contains("lccn") {
            continue;
        }
        // PyTorch has a colon between the two, and no quotes.
        let said = text[start..end].to_ascii_lowercase();
        let is_other = said.contains('\'') || said == "cudaerroroutofmemory";
        let kind = match is_other && !has_pytorch(text) {
            true => Kind::CudaProgram,
            // Before 0.4.1 the allocator had no words of its own, and no figures.
            false if is_storage(text, start, end) => Kind::CudaAllocatorBare,
            false => Kind::CudaCall,
        };
        let is_old = kind == Kind::CudaAllocatorBare;
        messages.push(Message {
            wording: is_old.then_some(Wording::until((0, 1), (0, 4))),
            ..Message::new(kind, start, end)
        });
    }
    for found in NATIVE.printed(text) {
        let (start, end) = range(&found);
        if is_explained(text, start, end) {
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

// A manual says what the error means, or a header which number it has.
pattern!(
    EXPLAINED,
    r"^(?:\([^()\n]{0,40}\))?(?:means|indicates|occurs|happens|isreturned|israised|isnot|isthe|isa|isone|canbe|maybe|=\s?(?:2|0x)|['\x22”]时)"
);
pattern!(COMPARED, r"(?:case|==|!=)$");

fn is_explained(text: &str, start: usize, end: usize) -> bool {
    let (before, after) = (text.get(..start), text.get(end..));
    EXPLAINED.find(after.unwrap_or_default()).is_some()
        || COMPARED.find(before.unwrap_or_default()).is_some()
}

/// PyTorch's words, or a path of its own, stand around the call.
fn has_pytorch(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["torch", "/aten/", "/thc/", "\\thc\\", "c10::"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// A tensor's storage was to be allocated.
fn is_storage(text: &str, start: usize, end: usize) -> bool {
    let line = text.get(..start).and_then(|before| before.rfind('\n'));
    let first = line.map_or(0, |line| line + 1);
    let last = text.get(end..).and_then(|after| after.find('\n'));
    let last = last.map_or(text.len(), |last| end + last);
    let line = text.get(first..last).unwrap_or_default();
    line.to_ascii_lowercase().contains("thcstorage")
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
