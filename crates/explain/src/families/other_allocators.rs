//! Frameworks and libraries with their own allocator, from Caffe to XGBoost.
//!
//! Some have words of their own. Most only pass on what CUDA says; then the lines around tell whose call it
//! was.

use super::{Family, Message, Pattern, amount_or_bytes, pattern, range};
use crate::finding::{FigureValue, LIBRARY};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "BFCArena::Alloc",
        "TOutOfMemoryError",
        "stack_like_memory_pool",
        "AllocateRawInternal",
        "requested buffer",
        "StandardGpuResources",
        "alloc fail type",
        "cudaMalloc error",
        "to cudaMalloc",
        "could not be allocated",
        "efaultAllocator",
        "cudaSuccess (2",
        "CUDA Error",
        "hipErrorOutOfMemory",
        "failed with error out of memory",
        "out of memory in ",
        "CUDA failure",
        "CUDA failed with",
        "CUDA runtime error",
        "cudaMalloc failed",
        "cudaMalloc retry failed",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        "of device memory",
        "GPU memory trying",
        "Could not allocate tensor",
        "8007000E",
        "MemStatistics",
        "emory isn't enough",
        "smaller than required size",
        "No memory pool big enough",
        "EL0004",
        "oneflow",
        "Cuda Error in",
        "OutOfMemory (",
        "OutOfMemory(",
        "OutOfMemory Error in",
        "memory on requested size",
        "CustomAllocator",
        "allocate a memory region",
        "PxgCuda",
        "ran out of memory on the GPU",
        "RMM failure",
        "RMM allocation",
        "allocation error on worker",
        "keops",
    ],
    read,
};

/// Groups: `asked`, `free`, `total`, `used` and `device`, as far as a message gives them.
const OWN_WORDS: [(&str, &Pattern); 22] = [
    ("CatBoost", &CATBOOST),
    ("ONNX Runtime", &ONNX_RUNTIME),
    ("FAISS", &FAISS),
    ("FAISS", &FAISS_CALL),
    ("RAPIDS", &RAPIDS),
    ("RAPIDS", &RAPIDS_POOL),
    ("RAPIDS", &RAPIDS_REQUEST),
    ("XGBoost", &XGBOOST),
    ("KeOps", &KEOPS),
    ("RELION", &RELION),
    ("Kaldi", &KALDI),
    ("PhysX", &PHYSX),
    ("TensorRT", &TENSOR_RT),
    ("Caffe", &CAFFE),
    ("CNTK", &CNTK),
    ("Theano", &THEANO),
    ("CTranslate2", &CTRANSLATE2),
    ("DirectML", &DIRECT_ML),
    ("CUDA.jl", &JULIA),
    ("MindSpore", &MIND_SPORE),
    ("Ascend", &ASCEND),
    ("CubeCL", &CUBE_CL),
];

pattern!(
    ONNX_RUNTIME,
    r"BFCArena::AllocateRawInternal(?:\([^)\n]{0,200}\))?(?:Failedtoallocatememoryforrequestedbufferofsize(?P<asked>\d+)|Availablememoryof(?P<free>\d+)issmallerthanrequestedbytesof(?P<size>\d+))"
);
pattern!(
    CATBOOST,
    r"(?:TOutOfMemoryError[^\n]{0,200}?)?stack_like_memory_pool\.h:\d+:Error:Outofmemory\.Requested(?P<asked>{A});Free(?P<free>{A})"
);
pattern!(
    FAISS,
    r"allocfailtype\w{1,60}dev(?P<device>\d+)space\w{1,20}stream\w{1,40}size(?P<asked>\d+)bytes\(cudaMallocerroroutofmemory"
);
pattern!(
    FAISS_CALL,
    r"failedtocudaMalloc(?P<asked>\d+)bytes(?:ondevice(?P<device>\d+))?\(error2outofmemory"
);
pattern!(
    RAPIDS,
    r"std::bad_alloc:(?:out_of_memory:)?(?:CUDAerror|RMMfailure)at:[^\s]{0,300}?/rmm/[^\s:]{1,120}:\d+:(?:cudaErrorMemoryAllocationoutofmemory|Maximumpoolsizeexceeded)"
);
pattern!(
    RAPIDS_POOL,
    r"RMMfailureat:[^\s]{0,400}?Maximumpoolsizeexceeded(?:\(failedtoallocate(?P<asked>{A})\))?"
);
pattern!(
    KEOPS,
    r"\[KeOps\]error:[^\n]{0,200}?CUDA_ERROR_OUT_OF_MEMORY"
);
pattern!(KALDI, r"Failedtoallocateamemoryregionof(?P<asked>\d+)bytes");
pattern!(
    PHYSX,
    r"PxgCuda\w{1,40}?failtoallocatememory(?P<asked>\d+)bytes"
);
pattern!(
    RELION,
    r"CustomAllocatoroutofmemory\n?(?:\[requestedSpace:(?P<asked>\d+B)\]\n?\[largestContinuousFreeSpace:\d+B\]\n?\[totalFreeSpace:(?P<free>\d+B)\])?|YouranoutofmemoryontheGPU\(s\)"
);
pattern!(RAPIDS_REQUEST, r"RMMallocationof(?P<asked>{A})failed");
pattern!(
    XGBOOST,
    r"Memoryallocationerroronworker\d+:[^\n]{0,120}?\n?-?Freememory:(?P<free>[\d.]+(?:[KMGT]?i?B)?)\n?-?Requestedmemory:(?P<asked>[\d.]+(?:[KMGT]?i?B)?)"
);
pattern!(
    TENSOR_RT,
    r"Requestedamountof(?:GPU)?memory\((?P<asked>\d+)bytes\)couldnotbeallocated|defaultAllocator(?:\.cpp)?::allocate(?:::\d+\]ErrorCode1:CudaRuntime|:2)\(outofmemory\)|ErrorCode\d+:(?:OutOfMemory|CudaRuntime)\((?:nofurtherinformation|outofmemory|Requestedsizewas(?P<size>\d+)bytes)|CudaErrorin[\w:]{1,60}:2\(outofmemory\)|OutOfMemoryErrorin\w{1,40}:\d|insufficientmemoryonrequestedsizeof(?P<tactic>\d+)"
);
pattern!(
    CAFFE,
    r"Checkfailed:[^\n]{1,60}?==cudaSuccess\(2vs\.?0\)(?:outofmemory)?"
);
pattern!(
    CNTK,
    r"CUDAfailure2:outofmemory;GPU=(?P<device>\d+);hostname="
);
pattern!(
    THEANO,
    r"(?:Error)?allocating(?P<asked>\d+)bytesofdevicememory\(?(?:outofmemory)?\)?\.?(?:Driverreport(?P<free>\d+)bytesfreeand(?P<total>\d+)bytestotal)?"
);
pattern!(CTRANSLATE2, r"CUDAfailedwitherroroutofmemory");
pattern!(
    DIRECT_ML,
    r"Couldnotallocatetensorwith(?P<asked>\d+)bytes\.?ThereisnotenoughGPUvideomemory|8007000E(?:Notenoughmemoryresourcesareavailable|内存资源不足)|DmlExecutionProvider[^\n]{0,300}?8007000E"
);
pattern!(
    JULIA,
    r"OutofGPUmemorytryingtoallocate(?P<asked>{A})\n?(?:EffectiveGPUmemoryusage:[\d.]+%\((?P<used>{A})/(?P<total>{A})\))?"
);
pattern!(
    MIND_SPORE,
    r"TotalUsedMemStatistics:(?P<used>\d+)plus[^\n]{0,80}?allocsize:(?P<asked>\d+)ismorethantotalmemsize:(?P<total>\d+)|Device\(id:(?P<device>\d+)\)memoryisn'tenoughandallocfailed|Mallocforkernel\w{1,12}failed,Memoryisn'tenough|currentfreememorysize\[(?P<free>\d+)\]issmallerthanrequiredsize\[(?P<size>\d+)\]"
);
pattern!(
    ASCEND,
    r"(?:Memory_Allocation_Failure\(EL0004\)|EL0004:Failedtoallocatememory)(?s:.{0,600}?rtMallocfail[^\n]{0,60}?size:(?P<asked>\d+))?"
);

pattern!(
    CUBE_CL,
    r"Nomemorypoolbigenoughtoreserve(?P<asked>\d+)bytes"
);

// What CUDA says, whoever called it.
pattern!(
    CALL,
    r"hipErrorOutOfMemory|CUDAerrorat[^\n]{0,200}?-outofmemory|failedwitherroroutofmemory|outofmemoryin[^\n]{0,120}?\(error-code2\)|CUDA(?:runtime)?(?:error|failure)(?:Prev)?(?:\(2\)|2)?[:,]?'?outofmemory|CUDAruntimeerrorin[^\n]{0,120}?:?outofmemory|cudaMalloc(?:retry)?failed:outofmemory|CUDA_ERROR_OUT_OF_MEMORY|std::bad_alloc:(?:out_of_memory:)?(?:CUDAerror[^\n]{0,200}?)?cudaErrorMemoryAllocation|Error:CUDAoutofmemory\.?Triedtoallocate(?P<asked>{A})"
);
/// What stands around a call of each program.
const CALLERS: [(&str, &[&str]); 16] = [
    (
        "darknet",
        &[
            "darknet:",
            "darknet.exe",
            "src/cuda.c",
            "dark_cuda.c",
            "bflops",
        ],
    ),
    ("MXNet", &["mxnet", "pooled_storage_manager"]),
    ("XGBoost", &["xgboost", "memoryallocationerroronworker"]),
    ("RAPIDS", &["/rmm/", "rmm::", "cudf"]),
    ("LMDeploy", &["lmdeploy", "turbomind"]),
    ("TensorRT-LLM", &["tensorrt-llm", "tensorrt_llm"]),
    ("OneFlow", &["oneflow"]),
    ("tinygrad", &["tinygrad"]),
    ("Numba", &["numba", "cumemallocresultsin"]),
    ("Torch7", &["luarocks", "/cutorch/", ".lua:"]),
    ("KeOps", &["[keops]", "pykeops"]),
    ("COLMAP", &["colmap"]),
    ("RELION", &["relion"]),
    ("instant-ngp", &["instant-ngp", "tiny-cuda-nn"]),
    ("AMDGPU.jl", &["amdgpu.jl", "@amdgpu"]),
    (
        "FFmpeg",
        &["nvenc@", "ffmpeg", "avhwdevice", "avhwframes", "scale_npp"],
    ),
];
fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for (library, pattern) in OWN_WORDS {
        for found in pattern.printed(text) {
            let mut message = message(library, &found);
            // Only the CPU's kernels have this layout.
            if library == "ONNX Runtime" && text.to_ascii_lowercase().contains("nchwc") {
                message.kind = Kind::OtherHost;
            }
            messages.push(message);
        }
    }
    let around = text.to_ascii_lowercase();
    let caller = CALLERS
        .iter()
        .find(|(_, signs)| signs.iter().any(|sign| around.contains(sign)));
    let Some((library, _)) = caller else {
        return messages;
    };
    for found in CALL.printed(text) {
        // PyTorch's own words, in another program than OneFlow.
        if found.name("asked").is_some() && *library != "OneFlow" {
            continue;
        }
        messages.push(message(library, &found));
    }
    messages
}

/// A message of a library, with the figures of the named groups.
pub(super) fn message(library: &str, found: &regex::Captures) -> Message {
    let (start, end) = range(found);
    let mut message = Message::new(Kind::OtherAllocator, start, end);
    let figures = &mut message.figures;
    let amount = |name| {
        found
            .name(name)
            .and_then(|found| amount_or_bytes(found.as_str()))
    };
    let requested = ["asked", "size", "tactic"];
    figures.requested = requested.into_iter().find_map(amount);
    figures.free = amount("free");
    figures.total = amount("total");
    figures.allocated = amount("used");
    let device = found.name("device");
    figures.device = device.and_then(|device| device.as_str().parse().ok());
    figures.add(LIBRARY, FigureValue::Text(library.to_owned()));
    message
}
