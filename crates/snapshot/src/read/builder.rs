//! Puts a snapshot together from what was taken and from the values that remain.

use ghostgpu_pickle::{Heap, Limits, Pickle, Value};

use super::collector::Target;
use super::interner::{Interner, TagKind, key_number, tagged};
use super::notes::printable;
use super::plain::{item_at, plain_list};
use super::{Budget, ReadError, checks, entry, keys, state};
use crate::events::Events;
use crate::snapshot::{Annotation, DeviceTrace, Format, Snapshot};
use crate::warning::{Missing, Part, Warning};

/// Puts a snapshot together from what was taken and from the values that remain.
pub(super) struct Builder {
    heap: Heap,
    root: Value,
    interner: Interner,
    targets: Vec<Option<Target>>,
    budget: Budget,
    warnings: Vec<Warning>,
    pickle_bytes: u64,
}

impl Builder {
    pub(super) fn new(
        pickle: Pickle,
        mut interner: Interner,
        targets: Vec<Target>,
        limits: Limits,
    ) -> Self {
        interner.is_streaming = false;
        let mut warnings = Vec::new();
        if pickle.has_more {
            warnings.push(Warning::TrailingBytes {
                after_bytes: pickle.length_bytes,
            });
        }
        Self {
            heap: pickle.heap,
            root: pickle.root,
            interner,
            targets: targets.into_iter().map(Some).collect(),
            budget: Budget {
                left_bytes: limits.memory_bytes,
                limit_bytes: limits.memory_bytes,
            },
            warnings,
            pickle_bytes: pickle.length_bytes,
        }
    }

    pub(super) fn build(mut self) -> Result<Snapshot, ReadError> {
        let mut snapshot = Snapshot {
            format: Format::Snapshot,
            segments: Vec::new(),
            traces: Vec::new(),
            settings: Default::default(),
            annotations: Vec::new(),
            host_segments: Vec::new(),
            host_events: Events::default(),
            stacks: Default::default(),
            names: Default::default(),
            warnings: Vec::new(),
            pickle_bytes: self.pickle_bytes,
        };
        if self.heap.list(self.root).is_some() {
            self.segments_alone(&mut snapshot)?;
        } else {
            self.top(&mut snapshot)?;
        }
        if self.targets.iter().any(Option::is_some) {
            return Err(ReadError::NotAsExpected);
        }
        if snapshot.segments.is_empty() && snapshot.traces.is_empty() {
            return Err(ReadError::NoDevices);
        }
        self.warnings
            .extend(self.interner.notes.into_warnings(&self.heap));
        drop(self.heap);
        snapshot.stacks = self.interner.stacks;
        snapshot.names = self.interner.names;
        snapshot.warnings = self.warnings;
        checks::check(&mut snapshot);
        Ok(snapshot)
    }

    /// The form before torch 2.0: a list of segments and nothing around it.
    fn segments_alone(&mut self, snapshot: &mut Snapshot) -> Result<(), ReadError> {
        let items = plain_list(&self.heap, self.root)?.unwrap_or(&[]);
        let is_segment = |value: &Value| self.heap.get(*value, "blocks").is_some();
        if let Some(other) = items.iter().find(|item| !is_segment(item)) {
            let found = format!("a list with a {}", self.heap.type_name(*other));
            return Err(ReadError::SomethingElse(found));
        }
        snapshot.format = Format::SegmentsOnly;
        snapshot.segments = state::segments(
            &mut self.interner,
            &mut self.heap,
            self.root,
            &mut self.budget,
        )?;
        Ok(())
    }

    fn top(&mut self, snapshot: &mut Snapshot) -> Result<(), ReadError> {
        let Some(dictionary) = self.heap.dict(self.root) else {
            let found = format!("one {}", self.heap.type_name(self.root));
            return Err(ReadError::SomethingElse(found));
        };
        let entries: Vec<(Value, Value)> = dictionary.entries().collect();
        let has = |wanted: u32| entries.iter().any(|(key, _)| key_number(*key) == wanted);
        if !has(keys::SEGMENTS) {
            return Err(ReadError::SomethingElse(describe_dictionary(
                &self.heap, &entries,
            )));
        }
        if !has(keys::DEVICE_TRACES) {
            self.warnings.push(Warning::NotRecorded(Missing::Traces));
        }
        if !has(keys::ALLOCATOR_SETTINGS) {
            self.warnings.push(Warning::NotRecorded(Missing::Settings));
        } else if !has(keys::EXTERNAL_ANNOTATIONS) {
            self.warnings
                .push(Warning::NotRecorded(Missing::Annotations));
        }
        for (key, value) in entries {
            match key_number(key) {
                keys::SEGMENTS => {
                    self.expect_list(keys::SEGMENTS, value);
                    let (interner, heap) = (&mut self.interner, &mut self.heap);
                    snapshot.segments = state::segments(interner, heap, value, &mut self.budget)?;
                }
                keys::HOST_SEGMENTS => {
                    self.expect_list(keys::HOST_SEGMENTS, value);
                    let (interner, heap) = (&mut self.interner, &mut self.heap);
                    snapshot.host_segments =
                        state::segments(interner, heap, value, &mut self.budget)?;
                }
                keys::DEVICE_TRACES => {
                    self.expect_list(keys::DEVICE_TRACES, value);
                    let count = plain_list(&self.heap, value)?.map_or(0, <[Value]>::len);
                    for device in 0..count {
                        let list = self
                            .heap
                            .list(value)
                            .map_or(Value::None, |items| items[device]);
                        self.budget.spend(size_of::<DeviceTrace>())?;
                        let events = self.events(keys::DEVICE_TRACES, list)?;
                        snapshot.traces.push(DeviceTrace { device, events });
                    }
                }
                keys::HOST_TRACES => {
                    snapshot.host_events = self.events(keys::HOST_TRACES, value)?
                }
                keys::EXTERNAL_ANNOTATIONS => snapshot.annotations = self.annotations(value)?,
                keys::ALLOCATOR_SETTINGS => {
                    snapshot.settings = state::settings(&mut self.interner, &self.heap, value);
                }
                keys::CATEGORIES => {}
                _ => self.interner.notes.unknown_key(Part::Top, key),
            }
        }
        Ok(())
    }

    fn expect_list(&mut self, key: u32, value: Value) {
        if self.heap.list(value).is_none() {
            self.interner
                .notes
                .wrong_type(Part::Top, key, &self.heap, value);
        }
    }

    /// What was taken from a list, if anything was.
    fn take_target(&mut self, key: u32, list: Value) -> Result<Option<Target>, ReadError> {
        let Value::Node(node) = list else {
            return Ok(None);
        };
        let Some(number) = tagged(self.heap.tag(node), TagKind::Target) else {
            return Ok(None);
        };
        let target = self.targets.get_mut(number as usize).and_then(Option::take);
        match target {
            // Taken once, from this very list, which was never anywhere else, and nothing is left in it.
            Some(target)
                if target.key == key
                    && target.list == node
                    && self.heap.is_in_one_place(node)
                    && self.heap.list(list).is_some_and(<[Value]>::is_empty) =>
            {
                Ok(Some(target))
            }
            _ => Err(ReadError::NotAsExpected),
        }
    }

    fn events(&mut self, key: u32, list: Value) -> Result<Events, ReadError> {
        if let Some(target) = self.take_target(key, list)? {
            return Ok(target.events);
        }
        self.expect_list(key, list);
        let mut events = Events::default();
        let mut items = Vec::new();
        for at in 0.. {
            let Some(value) = item_at(&self.heap, list, at)? else {
                break;
            };
            let Some(dictionary) = self.heap.dict(value) else {
                self.interner
                    .notes
                    .wrong_type(Part::Top, key, &self.heap, value);
                continue;
            };
            self.budget.spend(40)?;
            items.clear();
            items.extend_from_slice(dictionary.items());
            entry::push_event(&mut self.interner, &mut self.heap, &items, &mut events);
        }
        Ok(events)
    }

    fn annotations(&mut self, list: Value) -> Result<Vec<Annotation>, ReadError> {
        if let Some(target) = self.take_target(keys::EXTERNAL_ANNOTATIONS, list)? {
            return Ok(target.annotations);
        }
        self.expect_list(keys::EXTERNAL_ANNOTATIONS, list);
        let mut annotations = Vec::new();
        for value in plain_list(&self.heap, list)?.unwrap_or(&[]) {
            let Some(dictionary) = self.heap.dict(*value) else {
                continue;
            };
            self.budget.spend(size_of::<Annotation>())?;
            annotations.push(entry::annotation(
                &mut self.interner,
                &self.heap,
                dictionary.items(),
            ));
        }
        Ok(annotations)
    }
}

/// A few words about a dictionary that is no snapshot.
fn describe_dictionary(heap: &Heap, entries: &[(Value, Value)]) -> String {
    let keys: Vec<String> = entries
        .iter()
        .take(4)
        .map(|(key, _)| match key {
            Value::String(id) => format!("`{}`", printable(&heap.text(*id))),
            other => format!("a {}", heap.type_name(*other)),
        })
        .collect();
    let more = if entries.len() > 4 { ", …" } else { "" };
    match keys.len() {
        0 => "an empty dict".to_string(),
        _ => format!(
            "a dict without `segments`, but with {}{more}",
            keys.join(", ")
        ),
    }
}
