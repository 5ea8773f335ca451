//! MLX and others on Apple GPUs.

use super::{Family, Message, number, pattern, range};
use crate::amount::Amount;
use crate::finding::{FigureValue, LIBRARY};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "[metal::malloc]",
        "kIOGPUCommandBuffer",
        "IOAF code 8",
        "xecution failed: Insufficient Memory",
    ],
    read,
};

pattern!(
    MALLOC,
    r"\[metal::malloc\](?:Attempting|Unable)toallocate(\d+)bytes(?:whichisgreaterthanthemaximumallowedbuffersizeof(\d+)bytes)?"
);

// What Metal says to any program.
pattern!(
    COMMAND_BUFFER,
    r"(?:InsufficientMemory\(?[0-9a-f]*:?)?kIOGPUCommandBufferCallbackErrorOutOfMemory|InsufficientMemory\(IOAFcode8\)|Commandbufferexecutionfailed:InsufficientMemory"
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
    // Whose buffer it was stands in the lines around.
    let around = window.squeezed().to_ascii_lowercase();
    let callers = [
        ("ggml", "llama.cpp"),
        ("llama_", "llama.cpp"),
        ("mlx", "MLX"),
        ("[metal]", "MLX"),
    ];
    let caller = callers.iter().find(|(sign, _)| around.contains(sign));
    for found in COMMAND_BUFFER.printed(window.squeezed()) {
        let (start, end) = range(&found);
        // One error has the words twice.
        if let Some(last) = messages.last_mut().filter(|last| start < last.end + 60) {
            last.end = end;
            continue;
        }
        let mut message = Message::new(Kind::Metal, start, end);
        if let Some((_, library)) = caller {
            let name = FigureValue::Text((*library).to_owned());
            message.figures.add(LIBRARY, name);
        }
        messages.push(message);
    }
    messages
}
