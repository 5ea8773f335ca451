//! Dictionaries in insertion order, as in Python.

use std::collections::HashMap;

use crate::hash::SeededState;
use crate::value::Value;

/// Dictionaries with at least this many entries have an index of their keys.
const INDEXED_FROM: usize = 12;

/// A dictionary: its entries as `key, value, key, value, …`, each key once, in insertion order.
///
/// Keys compare as in Python (`1`, `1.0` and `True` are the same key), except that tuples and other containers
/// are equal only if they are the same object.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    items: Vec<Value>,
    index: Option<Box<Index>>,
}

/// Boxed, to keep the many dictionaries without an index small.
#[derive(Debug, Clone, Default)]
struct Index(HashMap<Key, u32, SeededState>);

/// What two keys are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    None,
    Int(i64),
    FloatBits(u64),
    String(u32),
    Node(u32),
}

impl Key {
    fn of(value: Value) -> Self {
        match value {
            Value::None | Value::Taken | Value::TakenRow => Self::None,
            Value::Bool(value) => Self::Int(i64::from(value)),
            Value::Int(value) => Self::Int(value),
            Value::Float(value) => {
                let whole = value as i64;
                if whole as f64 == value && whole != i64::MAX {
                    Self::Int(whole)
                } else {
                    Self::FloatBits(value.to_bits())
                }
            }
            Value::String(id) => Self::String(id.0),
            Value::Node(id) => Self::Node(id.0),
        }
    }
}

impl Dictionary {
    /// Sets a key, keeping its place if it was there already.
    pub fn insert(&mut self, key: Value, value: Value) {
        match self.position(key) {
            Some(position) => self.items[position + 1] = value,
            None => {
                if let Some(index) = &mut self.index {
                    index.0.insert(Key::of(key), self.items.len() as u32);
                }
                self.items.extend([key, value]);
                if self.index.is_none() && self.len() >= INDEXED_FROM {
                    self.index = Some(Box::new(self.make_index()));
                }
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, key: Value) -> Option<Value> {
        self.position(key).map(|position| self.items[position + 1])
    }

    /// `key, value, key, value, …`
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// Keys with their values, in insertion order.
    pub fn entries(&self) -> impl Iterator<Item = (Value, Value)> + '_ {
        self.items
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[key, value]| (*key, *value))
    }

    pub fn len(&self) -> usize {
        self.items.len() / 2
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Roughly how many bytes the entries occupy.
    pub(crate) fn held_bytes(&self) -> u64 {
        let indexed = if self.index.is_some() { 40 } else { 0 };
        self.items.len() as u64 * size_of::<Value>() as u64 + self.len() as u64 * indexed
    }

    fn position(&self, key: Value) -> Option<usize> {
        let wanted = Key::of(key);
        match &self.index {
            Some(index) => index.0.get(&wanted).map(|position| *position as usize),
            None => (0..self.items.len())
                .step_by(2)
                .find(|position| Key::of(self.items[*position]) == wanted),
        }
    }

    fn make_index(&self) -> Index {
        let entry = |position: usize| (Key::of(self.items[position]), position as u32);
        Index((0..self.items.len()).step_by(2).map(entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_comes_again_keeps_its_place_and_gets_the_new_value() {
        let mut dictionary = Dictionary::default();
        for round in 0..2 {
            for key in 0..40 {
                dictionary.insert(Value::Int(key), Value::Int(key + round));
            }
        }
        let entries: Vec<_> = dictionary.entries().collect();
        assert_eq!(entries.len(), 40);
        assert_eq!(entries[7], (Value::Int(7), Value::Int(8)));
    }

    #[test]
    fn one_and_true_and_1_0_are_the_same_key() {
        let mut dictionary = Dictionary::default();
        dictionary.insert(Value::Int(1), Value::None);
        dictionary.insert(Value::Bool(true), Value::Int(2));
        dictionary.insert(Value::Float(1.0), Value::Int(3));
        assert_eq!(dictionary.items(), [Value::Int(1), Value::Int(3)]);
    }
}
