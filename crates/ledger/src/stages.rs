//! What was allocated, freed and kept, stage by stage.
//!
//! All phases of one stage in one step (a forward that is entered a hundred times) are one row. The rows are setup, the
//! first step, one later step, and evaluation; the other steps repeat the later one.

use ghostgpu_recording::{Category, Event, Stage};

use crate::by_category::ByCategory;
use crate::card_ledger::CardLedger;
use crate::moment::Moment;
use crate::steps::{Interval, intervals};
use crate::sweep::Sweep;

/// Which part of a training a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrainingPart {
    /// Before the first forward with autograd.
    Setup,
    FirstStep,
    /// A later step, counted from 0: the one with the highest peak.
    LaterStep(u32),
    /// Everything that runs a model without autograd, at any time.
    Evaluation,
}

impl TrainingPart {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::FirstStep => "first_step",
            Self::LaterStep(_) => "later_step",
            Self::Evaluation => "evaluation",
        }
    }

    /// The step, counted from 0.
    pub const fn step(self) -> Option<u32> {
        match self {
            Self::FirstStep => Some(0),
            Self::LaterStep(step) => Some(step),
            Self::Setup | Self::Evaluation => None,
        }
    }
}

/// All phases of one stage in one part, in block bytes, so that they add up to "allocated".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageFlow {
    pub part: TrainingPart,
    pub stage: Stage,
    /// Where it is first entered and last left.
    pub from: Moment,
    pub to: Moment,
    /// How often it is entered.
    pub phases: u32,
    /// Blocks that were allocated in it.
    pub came: ByCategory,
    /// Blocks that were freed in it.
    pub went: ByCategory,
    /// The part of `came` that was still live when it was left.
    pub stayed: ByCategory,
    /// The most that was allocated in it, including what was live at its beginning, and the moment.
    pub peak_allocated_bytes: u64,
    pub peak: Moment,
}

/// The rows in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    pub flows: Vec<StageFlow>,
    /// The later step that is shown, counted from 0.
    pub later_step: Option<u32>,
    /// Optimizer state that the first step allocated and later ones reuse.
    pub optimizer_state_in_first_step_bytes: u64,
}

impl CardLedger<'_> {
    /// What was allocated and freed in each stage.
    pub fn stages(&self) -> Stages {
        let all: Vec<Interval> = intervals(self.card).collect();
        let later_step = self.later_step(&all);
        let mut collector = Collector {
            rows: Vec::new(),
            part_of: parts(&all, later_step),
        };
        let mut sweep = Sweep::new(self.card);
        for (at, interval) in all.iter().enumerate() {
            let start = sweep.state().allocated_bytes;
            let row = collector.enter(at, interval, start);
            for event in interval.from.0..interval.to.0 {
                let Some((moment, state)) = sweep.next() else {
                    break;
                };
                if let Some(row) = row {
                    let row = &mut collector.rows[row];
                    row.count(self, event, interval.to);
                    row.see(moment, state.allocated_bytes);
                }
            }
        }
        let mut flows = collector.rows;
        flows.sort_by_key(|flow| (flow.part, flow.from, flow.stage));
        let first = flows
            .iter()
            .filter(|flow| flow.part == TrainingPart::FirstStep);
        let of_optimizer = first.map(|flow| flow.stayed.get(Category::OptimizerState));
        Stages {
            later_step,
            optimizer_state_in_first_step_bytes: of_optimizer.fold(0, u64::saturating_add),
            flows,
        }
    }

    /// The step after the first that ran a model and has the highest peak; of equal ones the first.
    fn later_step(&self, all: &[Interval]) -> Option<u32> {
        let mut running: Vec<u32> = all
            .iter()
            .filter(|interval| is_of_training(interval.stage) && interval.step > 0)
            .filter(|interval| interval.stage != Stage::ZeroGrad)
            .map(|interval| interval.step)
            .collect();
        running.sort_unstable();
        let steps = self.steps().iter();
        let candidates = steps.filter(|step| running.binary_search(&step.step).is_ok());
        let highest = candidates.reduce(|best, next| {
            if next.peak_allocated_bytes > best.peak_allocated_bytes {
                next
            } else {
                best
            }
        });
        highest.map(|step| step.step)
    }
}

fn is_of_training(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Forward | Stage::Backward | Stage::OptimizerStep | Stage::ZeroGrad
    )
}

/// The part that each interval belongs to, if it is shown.
fn parts(all: &[Interval], later_step: Option<u32>) -> Vec<Option<TrainingPart>> {
    let begins = all
        .iter()
        .position(|interval| is_of_training(interval.stage));
    let part_of = |(at, interval): (usize, &Interval)| match interval.stage {
        Stage::Evaluation => Some(TrainingPart::Evaluation),
        _ if begins.is_none_or(|begins| at < begins) => Some(TrainingPart::Setup),
        _ if interval.step == 0 => Some(TrainingPart::FirstStep),
        _ if Some(interval.step) == later_step => Some(TrainingPart::LaterStep(interval.step)),
        _ => None,
    };
    all.iter().enumerate().map(part_of).collect()
}

struct Collector {
    rows: Vec<StageFlow>,
    part_of: Vec<Option<TrainingPart>>,
}

impl Collector {
    /// The index of an interval's row, which is created if necessary; `None` if the interval is not shown.
    fn enter(&mut self, at: usize, interval: &Interval, allocated_bytes: u64) -> Option<usize> {
        let part = self.part_of[at]?;
        let found = self
            .rows
            .iter()
            .position(|row| (row.part, row.stage) == (part, interval.stage));
        let row = found.unwrap_or_else(|| {
            self.rows.push(StageFlow {
                part,
                stage: interval.stage,
                from: interval.from,
                to: interval.to,
                phases: 0,
                came: ByCategory::default(),
                went: ByCategory::default(),
                stayed: ByCategory::default(),
                peak_allocated_bytes: allocated_bytes,
                peak: interval.from,
            });
            self.rows.len() - 1
        });
        let flow = &mut self.rows[row];
        flow.phases += 1;
        flow.to = interval.to;
        flow.see(interval.from, allocated_bytes);
        Some(row)
    }
}

impl StageFlow {
    fn see(&mut self, moment: Moment, allocated_bytes: u64) {
        if allocated_bytes > self.peak_allocated_bytes {
            self.peak_allocated_bytes = allocated_bytes;
            self.peak = moment;
        }
    }

    fn count(&mut self, ledger: &CardLedger, event: usize, end: Moment) {
        let one = |id: ghostgpu_recording::AllocationId| {
            let allocations = &ledger.card.allocations;
            allocations.get(id.0 as usize)
        };
        match ledger.card.events[event] {
            Event::Allocate(id) => {
                if let Some(one) = one(id) {
                    self.came.add(one.category, one.block_bytes);
                    if one.freed_at.is_none_or(|freed| freed as usize >= end.0) {
                        self.stayed.add(one.category, one.block_bytes);
                    }
                }
            }
            Event::Free(id) => {
                if let Some(one) = one(id) {
                    self.went.add(one.category, one.block_bytes);
                }
            }
            _ => {}
        }
    }
}
