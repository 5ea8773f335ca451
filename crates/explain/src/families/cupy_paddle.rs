//! CuPy and PaddlePaddle.

use super::{Family, Message, amount, number, pattern, range};
use crate::finding::Figures;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "Out of memory allocating",
        "out of memory to allocate",
        "Out of memory error on GPU",
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
    r"OutofmemoryerroronGPU(\d+)\.Cannotallocate({A})(?:GPU)?memory(?:onGPU\d+)?(?:,({A})memoryhasbeenallocated)?(?:(?:and|,)availablememoryis(?:only)?({A}))?"
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
