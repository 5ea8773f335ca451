//! Tracks values through the code: within a function in statement order, across the functions of the
//! file by arguments and return values.
//!
//! Every unit is read in order, branches separately and then joined, loops twice so that the second
//! iteration sees what the first one left. Arguments and return values of a unit are carried into the
//! next pass over all units, until nothing changes or after [`ROUNDS`] passes: what is still open then
//! stays open ([`Truth::Maybe`]), and rules report only what is certain.

mod calls;
mod dispatch;
mod elements;
mod expressions;
pub(super) mod methods;
mod modes;
mod parameters;
mod statements;

use rustc_hash::FxHashMap;

use super::imports::Imports;
use super::paths::path;
use super::roles::{Role, role, words_for_model};
use super::structure::{ClassId, Structure, Unit, UnitId};
use super::usage::{Usages, class_of};
use super::value::{Kind, Truth, Value};
use crate::python::{Expr, Ranged, TextRange};

/// The most passes over all units.
const ROUNDS: usize = 4;

/// What is known about every expression, and the mode of every call and assignment.
#[derive(Debug, Default)]
pub struct Flow {
    values: FxHashMap<TextRange, Value>,
    modes: FxHashMap<TextRange, Truth>,
    tuples: Vec<Vec<Value>>,
    /// The methods of the file that a call on an unknown object may run.
    candidates: FxHashMap<TextRange, Vec<UnitId>>,
}

impl Flow {
    /// The value of an expression, from its last evaluation.
    pub fn value(&self, expression: &impl Ranged) -> Value {
        self.values
            .get(&expression.range())
            .copied()
            .unwrap_or(Value::UNKNOWN)
    }

    /// Whether gradients are enabled at a call or an assignment.
    pub fn gradients_at(&self, place: &impl Ranged) -> Truth {
        self.modes
            .get(&place.range())
            .copied()
            .unwrap_or(Truth::Maybe)
    }

    /// The methods of the file that a call on an unknown object may run.
    pub fn candidates(&self, call: &impl Ranged) -> &[UnitId] {
        self.candidates
            .get(&call.range())
            .map_or(&[], Vec::as_slice)
    }

    /// The elements of a tuple.
    pub fn elements(&self, value: Value) -> Option<&[Value]> {
        match value.kind {
            Kind::Tuple(id) => self.tuples.get(id).map(Vec::as_slice),
            _ => None,
        }
    }
}

/// What is carried from one pass to the next about a unit.
#[derive(Debug, Clone, PartialEq)]
struct Summary {
    /// Its arguments, in the order of its parameters.
    given: Vec<Value>,
    returns: Value,
    /// What it yields, if it is a generator.
    yields: Value,
    /// Whether gradients are enabled where it is called; open while no call was seen.
    mode: Option<Truth>,
}

/// Tracks the values of a file.
pub fn follow<'a>(
    text: &'a str,
    structure: &Structure<'a>,
    imports: &Imports<'a>,
    usages: &Usages<'a>,
) -> Flow {
    let mut reader = Reader {
        text,
        structure,
        imports,
        usages,
        flow: Flow::default(),
        modules: module_classes(structure, imports),
        optimized: optimized_names(text, structure),
        methods: dispatch::methods(structure),
        summaries: structure
            .units
            .iter()
            .map(|unit| Summary {
                given: vec![Value::UNSET; parameter_count(unit)],
                returns: Value::UNSET,
                yields: Value::UNSET,
                mode: None,
            })
            .collect(),
        attributes: FxHashMap::default(),
        exits: vec![FxHashMap::default(); structure.units.len()],
        frame: Frame::default(),
        changed: false,
    };
    for _ in 0..ROUNDS {
        reader.changed = false;
        for unit in 0..structure.units.len() {
            reader.unit(unit);
        }
        if !reader.changed {
            break;
        }
    }
    reader.flow
}

struct Reader<'f, 'a> {
    text: &'a str,
    structure: &'f Structure<'a>,
    imports: &'f Imports<'a>,
    usages: &'f Usages<'a>,
    flow: Flow,
    /// Which classes in the file are modules.
    modules: Vec<bool>,
    /// The words that optimizers have in their names for their models.
    optimized: Vec<Vec<String>>,
    /// The methods of all classes by their names.
    methods: FxHashMap<&'a str, Vec<UnitId>>,
    summaries: Vec<Summary>,
    /// What the methods of a class store on `self`.
    attributes: FxHashMap<(ClassId, &'a str), Value>,
    /// The final values of each unit's names, which its inner functions see.
    exits: Vec<FxHashMap<&'a str, Value>>,
    frame: Frame<'a>,
    changed: bool,
}

/// The unit that is being read.
#[derive(Debug, Default)]
struct Frame<'a> {
    unit: UnitId,
    /// The place of each path in `values`.
    slots: FxHashMap<&'a str, usize>,
    /// The places of the longer paths that begin with a path: `model.head` of `model`.
    below: FxHashMap<&'a str, Vec<usize>>,
    values: Vec<Value>,
    /// Whether gradients are enabled here.
    mode: Truth,
    /// How many loops are around: inner ones are read once.
    loops: usize,
    returns: Value,
    yields: Value,
}

impl<'a> Reader<'_, 'a> {
    fn unit(&mut self, id: UnitId) {
        let unit = &self.structure.units[id];
        self.frame = Frame {
            unit: id,
            mode: self.mode_of(id),
            returns: Value::UNSET,
            yields: Value::UNSET,
            ..Frame::default()
        };
        if let Some(node) = unit.node {
            for (index, parameter) in node.parameters.iter().enumerate() {
                let name = parameter.name().as_str();
                let value = self.parameter(id, index, name);
                self.set(name, value);
            }
        }
        self.block(unit.body);
        let exit = std::mem::take(&mut self.frame);
        let returns = if exit.yields.kind != Kind::Unset {
            Value {
                kind: Kind::Generator(id),
                scalar: Truth::No,
                ..exit.yields
            }
        } else if exit.returns.kind == Kind::Unset {
            Value::plain(Kind::None)
        } else {
            exit.returns
        };
        // Tuples get new ids in every pass: the ids alone are not a change.
        let same = match (returns.kind, self.summaries[id].returns.kind) {
            (Kind::Tuple(one), Kind::Tuple(other)) => self.are_alike(one, other),
            _ => returns == self.summaries[id].returns,
        };
        self.changed |= !same;
        self.summaries[id].returns = returns;
        self.summaries[id].yields = exit.yields;
        self.exits[id] = exit
            .slots
            .iter()
            .map(|(path, slot)| (*path, exit.values[*slot]))
            .collect();
    }

    fn instance(&self, class: ClassId) -> Value {
        if self.modules[class] {
            Value::of(Kind::Module(Some(class)))
        } else {
            Value::of(Kind::Object(class))
        }
    }

    /// The value of a path here: in this unit, on `self`, in the enclosing units.
    fn get(&self, path: &str) -> Option<Value> {
        if let Some(slot) = self.frame.slots.get(path) {
            let value = self.frame.values[*slot];
            if value.kind != Kind::Unset {
                return Some(value);
            }
        }
        if let Some(name) = path.strip_prefix("self.")
            && let Some(class) = class_of(self.structure, self.frame.unit)
            && let Some(value) = self.stored(class, name)
        {
            return Some(value);
        }
        let mut next = self.structure.units[self.frame.unit].parent;
        while let Some(unit) = next {
            if let Some(value) = self.exits[unit].get(path)
                && value.kind != Kind::Unset
            {
                return Some(*value);
            }
            next = self.structure.units[unit].parent;
        }
        None
    }

    /// What the methods of a class, or of one related to it, store in an attribute.
    fn stored(&self, class: ClassId, name: &str) -> Option<Value> {
        if let Some(value) = self.attributes.get(&(class, name)) {
            return Some(*value);
        }
        let mut related = (0..self.structure.classes.len())
            .filter(|each| self.structure.are_related(*each, class));
        related.find_map(|each| self.attributes.get(&(each, name)).copied())
    }

    fn set(&mut self, path: &'a str, value: Value) {
        let next = self.frame.values.len();
        let slot = *self.frame.slots.entry(path).or_insert(next);
        if slot == next {
            self.frame.values.push(value);
            for (end, _) in path.match_indices(['.', '[']) {
                self.frame.below.entry(&path[..end]).or_default().push(slot);
            }
        } else {
            self.frame.values[slot] = value;
        }
    }

    /// Binds a path to a value; other methods see attributes of `self` too.
    fn bind(&mut self, path: &'a str, value: Value, byte: usize) {
        let value = self.refined(path, value, byte);
        // Attributes of the old value are gone: `model = other` forgets `model.head`.
        for slot in self.frame.below.get(path).into_iter().flatten() {
            self.frame.values[*slot] = Value::UNSET;
        }
        self.set(path, value);
        if let Some(name) = path.strip_prefix("self.")
            && let Some(class) = class_of(self.structure, self.frame.unit)
        {
            let before = self.attributes.get(&(class, name)).copied();
            let after = before.map_or(value, |before| before.join(value));
            if before != Some(after) {
                self.changed = true;
                self.attributes.insert((class, name), after);
            }
        }
    }

    /// What the use of a path adds to what is known about its value.
    fn refined(&self, path: &str, value: Value, byte: usize) -> Value {
        let open = match value.kind {
            Kind::Unknown => true,
            Kind::Tensor | Kind::Container => value.graph == Truth::Maybe,
            // The result of `torch.load` may be a whole model.
            Kind::StateDict => true,
            _ => false,
        };
        if !open {
            return value;
        }
        let usage = self.usages.usage(self.structure, self.frame.unit, path);
        // `model.eval()` and then only methods of its own: `model.encode(images)`.
        let by_name = || {
            (usage.mode && role(path) == Some(Role::Model)).then(|| Value::of(Kind::Module(None)))
        };
        match usage.value(byte).or_else(by_name) {
            Some(known) if value.kind == Kind::Unknown => Value {
                // Made where gradients are disabled, whatever others of this name are used for.
                graph: if known.is_tensor() && value.graph.is_no() {
                    Truth::No
                } else {
                    known.graph
                },
                card: if value.card == Truth::Maybe {
                    known.card
                } else {
                    value.card
                },
                ..known
            },
            Some(known) if value.kind == Kind::StateDict => {
                if known.is_module() {
                    known
                } else {
                    value
                }
            }
            Some(known) if value.kind == Kind::Container => match known.kind {
                Kind::Container => Value {
                    graph: known.graph,
                    ..value
                },
                _ => value,
            },
            Some(known) if known.is_tensor() => Value {
                graph: known.graph,
                scalar: known.scalar,
                ..value
            },
            _ => value,
        }
    }

    fn tuple(&mut self, elements: Vec<Value>) -> Value {
        let graph = elements
            .iter()
            .fold(Truth::No, |all, each| all.or(each.graph));
        let card = elements
            .iter()
            .fold(Truth::No, |all, each| all.or(each.card));
        self.flow.tuples.push(elements);
        let kind = Kind::Tuple(self.flow.tuples.len() - 1);
        Value {
            kind,
            graph,
            card,
            scalar: Truth::No,
        }
    }

    /// Whether two tuples have the same elements, whatever their ids.
    fn are_alike(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.flow.tuples[one], &self.flow.tuples[other]);
        one.len() == other.len()
            && one.iter().zip(other).all(|(left, right)| {
                left == right || matches!((left.kind, right.kind), (Kind::Tuple(_), Kind::Tuple(_)))
            })
    }

    fn join(&mut self, left: Value, right: Value) -> Value {
        if let (Kind::Tuple(a), Kind::Tuple(b)) = (left.kind, right.kind)
            && a != b
            && self.flow.tuples[a].len() == self.flow.tuples[b].len()
        {
            let pairs: Vec<(Value, Value)> = self.flow.tuples[a]
                .iter()
                .copied()
                .zip(self.flow.tuples[b].iter().copied())
                .collect();
            let elements = pairs.into_iter().map(|(x, y)| self.join(x, y)).collect();
            return self.tuple(elements);
        }
        left.join(right)
    }
}

/// The words that optimizers have in their names for their models: `feat` of `feat_opt.step()`.
fn optimized_names(text: &str, structure: &Structure<'_>) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for call in &structure.calls {
        if let Expr::Attribute(function) = &*call.node.func
            && function.attr.as_str() == "step"
            && let Some(path) = path(text, &function.value)
            && let Some(words) = words_for_model(path)
            && !all.contains(&words)
        {
            all.push(words);
        }
    }
    all
}

fn parameter_count(unit: &Unit<'_>) -> usize {
    unit.node.map_or(0, |node| node.parameters.len())
}

/// Which classes are modules: those that derive from one, or that have a `forward` and a base
/// that is not in this file.
fn module_classes(structure: &Structure<'_>, imports: &Imports<'_>) -> Vec<bool> {
    let mut modules = vec![false; structure.classes.len()];
    // A second pass handles classes that derive from later ones.
    for _ in 0..2 {
        for (id, class) in structure.classes.iter().enumerate() {
            modules[id] = modules[id]
                || class.node.bases().iter().any(|base| {
                    if let Expr::Name(name) = base
                        && let Some(other) = structure
                            .classes
                            .iter()
                            .position(|other| other.node.name.as_str() == name.id.as_str())
                        && other != id
                    {
                        return modules[other];
                    }
                    match imports.qualified(base) {
                        Some(name) => {
                            name.starts_with("torch.nn.") && !name.contains(".functional.")
                                || name.ends_with("Module")
                                || name.ends_with("PreTrainedModel")
                                || class.method("forward").is_some()
                        }
                        None => class.method("forward").is_some(),
                    }
                });
        }
    }
    modules
}
