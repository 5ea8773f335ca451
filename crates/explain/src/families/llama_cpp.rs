//! llama.cpp and what builds on it (Ollama, llama-cpp-python): buffers for weights, KV cache and scratch
//! space.

use super::{Family, Message, amount, number, pattern, range};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &["cudaMalloc failed", "hipMalloc failed", "ggml"],
    read,
};

pattern!(
    BUFFER,
    r"allocating({A})ondevice(\d+):(?:cuda|hip)Malloc(?:Managed)?failed:outofmemory"
);
// Before buffers existed: a check after every call, with its source line.
pattern!(
    CALL,
    r"CUDAerror2at[^\s:]{0,200}ggml-cuda\.cu:\d+:outofmemory"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let buffers = BUFFER.printed(text).map(|found| {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::LlamaCpp, start, end);
        message.figures.requested = amount(&found, 1);
        message.figures.device = number(&found, 2).and_then(|device| device.try_into().ok());
        message
    });
    let calls = CALL.printed(text).map(|found| {
        let (start, end) = range(&found);
        Message::new(Kind::LlamaCpp, start, end)
    });
    buffers.chain(calls).collect()
}
