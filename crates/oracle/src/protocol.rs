//! Questions and answers: one line of JSON each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::numbers::{attribute, kind};

/// One backend descriptor with everything below it, without handles and pointers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// `cudnnBackendDescriptorType_t`
    #[serde(rename = "k")]
    pub kind: i32,
    /// In ascending order of their names, so that equal descriptors are equal texts.
    #[serde(rename = "a")]
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attribute {
    /// `cudnnBackendAttributeName_t`
    #[serde(rename = "n")]
    pub name: i32,
    /// `cudnnBackendAttributeType_t`
    #[serde(rename = "t")]
    pub value_type: i32,
    #[serde(rename = "v")]
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// The elements' bytes, each element read as a little-endian integer; a fraction is two.
    Numbers(Vec<i64>),
    Nodes(Vec<Node>),
}

impl Node {
    pub fn attribute(&self, name: i32) -> Option<&Value> {
        let found = self.attributes.iter().find(|one| one.name == name);
        found.map(|one| &one.value)
    }

    /// The numbers of an attribute; empty if it is not there.
    pub fn numbers(&self, name: i32) -> &[i64] {
        match self.attribute(name) {
            Some(Value::Numbers(numbers)) => numbers,
            _ => &[],
        }
    }

    pub fn nodes(&self, name: i32) -> &[Node] {
        match self.attribute(name) {
            Some(Value::Nodes(nodes)) => nodes,
            _ => &[],
        }
    }

    /// The tree as text, short enough for one line: `15{801=[10{…}]}`.
    ///
    /// Kinds and names are cuDNN's numbers. A name has one type of value, so types are left out.
    pub fn words(&self) -> String {
        let attributes: Vec<String> = self
            .attributes
            .iter()
            .map(|one| format!("{}={}", one.name, one.value.words()))
            .collect();
        format!("{}{{{}}}", self.kind, attributes.join(";"))
    }

    /// The same graph with its tensors' ids counted from 1 in order of appearance.
    ///
    /// The ids are the caller's choice and say only which tensors are the same one.
    pub fn with_counted_ids(mut self) -> Self {
        self.count_ids(&mut BTreeMap::new());
        self
    }

    fn count_ids(&mut self, seen: &mut BTreeMap<i64, i64>) {
        let is_tensor = self.kind == kind::TENSOR;
        for one in &mut self.attributes {
            match &mut one.value {
                Value::Nodes(nodes) => nodes.iter_mut().for_each(|node| node.count_ids(seen)),
                Value::Numbers(ids) if is_tensor && one.name == attribute::TENSOR_UNIQUE_ID => {
                    for id in ids {
                        let next = seen.len() as i64 + 1;
                        *id = *seen.entry(*id).or_insert(next);
                    }
                }
                Value::Numbers(_) => {}
            }
        }
    }
}

impl Value {
    fn words(&self) -> String {
        match self {
            Self::Numbers(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
                numbers.join(",")
            }
            Self::Nodes(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(Node::words).collect();
                format!("[{}]", nodes.join(","))
            }
        }
    }
}

/// One question about one operation graph on one card.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The card, in cuDNN's JSON form.
    pub device: String,
    pub graph: Node,
    pub question: Question,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Which engines does cuDNN propose, in which order?
    Heuristics { mode: i32, sm_target: Option<i32> },
    /// What is there to know about this engine?
    Engine { index: i64 },
    /// Can this engine run the graph with these knobs, and with how much workspace?
    ///
    /// With `sm_target`, on a part of the card with that many multiprocessors.
    Plan {
        engine: i64,
        knobs: Vec<(i32, i64)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sm_target: Option<i32>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// `status` is cuDNN's own; the list is empty unless it is zero.
    Heuristics {
        status: i32,
        configs: Vec<EngineConfig>,
    },
    Engine(EngineAnswer),
    Plan(PlanAnswer),
    /// The process that was asked died or did not answer in time.
    Crashed,
}

/// An engine with the settings that cuDNN's heuristics propose for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineConfig {
    pub engine: i64,
    pub knobs: Vec<(i32, i64)>,
    pub numerical_notes: Vec<i32>,
    pub behavior_notes: Vec<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineAnswer {
    pub status: i32,
    pub numerical_notes: Vec<i32>,
    pub behavior_notes: Vec<i32>,
    pub knobs: Vec<KnobRange>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobRange {
    pub knob: i32,
    pub minimum: i64,
    pub maximum: i64,
    pub stride: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanAnswer {
    pub status: i32,
    pub workspace_bytes: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(id: i64) -> Node {
        Node {
            kind: kind::TENSOR,
            attributes: vec![Attribute {
                name: attribute::TENSOR_UNIQUE_ID,
                value_type: 3,
                value: Value::Numbers(vec![id]),
            }],
        }
    }

    fn pair(first: i64, second: i64, third: i64) -> Node {
        Node {
            kind: kind::CONVOLUTION_FORWARD,
            attributes: vec![Attribute {
                name: 704,
                value_type: 15,
                value: Value::Nodes(vec![tensor(first), tensor(second), tensor(third)]),
            }],
        }
    }

    #[test]
    fn graphs_that_differ_only_in_tensor_ids_become_equal() {
        assert_eq!(
            pair(120, 7, 120).with_counted_ids(),
            pair(3, 900, 3).with_counted_ids()
        );
    }

    #[test]
    fn graphs_that_share_other_tensors_stay_different() {
        assert_ne!(
            pair(1, 2, 1).with_counted_ids(),
            pair(1, 2, 2).with_counted_ids()
        );
    }

    #[test]
    fn a_node_survives_its_json_form() {
        let node = pair(1, 2, 3);
        let text = serde_json::to_string(&node).unwrap();
        assert_eq!(serde_json::from_str::<Node>(&text).unwrap(), node);
    }
}
