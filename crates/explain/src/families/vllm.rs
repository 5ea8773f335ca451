//! vLLM, which checks at startup whether its KV cache fits.

use super::{Family, Message, amount, number, pattern, range};
use crate::finding::FigureValue;
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "No available memory for the cache",
        "memory for the cache blocks",
        "KV cache",
        "max seq len",
        "Free memory on device",
        "desired GPU memory utilization",
        "warming up sampler",
    ],
    read,
};

pattern!(NO_CACHE, r"Noavailablememoryforthecacheblocks");
pattern!(
    SEQUENCE,
    r"maxseqlen\((\d+)\),\(?({A})KVcacheisneeded,whichislargerthantheavailableKVcachememory\(({A})\)(?:\.?Basedontheavailablememory,theestimatedmaximummodellengthis(\d+))?"
);
pattern!(
    TOKENS,
    r"maxseqlen\((\d+)\)islargerthanthemaximumnumberoftokensthatcanbestoredinKVcache\((\d+)\)"
);
pattern!(
    NOT_FREE,
    r"Freememoryondevice(?:cuda:(\d+))?\(([0-9.]+)/([0-9.]+)GiB\)onstartupislessthandesiredGPUmemoryutilization\(([0-9.]+),([0-9.]+)GiB\)"
);
pattern!(
    SAMPLER,
    r"CUDAoutofmemoryoccurredwhenwarmingupsamplerwith(\d+)dummyrequests"
);

fn read(window: &Window) -> Vec<Message> {
    let text = window.squeezed();
    let mut messages = Vec::new();
    let mut add = |kind, found: &regex::Captures, fill: &dyn Fn(&mut Message)| {
        let (start, end) = range(found);
        let mut message = Message::new(kind, start, end);
        fill(&mut message);
        messages.push(message);
    };
    for found in NO_CACHE.printed(text) {
        add(Kind::VllmNoCache, &found, &|_| {});
    }
    for found in SEQUENCE.printed(text) {
        add(Kind::VllmSequence, &found, &|message| {
            let figures = &mut message.figures;
            figures.requested = amount(&found, 2);
            figures.free = amount(&found, 3);
            if let Some(length) = number(&found, 1) {
                figures.add("sequence length", FigureValue::Count(length));
            }
            if let Some(length) = number(&found, 4) {
                figures.add("length that fits", FigureValue::Count(length));
            }
        });
    }
    for found in TOKENS.printed(text) {
        add(Kind::VllmSequence, &found, &|message| {
            let figures = &mut message.figures;
            for (group, name) in [(1, "sequence length"), (2, "length that fits")] {
                if let Some(length) = number(&found, group) {
                    figures.add(name, FigureValue::Count(length));
                }
            }
        });
    }
    for found in NOT_FREE.printed(text) {
        add(Kind::VllmNotFree, &found, &|message| {
            let gib = |group| {
                let digits = found.get(group)?.as_str();
                crate::amount::read_amount_in(digits, 1 << 30)
            };
            let figures = &mut message.figures;
            figures.device = number(&found, 1).and_then(|device| device.try_into().ok());
            figures.free = gib(2);
            figures.total = gib(3);
            figures.requested = gib(5);
            figures.add("utilization", FigureValue::Text(found[4].to_owned()));
        });
    }
    for found in SAMPLER.printed(text) {
        add(Kind::VllmSampler, &found, &|message| {
            if let Some(requests) = number(&found, 1) {
                message
                    .figures
                    .add("requests", FigureValue::Count(requests));
            }
        });
    }
    messages
}
