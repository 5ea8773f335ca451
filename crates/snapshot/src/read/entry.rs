//! One trace entry or annotation: from `key, value, …` to a row of the columns.

use ghostgpu_pickle::{Heap, Value};

use super::interner::{Interner, key_number};
use super::keys;
use crate::events::{ContextId, Event, EventContext, EventKind, Events};
use crate::snapshot::{Annotation, AnnotationStage};
use crate::stacks::StackId;
use crate::warning::Part;

/// Reads a trace entry and appends it.
pub(super) fn push_event(
    interner: &mut Interner,
    heap: &mut Heap,
    items: &[Value],
    events: &mut Events,
) {
    const PART: Part = Part::TraceEntry;
    let mut event = Event {
        kind: EventKind::Other,
        address: 0,
        bytes: 0,
        device_free_bytes: None,
        time_us: 0,
        stack: StackId::NONE,
        context: ContextId(0),
    };
    let mut context = EventContext::default();
    let mut seen = 0u32;
    for [key, value] in items.as_chunks::<2>().0 {
        let (number, value) = (key_number(*key), *value);
        match number {
            keys::ACTION => {
                event.kind = action(interner, heap, value);
                seen |= 1;
            }
            keys::ADDR | keys::DEVICE_FREE | keys::SIZE | keys::STREAM => {
                let Some(integer) = heap.unsigned_bits(value) else {
                    interner.notes.wrong_type(PART, number, heap, value);
                    continue;
                };
                match number {
                    keys::ADDR => {
                        event.address = integer;
                        seen |= 2;
                    }
                    keys::DEVICE_FREE => {
                        event.device_free_bytes = Some(integer);
                        seen |= 2;
                    }
                    keys::SIZE => {
                        event.bytes = integer;
                        seen |= 4;
                    }
                    _ => context.stream = integer,
                }
            }
            keys::TIME_US => match value {
                Value::Int(time_us) => event.time_us = time_us,
                _ => interner.notes.wrong_type(PART, number, heap, value),
            },
            keys::FRAMES => event.stack = interner.stack(heap, PART, number, value),
            keys::FORWARD_FRAMES => {
                context.forward_stack = interner.stack(heap, PART, number, value);
            }
            keys::POOL_ID => context.pool = interner.pool(heap, PART, number, value),
            keys::COMPILE_CONTEXT
            | keys::USER_METADATA
            | keys::INTERNAL_METADATA
            | keys::CATEGORY => {
                let Value::String(id) = value else {
                    if value != Value::None {
                        interner.notes.wrong_type(PART, number, heap, value);
                    }
                    continue;
                };
                let name = interner.name(heap, id);
                match number {
                    keys::COMPILE_CONTEXT => context.compile_context = name,
                    keys::USER_METADATA => context.user_metadata = name,
                    keys::INTERNAL_METADATA => context.internal_metadata = name,
                    _ => context.category = name,
                }
            }
            _ => interner.notes.unknown_key(PART, *key),
        }
    }
    if seen != 7 {
        for (bit, key) in [(1, keys::ACTION), (2, keys::ADDR), (4, keys::SIZE)] {
            if seen & bit == 0 {
                interner.notes.missing(PART, key);
            }
        }
    }
    events.push(event, context);
}

fn action(interner: &mut Interner, heap: &Heap, value: Value) -> EventKind {
    let Value::String(id) = value else {
        interner
            .notes
            .wrong_type(Part::TraceEntry, keys::ACTION, heap, value);
        return EventKind::Other;
    };
    match EventKind::KNOWN.get(id.index()) {
        Some(kind) => *kind,
        None => {
            interner.notes.unknown_action(id);
            EventKind::Other
        }
    }
}

/// Reads an annotation.
pub(super) fn annotation(interner: &mut Interner, heap: &Heap, items: &[Value]) -> Annotation {
    const PART: Part = Part::Annotation;
    let mut annotation = Annotation {
        name: crate::names::NameId::EMPTY,
        stage: AnnotationStage::Other,
        device: 0,
        time_us: 0,
    };
    for [key, value] in items.as_chunks::<2>().0 {
        let number = key_number(*key);
        match (number, *value) {
            (keys::NAME, Value::String(id)) => annotation.name = interner.name(heap, id),
            (keys::STAGE, stage) => {
                annotation.stage = match key_number(stage) {
                    keys::START => AnnotationStage::Start,
                    keys::END => AnnotationStage::End,
                    _ => AnnotationStage::Other,
                }
            }
            (keys::DEVICE, Value::Int(device)) => annotation.device = device,
            (keys::TIME_US, Value::Int(time_us)) => annotation.time_us = time_us,
            (keys::NAME | keys::DEVICE | keys::TIME_US, other) => {
                interner.notes.wrong_type(PART, number, heap, other);
            }
            _ => interner.notes.unknown_key(PART, *key),
        }
    }
    annotation
}
