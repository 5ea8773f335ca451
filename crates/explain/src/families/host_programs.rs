//! Programs and runtimes that asked for RAM in words of their own: compilers, OpenCV, Rust, Arrow, R, Java, ….

use super::other_allocators::message;
use super::{Family, Message, Pattern, pattern};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "Fail to alloc memory",
        "in function 'OutOfMemoryError'",
        "memory allocation of ",
        "alloc of size ",
        "allocate vector of size",
        "无法分配大小为",
        "無法配置大小為",
        "kann Vektor der Gr",
        "ubicar un vector de",
        "ArrowMemoryError",
        "os::commit_memory",
        "lang.OutOfMemoryError",
        "heap out of memory",
        "process out of memory",
        "Java Runtime Environment to continue",
        "runtime: out of memory",
        "signal terminated program",
        "due to signal 9",
        "virtual memory exhausted",
        "ERROR_OUT_OF_HOST_MEMORY",
        "CL_OUT_OF_HOST_MEMORY",
        "vkAllocateMemory",
        "insufficient system resources",
        "Not enough resources to load",
    ],
    read,
};

/// Groups: `asked`, where a message gives it.
const OWN_WORDS: [(&str, &Pattern); 15] = [
    ("PaddlePaddle", &PADDLE),
    ("OpenCV", &OPENCV),
    ("Rust", &RUST),
    ("Arrow", &ARROW),
    ("R", &R),
    ("Java", &JAVA),
    ("the JVM", &JVM_COMMIT),
    ("the JVM", &JVM),
    ("Node.js", &NODE),
    ("Go", &GO),
    ("the compiler", &COMPILER),
    ("Vulkan", &VULKAN),
    ("ncnn", &NCNN),
    ("OpenCL", &OPENCL),
    ("LM Studio", &LM_STUDIO),
];

pattern!(PADDLE, r"Failtoallocmemoryof(?P<asked>\d+)size");
pattern!(
    OPENCV,
    r"Failedtoallocate(?P<asked>\d+)bytesinfunction'OutOfMemoryError'"
);
pattern!(RUST, r"memoryallocationof(?P<asked>\d+)bytesfailed");
pattern!(
    ARROW,
    r"pyarrow\.lib\.ArrowMemoryError(?::(?:m|re)allocofsize(?P<asked>\d+)failed)?|(?:\bm|re)allocofsize(?P<size>\d+)failed"
);
pattern!(
    R,
    r"(?:cannotallocatevectorofsize|无法分配大小为|無法配置大小為|kannVektorderGröße|nosepuedeubicarunvectordetamaño)(?P<asked>{A})"
);
pattern!(
    JAVA,
    r"java\.lang\.OutOfMemoryError(?::(?:Javaheapspace|GCoverheadlimitexceeded|Directbuffermemory|Metaspace))?"
);
// The JVM itself, whose heap takes what its own threads and libraries need.
pattern!(
    JVM,
    r"insufficientmemoryfortheJavaRuntimeEnvironment(?:tocontinue)?\.?\n?(?:Nativememoryallocation\(\w{1,12}\)failedto(?:map|allocate)(?P<asked>\d+)bytes)?"
);
// A warning that stands before those words, or alone.
pattern!(
    JVM_COMMIT,
    r"os::commit_memory\(0x[0-9a-f]+,(?P<asked>\d+),\d\)failed"
);
pattern!(
    NODE,
    r"(?:JavaScript)?heapoutofmemory|JSAllocationfailed-processoutofmemory"
);
pattern!(GO, r"fatalerror:runtime:outofmemory");
pattern!(
    COMPILER,
    r"fatalerror:(?:Killed|已杀死)signalterminatedprogram\w+|'\w{2,20}'diedduetosignal9|virtualmemoryexhausted:Cannotallocatememory"
);
pattern!(VULKAN, r"VK_ERROR_OUT_OF_HOST_MEMORY");
pattern!(NCNN, r"vkAllocateMemoryfailed[:(]?-1(?:[^0-9.]|$)");
pattern!(OPENCL, r"CL_OUT_OF_HOST_MEMORY");
// It estimates before it loads.
pattern!(
    LM_STUDIO,
    r"Modelloadingwasstoppedduetoinsufficientsystemresources(?:\.Underthecurrentsettings,thismodelrequiresapproximately(?P<asked>{A})ofmemory)?|Notenoughresourcestoloadthemodelwiththecurrentsettings"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for (library, pattern) in OWN_WORDS {
        for found in pattern.printed(text) {
            messages.push(Message {
                kind: Kind::OtherHost,
                ..message(library, &found)
            });
        }
    }
    messages
}
