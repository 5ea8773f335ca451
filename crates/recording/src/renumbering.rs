//! Merges the names of one recording into another, and renumbers them.

use std::collections::HashMap;
use std::hash::Hash;

use crate::names::{FrameId, Module, ModuleId, NameId, Names, OperatorId, StackId};
use crate::recording::CardMemory;

/// The new number of each name of another recording.
pub(crate) struct Renumbering {
    texts: Vec<u32>,
    operators: Vec<u32>,
    modules: Vec<u32>,
    stacks: Vec<u32>,
}

impl Renumbering {
    /// Adds the names that are missing.
    pub(crate) fn of(names: &mut Names, other: Names) -> Self {
        let frames = merged(&mut names.frames, other.frames);
        let stacks = other.stacks.into_iter().map(|stack| {
            let frames = stack.iter().map(|id| FrameId(new(&frames, id.0)));
            frames.collect()
        });
        let stacks: Vec<Vec<FrameId>> = stacks.collect();
        Self {
            texts: merged(&mut names.texts, other.texts),
            operators: merged(&mut names.operators, other.operators),
            modules: merged_modules(names, other.modules),
            stacks: merged(&mut names.stacks, stacks),
        }
    }

    pub(crate) fn apply(&self, card: &mut CardMemory) {
        for one in &mut card.allocations {
            one.name = NameId(new(&self.texts, one.name.0));
            one.module = ModuleId(new(&self.modules, one.module.0));
            one.operator = OperatorId(new(&self.operators, one.operator.0));
            one.stack = StackId(new(&self.stacks, one.stack.0));
        }
        for failure in &mut card.failures {
            failure.stack = StackId(new(&self.stacks, failure.stack.0));
        }
        for range in &mut card.ranges {
            range.name = NameId(new(&self.texts, range.name.0));
        }
    }
}

/// The new number of a name; 0 for an invalid one.
fn new(numbers: &[u32], old: u32) -> u32 {
    numbers.get(old as usize).copied().unwrap_or(0)
}

/// Appends what is missing to `into`, and returns the new index of each.
fn merged<T: Clone + Eq + Hash>(into: &mut Vec<T>, other: Vec<T>) -> Vec<u32> {
    let mut places: HashMap<T, u32> = HashMap::new();
    for (at, value) in into.iter().enumerate() {
        places.entry(value.clone()).or_insert(at as u32);
    }
    let mut place = |value: T| {
        let next = into.len() as u32;
        let place = *places.entry(value.clone()).or_insert(next);
        if place == next {
            into.push(value);
        }
        place
    };
    other.into_iter().map(&mut place).collect()
}

/// Modules are the same in both runs even if their outputs differ; the output of the later run is kept.
fn merged_modules(names: &mut Names, other: Vec<Module>) -> Vec<u32> {
    let key = |module: &Module| (module.path.clone(), module.class.clone());
    let mut keys: Vec<_> = names.modules.iter().map(key).collect();
    let places = merged(&mut keys, other.iter().map(key).collect());
    for (module, place) in other.into_iter().zip(&places) {
        if *place as usize == names.modules.len() {
            names.modules.push(module);
        }
    }
    places
}
