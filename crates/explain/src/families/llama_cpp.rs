//! llama.cpp and what builds on it (Ollama, llama-cpp-python): buffers for weights, KV cache and scratch
//! space.

use super::{Family, Message, amount, number, pattern, range};
use crate::amount::Amount;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "cudaMalloc failed",
        "hipMalloc failed",
        "ggml",
        "llama runner process",
        "of pinned memory",
        "ErrorOutOfDeviceMemory",
        "allocate backend buffer",
        "unable to allocate CUDA",
        "unable to allocate ROCm",
        "unable to allocate Vulkan",
        "buffer for kv cache",
    ],
    read,
};

pattern!(
    BUFFER,
    r"allocating({A})ondevice(\d+):(?:cuda|hip)Malloc(?:Managed)?failed:outofmemory"
);
// What Ollama passes on of its runner: the last words alone, or with the layer above them.
pattern!(
    RUNNER,
    r"llamarunnerprocesshasterminated:(?:(?:cuda|hip)Mallocfailed|CUDAerror|ROCmerror):outofmemory(?:\n?ggml_\w+:failedtoallocate(?:CUDA|ROCm|HIP|Vulkan|SYCL)\d*bufferofsize(\d+))?"
);
pattern!(
    ON_CARD,
    r"ggml_\w+:failedtoallocate(?:(?:CUDA|ROCm|HIP|Vulkan|SYCL)\d*|[^\n]{2,60}?)bufferofsize(\d+)"
);
// Before buffers existed: a check after every call, with its source line.
pattern!(
    CALL,
    r"CUDAerror2at[^\s:]{0,200}ggml-cuda\.cu:\d+:outofmemory"
);
// As its check after every call says it today, with the function below.
pattern!(
    CHECK,
    r"(?:CUDA|ROCm|HIP)error:outofmemory\n?currentdevice:(\d+),infunction"
);
pattern!(
    VULKAN,
    r"ggml_vulkan:Devicememoryallocationofsize(\d+)failed|ggml_vulkan:[^\n]{0,120}?ErrorOutOfDeviceMemory"
);
// The last words of a model that was not loaded.
pattern!(
    NOT_LOADED,
    r"(?:errorloadingmodel:)?unabletoallocate(?:backend|(?:CUDA|ROCm|Vulkan|SYCL)\d*)buffer|failedtoallocatebufferforkvcache"
);
pattern!(
    ON_HOST,
    r"ggml_backend_cpu_buffer_type_alloc_buffer:failedtoallocatebuffer(?:ofsize(\d+))?|failedtoallocateCPU\w*?bufferofsize(\d+)"
);
// A warning: pageable memory is used instead, if there is some.
pattern!(
    PINNED,
    r"(?:ggml_\w+:)?failedtoallocate({A})ofpinnedmemory:outofmemory"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for found in BUFFER.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::LlamaCpp, start, end);
        message.figures.requested = amount(&found, 1);
        message.figures.device = number(&found, 2).and_then(|device| device.try_into().ok());
        messages.push(message);
    }
    for found in CALL.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::LlamaCpp, start, end));
    }
    for found in CHECK.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::LlamaCpp, start, end);
        message.figures.device = number(&found, 1).and_then(|device| device.try_into().ok());
        messages.push(message);
    }
    for (pattern, kind) in [
        (&RUNNER, Kind::LlamaCpp),
        (&ON_CARD, Kind::LlamaCpp),
        (&VULKAN, Kind::LlamaCpp),
        (&NOT_LOADED, Kind::LlamaCpp),
        (&ON_HOST, Kind::LlamaCppHost),
    ] {
        for found in pattern.printed(text) {
            // The CPU's buffers are named like a card's.
            if kind == Kind::LlamaCpp && found[0].contains("allocateCPU") {
                continue;
            }
            let (start, end) = range(&found);
            let bytes = number(&found, 1).or_else(|| number(&found, 2));
            add(&mut messages, kind, (start, end), bytes);
        }
    }
    for found in PINNED.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::PinnedMemory, start, end);
        message.figures.requested = amount(&found, 1);
        messages.push(message);
    }
    messages
}

/// One failure is told twice or more, by each layer of the program.
fn add(messages: &mut Vec<Message>, kind: Kind, (start, end): (usize, usize), bytes: Option<u64>) {
    let requested = bytes.map(Amount::exact);
    let known = messages.last_mut();
    match known.filter(|last| last.kind == kind && start <= last.end + 120) {
        Some(last) => {
            last.start = last.start.min(start);
            last.end = last.end.max(end);
            last.figures.requested = last.figures.requested.or(requested);
        }
        None => {
            let mut message = Message::new(kind, start, end);
            message.figures.requested = requested;
            messages.push(message);
        }
    }
}
