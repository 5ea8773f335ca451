//! Programs of which nothing else is known: `out of memory` alone, or behind the name of an error.
//!
//! Prose speaks of memory as well. So only a whole line counts, or one in which an error comes first and the
//! words end what it says.

use super::{Family, Message, last_characters, pattern, range};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "out of memory",
        "out-of-memory",
        "out of GPU memory",
        "out of video memory",
        "out of device memory",
        "out of graphics memory",
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
        "annot alloc",
        "ouldn't alloc",
        "ould not alloc",
        "ailed to alloc",
        "ail to alloc",
        "nable to alloc",
        "be allocated",
        "OUT_OF_VIDEO_MEMORY",
        "OUT_OF_GPU_MEMORY",
        "OUT_OF_GRAPHICS_MEMORY",
        "内存不足",
        "显存不足",
        "显存溢出",
        "内存溢出",
        "显存耗尽",
        "显存已满",
        "爆显存",
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
    r"^\W*(?:(?:\w*error|exception|fatal|what\(\)|oom|错误|报错|오류|エラー|ошибка)\b\W*){0,3}(?:(?:GPU|CUDA)\s?)?(?:out of memory|内存不足|显存不足|显存溢出|爆显存|메모리 부족|메모리가 부족합니다|メモリ不足(?:です)?|メモリが不足しています|недостаточно памяти|нехватка памяти)\W*$"
);
// What an error says of memory, and the error before it. One pattern for both would have to try every
// distance between them.
pattern!(
    WORDS,
    r"out of (?:gpu |device |video |graphics |host |system )?memory|insufficient (?:gpu |device |video |host |system )?memory|not enough (?:free )?(?:gpu |device |video |host |system )?memory|memory allocation (?:failed|failure|error)|(?:failed|unable|could not|cannot) to allocate (?:gpu |device )?memory|could not allocate (?:gpu |device )memory|cannot allocate (?:gpu |device )memory"
);
pattern!(
    ERROR,
    r"\berrors?\b|error:|\w+error\b|\w+exception\b|\bfatal\b|\bfailed\b|\bfailure\b|\bfailing\b|exception:|enforce fail|check failed|\baborted\b|cudasuccess|^cuda:|terminate called"
);
// What every text that counts contains: most lines of a window have nothing of it.
pattern!(
    SIGN,
    r"memory|alloc|内存不足|显存不足|显存溢出|爆显存|메모리|メモリ|памяти"
);
// The same at the beginning of a line, whose level was taken off with its prefix.
pattern!(
    OPENING,
    r"^\W*(?:(?:insufficient|not enough) (?:gpu|device|video|graphics) memory\b|insufficient memory on \w|(?:you|we|the gpu|your gpu) (?:have )?r[au]n out of (?:gpu |video )?memory(?: on (?:the|your) gpu(?:\(s\))?)?\W*$|(?:you|we) r[au]n out of (?:gpu |video )?memory on (?:the|your) gpu)|(?:^|\]\s*)(?:gpu|device|cuda) memory allocation fail(?:ed|ure)\b|(?:^|\]\s*)out of (?:gpu|device|video|graphics) memory\b!?\s*(?:\(|$)|^not enough memory to hold\b"
);
// A place in the source after the words: nobody writes prose like that.
pattern!(
    PLACED,
    r"^\W*out of (?:gpu |device )?memory(?: error)? (?:in|at|on) (?:file )?\S*[\w)][.:/\\]\S*?(?::\d|\(\d|,? (?:at )?line:? \d)|^\W*[a-z_]{0,30}(?:cuda|hip)[a-z_]{1,30}\(\)\s?: out of memory\W*$"
);
// An allocation that was refused, whoever says it: what was to be allocated decides whether it counts.
pattern!(
    REFUSED,
    r"(?:cannot|couldn't|could not|failed to|fail to|unable to|not able to) (?:be )?(?:pre-?|re)?alloc(?:ate|ated|ating)?\b"
);
pattern!(
    OF_MEMORY,
    r"memory|\bbytes?\b|\d ?[kmgt]i?b\b|\bbuffers?\b|\btensors?\b|\btextures?\b|\barrays?\b|workspace|vram"
);
pattern!(AMOUNT, r"memory|\d ?(?:bytes|[kmgt]i?b)\b");
// What says that something else than a lack of memory was the reason, or that something else was short.
pattern!(
    OTHER_REASON,
    r"static tls|mlock|memlock|ibv_|shared memory|/dev/shm|huge ?page|no space left|invalid (?:argument|device|value)|not supported|unsupported|not permitted|permission|no cuda-capable|initiali[sz]ation error|driver version|illegal|file descriptor|\bthreads?\b|\baddress(?:es)?\b|\bport\b|socket|pinned|failed to allocate \w+ (?:from|for) (?:pool|quota)"
);
// What a manual, a plan or a comment says before and after the words.
pattern!(
    PROSE_BEFORE,
    r"(?i)\bif\b|\bwhen\b|\bto avoid\b|\bavoid|\bwould\b|\bmay\b|\bmight\b|\bshould\b|\bfix(?:e[sd]|ing)?\b|\bprevents?\b|\breduce|\bsolv|\bhandl|\bcatch|\bexcept\b|\brais(?:e|es|ed)\b|\bin case\b|\bwithout\b|\bused to\b|\bno longer\b|\bnever\b|\bPASSED\b|\btest_|\bgrep\b|\bknown\b|\bissue\b|# |//|==\s*['\x22]|\bin str|\bdue to\b.*\bfixed|如果|避免|防止|解决"
);
pattern!(
    PROSE_AFTER,
    r"(?i)^(?:-?\s?errors\b|\s(?:means|is|are|was|were|when|if|by|may|can|could|errors|issues?|problems?|conditions?|situations?|handling|handler|killer|policy|retry|fixed)\b|['\x22]\s*in\b|['\x22]\)|['\x22]\s?时)"
);
// A log line in Chinese that ends with the words: nobody asks a question like that.
pattern!(
    CHINESE,
    r"(?:\berror\b|\bfatal\b|(?:失败|异常|错误|报错)\s?:)[^。？?]{0,60}?(?:GPU|CUDA|NPU)?\s?(?:显存|内存)(?:不足|溢出|耗尽|已满)\W*$"
);
// A constant of an interface: `RIF_ERROR_OUT_OF_VIDEO_MEMORY`.
pattern!(
    CONSTANT,
    r"\b[a-z]{2,12}_(?:error_|err_|e_)out_of_(?:video|gpu|graphics|device)_memory\b"
);
// A source file of CUDA, or CUDA's number for the error.
pattern!(CUDA_CODE, r"\.cuh?\b|error-?\s?code:?\s?2\b|\(2\)");
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

/// How far behind an error the words may stand, and how much after them tells prose from a message.
const FARTHEST: usize = 240;
const AFTER: usize = 40;

fn read(window: &Window) -> Vec<Message> {
    let mut messages = Vec::new();
    for index in window.wanted_lines() {
        let (line, next) = (window.undressed(index), window.undressed(index + 1));
        if SIGN.find(line).is_none() && SIGN.find(next).is_none() {
            continue;
        }
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
        DEVICE.iter().any(|word| line.contains(word)) || CUDA_CODE.find(&line).is_some()
    };
    let mut words = 0;
    let is_whole = LINE.find(line).is_some() || OPENING.find(line).is_some();
    if CHINESE.find(line).is_some() {
        let is_named = line.contains("显存") || is_device();
        let kind = if is_named {
            Kind::CudaProgram
        } else {
            Kind::Unsaid
        };
        return Some((kind, 0));
    }
    let is_named = CONSTANT.find(line).is_some() && PROSE_BEFORE.find(line).is_none();
    if is_named {
        return Some((Kind::CudaProgram, 0));
    }
    if !is_whole && PLACED.find(line).is_none() {
        let said = said_by_an_error(line);
        let (before, after) = said.or_else(|| refused(line, is_device()))?;
        if PROSE_BEFORE.find(before).is_some() || PROSE_AFTER.find(after).is_some() {
            return None;
        }
        words = before.len();
    }
    let kind = match is_device() {
        true => Kind::CudaProgram,
        false => Kind::Unsaid,
    };
    Some((kind, words))
}

/// What stands before and after the words, where an error says them.
fn said_by_an_error(line: &str) -> Option<(&str, &str)> {
    let all = WORDS.all(line);
    all.iter().map(range).find_map(|(start, end)| {
        let (before, after) = (line.get(..start)?, line.get(end..)?);
        let near = last_characters(before, FARTHEST);
        ERROR.find(near)?;
        let after = after
            .char_indices()
            .nth(AFTER)
            .map_or(after, |(cut, _)| &after[..cut]);
        Some((before, after))
    })
}

/// What stands before and after an allocation that was refused.
fn refused(line: &str, is_device: bool) -> Option<(&str, &str)> {
    let found = REFUSED.find(line)?;
    let (before, after) = (line.get(..found.start())?, line.get(found.end()..)?);
    // These are the C library's words for RAM, which have a reader of their own.
    let is_errno = found.as_str().eq_ignore_ascii_case("cannot allocate")
        && after
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("memory");
    if is_errno && !is_device {
        return None;
    }
    let what = if is_device { &OF_MEMORY } else { &AMOUNT };
    let is_memory = what.find(line).is_some() && OTHER_REASON.find(line).is_none();
    is_memory.then_some((before, after))
}
