//! PyTorch on Apple GPUs, which share the machine's memory.

use super::{Family, Message, amount, pattern, range};
use crate::finding::{FigureValue, Figures};
use crate::kind::Kind;
use crate::window::Window;
use crate::wording::Wording;

pub const FAMILY: Family = Family {
    needles: &["MPS backend out of", "MPS allocated", "nvalid buffer size"],
    read,
};

pattern!(
    HEAD,
    r"MPSbackendoutofmemory\(MPSallocated:({A})(?:,otherallocations:({A}))?(?:,maxallowed:({A}))?\)\.?(?:Triedtoallocate({A})on(\w+)pool)?"
);
// A single buffer that Metal refuses, whatever else is in use.
pattern!(BUFFER, r"Invalidbuffersize:({A})");

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for found in HEAD.printed(text) {
        let (start, end) = range(&found);
        let mut figures = Figures {
            allocated: amount(&found, 1),
            allowed: amount(&found, 3),
            requested: amount(&found, 4),
            ..Figures::default()
        };
        if let Some(other) = amount(&found, 2) {
            figures.add("other allocations", FigureValue::Amount(other));
        }
        messages.push(Message {
            figures,
            wording: Some(match found[0].contains("iB") {
                true => Wording::since((2, 8)),
                false => Wording::until((1, 12), (2, 7)),
            }),
            ..Message::new(Kind::MpsAllocator, start, end)
        });
    }
    for found in BUFFER.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::MpsAllocator, start, end);
        message.figures.requested = amount(&found, 1);
        messages.push(message);
    }
    messages
}
