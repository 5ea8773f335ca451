//! Ordered sets of blocks: B+ trees whose nodes all come from one arena.
//!
//! A node is a sorted array, searched and shifted within a few cache lines. A set of up to [`ROOM`]
//! blocks is one node; nodes that are freed are reused, so that sets which have reached their
//! size never allocate, however many there are.

use super::blocks::NONE;
use super::entry::Entry;
use super::node::{Node, ROOM};

/// A node this small is joined with its neighbour if both then fill at most half a node.
const SPARSE: usize = ROOM / 4;

/// One set. Every operation takes the arena too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    root: u32,
    /// Levels above the leaves.
    height: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            root: NONE,
            height: 0,
        }
    }
}

impl Tree {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.root == NONE
    }
}

/// The arena.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    /// First of the vacant nodes.
    vacant: u32,
}

impl Default for Nodes {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            vacant: NONE,
        }
    }
}

impl Nodes {
    /// Room for this many nodes more.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
    }

    fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    fn node_mut(&mut self, number: u32) -> &mut Node {
        &mut self.nodes[number as usize]
    }

    fn add(&mut self) -> u32 {
        let number = self.vacant;
        if number == NONE {
            self.nodes.push(Node {
                len: 0,
                next: NONE,
                entries: [Entry::default(); ROOM],
            });
            return self.nodes.len() as u32 - 1;
        }
        let node = self.node_mut(number);
        node.len = 0;
        let next = node.next;
        self.vacant = next;
        number
    }

    fn give_up(&mut self, number: u32) {
        self.node_mut(number).next = self.vacant;
        self.vacant = number;
    }

    /// The entry for a node in its parent.
    fn key_of(&self, number: u32) -> Entry {
        let last = self.node(number).entries().last().copied();
        Entry {
            block: number,
            ..last.unwrap_or_default()
        }
    }

    pub(crate) fn insert(&mut self, tree: &mut Tree, entry: Entry) {
        if tree.root == NONE {
            tree.root = self.add();
        }
        if let Some(right) = self.insert_below(tree.root, tree.height, entry) {
            let (left, root) = (tree.root, self.add());
            let keys = [self.key_of(left), self.key_of(right)];
            let node = self.node_mut(root);
            node.entries[..2].copy_from_slice(&keys);
            node.len = 2;
            tree.root = root;
            tree.height += 1;
        }
    }

    /// Returns the node that took the upper half if this one was full.
    fn insert_below(&mut self, number: u32, height: u32, entry: Entry) -> Option<u32> {
        let at = self
            .node(number)
            .entries()
            .partition_point(|other| other.is_before(&entry));
        if height == 0 {
            return self.insert_at(number, at, entry);
        }
        let at = at.min(self.node(number).len as usize - 1);
        let child = self.node(number).entries[at].block;
        let right = self.insert_below(child, height - 1, entry);
        self.node_mut(number).entries[at] = self.key_of(child);
        let key = self.key_of(right?);
        self.insert_at(number, at + 1, key)
    }

    fn insert_at(&mut self, number: u32, at: usize, entry: Entry) -> Option<u32> {
        let node = self.node_mut(number);
        if (node.len as usize) < ROOM {
            node.insert(at, entry);
            return None;
        }
        let right = self.halve(number);
        if at <= ROOM / 2 {
            self.node_mut(number).insert(at, entry);
        } else {
            self.node_mut(right).insert(at - ROOM / 2, entry);
        }
        Some(right)
    }

    fn halve(&mut self, number: u32) -> u32 {
        let right = self.add();
        let left = self.node_mut(number);
        let mut upper = [Entry::default(); ROOM];
        let count = ROOM - ROOM / 2;
        upper[..count].copy_from_slice(&left.entries[ROOM / 2..]);
        left.len = (ROOM / 2) as u32;
        let node = self.node_mut(right);
        node.entries = upper;
        node.len = count as u32;
        right
    }

    /// Removes an entry; whether it was there.
    pub(crate) fn remove(&mut self, tree: &mut Tree, key: &Entry) -> bool {
        let found = !tree.is_empty() && self.remove_below(tree.root, tree.height, key);
        self.lower(tree);
        found
    }

    fn remove_below(&mut self, number: u32, height: u32, key: &Entry) -> bool {
        let node = self.node(number);
        let at = node.entries().partition_point(|other| other.is_before(key));
        let Some(&entry) = node.entries().get(at) else {
            return false;
        };
        if height == 0 {
            let found = entry.is_same_key(key);
            if found {
                self.node_mut(number).remove(at);
            }
            return found;
        }
        let found = self.remove_below(entry.block, height - 1, key);
        self.tidy(number, at);
        found
    }

    /// Removes the first entry.
    pub(crate) fn pop_first(&mut self, tree: &mut Tree) -> Option<Entry> {
        if tree.is_empty() {
            return None;
        }
        let first = self.pop_below(tree.root, tree.height);
        self.lower(tree);
        Some(first)
    }

    fn pop_below(&mut self, number: u32, height: u32) -> Entry {
        if height == 0 {
            return self.node_mut(number).remove(0);
        }
        let first = self.pop_below(self.node(number).entries[0].block, height - 1);
        self.tidy(number, 0);
        first
    }

    /// Brings a node up to date after its child at a place has lost something.
    fn tidy(&mut self, number: u32, at: usize) {
        let child = self.node(number).entries[at].block;
        let left = self.node(child).len as usize;
        if left == 0 {
            self.give_up(child);
            self.node_mut(number).remove(at);
            return;
        }
        self.node_mut(number).entries[at] = self.key_of(child);
        if left <= SPARSE && at + 1 < self.node(number).len as usize {
            self.join_with_next(number, at, child);
        }
    }

    fn join_with_next(&mut self, number: u32, at: usize, child: u32) {
        let next = self.node(number).entries[at + 1].block;
        let (left, count) = (self.node(child).len as usize, self.node(next).len as usize);
        if left + count > ROOM / 2 {
            return;
        }
        let taken = self.node(next).entries;
        let node = self.node_mut(child);
        node.entries[left..left + count].copy_from_slice(&taken[..count]);
        node.len += count as u32;
        self.give_up(next);
        self.node_mut(number).remove(at + 1);
        self.node_mut(number).entries[at] = self.key_of(child);
    }

    /// Removes levels with a single child.
    fn lower(&mut self, tree: &mut Tree) {
        while tree.root != NONE {
            let root = tree.root;
            let node = self.node(root);
            match (node.len, tree.height) {
                (0, _) => *tree = Tree::default(),
                (1, 1..) => {
                    tree.root = node.entries[0].block;
                    tree.height -= 1;
                }
                _ => return,
            }
            self.give_up(root);
        }
    }

    /// The first entry that is not before `key`.
    pub(crate) fn first_not_before(&self, tree: Tree, key: &Entry) -> Option<Entry> {
        self.first_where_not(tree, |entry| entry.is_before(key))
    }

    /// The first entry after `key`.
    pub(crate) fn first_after(&self, tree: Tree, key: &Entry) -> Option<Entry> {
        self.first_where_not(tree, |entry| !key.is_before(entry))
    }

    /// The partition point: the first entry for which the predicate is false.
    fn first_where_not(&self, tree: Tree, is_early: impl Fn(&Entry) -> bool) -> Option<Entry> {
        if tree.is_empty() {
            return None;
        }
        let mut number = tree.root;
        for _ in 0..tree.height {
            let entries = self.node(number).entries();
            number = entries.get(entries.partition_point(&is_early))?.block;
        }
        let entries = self.node(number).entries();
        entries.get(entries.partition_point(&is_early)).copied()
    }

    /// The last entry before `key`.
    pub(crate) fn last_before(&self, tree: Tree, key: &Entry) -> Option<Entry> {
        if tree.is_empty() {
            return None;
        }
        let entries = self.node(tree.root).entries();
        let at = entries.partition_point(|entry| entry.is_before(key));
        let before = at.checked_sub(1).map(|before| entries[before]);
        if tree.height == 0 {
            return before;
        }
        let child = |entry: Entry| Tree {
            root: entry.block,
            height: tree.height - 1,
        };
        let inside = entries.get(at).copied().map(child);
        let inside = inside.and_then(|child| self.last_before(child, key));
        inside.or_else(|| self.last(child(before?)))
    }

    pub(crate) fn last(&self, tree: Tree) -> Option<Entry> {
        if tree.is_empty() {
            return None;
        }
        let mut number = tree.root;
        for _ in 0..tree.height {
            number = self.node(number).entries().last()?.block;
        }
        self.node(number).entries().last().copied()
    }

    /// The entries of a set, in order.
    pub(crate) fn iter(&self, tree: Tree) -> impl Iterator<Item = Entry> + '_ {
        let first = self.first_where_not(tree, |_| false);
        std::iter::successors(first, move |entry| self.first_after(tree, entry))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(entry: Entry) -> (u64, u32, u64) {
        (entry.size, entry.rank, entry.address)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn two_trees_of_one_arena_behave_like_ordered_sets(
            operations in prop::collection::vec(
                (0_u8..16, any::<bool>(), 0_u64..60, 0_u32..3, 0_u64..60), 1..4000)
        ) {
            let mut nodes = Nodes::default();
            let mut trees = [Tree::default(); 2];
            let mut models = [BTreeSet::new(), BTreeSet::new()];
            let growing = operations.len() * 2 / 3;
            for (number, (what, which, size, rank, address)) in operations.into_iter().enumerate() {
                let (tree, model) = (&mut trees[usize::from(which)], &mut models[usize::from(which)]);
                let entry = Entry { size, address, rank, block: 7 };
                // More insertions than removals at first, then vice versa.
                let limit = if number < growing { 11 } else { 3 };
                if what < limit {
                    if model.insert(key(entry)) {
                        nodes.insert(tree, entry);
                    }
                } else if what == 15 {
                    prop_assert_eq!(nodes.pop_first(tree).map(key), model.pop_first());
                } else {
                    prop_assert_eq!(nodes.remove(tree, &entry), model.remove(&key(entry)));
                }
                let tree = *tree;
                let found = nodes.first_not_before(tree, &entry).map(key);
                prop_assert_eq!(found, model.range(key(entry)..).next().copied());
                let found = nodes.last_before(tree, &entry).map(key);
                prop_assert_eq!(found, model.range(..key(entry)).next_back().copied());
                prop_assert_eq!(nodes.last(tree).map(key), model.last().copied());
                prop_assert_eq!(tree.is_empty(), model.is_empty());
            }
            for (tree, model) in trees.into_iter().zip(models) {
                prop_assert!(nodes.iter(tree).map(key).eq(model));
            }
        }
    }

    #[test]
    fn an_emptied_tree_gives_all_its_nodes_back() {
        let mut nodes = Nodes::default();
        let mut tree = Tree::default();
        let entry = |address: u64| Entry {
            address,
            ..Entry::default()
        };
        for round in 0..3 {
            // Ascending, descending and mixed.
            let address = |number: u64| [number, 5000 - number, number * 7919 % 5000][round];
            (0..5000).for_each(|number| nodes.insert(&mut tree, entry(address(number))));
            let made = nodes.nodes.len();
            assert!((0..5000).all(|number| nodes.remove(&mut tree, &entry(address(number)))));
            assert!(tree.is_empty());
            let mut vacant = nodes.vacant;
            let chain = std::iter::from_fn(|| {
                let here = (vacant != NONE).then_some(vacant)?;
                vacant = nodes.node(here).next;
                Some(here)
            });
            assert_eq!(chain.count(), made);
        }
    }
}
