//! Figures beside a message of a program that nothing else is known of: how much it wanted, what was free, how
//! large the device is.
//!
//! Every program words them differently, so a figure counts only beside the word that says what it is.

use super::{Message, Pattern, amount_or_bytes, pattern};
use crate::amount::Amount;
use crate::kind::Kind;
use crate::window::Window;

/// How much text after a message, without whitespace, may give its figures.
const BESIDE: usize = 160;

// A plain number needs digits enough to be no line, count or error code.
pattern!(
    REQUESTED,
    r"(?:request(?:ed|ing|s)?|required|requires|needs?|needed|allocat(?:e|ing|ionof)|ofsize|wanted)(?:abuffer|buffer|a|about|atleast|another|additional|anadditional|memory|space|size|bytes|is|was|of|[:=()\[]){0,4}({A}|[0-9]{6,19})|({A})(?:ofmemory|ofVRAM|ofGPUmemory|memory)?(?:is|are|was|were)?(?:required|requested|needed)"
);
pattern!(
    FREE,
    r"(?:free|available|remaining|avail)(?:GPU|device|memory|space|VRAM|size|bytes|is|was|only|[:=(\[]){0,4}({A}|[0-9]{6,19})|({A})(?:ofmemory|ofVRAM|ofGPUmemory|memory)?(?:is|are|was|were)?(?:only)?(?:free|available|left|remaining)"
);
pattern!(
    TOTAL,
    r"(?:total|capacity)(?:GPU|device|global|memory|space|VRAM|size|bytes|is|was|of|[:=(\[]){0,4}({A}|[0-9]{6,19})|({A})(?:ofmemory|ofVRAM|ofGPUmemory|memory)?(?:total\b|found\b|intotal)"
);

/// Adds the figures beside a message that gives none itself.
pub fn add_figures_beside(window: &Window, message: &mut Message) {
    let is_unknown = matches!(
        message.kind,
        Kind::CudaProgram | Kind::Unsaid | Kind::OtherAllocator | Kind::OtherHost
    );
    let figures = &mut message.figures;
    let has_none = figures
        .requested
        .or(figures.free)
        .or(figures.total)
        .is_none();
    if !is_unknown || !has_none {
        return;
    }
    let text = window.squeezed();
    let mut end = text.len().min(message.end + BESIDE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let beside = text.get(message.start..end).unwrap_or_default();
    figures.requested = first(&REQUESTED, beside);
    figures.free = first(&FREE, beside);
    figures.total = first(&TOTAL, beside);
}

fn first(pattern: &Pattern, text: &str) -> Option<Amount> {
    let found = pattern.captures(text)?;
    let figure = found.get(1).or(found.get(2))?;
    amount_or_bytes(figure.as_str())
}
