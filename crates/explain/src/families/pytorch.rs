//! PyTorch's caching allocator on CUDA, ROCm and Intel cards, in every wording from 1.0 to 2.15.
//!
//! Each figure is matched on its own: issue titles, columns and copying truncate messages, and the rest
//! is still worth reading.

use super::{Family, Message, amount, is_source_code, number, pattern, range};
use crate::finding::{FREE_BELOW_ZERO, FigureValue, Figures, ProcessUse};
use crate::kind::Kind;
use crate::window::Window;
use crate::wording::Wording;

pub const FAMILY: Family = Family {
    needles: &[
        "out of memory",
        "Out of memory",
        "Tried to alloc",
        "ried to allocate",
        "total capac",
        "already allocated",
        "reserved in total",
        "reserved by PyTorch",
        "PreemptivelyRejected",
        "preemptively rejected",
        "CUDA内存不足",
        "CUDA 内存不足",
        "CUDA显存不足",
        "尝试分配",
        "试图分配",
    ],
    read,
};

pattern!(
    HEAD,
    r"(?:(CUDA|HIP|XPU|NPU|MUSA|MLU)outof(?:the)?memory[.,:;!]?|(CUDA)(?:显存|内存)不足[。.,，:：]?)?(?:Triedtoallocate({A}|morethan1EBmemory)|(?:尝试|试图)分配({A})|Allocationwaspreemptivelyrejected|,?pleaseuseempty_cache)|(CUDA|HIP|XPU|NPU|MUSA|MLU)outofmemory"
);
// The message as browsers translate it stands beside its own words.
pattern!(
    GPU,
    r"(?:GPU|NPU|MLU|MUSA)(\d{1,4})(?:;|hasatotal|的总容量)"
);
pattern!(
    TOTAL,
    r"({A})totalcapacity|totalcapaci?tyof({A})|({A})(?:的)?总容量|总容量为?({A})"
);
pattern!(
    FREE,
    r";({A})free|ofwhich({A})isfree|({A})(?:可用|空闲)|(?:可用|空闲)(?:内存|显存)?为?({A})"
);
pattern!(ALLOWED, r"({A})allowed;");
pattern!(
    ALLOCATED,
    r";({A})alreadyallocated|allocatedmemory({A})isallocatedbyPyTorch|(?:已经?|PyTorch)分配了?({A})|({A})已经?分配"
);
pattern!(
    RESERVED,
    r"({A})reservedintotal|PyTorch(?:总共|一共|共)?(?:预留|保留)(?:了)?({A})"
);
pattern!(
    CACHED,
    r"({A})cached\)?|({A})isreservedbyPyTorch(?:butunallocated\.?)?|保留但未分配的?(?:内存|显存)?为?({A})|({A})[^0-9;,]{0,12}保留但未分配"
);
pattern!(PRIVATE, r"with({A})allocatedinprivatepools");
pattern!(
    THIS_PROCESS,
    r"thisprocesshas({A})memoryinuse|[此该]进程(?:已使用|正在使用|使用|占用|有)了?({A})"
);
pattern!(PROCESS, r"Process(\d{1,10})has({A})memoryinuse");
pattern!(REQUESTED, r"Requestedsize:({A}|\d+)");

/// The longest message of this family, without whitespace.
const LONGEST: usize = 3000;

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    // OneFlow borrowed the first words.
    if text.contains("oneflow") {
        return Vec::new();
    }
    let heads = HEAD.all(text);
    let mut messages = Vec::new();
    for (index, head) in heads.iter().enumerate() {
        let (start, head_end) = range(head);
        if !window.is_wanted(start) {
            break;
        }
        if is_source_code(text, start) {
            continue;
        }
        let next = heads
            .get(index + 1)
            .map_or(text.len(), |next| range(next).0);
        let stop = floor_boundary(text, next.min(start + LONGEST));
        let tail = &text[start..stop];
        if let Some(message) = message(window, head, tail, start, head_end) {
            messages.push(message);
        }
    }
    messages
}

fn message(
    window: &Window,
    head: &regex::Captures,
    tail: &str,
    start: usize,
    head_end: usize,
) -> Option<Message> {
    let backend = [1, 2, 5].into_iter().find_map(|group| head.get(group));
    let backend = backend.map(|backend| backend.as_str());
    let request = head.get(3).or(head.get(4));
    let request = request.map(|request| request.as_str());
    let mut end = head_end;
    let requested = amount(head, 3).or_else(|| amount(head, 4));
    let figures = figures(tail, requested, &mut |piece_end| {
        end = end.max(start + piece_end);
    });
    // "If you encounter CUDA out of memory, try …" is advice, not a failure.
    let is_bare = figures.is_empty() && request.is_none();
    if is_bare && !stands_like_an_error(window, start) {
        return None;
    }
    // In other programs, `Tried to allocate` alone does not mean a card.
    if backend.is_none() && figures.total.is_none() && figures.device.is_none() {
        return None;
    }
    let tail = tail.to_lowercase();
    let tail = tail.as_str();
    let is_absurd = request.is_some_and(|request| request.to_lowercase().starts_with("more"));
    let kind = match backend.map(str::to_ascii_uppercase).as_deref() {
        _ if is_absurd => Kind::CudaAbsurdSize,
        Some("HIP") => Kind::HipAllocator,
        Some("XPU") => Kind::XpuAllocator,
        Some("NPU") => Kind::NpuAllocator,
        Some("MUSA" | "MLU") => Kind::OtherCardAllocator,
        _ if tail.contains("preemptivelyrejected") => Kind::CudaRejected,
        _ if is_bare => Kind::CudaAllocatorBare,
        _ => Kind::CudaAllocator,
    };
    let hint_end = hint_end(tail).map_or(0, |hint_end| start + hint_end);
    Some(Message {
        wording: wording(tail, kind),
        kind,
        figures,
        start,
        end: end.max(hint_end),
    })
}

fn figures(
    tail: &str,
    requested: Option<crate::amount::Amount>,
    seen: &mut dyn FnMut(usize),
) -> Figures {
    let mut either = |pattern: &super::Pattern| {
        let found = pattern.captures(tail)?;
        seen(range(&found).1);
        (1..found.len()).find_map(|group| amount(&found, group))
    };
    let requested = requested.or_else(|| either(&REQUESTED));
    let mut figures = Figures {
        requested,
        total: either(&TOTAL),
        free: either(&FREE),
        allowed: either(&ALLOWED),
        allocated: either(&ALLOCATED),
        reserved: either(&RESERVED),
        cached: either(&CACHED),
        private_pools: either(&PRIVATE),
        this_process: either(&THIS_PROCESS),
        ..Figures::default()
    };
    figures.device = GPU
        .captures(tail)
        .and_then(|found| number(&found, 1)?.try_into().ok());
    for found in PROCESS.all(tail) {
        if let (Some(pid), Some(used)) = (number(&found, 1), amount(&found, 2)) {
            figures.processes.push(ProcessUse { pid, used });
        }
    }
    // A negative value from the driver is printed as a huge number.
    if let (None, Some(found)) = (figures.free, FREE.captures(tail)) {
        let printed = (1..found.len()).find_map(|group| found.get(group));
        let printed = printed.map_or("", |printed| printed.as_str()).to_owned();
        figures.add(FREE_BELOW_ZERO, FigureValue::Text(printed));
    }
    figures.complete()
}

/// The text begins a line or follows the name of an exception.
fn stands_like_an_error(window: &Window, start: usize) -> bool {
    let line = window.line_at(start);
    let before = window.squeezed().get(window.start_of(line)..start);
    let before = before.unwrap_or_default().to_ascii_lowercase();
    let before = before.trim_end_matches(['"', '\'', '#', '-', '>', '(']);
    before.is_empty()
        || before.ends_with("error:")
        || before.ends_with("exception:")
        || before.ends_with("what():")
        || before.ends_with("error")
}

/// The end of the hint that follows the figures, in lower case like the text below.
fn hint_end(tail: &str) -> Option<usize> {
    [
        "environment-variables)",
        "pytorch-cuda-alloc-conf)",
        "alloc_conf",
        "cachedmemory.",
    ]
    .iter()
    .find_map(|end| tail.find(end).map(|at| at + end.len()))
}

/// The releases that use this wording.
fn wording(tail: &str, kind: Kind) -> Option<Wording> {
    if kind == Kind::XpuAllocator {
        return Some(
            match (tail.contains("triedtoallocate"), tail.contains("isfree")) {
                (false, _) => Wording::until((2, 3), (2, 4)),
                (true, false) => Wording::until((2, 5), (2, 9)),
                (true, true) => Wording::since((2, 10)),
            },
        );
    }
    let is_long = tail.contains("totalcapacity;");
    Some(match () {
        () if tail.contains("preemptivelyrejected") => Wording::since((2, 12)),
        () if is_long && tail.contains("cached)") => Wording::until((1, 0), (1, 3)),
        () if is_long && tail.contains("max_split_size_mb") => Wording::until((1, 10), (2, 0)),
        () if is_long && tail.contains("allowed;") => Wording::until((1, 8), (2, 0)),
        () if is_long => Wording::until((1, 4), (2, 0)),
        () if tail.contains("capacty") => Wording::only((2, 1)),
        () if tail.contains("expandable-segmentreserve") || tail.contains("mempoolreturned") => {
            Wording::only((2, 15))
        }
        () if tail.contains("pytorch_alloc_conf") => Wording::only((2, 10)),
        () if tail.contains("docs.pytorch.org") => Wording::since((2, 11)),
        () if tail.contains("privatepools") => Wording::since((2, 4)),
        () if tail.contains("totalcapacityof") => Wording::since((2, 2)),
        () => return None,
    })
}

/// The largest char boundary up to `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|offset| text.is_char_boundary(*offset))
        .unwrap_or(0)
}
