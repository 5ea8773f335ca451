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
    r"^\W*(?:[\w.]*\.)?(?:_Array)?MemoryError(?::.*)?\W*$|std::bad_alloc|OSError: \[Errno 12\] Cannot allocate memory"
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
        message.figures.requested = amount(&found, 1);
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
        for (index, line) in window.lines().iter().enumerate() {
            // The same C++ exception, for the card's memory, perhaps on the next line.
            let tail = text.get(window.start_of(index)..).unwrap_or_default();
            let tail: String = tail.chars().take(200).collect();
            let tail = tail.to_ascii_lowercase();
            let is_cuda = ["cuda", "rmm", "devicememory"]
                .iter()
                .any(|sign| tail.contains(sign));
            if PYTHON.find(line).is_some() && !is_cuda {
                let (start, end) = (window.start_of(index), window.start_of(index + 1));
                messages.push(Message::new(Kind::PythonMemory, start, end));
            }
        }
    }
    messages
}
