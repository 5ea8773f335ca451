//! JAX and XLA.

use super::{Family, Message, amount, number, pattern, range};
use crate::amount::Amount;
use crate::finding::FigureValue;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "RESOURCE_EXHAUSTED",
        "esource exhausted",
        "Out of memory while trying",
        "Out of memory allocating",
        "Failed to allocate request",
        "cuMemAllocAsync failed",
        "Ran out of memory in",
        "memory space hbm",
        "That was not possible",
    ],
    read,
};

pattern!(
    HEAD,
    r"(?:RESOURCE_EXHAUSTED|[Rr]esourceexhausted):(?:Outofmemory(?:whiletryingtoallocate|allocating)(\d+)bytes|Outofmemorywhiletryingtoallocate({A})|Failedtoallocaterequestfor({A})|Outofmemoryallocating(\d+)|Error(?:loading|allocating)?[^\n]{0,80}?(\d+)bytes)"
);
pattern!(
    LOOSE,
    r"Outofmemory(?:whiletryingtoallocate|allocating)(\d+)bytes|Outofmemorywhiletryingtoallocate({A})|Failedtoallocaterequestfor({A})"
);
pattern!(ASYNC, r"cuMemAllocAsyncfailedtoallocate(\d+)bytes");
// A TPU: the compiler knows before anything runs.
pattern!(
    TPU,
    r"Ranoutofmemoryinmemoryspace(\w{1,8}?)\.Used([\d.]+[KMGT])of([\d.]+[KMGT])"
);
// The same while it runs.
pattern!(
    TPU_BUFFER,
    r"Attemptingto(?:reserve|allocate)([\d.]+[KMGT]?)i?B?(?:atthe\w{1,8}ofmemory)?\.Thatwasnotpossible\.(?:Therewas|Thereare)([\d.]+[KMGT]?)i?B?free"
);
pattern!(FREE_OF_TOTAL, r"Freememory/Totalmemory:(\d+)/(\d+)");
pattern!(
    BUFFERS,
    r"(parameter|constant|maybe_live_out|preallocatedtemp|total)allocation:({A})"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for pattern in [&HEAD, &LOOSE, &ASYNC] {
        for found in pattern.printed(text) {
            let (start, mut end) = range(&found);
            let is_known = messages
                .iter()
                .any(|known| start < known.end && known.start < end);
            if is_known {
                continue;
            }
            let mut message = Message::new(Kind::Jax, start, end);
            let bytes = (1..found.len()).find_map(|group| {
                amount(&found, group).or_else(|| number(&found, group).map(Amount::exact))
            });
            message.figures.requested = bytes;
            let tail = &text[start..];
            if let Some(memory) = FREE_OF_TOTAL.captures(tail) {
                message.figures.free = number(&memory, 1).map(Amount::exact);
                message.figures.total = number(&memory, 2).map(Amount::exact);
                end = end.max(start + range(&memory).1);
            }
            for part in BUFFERS.all(tail) {
                let name = match &part[1] {
                    "parameter" => "parameters",
                    "constant" => "constants",
                    "maybe_live_out" => "results",
                    "preallocatedtemp" => "temporaries",
                    _ => "in total",
                };
                if let Some(size) = amount(&part, 2).filter(|_| start + range(&part).0 < end + 800)
                {
                    message.figures.add(name, FigureValue::Amount(size));
                }
            }
            message.end = end;
            messages.push(message);
        }
    }
    for found in TPU_BUFFER.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::Jax, start, end);
        message.figures.requested = amount(&found, 1);
        message.figures.free = amount(&found, 2);
        messages.push(message);
    }
    for found in TPU.printed(text) {
        let (start, end) = range(&found);
        // The memory inside a core, which one kernel fills.
        if found[1].eq_ignore_ascii_case("vmem") || found[1].eq_ignore_ascii_case("smem") {
            let mut message = Message::new(Kind::KernelSharedMemory, start, end);
            message.figures.requested = amount(&found, 2);
            message.figures.allowed = amount(&found, 3);
            messages.push(message);
            continue;
        }
        let mut message = Message::new(Kind::Jax, start, end);
        message.figures.total = amount(&found, 3);
        if let Some(needed) = amount(&found, 2) {
            message.figures.add("in total", FigureValue::Amount(needed));
        }
        messages.push(message);
    }
    messages.sort_by_key(|message| message.start);
    messages
}
