//! TensorFlow and the allocator it shares with XLA.

use super::{Family, Message, amount, number, pattern, range};
use crate::amount::Amount;
use crate::finding::{FigureValue, Figures};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "OOM when allocating",
        "ran out of memory trying",
        "failed to allocate",
        "ResourceExhaustedError",
        "oom when allocating",
    ],
    read,
};

pattern!(
    TENSOR,
    r"OOMwhenallocatingtensor(?:with|of)shape(\[[0-9,]*\]|(?:dim\{size:\d+\})+)(?:andtype(float\d+|float|half|double|bfloat16|u?int\d+|bool|complex\d+|string)(?:on(\S{0,80}?device:([A-Z]+):(\d+)))?)?(?:byallocator(\w+))?"
);
pattern!(
    BFC,
    r"Allocator(?:\(([\w-]+)\))?ranoutofmemorytryingtoallocate({A})(?:\(roundedto(\d+)(?:bytes)?\))?"
);
pattern!(HARMLESS, r"callerindicatesthatthisisnotafailure");
// Without a shape, as a device's own stream allocates.
pattern!(
    BARE,
    r"ResourceExhaustedError:[^\n]{0,300}?(?:device:([A-Z]+):(\d+)[^\n]{0,40}?)?failedtoallocatememory|RESOURCE_EXHAUSTED:failedtoallocatememory"
);
pattern!(LIMIT, r"Limit:(\d+)");
pattern!(IN_USE, r"InUse:(\d+)");
pattern!(
    DRIVER,
    r"failedtoallocate([0-9.]+[KMGTP]i?B?)\((\d+)bytes\)fromdevice"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for found in TENSOR.printed(text) {
        let (start, end) = range(&found);
        let type_name = found.get(2).map_or("", |name| name.as_str());
        let mut figures = Figures {
            requested: size_of(&found[1], &type_name.to_ascii_lowercase()),
            device: number(&found, 5).and_then(|device| device.try_into().ok()),
            ..Figures::default()
        };
        let shape = found[1].chars().take(120).collect();
        figures.add("shape", FigureValue::Text(shape));
        if let Some(name) = found.get(2) {
            figures.add("type", FigureValue::Text(name.as_str().to_owned()));
        }
        let is_cpu = |group: usize| {
            let name = found.get(group).map_or("", |name| name.as_str());
            name.to_ascii_lowercase().starts_with("cpu")
        };
        let is_on_host = is_cpu(4) || is_cpu(6);
        if is_on_host {
            figures.device = None;
        }
        let kind = match is_on_host {
            true => Kind::TensorFlowHost,
            false => Kind::TensorFlow,
        };
        messages.push(Message {
            figures,
            ..Message::new(kind, start, end)
        });
    }
    for found in BARE.printed(text) {
        let (start, end) = range(&found);
        // The warning and the exception are one failure.
        if let Some(last) = messages.last_mut().filter(|last| start < last.end + 200) {
            last.end = last.end.max(end);
            continue;
        }
        let is_on_host = found.get(1).is_some_and(|name| name.as_str() == "CPU");
        let kind = match is_on_host {
            true => Kind::TensorFlowHost,
            false => Kind::TensorFlow,
        };
        messages.push(Message::new(kind, start, end));
    }
    for found in BFC.all(text) {
        let (start, end) = range(&found);
        let tail = &text[start..];
        // It tried a faster algorithm, and takes another one.
        if HARMLESS
            .find(tail)
            .is_some_and(|harmless| harmless.start() < 200)
        {
            continue;
        }
        let bytes = |pattern: &super::Pattern| {
            let found = pattern.captures(tail)?;
            number(&found, 1).map(Amount::exact)
        };
        let rounded = number(&found, 3).map(Amount::exact);
        let figures = Figures {
            requested: rounded.or_else(|| amount(&found, 2)),
            allowed: bytes(&LIMIT),
            allocated: bytes(&IN_USE),
            ..Figures::default()
        };
        messages.push(Message {
            figures,
            ..Message::new(Kind::BfcAllocator, start, end)
        });
    }
    for found in DRIVER.all(text) {
        let (start, end) = range(&found);
        // JAX and TensorFlow share the driver's interface.
        let kind = match text.contains("jaxlib") {
            true => Kind::Jax,
            false => Kind::BfcAllocator,
        };
        let mut message = Message::new(kind, start, end);
        message.figures.requested = number(&found, 2).map(Amount::exact);
        messages.push(message);
    }
    messages.sort_by_key(|message| message.start);
    messages
}

/// The bytes of a tensor; the default type is `float`.
fn size_of(shape: &str, type_name: &str) -> Option<Amount> {
    let bytes_each: u64 = match type_name {
        "" | "float" | "int32" | "float32" | "uint32" => 4,
        "half" | "bfloat16" | "int16" | "float16" => 2,
        "double" | "int64" | "float64" | "complex64" => 8,
        "int8" | "uint8" | "bool" => 1,
        _ => return None,
    };
    let mut bytes = bytes_each;
    let mut has_side = false;
    // `[2,3]`, or `dim{size:2}dim{size:3}` before 0.8.
    for side in shape
        .split(|character: char| !character.is_ascii_digit())
        .filter(|side| !side.is_empty())
    {
        bytes = bytes.checked_mul(side.parse().ok()?)?;
        has_side = true;
    }
    has_side.then(|| Amount::exact(bytes))
}
