//! What is live at a moment, by the operator that made it.

use std::collections::BTreeMap;

use ghostgpu_recording::{Allocation, Stage};

use crate::card_ledger::CardLedger;
use crate::held::Held;
use crate::moment::Moment;

/// The memory of one operator's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorSum {
    /// `aten::linear`, or the reason why there is none.
    pub label: String,
    /// Whether the recording names the operator.
    pub is_known: bool,
    pub held: Held,
}

impl CardLedger<'_> {
    /// What is live at a moment, by operator; the largest first.
    pub fn by_operator(&self, moment: Moment) -> Vec<OperatorSum> {
        let mut sums: BTreeMap<(bool, &str), Held> = BTreeMap::new();
        for (_, one) in self.live_at(moment) {
            let key = match self.operator_name(one) {
                Some(name) => (true, name),
                None => (false, self.why_no_operator(one)),
            };
            sums.entry(key).or_default().add(one);
        }
        let mut sums: Vec<OperatorSum> = sums
            .into_iter()
            .map(|((is_known, label), held)| OperatorSum {
                label: label.to_owned(),
                is_known,
                held,
            })
            .collect();
        // A stable sort keeps operators of equal size in the order of their names.
        sums.sort_by_key(|one| std::cmp::Reverse(one.held.requested_bytes()));
        sums
    }

    /// The name of the operator that made an allocation.
    pub fn operator_name(&self, allocation: &Allocation) -> Option<&str> {
        let operators = &self.recording.names.operators;
        let name = operators.get(allocation.operator.0 as usize)?;
        (!name.is_empty()).then_some(name.as_str())
    }

    fn why_no_operator(&self, allocation: &Allocation) -> &'static str {
        let Some(event) = allocation.allocated_at else {
            return "older than the recording";
        };
        match self.card.phase_of(event).map(|phase| phase.stage) {
            Some(Stage::Script) | None => "outside any operator, in the script",
            Some(Stage::Moving) => "outside any operator, moving the model",
            Some(Stage::Forward) => "outside any operator, in the forward",
            Some(Stage::Backward) => "outside any operator, in the backward",
            Some(Stage::OptimizerStep) => "outside any operator, in the optimizer step",
            Some(Stage::ZeroGrad) => "outside any operator, in zero_grad",
            Some(Stage::Evaluation) => "outside any operator, in evaluation",
        }
    }
}
