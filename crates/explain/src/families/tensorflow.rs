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
        "oom when allocating",
    ],
    read,
};

pattern!(
    TENSOR,
    r"(?i)OOMwhenallocatingtensorwithshape(\[[0-9,]*\])(?:andtype([a-z]+\d*?)on(\S{0,80}?device:(GPU|CPU):(\d+)))?"
);
pattern!(
    BFC,
    r"Allocator\(([\w-]+)\)ranoutofmemorytryingtoallocate({A})(?:\(roundedto(\d+)\))?"
);
pattern!(LIMIT, r"Limit:(\d+)");
pattern!(IN_USE, r"InUse:(\d+)");
pattern!(
    DRIVER,
    r"failedtoallocate([0-9.]+[KMG])\((\d+)bytes\)fromdevice"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages: Vec<Message> = Vec::new();
    for found in TENSOR.printed(text) {
        let (start, end) = range(&found);
        let mut figures = Figures {
            requested: size_of(&found[1], found.get(2).map_or("", |name| name.as_str())),
            device: number(&found, 5).and_then(|device| device.try_into().ok()),
            ..Figures::default()
        };
        let shape = found[1].chars().take(120).collect();
        figures.add("shape", FigureValue::Text(shape));
        if let Some(name) = found.get(2) {
            figures.add("type", FigureValue::Text(name.as_str().to_owned()));
        }
        if found
            .get(4)
            .is_some_and(|device| device.as_str().eq_ignore_ascii_case("CPU"))
        {
            figures.add("where", FigureValue::Text("CPU".to_owned()));
            figures.device = None;
        }
        messages.push(Message {
            figures,
            ..Message::new(Kind::TensorFlow, start, end)
        });
    }
    for found in BFC.all(text) {
        let (start, end) = range(&found);
        let tail = &text[start..];
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
        let mut message = Message::new(Kind::BfcAllocator, start, end);
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
    for side in shape
        .trim_matches(['[', ']'])
        .split(',')
        .filter(|side| !side.is_empty())
    {
        bytes = bytes.checked_mul(side.parse().ok()?)?;
        has_side = true;
    }
    has_side.then(|| Amount::exact(bytes))
}
