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
    r"Unabletoallocate({A})foranarraywithshape(\([0-9,]*\))anddatatype([\w<>]+)"
);
pattern!(
    PYTHON,
    r"^(?:[\w.]*\.)?(?:_Array)?MemoryError(?::.*)?\s*$|std::bad_alloc|OSError: \[Errno 12\] Cannot allocate memory"
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
        let shape = found[2].chars().take(120).collect();
        message.figures.add("shape", FigureValue::Text(shape));
        message
            .figures
            .add("type", FigureValue::Text(found[3].to_owned()));
        messages.push(message);
    }
    for found in DISPATCHED.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::DispatchedElsewhere, start, end));
    }
    if messages.is_empty() {
        for (index, line) in window.lines().iter().enumerate() {
            if PYTHON.find(line).is_some() {
                let (start, end) = (window.start_of(index), window.start_of(index + 1));
                messages.push(Message::new(Kind::PythonMemory, start, end));
            }
        }
    }
    messages
}
