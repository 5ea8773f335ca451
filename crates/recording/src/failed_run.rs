//! Two runs of one job in one recording: the one that ran out of memory, and the one with unlimited memory.

use crate::recording::{FailedRun, Recording};
use crate::renumbering::Renumbering;

impl Recording {
    /// Adds the recording of the run that failed to this one.
    pub fn keep_failed_run(&mut self, failed: Recording) {
        let numbers = Renumbering::of(&mut self.names, failed.names);
        let mut cards = failed.cards;
        for card in &mut cards {
            numbers.apply(card);
        }
        for warning in failed.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        self.failed_run = Some(FailedRun {
            steps: failed.about.steps,
            cards,
        });
    }
}
