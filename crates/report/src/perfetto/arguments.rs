//! What a slice is called, and what is said about it.

use std::borrow::Cow;

use ghostgpu_ledger::UserFrames;
use ghostgpu_trace::{Event, Events, NameId, Snapshot, StackId};

use super::packets::Argument;
use crate::text;

/// Arguments of one slice, with their names.
pub(super) type Arguments<'a> = Vec<(&'static str, Argument<'a>)>;

/// Adds stream, pool, texts and stacks, as far as the event has them.
pub(super) fn push_context<'a>(
    arguments: &mut Arguments<'a>,
    snapshot: &'a Snapshot,
    events: &Events,
    event: Event,
) {
    let context = events.context(event.context);
    arguments.push(("stream", Argument::Number(context.stream)));
    if let Some(pool) = context.pool {
        arguments.push(("pool", Argument::Text(text::pool(pool).into())));
    }
    for (name, id) in [
        ("category", context.category),
        ("compile_context", context.compile_context),
        ("user_metadata", context.user_metadata),
    ] {
        let value = snapshot.names.text(id);
        // What PyTorch writes where nothing is compiled.
        if id != NameId::EMPTY && value != "N/A" {
            arguments.push((name, Argument::Text(Cow::Borrowed(value))));
        }
    }
    push_stack(arguments, "stack", event.stack);
    push_stack(arguments, "forward_stack", context.forward_stack);
}

/// Adds a stack, if there is one.
pub(super) fn push_stack(arguments: &mut Arguments<'_>, name: &'static str, stack: StackId) {
    if stack != StackId::NONE {
        arguments.push((name, Argument::Stack(stack.0)));
    }
}

/// A block's size, and the frame that stands for its stack, if it has one.
pub(super) fn block_name(
    snapshot: &Snapshot,
    user_frames: &UserFrames,
    bytes: u64,
    stack: StackId,
) -> String {
    match user_frames.frame(stack) {
        Some(frame) => {
            let place = text::short_frame(snapshot.stacks.frame(frame), &snapshot.names);
            format!("{} {place}", ghostgpu_text::human(bytes))
        }
        None => ghostgpu_text::human(bytes),
    }
}
