//! What is live at a moment, by module, with the sums of everything below each.

use std::collections::BTreeMap;

use crate::card_ledger::CardLedger;
use crate::held::Held;
use crate::moment::Moment;
use crate::owner_module::OwnerModules;

/// The largest depth of a node; longer paths are not split further.
const MOST_DEPTH: usize = 32;

/// A module, or a prefix of paths of modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNode {
    /// `encoder.layer.7`; empty for what is outside any module.
    pub path: String,
    /// `BertLayer`; empty if unknown.
    pub class: String,
    /// The index of the parent node, which always comes earlier in the list.
    pub parent: Option<usize>,
    /// 0 for the first part of a path.
    pub depth: usize,
    /// What belongs to the module itself.
    pub own: Held,
    /// Including everything below it.
    pub total: Held,
}

/// The modules that hold something. Parents come before their children, and siblings are sorted by size, largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleTree {
    pub nodes: Vec<ModuleNode>,
}

impl CardLedger<'_> {
    /// What is live at a moment, by module.
    pub fn by_module(&self, moment: Moment) -> ModuleTree {
        let owners = OwnerModules::of(&self.recording.names);
        let mut own: BTreeMap<&str, Held> = BTreeMap::new();
        for (_, one) in self.live_at(moment) {
            own.entry(owners.path_of(one)).or_default().add(one);
        }
        ModuleTree::new(&own, &owners)
    }
}

impl ModuleTree {
    fn new(own: &BTreeMap<&str, Held>, owners: &OwnerModules) -> Self {
        let mut nodes: BTreeMap<String, ModuleNode> = BTreeMap::new();
        for (path, held) in own {
            for (depth, part) in beginnings(path).enumerate() {
                let node = nodes.entry(part.to_owned()).or_insert_with(|| ModuleNode {
                    path: part.to_owned(),
                    class: owners.class(part).to_owned(),
                    parent: None,
                    depth,
                    own: Held::default(),
                    total: Held::default(),
                });
                node.total.merge(held);
                if part == *path {
                    node.own.merge(held);
                }
            }
        }
        Self::in_order(nodes)
    }

    /// Parents before children, and the largest first among those of one parent.
    fn in_order(nodes: BTreeMap<String, ModuleNode>) -> Self {
        let mut children: BTreeMap<String, Vec<ModuleNode>> = BTreeMap::new();
        let mut top = Vec::new();
        for (path, node) in nodes {
            match parent_of(&path, node.depth) {
                Some(parent) => children.entry(parent.to_owned()).or_default().push(node),
                None => top.push(node),
            }
        }
        let mut ordered: Vec<ModuleNode> = Vec::new();
        // A stack of nodes, each with the index of its parent.
        let mut waiting: Vec<(Option<usize>, ModuleNode)> = Vec::new();
        push_smallest_first(&mut waiting, None, top);
        while let Some((parent, mut node)) = waiting.pop() {
            node.parent = parent;
            let at = ordered.len();
            if let Some(below) = children.remove(&node.path) {
                push_smallest_first(&mut waiting, Some(at), below);
            }
            ordered.push(node);
        }
        Self { nodes: ordered }
    }

    /// The children of a node, or the top-level nodes.
    pub fn children(&self, parent: Option<usize>) -> impl Iterator<Item = (usize, &ModuleNode)> {
        let all = self.nodes.iter().enumerate();
        all.filter(move |(_, node)| node.parent == parent)
    }
}

fn push_smallest_first(
    waiting: &mut Vec<(Option<usize>, ModuleNode)>,
    parent: Option<usize>,
    mut nodes: Vec<ModuleNode>,
) {
    nodes.sort_by(|one, other| {
        let by_bytes = one.total.block_bytes.cmp(&other.total.block_bytes);
        by_bytes.then_with(|| other.path.cmp(&one.path))
    });
    waiting.extend(nodes.into_iter().map(|node| (parent, node)));
}

/// `a`, `a.b`, `a.b.c`; the empty path is itself.
fn beginnings(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.match_indices('.').map(|(at, _)| &path[..at]);
    inner.take(MOST_DEPTH - 1).chain([path])
}

/// The parent's path; `None` for the first part.
fn parent_of(path: &str, depth: usize) -> Option<&str> {
    beginnings(path).nth(depth.checked_sub(1)?)
}
