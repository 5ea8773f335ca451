//! Libraries with their own allocator: ONNX Runtime, FAISS, RAPIDS, TensorRT.

use super::{Family, Message, Pattern, number, pattern, range};
use crate::amount::Amount;
use crate::finding::{FigureValue, LIBRARY};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "BFCArena::Alloc",
        "AllocateRawInternal",
        "requested buffer",
        "StandardGpuResources",
        "alloc fail type",
        "cudaMalloc error",
        "to cudaMalloc",
        "std::bad_alloc",
        "could not be allocated",
        "efaultAllocator",
    ],
    read,
};

pattern!(
    ONNX_RUNTIME,
    r"BFCArena::AllocateRawInternal(?:\([^)\n]{0,200}\))?Failedtoallocatememoryforrequestedbufferofsize(\d+)"
);
pattern!(
    FAISS,
    r"allocfailtype\w{1,60}dev\d+space\w{1,20}stream\w{1,40}size(\d+)bytes\(cudaMallocerroroutofmemory"
);
pattern!(
    FAISS_CALL,
    r"[Ff]ailedtocudaMalloc(\d+)bytes(?:ondevice\d+)?\(error2outofmemory"
);
pattern!(
    RAPIDS,
    r"std::bad_alloc:(?:out_of_memory:)?(?:CUDAerror|RMMfailure)at:[^\s]{0,300}?/rmm/[^\s:]{1,120}:\d+:(?:cudaErrorMemoryAllocationoutofmemory|Maximumpoolsizeexceeded)"
);
pattern!(
    TENSOR_RT,
    r"Requestedamountof(?:GPU)?memory\((\d+)bytes\)couldnotbeallocated|[dD]efaultAllocator(?:\.cpp)?::allocate(?:::\d+\]ErrorCode1:CudaRuntime|:2)\(outofmemory\)"
);

const LIBRARIES: [(&Pattern, &str); 5] = [
    (&ONNX_RUNTIME, "ONNX Runtime"),
    (&FAISS, "FAISS"),
    (&FAISS_CALL, "FAISS"),
    (&RAPIDS, "RAPIDS"),
    (&TENSOR_RT, "TensorRT"),
];

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for (pattern, library) in LIBRARIES {
        for found in pattern.printed(text) {
            let (start, end) = range(&found);
            let mut message = Message::new(Kind::OtherAllocator, start, end);
            message.figures.requested = number(&found, 1).map(Amount::exact);
            let name = FigureValue::Text(library.to_owned());
            message.figures.add(LIBRARY, name);
            messages.push(message);
        }
    }
    messages
}
