//! Every sum over a recording: whose bytes they are, and when.
//!
//! [`CardLedger::new`] goes once through the events of one card of a [`Recording`](ghostgpu_recording::Recording), of a
//! rehearsal or of a memory snapshot. Then
//!
//! - [`CardLedger::peak`] and similar functions say when most memory was used, [`CardLedger::overview`] how it changed
//!   over time;
//! - [`CardLedger::accounts`] says what the card's memory consists of at a moment, with nothing left over;
//! - [`CardLedger::segments_at`] is the memory itself at a moment, block by block;
//! - [`CardLedger::held_by`] sums up what is live by line, function, stack, name or size, and
//!   [`CardLedger::by_module`], [`CardLedger::by_place`], [`CardLedger::by_operator`] and [`CardLedger::holders`] by
//!   owner;
//! - [`CardLedger::stages`] and [`CardLedger::phases`] say what was allocated and freed in each stage;
//! - [`CardLedger::ran_out`] is the moment at which a request failed;
//! - [`RankAccounts::all`] compares the ranks of a job;
//! - [`CardLedger::growth`] finds memory that grows from step to step;
//! - [`CardLedger::rule_of_thumb`] compares the classic formula with the exact figures.
//!
//! A block counts from its `Allocate` to its `Free`, because its memory cannot be reused in between. Sums are exact. If
//! a recording contradicts itself they saturate at zero, and nothing here panics. Pure: this crate reads no file, prints
//! nothing, and does not know who made a recording.

#![forbid(unsafe_code)]

mod accounts;
mod by_category;
mod cached;
mod card_ledger;
mod groups;
mod growth;
mod held;
mod held_by;
mod holders;
mod lasting_rise;
mod longer_tensors;
mod modules;
mod moment;
mod operators;
mod overview;
mod owner_module;
mod phase_sums;
mod places;
mod ran_out;
mod ranks;
mod rule_of_thumb;
mod segments_at;
mod stages;
mod steps;
mod sweep;

pub use accounts::{Accounts, Part};
pub use by_category::ByCategory;
pub use card_ledger::CardLedger;
pub use groups::{Groups, MOST_GROUPS};
pub use growth::{Growth, GrowthSource};
pub use held::Held;
pub use held_by::{By, Holder, Holders};
pub use holders::HolderGroup;
pub use lasting_rise::{LastingRise, lasting_rise};
pub use modules::{ModuleNode, ModuleTree};
pub use moment::{Level, Moment};
pub use operators::OperatorSum;
pub use overview::{Overview, Stretch};
pub use owner_module::OwnerModules;
pub use phase_sums::PhaseSums;
pub use places::{Place, PlaceSum, Places};
pub use ran_out::{RanOut, RefusedBecause};
pub use ranks::{RankAccounts, largest_excess};
pub use rule_of_thumb::{Difference, LayerEstimate, OptimizerKind, RuleOfThumb};
pub use segments_at::{Block, Segment};
pub use stages::{StageFlow, Stages, TrainingPart};
pub use steps::StepSummary;
pub use sweep::{Sweep, SweepState};
