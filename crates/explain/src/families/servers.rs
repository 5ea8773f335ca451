//! Language-model servers that check their memory themselves: SGLang, TGI, Ollama.

use super::{Family, Message, amount, number, pattern, range};
use crate::amount::Amount;
use crate::finding::{FigureValue, LIBRARY};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "mem-fraction-static",
        "Not enough memory to handle",
        "prefill tokens",
        "Decode out of memory",
        "Prefill out of memory",
        "runs out of memory",
        "requires more system memory",
        "system memory (",
        "llama runner exited",
        "in AlignedAllocator",
    ],
    read,
};

pattern!(
    SGLANG,
    r"Notenoughmemory\.?Pleasetrytoincrease--mem-fraction-static|(?:Decode|Prefill)outofmemory(?:happened)?\.?Trytoloweryourbatchsize|alloc_\w{3,30}runsoutofmemory\.?(?:Pleasesetasmallernumberfor\W{0,2}--[a-z-]{4,40})?"
);
pattern!(TGI, r"Notenoughmemorytohandle(\d+)(?:total|prefill)tokens");
pattern!(
    OLLAMA,
    r"requiresmoresystemmemory\(({A})\)(?:thanisavailable\(({A})\))?"
);

// Its first releases had these words for any runner that ended.
pattern!(
    OLLAMA_EXITED,
    r"llamarunnerexited,youmaynothaveenoughavailablememorytorunthismodel"
);
// FlashInfer's scratch space, which the server made too small.
pattern!(
    WORKSPACE,
    r"Failedtoallocatememoryfor[a-z0-9_]{3,60}withsize(\d+)andalignment\d+inAlignedAllocator"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    for found in WORKSPACE.printed(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::OtherAllocator, start, end);
        message.figures.requested = number(&found, 1).map(Amount::exact);
        let name = FigureValue::Text("FlashInfer".to_owned());
        message.figures.add(LIBRARY, name);
        messages.push(message);
    }
    for found in OLLAMA_EXITED.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::OllamaMemory, start, end));
    }
    for found in SGLANG.printed(text) {
        let (start, end) = range(&found);
        messages.push(Message::new(Kind::SglangNoCache, start, end));
    }
    // TGI quotes the message in its own error: `Generation("Not enough memory …")`.
    for found in TGI.all(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::TgiWarmup, start, end);
        if let Some(tokens) = number(&found, 1) {
            message.figures.add("tokens", FigureValue::Count(tokens));
        }
        messages.push(message);
    }
    for found in OLLAMA.all(text) {
        let (start, end) = range(&found);
        let mut message = Message::new(Kind::OllamaMemory, start, end);
        message.figures.requested = amount(&found, 1);
        message.figures.free = amount(&found, 2);
        messages.push(message);
    }
    messages
}
