//! cuDNN's other proposals for an operation, for replays with less memory.
//!
//! PyTorch takes the first proposal whose workspace it gets and stays with it; if there is no longer memory for that
//! one, it tries the proposals again. So what a program does with less memory follows from the workspaces of all
//! proposals, which are written to the memory log when an operation is first executed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ghostgpu_oracle::{Contents, EngineConfig, Node, attribute};
use ghostgpu_session::memory_log::LogEntry;

use super::sizes::{self, FALLBACK_MODE};
use crate::observer;

/// Smaller workspaces come out of segments that every program has, and are not worth asking cuDNN about.
const LEAST_BYTES: i64 = 1 << 20;

/// Numerical notes for which PyTorch skips a proposal, depending on its settings.
const TENSOR_CORE: i32 = 0;
const DOWN_CONVERT_INPUTS: i32 = 1;
const NONDETERMINISTIC: i32 = 4;

struct Proposed {
    /// Kept alive, so that no other graph gets its address.
    graph: Arc<Node>,
    /// The number of multiprocessors that the heuristics were asked for, if any.
    target: Option<i32>,
    configs: Vec<EngineConfig>,
    /// Its number in the memory log, once it was written there.
    number: Option<u32>,
}

/// By the address of the graph.
static PROPOSED: Mutex<BTreeMap<usize, Proposed>> = Mutex::new(BTreeMap::new());

/// Remembers what cuDNN proposed for a graph, in order.
pub fn note_proposals(graph: &Arc<Node>, target: Option<i32>, configs: &[EngineConfig]) {
    if !observer::is_on() {
        return;
    }
    let proposed = Proposed {
        graph: Arc::clone(graph),
        target,
        configs: configs.to_vec(),
        number: None,
    };
    let mut all = PROPOSED.lock().unwrap_or_else(PoisonError::into_inner);
    all.insert(Arc::as_ptr(graph) as usize, proposed);
}

/// A plan is executed with its workspace at this address.
pub fn note_use(plan: &Contents, address: u64) {
    if !observer::is_on() || address == 0 {
        return;
    }
    let bytes = plan.number(attribute::PLAN_WORKSPACE_BYTES).unwrap_or(0);
    let (Some(graph), true) = (&plan.graph, bytes >= LEAST_BYTES) else {
        return;
    };
    let mut all = PROPOSED.lock().unwrap_or_else(PoisonError::into_inner);
    let next = all.values().filter(|each| each.number.is_some()).count() as u32;
    let Some(proposed) = all.get_mut(&(Arc::as_ptr(graph) as usize)) else {
        return;
    };
    let mut sizes = String::new();
    let number = *proposed.number.get_or_insert_with(|| {
        let ask = |config: &EngineConfig| {
            sizes::plan_workspace(&proposed.graph, config.engine, &config.knobs).ok()
        };
        let (graph, target) = (&proposed.graph, proposed.target);
        let fallback = || sizes::heuristics(graph, FALLBACK_MODE, target).unwrap_or_default();
        let workspaces = workspaces_from(&proposed.configs, fallback, chosen(plan), ask);
        let words: Vec<String> = workspaces.iter().map(i64::to_string).collect();
        sizes = words.join(",");
        next
    });
    observer::write(LogEntry::WorkspaceChoices {
        address,
        workspace_bytes: bytes as u64,
        number,
        sizes: &sizes,
    });
}

/// The engine and the knobs of a plan.
fn chosen(plan: &Contents) -> Option<(i64, Vec<(i32, i64)>)> {
    let configs = plan.descriptors(attribute::PLAN_ENGINE_CONFIG);
    configs.first()?.contents().engine_and_knobs()
}

/// The workspaces of the proposals that PyTorch would try, starting with the one it chose.
fn workspaces_from(
    configs: &[EngineConfig],
    fallback: impl FnOnce() -> Vec<EngineConfig>,
    chosen: Option<(i64, Vec<(i32, i64)>)>,
    ask: impl Fn(&EngineConfig) -> Option<i64>,
) -> Vec<i64> {
    let is_chosen = |config: &EngineConfig| {
        let chosen = chosen.as_ref();
        chosen.is_some_and(|(engine, knobs)| *engine == config.engine && *knobs == config.knobs)
    };
    let Some(first) = configs.iter().position(is_chosen) else {
        return Vec::new();
    };
    let (before, from_chosen) = configs.split_at(first);
    // If PyTorch's settings exclude a kind, a better proposal of that kind was skipped.
    let has = |config: &EngineConfig, note: i32| config.numerical_notes.contains(&note);
    let is_ruled_out = |note: i32| {
        let passed_over = before.iter().filter(|config| has(config, note));
        !has(&from_chosen[0], note) && passed_over.into_iter().any(|config| ask(config).is_some())
    };
    let ruled_out: Vec<i32> = [TENSOR_CORE, NONDETERMINISTIC]
        .into_iter()
        .filter(|&note| is_ruled_out(note))
        .chain((!has(&from_chosen[0], DOWN_CONVERT_INPUTS)).then_some(DOWN_CONVERT_INPUTS))
        .collect();
    let fallback = fallback();
    from_chosen
        .iter()
        .chain(&fallback)
        .filter(|config| !ruled_out.iter().any(|&note| has(config, note)))
        .filter_map(ask)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(engine: i64, notes: &[i32]) -> EngineConfig {
        EngineConfig {
            engine,
            knobs: Vec::new(),
            numerical_notes: notes.to_vec(),
            behavior_notes: Vec::new(),
        }
    }

    /// An engine's workspace is its number; number 9 cannot run.
    fn workspaces(configs: &[EngineConfig], chosen: i64) -> Vec<i64> {
        let ask = |config: &EngineConfig| (config.engine != 9).then_some(config.engine);
        workspaces_from(configs, Vec::new, Some((chosen, Vec::new())), ask)
    }

    #[test]
    fn proposals_are_tried_from_the_chosen_one_on_and_those_that_cannot_run_are_not() {
        let all = [9, 5, 4, 9, 3].map(|engine| config(engine, &[]));
        assert_eq!(workspaces(&all, 5), [5, 4, 3]);
        assert_eq!(workspaces(&all, 4), [4, 3]);
        assert_eq!(workspaces(&all, 7), [] as [i64; 0]);
    }

    #[test]
    fn fallback_engines_are_tried_last() {
        let proposed = [5, 4].map(|engine| config(engine, &[]));
        let fallback = || vec![config(1, &[]), config(9, &[])];
        let ask = |config: &EngineConfig| (config.engine != 9).then_some(config.engine);
        let from = |chosen| workspaces_from(&proposed, fallback, Some((chosen, Vec::new())), ask);
        assert_eq!(from(5), [5, 4, 1]);
        assert_eq!(from(7), [] as [i64; 0]);
    }

    #[test]
    fn skipped_proposals_show_what_the_settings_exclude() {
        let tensor_core = |engine| config(engine, &[TENSOR_CORE]);
        let plain = |engine| config(engine, &[]);
        // Without TF32 the first is skipped, and so are others of its kind.
        assert_eq!(
            workspaces(&[tensor_core(5), plain(4), tensor_core(3), plain(2)], 4),
            [4, 2]
        );
        // One that cannot run says nothing about settings.
        assert_eq!(
            workspaces(&[tensor_core(9), plain(4), tensor_core(3)], 4),
            [4, 3]
        );
        // Inputs are never converted to a smaller type.
        assert_eq!(
            workspaces(&[plain(4), config(3, &[DOWN_CONVERT_INPUTS]), plain(2)], 4),
            [4, 2]
        );
    }
}
