//! NCCL, which allocates its buffers outside PyTorch's allocator.

use super::{Family, Message, number, pattern, range};
use crate::amount::Amount;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "Cuda failure",
        "Failed to CUDA",
        "ncclUnhandledCudaError",
        "unhandled cuda error",
        "Duplicate GPU detected",
    ],
    read,
};

pattern!(
    FAILURE,
    r"(?i)Cudafailure(?:2|:)?'?outofmemory'?|FailedtoCUDA(?:malloc|calloc|calloc async|hostalloc|callocasync)(\d+)bytes"
);
// As NCCL says it, and PyTorch with what NCCL said last.
pattern!(
    DUPLICATE,
    r"(?i)DuplicateGPUdetected:rank(\d+)andrank(\d+)bothonCUDAdevice([0-9a-f]+)"
);
pattern!(HEAD, r"NCCL[Ee]rror[^\n]{0,200}?unhandledcudaerror");

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for found in DUPLICATE.all(text) {
        let (start, end) = range(&found);
        // Both ranks say it, each with itself first.
        if messages.is_empty() {
            messages.push(Message::new(Kind::NcclDuplicate, start, end));
        }
    }
    for found in FAILURE.all(text) {
        let (mut start, end) = range(&found);
        // The exception begins some lines above.
        let heads = HEAD.all(&text[..start]);
        if let Some(head) = heads.last().filter(|head| start - range(head).1 < 400) {
            start = range(head).0;
        }
        // The warning in NCCL's log and the exception are one failure; the warning may have a figure.
        let requested = number(&found, 1).map(Amount::exact);
        match messages.last_mut().filter(|last| start <= last.end + 200) {
            Some(last) => {
                last.end = end;
                last.figures.requested = last.figures.requested.or(requested);
            }
            None => {
                let mut message = Message::new(Kind::Nccl, start, end);
                message.figures.requested = requested;
                messages.push(message);
            }
        }
    }
    messages
}
