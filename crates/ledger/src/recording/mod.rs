//! Whose bytes they are in a recording of a rehearsal.
//!
//! A [`Recording`] goes in, and [`CardLedger::new`] goes once through the events of one of its cards. Then
//!
//! - [`CardLedger::accounts`] says what the card's memory is made of at a moment, with nothing left over;
//! - [`CardLedger::stages`] says what came and went in each stage of the first step and of a later one;
//! - [`CardLedger::by_module`], [`CardLedger::by_place`], [`CardLedger::by_operator`] and
//!   [`CardLedger::holders`] say who holds what is live;
//! - [`CardLedger::growth`] finds memory that grows from step to step;
//! - [`CardLedger::rule_of_thumb`] puts the classic formula beside the exact figures.
//!
//! A block counts from its `Allocate` to its `Free`. Sums are exact; where a recording contradicts itself they
//! stop at zero, and nothing here panics.
//!
//! [`Recording`]: ghostgpu_recording::Recording

mod accounts;
mod by_category;
mod cached;
mod card_ledger;
mod growth;
mod held;
mod holders;
mod modules;
mod operators;
mod owner_module;
mod places;
mod reserved;
mod rule_of_thumb;
mod stages;
mod steps;
mod sweep;

pub use accounts::{Accounts, Part};
pub use by_category::ByCategory;
pub use card_ledger::{CardLedger, Level};
pub use growth::{Growth, GrowthSource};
pub use held::Held;
pub use holders::HolderGroup;
pub use modules::{ModuleNode, ModuleTree};
pub use operators::OperatorSum;
pub use owner_module::OwnerModules;
pub use places::{Place, PlaceSum, Places};
pub use reserved::ReservedRanges;
pub use rule_of_thumb::{Difference, LayerEstimate, OptimizerKind, RuleOfThumb};
pub use stages::{StageFlow, Stages, TrainingPart};
pub use steps::StepSummary;
pub use sweep::{Sweep, SweepState};
