//! `out of memory` and nothing else: neither whose memory, nor how much.

use super::{Family, Message, pattern};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &["out of memory", "内存不足", "显存不足"],
    read,
};

// A whole line: in a sentence the words are no message.
pattern!(
    LINE,
    r"^\W*(?:(?:\w*error|exception|fatal|what\(\)|oom|错误|报错)\b\W*){0,3}(?:out of memory|内存不足|显存不足)\W*$"
);

fn read(window: &Window) -> Vec<Message> {
    let lines = window.lines().iter().enumerate();
    let found = lines.filter(|(_, line)| LINE.find(line).is_some());
    found
        .map(|(index, _)| {
            let (start, end) = (window.start_of(index), window.start_of(index + 1));
            Message::new(Kind::Unsaid, start, end)
        })
        .collect()
}
