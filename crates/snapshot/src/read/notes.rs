//! Oddities met while reading, counted: millions of entries can have the same one.

use ghostgpu_pickle::{Heap, StringId, Value};

use super::keys;
use crate::warning::{Part, Warning};

/// Different oddities that are told apart. A file with more is told about these.
const MAX_KINDS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Notes {
    unknown_keys: Vec<(Part, StringId, u64)>,
    unknown_actions: Vec<(StringId, u64)>,
    missing: Vec<(Part, u32, u64)>,
    wrong: Vec<(Part, u32, &'static str, u64)>,
}

impl Notes {
    pub(super) fn unknown_key(&mut self, part: Part, key: Value) {
        let Value::String(key) = key else { return };
        count(
            &mut self.unknown_keys,
            |known| known.0 == part && known.1 == key,
            (part, key, 0),
            |known| {
                known.2 += 1;
            },
        );
    }

    pub(super) fn unknown_action(&mut self, action: StringId) {
        count(
            &mut self.unknown_actions,
            |known| known.0 == action,
            (action, 0),
            |known| known.1 += 1,
        );
    }

    pub(super) fn missing(&mut self, part: Part, key: u32) {
        count(
            &mut self.missing,
            |known| known.0 == part && known.1 == key,
            (part, key, 0),
            |known| {
                known.2 += 1;
            },
        );
    }

    pub(super) fn wrong_type(&mut self, part: Part, key: u32, heap: &Heap, value: Value) {
        let found = heap.type_name(value);
        count(
            &mut self.wrong,
            |known| known.0 == part && known.1 == key && known.2 == found,
            (part, key, found, 0),
            |known| known.3 += 1,
        );
    }

    /// As warnings, in an order that does not depend on which part of the file was read first.
    pub(super) fn into_warnings(self, heap: &Heap) -> Vec<Warning> {
        let name = |id: StringId| printable(&heap.text(id));
        let mut unknown_keys: Vec<_> = self
            .unknown_keys
            .into_iter()
            .map(|(part, key, count)| (part, name(key), count))
            .collect();
        let mut unknown_actions: Vec<_> = self
            .unknown_actions
            .into_iter()
            .map(|(action, count)| (name(action), count))
            .collect();
        let (mut missing, mut wrong) = (self.missing, self.wrong);
        unknown_keys.sort();
        unknown_actions.sort();
        missing.sort_unstable();
        wrong.sort_unstable();
        let mut warnings = Vec::new();
        for (part, key, count) in unknown_keys {
            warnings.push(Warning::UnknownKey { part, key, count });
        }
        for (action, count) in unknown_actions {
            warnings.push(Warning::UnknownAction { action, count });
        }
        for (part, key, count) in missing {
            let key = keys::text(key);
            warnings.push(Warning::MissingKey { part, key, count });
        }
        for (part, key, found, count) in wrong {
            let key = keys::text(key).to_string();
            warnings.push(Warning::WrongType {
                part,
                key,
                found,
                count,
            });
        }
        warnings
    }
}

/// A text of the file in a length for one line, without what a terminal would act on.
pub(crate) fn printable(text: &str) -> String {
    let text: String = text.chars().take(80).collect();
    text.replace(|character: char| character.is_control(), "?")
}

fn count<T>(known: &mut Vec<T>, same: impl Fn(&T) -> bool, new: T, add: impl Fn(&mut T)) {
    if let Some(entry) = known.iter_mut().find(|entry| same(entry)) {
        add(entry);
    } else if known.len() < MAX_KINDS {
        let mut new = new;
        add(&mut new);
        known.push(new);
    }
}
