//! Host memory that an allocator requested and did not get.

use super::{Family, Message, amount, number, pattern, range};
use crate::amount::Amount;
use crate::finding::FigureValue;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "DefaultCPUAllocator",
        "you tried to allocate",
        "MemoryError",
        "Unable to allocate",
        "bad_alloc",
        "posix_memalign",
        "annot allocate memory",
        "无法分配内存",
        "メモリを確保できません",
        "ENOMEM",
        "C error: out of memory",
        "dispatched on the CPU or the disk",
    ],
    read,
};

pattern!(
    CPU,
    r"(?:DefaultCPUAllocator:)?(?:can'tallocatememory|notenoughmemory):youtriedtoallocate(\d+)(?:bytes|GB|%dGB)?|posix_memalign\(&data,gAlignment,nbytes\)==0\.12vs0"
);
pattern!(
    NUMPY,
    r"Unabletoallocate(?:({A})foran)?array(?:withshape(\([0-9,]*\))(?:anddatatype((?:u?int|float|complex)\d{1,3}|bool|object|[<>|]?[a-zA-Z]\d{1,6}))?)?"
);
pattern!(
    PYTHON,
    r"^\W*(?:[\w.]*\.)?(?:_Array)?MemoryError(?::.*)?\W*$|std::bad_alloc|OSError: \[Errno 12\] Cannot allocate memory|\bC error: out of memory\b"
);
// What the C library says of any call that found no memory; other limits are reported in the same words.
pattern!(
    ERRNO,
    r"(?:^|[:\])'\x22]\s?|\berror |errno ?=? ?12\W{0,3})(?:cannot allocate memory|无法分配内存|メモリを確保できません)(?:\W*$|[.,;:)'\x22])|\bENOMEM\b"
);
pattern!(
    OTHER_LIMIT,
    r"static tls|os::commit_memory|mlock|memlock|ibv_|shared memory|shmget|/dev/shm|virtual memory exhausted|\bENOMEM\b\s*(?:=|12\s*/\*|\()|-ENOMEM"
);
pattern!(DISPATCHED, r"SomemodulesaredispatchedontheCPUorthedisk");

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for found in CPU.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::CpuAllocator, start, end);
        message.figures.requested = number(&found, 1).map(Amount::exact);
        messages.push(message);
    }
    for found in NUMPY.all(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::PythonMemory, start, end);
        // Old releases give the shape and not the size.
        let of_shape = || size_of(found.get(2)?.as_str(), found.get(3)?.as_str());
        message.figures.requested = amount(&found, 1).or_else(of_shape);
        for (group, name) in [(2, "shape"), (3, "type")] {
            if let Some(found) = found.get(group) {
                let text = found.as_str().chars().take(120).collect();
                message.figures.add(name, FigureValue::Text(text));
            }
        }
        messages.push(message);
    }
    for found in DISPATCHED.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::DispatchedElsewhere, start, end));
    }
    if messages.is_empty() {
        for index in window.wanted_lines() {
            let line = window.lines().get(index).copied().unwrap_or_default();
            let kind = if PYTHON.find(line).is_some() {
                Kind::PythonMemory
            } else if ERRNO.find(line).is_some() && OTHER_LIMIT.find(line).is_none() {
                Kind::OtherHost
            } else {
                continue;
            };
            if is_of_the_card(window, index) {
                continue;
            }
            let (start, end) = (window.start_of(index), window.start_of(index + 1));
            messages.push(Message::new(kind, start, end));
        }
    }
    messages
}

/// The bytes of an array of NumPy.
fn size_of(shape: &str, type_name: &str) -> Option<Amount> {
    let bits = type_name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let bits: u64 = bits.parse().ok().filter(|bits| bits % 8 == 0)?;
    let sides = shape.split(|letter: char| !letter.is_ascii_digit());
    let mut bytes = bits / 8;
    for side in sides.filter(|side| !side.is_empty()) {
        bytes = bytes.checked_mul(side.parse().ok()?)?;
    }
    Some(Amount::exact(bytes))
}

/// The same C++ exception, for the card's memory, perhaps on the next line; or what a program makes of an error
/// of the driver on the line before.
fn is_of_the_card(window: &Window, line: usize) -> bool {
    let tail = window.squeezed().get(window.start_of(line)..);
    let tail: String = tail.unwrap_or_default().chars().take(200).collect();
    let tail = tail.to_ascii_lowercase();
    let before = line.checked_sub(1);
    let before = before.and_then(|before| window.lines().get(before).copied());
    ["cuda", "cumem", "hipm", "rmm", "devicememory"]
        .iter()
        .any(|sign| tail.contains(sign))
        || before.is_some_and(|before| before.contains("CUDA_ERROR_OUT_OF_MEMORY"))
}
