//! Which module ran when a node of the autograd graph was made.

use std::collections::HashMap;

use super::autograd_nodes::ThreadNumber;

/// More than a large model has. Beyond this, all are forgotten.
const MAX_SEQUENCES: usize = 1 << 21;

/// Modules by the thread and the sequence number of the forward operator.
#[derive(Default)]
pub struct Sequences {
    makers: HashMap<u64, Makers>,
}

/// The threads that made a node with one sequence number, each with its module. Nearly always one.
struct Makers {
    first: (ThreadNumber, u32),
    others: Vec<(ThreadNumber, u32)>,
}

impl Sequences {
    pub fn insert(&mut self, thread: ThreadNumber, sequence: u64, module: u32) {
        if self.makers.len() >= MAX_SEQUENCES {
            self.makers.clear();
        }
        let makers = self.makers.entry(sequence).or_insert_with(|| Makers {
            first: (thread, module),
            others: Vec::new(),
        });
        let known = makers.all_mut().find(|(known, _)| *known == thread);
        if let Some(maker) = known {
            maker.1 = module;
            return;
        }
        makers.others.push((thread, module));
    }

    /// The module of the node with this sequence number that `thread` made; 0 if it is not known.
    ///
    /// Without the thread, it is known only if there is just one candidate.
    pub fn module_of(&self, thread: Option<ThreadNumber>, sequence: u64) -> u32 {
        let Some(makers) = self.makers.get(&sequence) else {
            return 0;
        };
        match thread {
            Some(thread) => makers
                .all()
                .find(|(maker, _)| *maker == thread)
                .map_or(0, |(_, module)| *module),
            None if makers.all().all(|(_, module)| *module == makers.first.1) => makers.first.1,
            None => 0,
        }
    }
}

impl Makers {
    fn all(&self) -> impl Iterator<Item = &(ThreadNumber, u32)> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut (ThreadNumber, u32)> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ThreadNumber = ThreadNumber(1);
    const TWO: ThreadNumber = ThreadNumber(2);

    #[test]
    fn threads_with_the_same_numbers_are_told_apart() {
        let mut sequences = Sequences::default();
        sequences.insert(ONE, 12, 5);
        sequences.insert(TWO, 12, 7);
        sequences.insert(TWO, 13, 7);
        for (thread, sequence, expected) in [
            (Some(ONE), 12, 5),
            (Some(TWO), 12, 7),
            (Some(TWO), 13, 7),
            (Some(ONE), 13, 0),
            (Some(ONE), 14, 0),
        ] {
            let found = sequences.module_of(thread, sequence);
            assert_eq!(found, expected, "{thread:?} {sequence}");
        }
    }

    #[test]
    fn without_a_thread_only_what_is_certain_is_said() {
        let mut sequences = Sequences::default();
        sequences.insert(ONE, 12, 5);
        assert_eq!(sequences.module_of(None, 12), 5);
        sequences.insert(TWO, 12, 5);
        assert_eq!(sequences.module_of(None, 12), 5);
        sequences.insert(TWO, 12, 7);
        assert_eq!(sequences.module_of(None, 12), 0);
    }

    #[test]
    fn the_latest_node_of_a_thread_counts() {
        let mut sequences = Sequences::default();
        sequences.insert(ONE, 12, 5);
        sequences.insert(ONE, 12, 6);
        assert_eq!(sequences.module_of(Some(ONE), 12), 6);
    }
}
