//! MLX and others on Apple GPUs.

use super::{Family, Message, number, pattern, range};
use crate::amount::Amount;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &["[metal::malloc]", "kIOGPUCommandBuffer"],
    read,
};

pattern!(
    MALLOC,
    r"\[metal::malloc\](?:Attempting|Unable)toallocate(\d+)bytes(?:whichisgreaterthanthemaximumallowedbuffersizeof(\d+)bytes)?"
);

// What Metal says to any program.
pattern!(
    COMMAND_BUFFER,
    r"(?:InsufficientMemory\(?[0-9a-f]*:?)?kIOGPUCommandBufferCallbackErrorOutOfMemory"
);

fn read(window: &Window) -> Vec<Message> {
    let messages = MALLOC.printed(window.squeezed()).map(|found| {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::Mlx, start, end);
        message.figures.requested = number(&found, 1).map(Amount::exact);
        message.figures.allowed = number(&found, 2).map(Amount::exact);
        message
    });
    let mut messages: Vec<Message> = messages.collect();
    for found in COMMAND_BUFFER.printed(window.squeezed()) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::Metal, start, end));
    }
    messages
}
