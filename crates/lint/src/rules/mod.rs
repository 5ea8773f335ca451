//! The rules: one per file, each with its documentation and its check.
//!
//! A rule's documentation has a fixed shape (see [`Rule::docs`]), and its examples are tests: the rule,
//! and no other of its family, must report the first code block, and must not report the second.

use std::ops::Range;

use crate::facts::Facts;
use crate::finding::{Finding, Fix, Severity};

mod accumulated_loss_not_divided;
mod activation_not_in_place;
mod activations_kept_by_hook;
mod allocator_variable_too_late;
mod averaged_weights_with_graph;
mod batch_norm_while_accumulating;
mod cached_tensors;
mod card_in_dataset;
mod checkpointing_with_cache;
mod clipping_every_micro_batch;
mod collected_losses;
mod collected_outputs;
mod copy_with_gradients;
mod create_graph;
mod data_parallel;
mod dataset_on_card;
mod empty_cache_in_loop;
mod evaluation_batch_of_everything;
mod evaluation_with_gradients;
mod fake_not_detached;
pub mod fixes;
mod foreach_where_fused;
mod frozen_model_with_gradients;
mod full_precision_logits;
mod intermediate_kept_by_name;
mod last_window_forgotten;
mod load_without_map_location;
mod logged_loss;
mod oom_skipped_with_gradients;
mod output_kept_on_self;
mod padding_to_max_length;
mod recovery_inside_except;
mod recurrent_state;
mod retain_graph;
mod scheduler_every_micro_batch;
mod state_dict_aliased;
mod state_dict_copied_on_card;
mod step_every_micro_batch;
mod summed_loss;
mod trainer_keeps_logits;
mod training_leftovers_in_evaluation;
mod zero_grad_keeps_memory;
mod zero_grad_while_accumulating;

/// Every rule, in order of family and name.
pub const RULES: &[&Rule] = &[
    &activations_kept_by_hook::RULE,
    &averaged_weights_with_graph::RULE,
    &cached_tensors::RULE,
    &collected_losses::RULE,
    &collected_outputs::RULE,
    &create_graph::RULE,
    &fake_not_detached::RULE,
    &logged_loss::RULE,
    &output_kept_on_self::RULE,
    &recurrent_state::RULE,
    &retain_graph::RULE,
    &summed_loss::RULE,
    &evaluation_batch_of_everything::RULE,
    &evaluation_with_gradients::RULE,
    &trainer_keeps_logits::RULE,
    &training_leftovers_in_evaluation::RULE,
    &card_in_dataset::RULE,
    &copy_with_gradients::RULE,
    &dataset_on_card::RULE,
    &frozen_model_with_gradients::RULE,
    &load_without_map_location::RULE,
    &state_dict_aliased::RULE,
    &state_dict_copied_on_card::RULE,
    &accumulated_loss_not_divided::RULE,
    &batch_norm_while_accumulating::RULE,
    &clipping_every_micro_batch::RULE,
    &last_window_forgotten::RULE,
    &scheduler_every_micro_batch::RULE,
    &step_every_micro_batch::RULE,
    &zero_grad_while_accumulating::RULE,
    &activation_not_in_place::RULE,
    &allocator_variable_too_late::RULE,
    &checkpointing_with_cache::RULE,
    &data_parallel::RULE,
    &empty_cache_in_loop::RULE,
    &foreach_where_fused::RULE,
    &full_precision_logits::RULE,
    &intermediate_kept_by_name::RULE,
    &oom_skipped_with_gradients::RULE,
    &padding_to_max_length::RULE,
    &recovery_inside_except::RULE,
    &zero_grad_keeps_memory::RULE,
];

/// The kind of mistake a rule finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    KeptGraphs,
    Evaluation,
    Placement,
    Accumulation,
    NeedlessMemory,
}

impl Family {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeptGraphs => "kept graphs",
            Self::Evaluation => "evaluation",
            Self::Placement => "placement",
            Self::Accumulation => "accumulation",
            Self::NeedlessMemory => "needless memory",
        }
    }
}

/// A rule: one mistake that lint can find.
#[derive(Debug)]
pub struct Rule {
    /// The name in `# ghostgpu: ignore[...]` and in the configuration.
    pub name: &'static str,
    pub family: Family,
    pub severity: Severity,
    /// One line: what it finds.
    pub summary: &'static str,
    /// Markdown with the sections "What it does", "Why it costs memory", "Example" (code that is
    /// reported), "Use instead" (code that is not) and "When it is fine".
    pub docs: &'static str,
    pub(crate) check: fn(&Facts<'_>, &mut Report<'_>),
}

/// Rules that are right but seldom matter, so they run only when selected.
const OFF_BY_DEFAULT: &[&str] = &["activation-not-in-place", "foreach-where-fused"];

impl Rule {
    /// Whether the rule runs without being selected.
    pub fn is_on_by_default(&self) -> bool {
        !OFF_BY_DEFAULT.contains(&self.name)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Collects the findings of one rule.
pub struct Report<'a> {
    pub(crate) rule: &'static Rule,
    pub(crate) findings: &'a mut Vec<Finding>,
}

impl Report<'_> {
    /// Adds a finding without a fix.
    pub fn add(&mut self, range: Range<usize>, message: String, help: impl Into<String>) {
        self.add_with(range, message, help, None);
    }

    /// Adds a finding with an optional fix; the caller may raise its severity.
    pub fn add_with(
        &mut self,
        range: Range<usize>,
        message: String,
        help: impl Into<String>,
        fix: Option<Fix>,
    ) -> &mut Finding {
        self.findings.push(Finding {
            rule: self.rule,
            severity: self.rule.severity,
            message,
            help: help.into(),
            range,
            fix,
        });
        self.findings.last_mut().expect("one was just added")
    }
}
