//! Takes trace entries and annotations out of a pickle as they go by.
//!
//! Where an entry belongs is seen from the machine's stack: above the key `device_traces`, a list, in it
//! a list per device, in it the entry. That is a conjecture about a file that is not read to its end: it
//! says from which lists it took what ([`Target`]), and the builder checks that they are where they were
//! thought to be, and nowhere else.

use ghostgpu_pickle::{Heap, NodeId, Place, Take, Taker, Value};

use super::entry;
use super::interner::{Interner, TagKind, key_number, tag, tagged};
use super::keys;
use crate::events::Events;
use crate::snapshot::Annotation;

/// What was taken from one list.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) list: NodeId,
    pub(super) key: u32,
    pub(super) events: Events,
    pub(super) annotations: Vec<Annotation>,
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) interner: Interner,
    pub(super) targets: Vec<Target>,
    limit_bytes: u64,
    until_check: u32,
}

/// Entries between two looks at the memory they need.
const CHECK_EVERY: u32 = 1 << 14;

impl Collector {
    pub(super) fn new(limit_bytes: u64) -> Self {
        let mut collector = Self {
            limit_bytes,
            until_check: CHECK_EVERY,
            ..Self::default()
        };
        collector.interner.is_streaming = true;
        collector
    }

    /// The target of a list that is seen for the first time.
    #[cold]
    fn look_at(
        &mut self,
        heap: &mut Heap,
        place: Place<'_>,
        at: usize,
        list: NodeId,
    ) -> Option<u32> {
        let key = key_above(heap, place, at).filter(|_| heap.list(Value::Node(list)).is_some());
        let Some(key) = key else {
            if heap.list(Value::Node(list)).is_some() {
                heap.set_loose_tag(list, tag(TagKind::Plain, 0));
            }
            return None;
        };
        let number = self.targets.len() as u32;
        heap.set_loose_tag(list, tag(TagKind::Target, number));
        self.targets.push(Target {
            list,
            key,
            events: Events::default(),
            annotations: Vec::new(),
        });
        Some(number)
    }

    fn is_over_limit(&mut self) -> bool {
        self.until_check -= 1;
        if self.until_check > 0 {
            return false;
        }
        self.until_check = CHECK_EVERY;
        let held =
            |target: &Target| target.events.held_bytes() + 32 * target.annotations.len() as u64;
        self.targets.iter().map(held).sum::<u64>() > self.limit_bytes
    }
}

impl Taker for Collector {
    const SHARES_LISTS: bool = true;

    #[inline]
    fn dictionary(&mut self, heap: &mut Heap, place: Place<'_>, items: &[Value]) -> Take {
        // On the stack, the list is below the entry, or below those of its entries that were already taken.
        let mut at = place.stack.len();
        let list = loop {
            let Some(below) = at.checked_sub(1) else {
                return Take::Leave;
            };
            at = below;
            match place.stack[at] {
                Value::Taken | Value::TakenRow => {}
                Value::Node(list) => break list,
                _ => return Take::Leave,
            }
        };
        let list_tag = heap.tag(list);
        let number = match tagged(list_tag, TagKind::Target) {
            Some(number) => number,
            None if list_tag != 0 => return Take::Leave,
            None => match self.look_at(heap, place, at, list) {
                Some(number) => number,
                None => return Take::Leave,
            },
        };
        // An entry that is odd is left to the machine, which refuses it or makes a dictionary of it.
        if !has_distinct_text_keys(items) {
            return Take::Leave;
        }
        let target = &mut self.targets[number as usize];
        if target.key == keys::EXTERNAL_ANNOTATIONS {
            target
                .annotations
                .push(entry::annotation(&mut self.interner, heap, items));
        } else {
            entry::push_event(&mut self.interner, heap, items, &mut target.events);
        }
        if self.is_over_limit() {
            Take::Stop
        } else {
            Take::Took
        }
    }
}

/// Whether these are keys and values in turn, the keys strings and no two the same.
fn has_distinct_text_keys(items: &[Value]) -> bool {
    let (entries, odd) = items.as_chunks::<2>();
    // Keys of an entry are among the first of the table: a bit for each.
    let mut known = 0u64;
    for (at, [key, _]) in entries.iter().enumerate() {
        let number = key_number(*key).wrapping_sub(keys::ACTION);
        match 1u64.checked_shl(number) {
            Some(bit) if known & bit != 0 => return false,
            Some(bit) => known |= bit,
            None => {
                let is_text = matches!(key, Value::String(_));
                if !is_text || entries[..at].iter().any(|[earlier, _]| earlier == key) {
                    return false;
                }
            }
        }
    }
    odd.is_empty()
}

/// Under which key of the top dictionary the list at this position of the stack is being built, if it
/// is one whose items are taken.
fn key_above(heap: &Heap, place: Place<'_>, at: usize) -> Option<u32> {
    let is_list = |at: usize| heap.list(place.stack[at]).is_some();
    let before = at.checked_sub(1)?;
    let key = key_number(place.stack[before]);
    if key == keys::EXTERNAL_ANNOTATIONS || key == keys::HOST_TRACES {
        return Some(key);
    }
    // A list of one item is built without a bracket: key, outer list, list.
    if let Some(key) = before.checked_sub(1)
        && is_list(before)
        && key_number(place.stack[key]) == keys::DEVICE_TRACES
    {
        return Some(keys::DEVICE_TRACES);
    }
    // Otherwise a bracket is open around the lists of the devices.
    let open = place.marks.iter().rev().copied().find(|mark| *mark <= at)?;
    let outer = open.checked_sub(1)?;
    let key = outer.checked_sub(1)?;
    (is_list(outer) && key_number(place.stack[key]) == keys::DEVICE_TRACES)
        .then_some(keys::DEVICE_TRACES)
}
