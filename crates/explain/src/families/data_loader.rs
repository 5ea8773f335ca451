//! PyTorch's `DataLoader`: killed workers and full shared memory.

use super::{Family, Message, number, pattern, range};
use crate::amount::Amount;
use crate::finding::FigureValue;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "DataLoader worker",
        "us error",
        "unable to open shared memory",
        "unable to write to file </torch",
        "</torch_",
        "unable to mmap",
        "unable to resize",
        "shared memory object",
        "insufficient shared memory",
        "No space left on device",
        "shared memory segment",
        "failed to extend /dev/shm",
        "ObjectStoreFullError",
        "object store because it is full",
    ],
    read,
};

pattern!(
    BUS,
    r"DataLoaderworker\(pid(\d+)\)iskilledbysignal:Buserror|Unexpectedbuserrorencounteredinworker|^Buserror\(coredumped\)"
);
pattern!(
    KILLED,
    r"DataLoaderworker\(pid(\d+)\)iskilledbysignal:Killed"
);
pattern!(
    EXITED,
    r"DataLoaderworker\(pid\(?s?\)?([\d,]+)\)exitedunexpectedly(?:withexitcode(-?\d+))?"
);
pattern!(
    FILES,
    r"unabletoopensharedmemoryobject</[^>]{1,80}>|unabletowritetofile</torch_[^>]{1,80}>|unableto(?:mmap|resizefile)[^\n]{0,60}</?torch_[^>]{1,80}>|Nospaceleftondevice:?'?/(?:dev/shm|torch_)|Nospaceleftondevice:[^\n]{0,160}?->'/dev/shm/|failedtoextend/dev/shm/[\w-]{1,40}|creatingsharedmemorysegment/dev/shm/[\w-]{1,40}(?:\(size(?P<asked>\d+)\))?"
);
// Ray keeps objects in shared memory.
pattern!(
    RAY,
    r"ObjectStoreFullError(?::[^\n]{0,200}?Objectsizeis(?P<asked>\d+)bytes)?|objectstorebecauseitisfull\.?(?:Objectsizeis(?P<size>\d+)bytes)?"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for (pattern, kind) in [
        (&BUS, Kind::SharedMemory),
        (&FILES, Kind::SharedMemory),
        (&RAY, Kind::SharedMemory),
        (&KILLED, Kind::DataLoaderKilled),
        (&EXITED, Kind::DataLoaderKilled),
    ] {
        for found in pattern.printed(text) {
            let (start, end) = range(&found);
            // The exit of a worker is reported again after its cause.
            let is_said = kind == Kind::DataLoaderKilled && !messages.is_empty();
            if is_said {
                continue;
            }
            let mut message = Message::new(kind, start, end);
            let bytes = |name| found.name(name)?.as_str().parse().ok();
            let asked = bytes("asked").or_else(|| bytes("size"));
            message.figures.requested = asked.map(Amount::exact);
            let names_worker = !matches!(kind, Kind::SharedMemory) || found.name("asked").is_none();
            if let Some(pid) = number(&found, 1).filter(|_| found.len() > 1 && names_worker) {
                message.figures.add("worker", FigureValue::Count(pid));
            }
            messages.push(message);
        }
    }
    messages
}
