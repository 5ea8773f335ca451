//! PyTorch with `backend:cudaMallocAsync`: six lines, one figure on each.

use super::{Family, Message, amount, number, pattern, range};
use crate::finding::Figures;
use crate::kind::Kind;
use crate::window::Window;
use crate::wording::Wording;

pub const FAMILY: Family = Family {
    needles: &["would exceed allowed memory", "Allocation on device"],
    read,
};

// ComfyUI prints only the first words.
pattern!(
    HEAD,
    r"(?:OutOfMemoryError:)?Allocationondevice(\d+)wouldexceedallowedmemory|OutOfMemoryError:Allocationondevice|ExceptionMessage:Allocationondevice|!!!Exceptionduringprocessing!!!Allocationondevice|(?m:^Allocationondevice\d*(?:Thiserrormeans|$))"
);
pattern!(ALLOCATED, r"Currentlyallocated:({A})");
pattern!(REQUESTED, r"Requested:({A})");
pattern!(LIMIT, r"Devicelimit:({A})");
pattern!(FREE, r"Free\(accordingtoCUDA\):({A})");
pattern!(ALLOWED, r"user-suppliedmemoryfraction\)\n?:({A})");

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for head in HEAD.printed(text) {
        let (start, mut end) = range(&head);
        let tail = &text[start..];
        let mut figure = |pattern: &super::Pattern| {
            let found = pattern.captures(tail)?;
            end = end.max(start + range(&found).1);
            amount(&found, 1)
        };
        let figures = Figures {
            requested: figure(&REQUESTED),
            allocated: figure(&ALLOCATED),
            total: figure(&LIMIT),
            free: figure(&FREE),
            // Without a user limit, PyTorch prints 2^64 - 1, which is not an amount.
            allowed: figure(&ALLOWED),
            device: number(&head, 1).and_then(|device| device.try_into().ok()),
            ..Figures::default()
        };
        messages.push(Message {
            figures,
            wording: Some(Wording {
                setting: Some("backend:cudaMallocAsync"),
                ..Wording::since((2, 0))
            }),
            ..Message::new(Kind::CudaMallocAsync, start, end)
        });
    }
    messages
}
