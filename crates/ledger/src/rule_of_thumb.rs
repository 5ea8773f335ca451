//! The classic formula compared with the exact figures: parameters × n + batch × outputs × 2.
//!
//! n counts copies of the parameters (themselves, gradients, optimizer state), so it is 2 for plain SGD, 3 with
//! momentum, 4 for Adam. Outputs are counted twice because of their gradients. The exact figures are those of the peak;
//! [`RuleOfThumb::differences`] lead from the formula to them, to the byte.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ghostgpu_recording::{Category, Names, Stage};

use crate::accounts::{Accounts, Part};
use crate::card_ledger::CardLedger;
use crate::held::Held;
use crate::owner_module::OwnerModules;
use crate::steps::intervals;

/// What the optimizer keeps for each parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptimizerKind {
    /// The number of tensors of the parameter's size.
    pub states: u32,
}

impl OptimizerKind {
    /// The formula's n.
    pub fn copies(self) -> u64 {
        2 + u64::from(self.states)
    }

    /// The best-known optimizer of this kind.
    pub fn title(self) -> &'static str {
        match self.states {
            0 => "plain SGD",
            1 => "SGD with momentum",
            2 => "Adam",
            _ => "an optimizer with more state than Adam",
        }
    }
}

/// One module by itself, without those inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerEstimate {
    /// Empty for what is outside any module.
    pub path: String,
    pub class: String,
    pub parameter_bytes: u64,
    /// Batch × outputs: the bytes that the module returned. Modules with others inside have none of their own, because
    /// they return the output of the last one inside.
    pub output_bytes: u64,
    /// parameters × n + outputs × 2.
    pub rule_bytes: u64,
    /// What the module holds at the peak.
    pub exact: Held,
}

/// Why the formula is wrong, as a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// A sentence.
    pub reason: &'static str,
    /// The name of the part in JSON.
    pub name: &'static str,
    /// The amount to add to the formula's result.
    pub bytes: i64,
}

/// The formula for one card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOfThumb {
    pub optimizer: OptimizerKind,
    pub parameter_bytes: u64,
    pub output_bytes: u64,
    /// parameters × n + outputs × 2.
    pub rule_bytes: u64,
    /// What is on the card at the peak.
    pub exact_bytes: u64,
    /// The differences that are not zero. Added to `rule_bytes`, they give `exact_bytes`.
    pub differences: Vec<Difference>,
    /// The modules, largest first.
    pub layers: Vec<LayerEstimate>,
}

#[derive(Default)]
struct Layer {
    parameter_bytes: u64,
    output_bytes: u64,
    exact: Held,
}

impl CardLedger<'_> {
    /// The classic formula for this card; `None` if nothing was trained.
    pub fn rule_of_thumb(&self) -> Option<RuleOfThumb> {
        let forward = self.one_forward()?;
        let accounts = self.accounts(self.peak().moment);
        let owners = OwnerModules::of(&self.recording.names);
        let optimizer = self.optimizer_kind();
        let mut layers: BTreeMap<&str, Layer> = BTreeMap::new();
        for (_, one) in self.live_at(self.peak().moment) {
            let layer = layers.entry(owners.path_of(one)).or_default();
            layer.exact.add(one);
            if one.category == Category::Parameter {
                layer.parameter_bytes = layer.parameter_bytes.saturating_add(one.requested_bytes);
            }
        }
        let returned = innermost_outputs(&self.recording.names);
        let outputs = match returned.is_empty() {
            true => self.saved_in(&forward, &owners),
            false => returned,
        };
        for (path, bytes) in outputs {
            layers.entry(path).or_default().output_bytes = bytes;
        }
        let mut layers: Vec<LayerEstimate> = layers
            .into_iter()
            .map(|(path, layer)| LayerEstimate {
                path: path.to_owned(),
                class: owners.class(path).to_owned(),
                rule_bytes: rule(layer.parameter_bytes, layer.output_bytes, optimizer),
                parameter_bytes: layer.parameter_bytes,
                output_bytes: layer.output_bytes,
                exact: layer.exact,
            })
            .collect();
        layers.sort_by_key(|layer| std::cmp::Reverse(layer.exact.requested_bytes()));
        let sum = |value: fn(&LayerEstimate) -> u64| {
            layers.iter().map(value).fold(0, u64::saturating_add)
        };
        let parameter_bytes = sum(|layer| layer.parameter_bytes);
        let output_bytes = sum(|layer| layer.output_bytes);
        Some(RuleOfThumb {
            optimizer,
            parameter_bytes,
            output_bytes,
            rule_bytes: rule(parameter_bytes, output_bytes, optimizer),
            exact_bytes: accounts.on_card_bytes(),
            differences: differences(&accounts, parameter_bytes, output_bytes, optimizer),
            layers,
        })
    }

    /// The first forward pass of the step that reached the peak, up to its backward; else of any step.
    fn one_forward(&self) -> Option<OneForward> {
        let peak = self.peak().moment.0.saturating_sub(1) as u32;
        let step_of_peak = self.card.phase_of(peak).map(|phase| phase.step);
        let of_training = || intervals(self.card).filter(|one| one.stage == Stage::Forward);
        let first = of_training()
            .find(|one| Some(one.step) == step_of_peak)
            .or_else(|| of_training().next())?;
        let backward = intervals(self.card)
            .find(|one| one.stage == Stage::Backward && one.from >= first.from)
            .map_or(self.card.events.len(), |one| one.from.0);
        Some(OneForward {
            events: first.from.0 as u32..backward as u32,
            step: first.step,
        })
    }

    /// What autograd saved in one forward pass, by module. Used for the outputs if they were not recorded.
    fn saved_in<'a>(
        &self,
        forward: &OneForward,
        owners: &OwnerModules<'a>,
    ) -> BTreeMap<&'a str, u64> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for one in &self.card.allocations {
            let is_in_forward = one.allocated_at.is_some_and(|event| {
                let phase = self.card.phase_of(event);
                forward.events.contains(&event)
                    && phase.is_some_and(|phase| {
                        (phase.stage, phase.step) == (Stage::Forward, forward.step)
                    })
            });
            if is_in_forward && one.category == Category::Activation {
                let sum = sums.entry(owners.path_of(one)).or_default();
                *sum = sum.saturating_add(one.requested_bytes);
            }
        }
        sums
    }

    /// How many tensors of a parameter's size the optimizer keeps, for most of the parameters' bytes. It is counted after
    /// the last step, because some tensors are replaced in each step.
    fn optimizer_kind(&self) -> OptimizerKind {
        let done = self
            .steps()
            .iter()
            .rev()
            .find_map(|step| step.optimizer_done);
        let moment = done.unwrap_or(self.end().moment);
        let mut parameters: HashMap<u32, u64> = HashMap::new();
        let mut states: HashMap<&str, u32> = HashMap::new();
        let texts = &self.recording.names.texts;
        let of = |category| {
            let all = self.live_at(moment).map(|(_, one)| one);
            all.filter(move |one| one.category == category && one.name.0 != 0)
        };
        for one in of(Category::Parameter) {
            parameters.insert(one.name.0, one.requested_bytes);
        }
        let by_text: HashMap<&str, u64> = parameters
            .iter()
            .filter_map(|(name, bytes)| Some((texts.get(*name as usize)?.as_str(), *bytes)))
            .collect();
        for one in of(Category::OptimizerState) {
            let Some(name) = texts.get(one.name.0 as usize) else {
                continue;
            };
            // The name is the parameter's, or the parameter's followed by the state's own.
            let parent = name.rsplit_once('.').map_or("", |(parent, _)| parent);
            let found = [name.as_str(), parent]
                .into_iter()
                .find_map(|name| by_text.get_key_value(name));
            // Step counters are no copies of the parameter, but 8-bit states are.
            if let Some((name, bytes)) = found
                && one.requested_bytes >= (bytes / 8).max(1)
            {
                *states.entry(name).or_default() += 1;
            }
        }
        let mut weights: BTreeMap<u32, u64> = BTreeMap::new();
        for (name, bytes) in &by_text {
            let weight = weights
                .entry(states.get(name).copied().unwrap_or(0))
                .or_default();
            *weight = weight.saturating_add(*bytes);
        }
        // Parameters without state may be frozen, so those with state decide if there are any.
        let with_state = weights.iter().filter(|(count, _)| **count > 0);
        let most = with_state.max_by_key(|(_, bytes)| **bytes);
        OptimizerKind {
            states: most.map_or(0, |(count, _)| *count),
        }
    }
}

/// The position of a forward pass.
struct OneForward {
    events: std::ops::Range<u32>,
    step: u32,
}

/// The output bytes of modules that have no others inside.
fn innermost_outputs(names: &Names) -> BTreeMap<&str, u64> {
    let paths: BTreeSet<&str> = names.modules.iter().map(|one| one.path.as_str()).collect();
    let has_inside = |path: &str| {
        let inside = format!("{path}.");
        let next = paths.range(inside.as_str()..).next();
        next.is_some_and(|next| next.starts_with(&inside))
    };
    // The model itself contains all others, if there are any.
    let is_around = |path: &str| has_inside(path) || (path.starts_with('[') && paths.len() > 2);
    let all = names.modules.iter().skip(1);
    all.filter(|one| one.output_bytes > 0 && !is_around(&one.path))
        .map(|one| (one.path.as_str(), one.output_bytes))
        .collect()
}

fn rule(parameter_bytes: u64, output_bytes: u64, optimizer: OptimizerKind) -> u64 {
    let copies = parameter_bytes.saturating_mul(optimizer.copies());
    copies.saturating_add(output_bytes.saturating_mul(2))
}

/// The differences between the formula and what is on the card.
fn differences(
    accounts: &Accounts,
    parameter_bytes: u64,
    output_bytes: u64,
    optimizer: OptimizerKind,
) -> Vec<Difference> {
    let category = |category| accounts.requested.get(category);
    let copies = parameter_bytes.saturating_mul(optimizer.copies() - 1);
    let gradients_and_state =
        category(Category::Gradient).saturating_add(category(Category::OptimizerState));
    let mut all = vec![
        Difference {
            name: "gradients_and_state",
            reason: "gradients and optimizer state are those that exist at the peak",
            bytes: signed(gradients_and_state, copies),
        },
        Difference {
            name: "activation",
            reason: "autograd saves what backward needs, once, and frees it on the way back",
            bytes: signed(
                category(Category::Activation),
                output_bytes.saturating_mul(2),
            ),
        },
    ];
    let others = Part::all().filter_map(|part| Some((part, reason(part)?)));
    all.extend(others.map(|(part, reason)| Difference {
        name: part.name(),
        reason,
        bytes: signed(accounts.part(part), 0),
    }));
    all.retain(|difference| difference.bytes != 0);
    all
}

/// The difference, clamped to the range of `i64`.
fn signed(bytes: u64, less: u64) -> i64 {
    let difference = i128::from(bytes) - i128::from(less);
    difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Why a part is not in the formula; `None` if it is.
fn reason(part: Part) -> Option<&'static str> {
    Some(match part {
        Part::Category(category) => match category {
            Category::Parameter
            | Category::Gradient
            | Category::OptimizerState
            | Category::Activation => return None,
            Category::Buffer => "buffers are no parameters",
            Category::Input => "the batch itself is on the card",
            Category::Workspace => "libraries are given memory to work in",
            Category::Kept => "the script keeps results",
            Category::Temporary => "operators need room for what nobody keeps",
            Category::Unknown => "nobody knows what it is",
            Category::Gathered => "layers need whole parameters while they run",
            Category::Communication => "ranks need room to exchange gradients",
        },
        Part::Rounding => "blocks are rounded up",
        Part::Cached => "PyTorch keeps freed memory",
        Part::CachedPinned => "fragmentation keeps freed memory from being used",
        Part::Outside => "the CUDA context and libraries have memory of their own",
        Part::Nccl => "NCCL has memory of its own",
        Part::OtherProcesses => "other processes are on the card",
    })
}
