//! Programs of which nothing else is known: `out of memory` alone, or behind the name of an error.
//!
//! Prose speaks of memory as well. So only a whole line counts, or one in which an error comes first and the
//! words end what it says.

use super::{Family, Message, pattern};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "out of memory",
        "out-of-memory",
        "OutOfMemory",
        "nsufficient memory",
        "nsufficient GPU memory",
        "nsufficient device memory",
        "ot enough memory",
        "ot enough GPU memory",
        "ot enough device memory",
        "ot enough video memory",
        "emory allocation fail",
        "allocate GPU memory",
        "allocate device memory",
        "内存不足",
        "显存不足",
        "메모리 부족",
        "メモリ不足",
        "メモリが不足",
        "недостаточно памяти",
        "нехватка памяти",
    ],
    read,
};

// A whole line: in a sentence the words are no message.
pattern!(
    LINE,
    r"^\W*(?:(?:\w*error|exception|fatal|what\(\)|oom|错误|报错|오류|エラー|ошибка)\b\W*){0,3}(?:(?:GPU|CUDA)\s?)?(?:out of memory|内存不足|显存不足|메모리 부족|메모리가 부족합니다|メモリ不足(?:です)?|メモリが不足しています|недостаточно памяти|нехватка памяти)\W*$"
);
// An error, and then what it is.
pattern!(
    ERROR,
    r"(?i)(?:\berrors?\b|error:|\w+error\b|\w+exception\b|\bfatal\b|\bfailed\b|\bfailure\b|\bfailing\b|enforce fail|check failed|\baborted\b|cudasuccess|^cuda:|terminate called)(?P<between>.{0,240}?)(?P<words>out of (?:gpu |device |video |graphics |host |system )?memory|insufficient (?:gpu |device |video |host |system )?memory|not enough (?:free )?(?:gpu |device |video |host |system )?memory|memory allocation (?:failed|failure|error)|(?:failed|unable|could not|cannot) to allocate (?:gpu |device )?memory|could not allocate (?:gpu |device )memory|cannot allocate (?:gpu |device )memory)(?P<after>.{0,40})"
);
// The same at the beginning of a line, whose level was taken off with its prefix.
pattern!(
    OPENING,
    r"(?i)^\W*(?:(?:insufficient|not enough) (?:gpu|device|video|graphics) memory\b|insufficient memory on \w)|(?:^|\]\s*)(?:gpu|device|cuda) memory allocation fail(?:ed|ure)\b"
);
// What a manual, a plan or a comment says before and after the words.
pattern!(
    PROSE_BEFORE,
    r"(?i)\bif\b|\bwhen\b|\bto avoid\b|\bavoid|\bwould\b|\bmay\b|\bmight\b|\bshould\b|\bfix(?:e[sd]|ing)?\b|\bprevents?\b|\breduce|\bsolv|\bhandl|\bcatch|\bexcept\b|\brais(?:e|es|ed)\b|\bin case\b|\bwithout\b|\bused to\b|\bno longer\b|\bnever\b|\bPASSED\b|\btest_|\bgrep\b|\bknown\b|\bissue\b|# |//|==\s*['\x22]|\bin str|\bdue to\b.*\bfixed"
);
pattern!(
    PROSE_AFTER,
    r"(?i)^(?:-?\s?errors\b|\s(?:means|is|are|was|were|when|if|by|may|can|could|errors|issues?|problems?|conditions?|situations?|handling|handler|killer|policy|retry|fixed)\b|['\x22]\s*in\b|['\x22]\))"
);
const DEVICE: [&str; 16] = [
    "gpu",
    "cuda",
    "device",
    "vram",
    "video memory",
    "graphics",
    "accelerator",
    "vulkan",
    "opencl",
    "directx",
    "d3d",
    "metal",
    "hip",
    "rocm",
    "sycl",
    "显存",
];

fn read(window: &Window) -> Vec<Message> {
    let mut messages = Vec::new();
    for index in 0..window.lines().len() {
        let (line, next) = (window.undressed(index), window.undressed(index + 1));
        // A line may have been wrapped at any blank; what stands before it may say whose memory it is.
        let joined = || {
            let (kind, words) = kind_of(&format!("{line} {next}"))?;
            let alone = kind_of(next).map(|(kind, _)| kind);
            let says_more = alone == Some(Kind::Unsaid) && kind == Kind::CudaProgram;
            // It begins where its words do: another family may read them as a message of its own.
            let first = index + usize::from(words > line.len());
            (alone.is_none() || says_more).then_some((kind, first, index + 2))
        };
        let alone = kind_of(line).map(|(kind, _)| (kind, index, index + 1));
        let Some((kind, first, last)) = alone.or_else(joined) else {
            continue;
        };
        let (start, end) = (window.start_of(first), window.start_of(last));
        messages.push(Message::new(kind, start, end));
    }
    messages
}

/// Whose memory a line says has run out, and where in it the words begin.
fn kind_of(line: &str) -> Option<(Kind, usize)> {
    let is_device = || {
        let line = line.to_lowercase();
        DEVICE.iter().any(|word| line.contains(word))
    };
    let mut words = 0;
    if LINE.find(line).is_none() && OPENING.find(line).is_none() {
        let found = ERROR.captures(line)?;
        let begin = found.name("words").map_or(0, |words| words.start());
        let before = line.get(..begin).unwrap_or_default();
        let after = found.name("after").map_or("", |after| after.as_str());
        if PROSE_BEFORE.find(before).is_some() || PROSE_AFTER.find(after).is_some() {
            return None;
        }
        words = begin;
    }
    let kind = match is_device() {
        true => Kind::CudaProgram,
        false => Kind::Unsaid,
    };
    Some((kind, words))
}
