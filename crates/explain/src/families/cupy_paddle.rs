//! CuPy and PaddlePaddle.

use super::{Family, Message, amount, number, pattern, range};
use crate::amount::Amount;
use crate::finding::Figures;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "Out of memory allocating",
        "out of memory to allocate",
        "Out of memory error on GPU",
        "Out of memory error on XPU",
        "Out of memory error on NPU",
        "Out of memory error on MLU",
        "Out of memory error on DCU",
        "allocating <= available",
        "PaddleCheckError",
        "内存不足错误",
    ],
    read,
};

pattern!(
    CUPY,
    r"(?:cupy\S{0,40}?)?Outofmemory(?:allocating|toallocate)({A})\((?:allocatedsofar:|total)({A})(?:,limitsetto:({A}))?"
);
pattern!(
    PADDLE,
    r"Outofmemoryerroron(?:GPU|XPU|NPU|MLU|DCU|[a-z_]{3,20}:?)(\d+)\.Cannotallocate({A})(?:GPU)?memory(?:on[a-z_]{2,20}:?\d+)?(?:,({A})memoryhasbeenallocated)?(?:(?:and|,)availablememoryis(?:only)?({A}))?"
);
// Its check of what the driver says, in old releases.
pattern!(
    PADDLE_ENFORCE,
    r"enforceallocating<=availablefailed,(\d+)>(\d+)"
);
// Its check after a call, in old releases.
pattern!(PADDLE_CHECK, r"PaddleCheckError:outofmemory");
// The same as browsers translate it for those who paste what they see.
pattern!(
    PADDLE_IN_CHINESE,
    r"GPU(\d+)上出现内存不足错误[。.]?无法在GPU\d+上分配({A})内存(?:[，,]已分配({A})内存)?(?:[，,]可用内存仅为({A}))?"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for found in CUPY.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message {
            figures: Figures {
                requested: amount(&found, 1),
                allocated: amount(&found, 2),
                allowed: amount(&found, 3),
                ..Figures::default()
            },
            ..Message::new(Kind::CuPy, start, end)
        });
    }
    for found in PADDLE_CHECK.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::Paddle, start, end));
    }
    for found in PADDLE_ENFORCE.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::Paddle, start, end);
        message.figures.requested = number(&found, 1).map(Amount::exact);
        message.figures.free = number(&found, 2).map(Amount::exact);
        messages.push(message);
    }
    for found in PADDLE
        .all(text)
        .into_iter()
        .chain(PADDLE_IN_CHINESE.all(text))
    {
        let (start, end) = range(&found);
        messages.push(Message {
            figures: Figures {
                device: number(&found, 1).and_then(|device| device.try_into().ok()),
                requested: amount(&found, 2),
                allocated: amount(&found, 3),
                free: amount(&found, 4),
                ..Figures::default()
            },
            ..Message::new(Kind::Paddle, start, end)
        });
    }
    messages
}
