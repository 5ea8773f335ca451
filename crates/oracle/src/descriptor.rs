//! One backend descriptor as a program sets it: a kind, and attributes that are bytes or other
//! descriptors. The stand-in answers with such descriptors; the recorder follows the real ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::numbers::{attribute, element_bytes, kind, value_type};
use crate::protocol::{Attribute, Node, Value};

/// What `cudnnBackendDescriptor_t` stands for.
pub struct Descriptor {
    pub kind: i32,
    contents: Mutex<Contents>,
}

#[derive(Clone, Default)]
pub struct Contents {
    pub attributes: BTreeMap<i32, Stored>,
    pub is_finalized: bool,
    /// The operation graph that this descriptor is about, for graphs, engines and configurations.
    pub graph: Option<Arc<Node>>,
}

/// An attribute as it was set. Descriptors below live as long as those that refer to them.
#[derive(Clone)]
pub enum Stored {
    Bytes { value_type: i32, bytes: Vec<u8> },
    Descriptors(Vec<Arc<Descriptor>>),
}

impl Descriptor {
    pub fn new(kind: i32) -> Self {
        Self {
            kind,
            contents: Mutex::new(Contents::default()),
        }
    }

    /// A descriptor that is complete from the start.
    pub fn finished(
        kind: i32,
        attributes: BTreeMap<i32, Stored>,
        graph: Option<Arc<Node>>,
    ) -> Self {
        Self {
            kind,
            contents: Mutex::new(Contents {
                attributes,
                is_finalized: true,
                graph,
            }),
        }
    }

    /// A complete engine configuration: an engine with these attributes, and the knobs' values.
    pub fn engine_config(
        engine: BTreeMap<i32, Stored>,
        knobs: &[(i32, i64)],
        graph: &Arc<Node>,
    ) -> Self {
        let engine = Self::finished(kind::ENGINE, engine, Some(Arc::clone(graph)));
        let knobs = knobs
            .iter()
            .map(|&(knob, value)| {
                let attributes = BTreeMap::from([
                    (
                        attribute::KNOB_CHOICE_TYPE,
                        Stored::from_numbers(value_type::KNOB_TYPE, &[i64::from(knob)]),
                    ),
                    (
                        attribute::KNOB_CHOICE_VALUE,
                        Stored::from_numbers(value_type::INT64, &[value]),
                    ),
                ]);
                Arc::new(Self::finished(kind::KNOB_CHOICE, attributes, None))
            })
            .collect();
        let attributes = BTreeMap::from([
            (
                attribute::CONFIG_ENGINE,
                Stored::Descriptors(vec![Arc::new(engine)]),
            ),
            (attribute::CONFIG_KNOB_CHOICES, Stored::Descriptors(knobs)),
        ]);
        Self::finished(kind::ENGINE_CONFIG, attributes, Some(Arc::clone(graph)))
    }

    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this descriptor equal to `other`, as reading a descriptor out of another does.
    pub fn become_copy_of(&self, other: &Self) {
        let copy = other.contents().clone();
        *self.contents() = copy;
    }

    /// The descriptor with everything below it, without handles and pointers.
    pub fn to_node(&self) -> Node {
        let contents = self.contents();
        let attributes = contents
            .attributes
            .iter()
            .filter_map(|(&name, stored)| {
                let (value_type, value) = stored.to_value()?;
                Some(Attribute {
                    name,
                    value_type,
                    value,
                })
            })
            .collect();
        Node {
            kind: self.kind,
            attributes,
        }
    }
}

impl Contents {
    /// The first number of an attribute.
    pub fn number(&self, name: i32) -> Option<i64> {
        match self.attributes.get(&name)? {
            Stored::Bytes { value_type, bytes } => numbers(*value_type, bytes).first().copied(),
            Stored::Descriptors(_) => None,
        }
    }

    /// Of an engine configuration: the engine's number, and its knobs with their values.
    pub fn engine_and_knobs(&self) -> Option<(i64, Vec<(i32, i64)>)> {
        let engine = self.descriptors(attribute::CONFIG_ENGINE).first()?;
        let engine = engine.contents().number(attribute::ENGINE_INDEX)?;
        let knobs = self
            .descriptors(attribute::CONFIG_KNOB_CHOICES)
            .iter()
            .filter_map(|knob| {
                let knob = knob.contents();
                let kind = knob.number(attribute::KNOB_CHOICE_TYPE)?;
                Some((kind as i32, knob.number(attribute::KNOB_CHOICE_VALUE)?))
            })
            .collect();
        Some((engine, knobs))
    }

    pub fn descriptors(&self, name: i32) -> &[Arc<Descriptor>] {
        match self.attributes.get(&name) {
            Some(Stored::Descriptors(all)) => all,
            _ => &[],
        }
    }
}

impl Stored {
    pub fn from_numbers(value_type: i32, numbers: &[i64]) -> Self {
        let width = element_bytes(value_type).min(8);
        let bytes = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes().into_iter().take(width))
            .collect();
        Self::Bytes { value_type, bytes }
    }

    pub fn count(&self) -> usize {
        match self {
            Self::Bytes { value_type, bytes } => bytes.len() / element_bytes(*value_type),
            Self::Descriptors(all) => all.len(),
        }
    }

    fn to_value(&self) -> Option<(i32, Value)> {
        match self {
            Self::Bytes { value_type, .. }
                if [value_type::HANDLE, value_type::VOID_POINTER].contains(value_type) =>
            {
                None
            }
            Self::Bytes { value_type, bytes } => {
                Some((*value_type, Value::Numbers(numbers(*value_type, bytes))))
            }
            Self::Descriptors(all) => {
                let nodes = all.iter().map(|one| one.to_node()).collect();
                Some((value_type::DESCRIPTOR, Value::Nodes(nodes)))
            }
        }
    }
}

/// The elements' bytes as integers. Signed types keep their sign where it can matter, in int64.
fn numbers(value_type: i32, bytes: &[u8]) -> Vec<i64> {
    bytes
        .chunks(element_bytes(value_type).min(8))
        .map(|chunk| {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            i64::from_le_bytes(word)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_and_pointers_are_left_out_of_the_tree() {
        let descriptor = Descriptor::new(15);
        let mut contents = descriptor.contents();
        let handle = Stored::from_numbers(value_type::HANDLE, &[0x7f00_0000_1234]);
        contents.attributes.insert(800, handle);
        let number = Stored::from_numbers(value_type::INT64, &[-1, 7]);
        contents.attributes.insert(902, number);
        drop(contents);
        let node = descriptor.to_node();
        assert_eq!(node.attributes.len(), 1);
        assert_eq!(node.numbers(902), [-1, 7]);
    }

    #[test]
    fn small_elements_are_packed_as_c_packs_them() {
        let Stored::Bytes { bytes, .. } = Stored::from_numbers(value_type::INT32, &[1, 2]) else {
            panic!("numbers are bytes");
        };
        assert_eq!(bytes, [1, 0, 0, 0, 2, 0, 0, 0]);
    }
}
