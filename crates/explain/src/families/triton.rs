//! Triton: shared memory and other resources of a multiprocessor.

use super::{Family, Message, number, pattern, range};
use crate::amount::Amount;
use crate::finding::FigureValue;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &["out of resource", "OutOfResources"],
    read,
};

pattern!(
    HEAD,
    r"outofresource:(sharedmemory|registers|threads|tensormemory)[^\n]{0,4}?Required:?(\d+)[^\n]{0,4}?Hardwarelimit(?:ation)?:?(\d+)"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for found in HEAD.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::KernelSharedMemory, start, end);
        let figures = &mut message.figures;
        let resource = found[1].to_ascii_lowercase();
        let what = match resource.as_str() {
            "sharedmemory" => "shared memory",
            "tensormemory" => "tensor memory",
            other => other,
        };
        figures.add("resource", FigureValue::Text(what.to_owned()));
        figures.requested = number(&found, 2).map(Amount::exact);
        figures.allowed = number(&found, 3).map(Amount::exact);
        messages.push(message);
    }
    messages
}
