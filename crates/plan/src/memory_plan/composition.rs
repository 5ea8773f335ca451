//! What a job's memory consists of, from the recording of its run with unlimited memory.

use std::collections::{BTreeMap, BTreeSet};

use ghostgpu_ledger::{CardLedger, Part};
use ghostgpu_recording::{Category, Names};
use ghostgpu_rehearse::{Peaks, Run};
use ghostgpu_session::TrainingPart;

/// What a job's memory consists of, as far as a plan needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composition {
    /// Bytes on the card at the peak, by part, the largest first; empty if nothing was recorded.
    pub parts: Vec<(Part, u64)>,
    /// How many repeated blocks the model has; 0 if unknown.
    pub blocks: u64,
    /// The blocks by class, the class with the most memory first.
    pub layers: Vec<Layers>,
    /// Samples in a batch of the training loader.
    pub batch: Option<u64>,
    /// Tokens per sample, if the largest tensor of a batch has two dimensions.
    pub tokens: Option<u64>,
}

/// Repeated blocks of one class, and their memory at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    /// `GPT2Block`.
    pub class: String,
    pub count: u64,
    /// All of them together: parameters, gradients, optimizer state and activations.
    pub bytes: u64,
}

impl Composition {
    pub fn of(run: &Run) -> Self {
        let recording = run.memory.recording();
        let ledger = recording.and_then(CardLedger::of_fullest);
        let mut parts: Vec<(Part, u64)> = match &ledger {
            Some(ledger) => {
                let accounts = ledger.accounts(ledger.peak().moment);
                accounts.parts().filter(|(_, bytes)| *bytes > 0).collect()
            }
            None => Vec::new(),
        };
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let blocks = recording.map_or_else(Vec::new, |recording| blocks(&recording.names));
        let main = run.findings.main_process();
        let data = main.and_then(|process| process.training_data);
        Self {
            parts,
            blocks: blocks.len() as u64,
            layers: ledger
                .as_ref()
                .map_or_else(Vec::new, |ledger| layers(ledger, &blocks)),
            batch: data.and_then(|data| data.batch),
            tokens: tokens(run),
        }
    }

    pub fn bytes_of(&self, category: Category) -> u64 {
        let wanted = Part::Category(category);
        let found = self.parts.iter().find(|(part, _)| *part == wanted);
        found.map_or(0, |(_, bytes)| *bytes)
    }

    /// An upper bound of what a trick can save at the peak; `None` if unknown.
    pub fn most_saved_by(&self, trick: &str) -> Option<u64> {
        if self.parts.is_empty() {
            return None;
        }
        let all = |categories: &[Category]| categories.iter().map(|it| self.bytes_of(*it)).sum();
        Some(match trick {
            "early-zero-grad" | "drop-gradients" => all(&[Category::Gradient]),
            "optimizer-in-backward" => all(&[Category::Gradient, Category::Temporary]),
            "optimizer-form" => all(&[Category::Temporary]),
            "offload-optimizer" => all(&[Category::OptimizerState, Category::Temporary]),
            // At most every second activation is the output of an activation function that could work in place.
            "inplace-activations" => all(&[Category::Activation]) / 2,
            _ => return None,
        })
    }

    /// Cached memory at the peak, which other allocator settings might save.
    pub fn unused_bytes(&self) -> u64 {
        let is_unused = |part: &Part| matches!(part, Part::Cached | Part::CachedPinned);
        let unused = self.parts.iter().filter(|(part, _)| is_unused(part));
        unused.map(|(_, bytes)| bytes).sum()
    }
}

/// Modules that have siblings of the same class and modules inside, without those nested in another such module. This
/// follows what checkpointing treats as blocks (`tricks/checkpointing.py`). A wrong count here costs at most an
/// additional rehearsal.
fn blocks(names: &Names) -> Vec<&str> {
    let paths: BTreeSet<&str> = names
        .modules
        .iter()
        .map(|module| &module.path[..])
        .collect();
    let mut siblings: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for module in &names.modules {
        // Direct children of the model have no parent in their path.
        let parent = module
            .path
            .rsplit_once('.')
            .map_or("", |(parent, _)| parent);
        if has_modules_inside(&paths, &module.path) && module.class != "Sequential" {
            let group = siblings.entry((parent, &module.class)).or_default();
            group.push(&module.path);
        }
    }
    let repeated: Vec<&str> = siblings
        .into_values()
        .filter(|group| group.len() >= 2)
        .flatten()
        .collect();
    let is_inside = |path: &str, other: &str| {
        path.strip_prefix(other)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    let is_outer = |path: &&str| !repeated.iter().any(|other| is_inside(path, other));
    repeated.iter().copied().filter(is_outer).collect()
}

fn layers(ledger: &CardLedger, blocks: &[&str]) -> Vec<Layers> {
    let tree = ledger.by_module(ledger.peak().moment);
    let mut by_class: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let is_block = |path: &str| blocks.contains(&path);
    for node in tree.nodes.iter().filter(|node| is_block(&node.path)) {
        let (count, bytes) = by_class.entry(&node.class).or_default();
        *count += 1;
        *bytes += node.total.block_bytes;
    }
    let mut layers: Vec<Layers> = by_class
        .into_iter()
        .map(|(class, (count, bytes))| Layers {
            class: class.to_owned(),
            count,
            bytes,
        })
        .collect();
    layers.sort_by_key(|layers| std::cmp::Reverse(layers.bytes));
    layers
}

fn has_modules_inside(paths: &BTreeSet<&str>, path: &str) -> bool {
    let inside = format!("{path}.");
    let mut after = paths.range(inside.as_str()..);
    after.next().is_some_and(|next| next.starts_with(&inside))
}

/// The second dimension of the largest batch, if it has two.
fn tokens(run: &Run) -> Option<u64> {
    let coverage = run.findings.main_process()?.coverage.as_ref()?;
    let detail = |part| {
        let mut covered = coverage.covered.iter();
        covered.find(|covered| covered.part == part)
    };
    // If all batches have one size, coverage names only the last one.
    let largest = detail(TrainingPart::LargestBatch).or_else(|| detail(TrainingPart::LastBatch))?;
    let mut dimensions = largest.detail.split('×').map(|it| it.parse::<u64>());
    match (dimensions.next(), dimensions.next(), dimensions.next()) {
        (Some(Ok(_)), Some(Ok(tokens)), None) if tokens > 1 => Some(tokens),
        _ => None,
    }
}

/// A lower bound for estimates: the memory that no trick saves, which is parameters, buffers and what is outside
/// PyTorch's allocator.
pub fn floor_bytes(composition: &Composition, needed: &Peaks) -> u64 {
    let lasting = [Category::Parameter, Category::Buffer]
        .map(|category| composition.bytes_of(category))
        .iter()
        .sum::<u64>();
    let outside = needed.device_bytes.saturating_sub(needed.reserved_bytes);
    lasting + outside
}

#[cfg(test)]
mod tests {
    use ghostgpu_recording::Module;

    use super::*;

    fn names(modules: &[(&str, &str)]) -> Names {
        let mut names = Names::default();
        for (path, class) in modules {
            names.modules.push(Module {
                path: (*path).to_owned(),
                class: (*class).to_owned(),
                output_bytes: 0,
            });
        }
        names
    }

    #[test]
    fn blocks_are_repeated_modules_with_modules_inside() {
        let transformer = names(&[
            ("bert.encoder.layer.0", "BertLayer"),
            ("bert.encoder.layer.0.attention", "BertAttention"),
            ("bert.encoder.layer.1", "BertLayer"),
            ("bert.encoder.layer.1.attention", "BertAttention"),
            ("bert.encoder.layer.10", "BertLayer"),
            ("bert.encoder.layer.10.attention", "BertAttention"),
            ("bert.pooler", "BertPooler"),
        ]);
        assert_eq!(blocks(&transformer).len(), 3);
        let plain = names(&[("layers.0", "Linear"), ("layers.1", "Linear")]);
        assert!(blocks(&plain).is_empty());
        let nested = names(&[
            ("stages.0", "Stage"),
            ("stages.0.blocks.0", "Block"),
            ("stages.0.blocks.0.norm", "Norm"),
            ("stages.0.blocks.1", "Block"),
            ("stages.0.blocks.1.norm", "Norm"),
            ("stages.1", "Stage"),
            ("stages.1.blocks.0", "Block"),
            ("stages.1.blocks.0.norm", "Norm"),
        ]);
        assert_eq!(blocks(&nested), ["stages.0", "stages.1"]);
        let of_the_model = names(&[
            ("[Sequential]", "Sequential"),
            ("0", "Block"),
            ("0.wide", "Linear"),
            ("1", "Block"),
            ("1.wide", "Linear"),
        ]);
        assert_eq!(blocks(&of_the_model), ["0", "1"]);
    }
}
