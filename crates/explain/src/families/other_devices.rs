//! Devices other than NVIDIA's cards: Intel's GPUs through Level Zero, and Jetson boards, whose CPU and GPU
//! share one memory.

use super::{Family, Message, last_characters, pattern, range};
use crate::finding::{FigureValue, LIBRARY};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "ERROR_OUT_OF_RESOURCES",
        "ERROR_OUT_OF_DEVICE_MEMORY",
        "ERROR_OUT_OF_HOST_MEMORY",
        "NvMapMem",
        "cudaAllocMapped",
    ],
    read,
};

pattern!(
    LEVEL_ZERO,
    r"(?:UR_RESULT|ZE_RESULT|\bPI|\bUR|\bZE)_ERROR_OUT_OF_(DEVICE_MEMORY|RESOURCES|HOST_MEMORY)"
);
pattern!(
    JETSON,
    r"NvMapMem\w{1,40}:[\d,]*error12|cudaAllocMapped\(\)failedtoallocatememory"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for found in LEVEL_ZERO.printed(text) {
        let (start, end) = range(&found);
        if !is_reported(&text[..start]) {
            continue;
        }
        // The name stands twice in one exception.
        if let Some(last) = messages.last_mut().filter(|last| start < last.end + 40) {
            last.end = end;
            continue;
        }
        let is_host = found[1].to_ascii_uppercase().starts_with("HOST");
        let mut message = match is_host {
            true => Message::new(Kind::OtherHost, start, end),
            false => Message::new(Kind::XpuCall, start, end),
        };
        if is_host {
            let name = FigureValue::Text("Level Zero".to_owned());
            message.figures.add(LIBRARY, name);
        }
        messages.push(message);
    }
    for found in JETSON.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::Jetson, start, end));
    }
    messages
}

/// A result that a call returned, not a constant that a sentence speaks of.
fn is_reported(before: &str) -> bool {
    let before = last_characters(before, 120).to_lowercase();
    let says_so = [
        "error",
        "fail",
        "return",
        "exception",
        "abort",
        "terminat",
        "what()",
        "status",
        "result",
    ];
    let is_value = |last: char| !last.is_alphanumeric();
    before.chars().last().is_none_or(is_value) || says_so.iter().any(|word| before.contains(word))
}
