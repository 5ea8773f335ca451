//! Rehearsals of GhostGPU's own script (`estimate`), which may decline what it is asked to do.

use ghostgpu_rehearse::{
    Change, Failure, Held, Rehearsal, Rehearse, Run, Runner, ScriptOutput, SizePoint, Stop,
    WholeRuns,
};

/// Why a script declines, from its run; `None` if it does not.
pub type Declines = fn(&Run) -> Option<Failure>;

/// Whole runs that stop with [`Stop::Refused`] if the script declines.
pub struct Declining {
    runs: WholeRuns,
    declines: Declines,
}

impl Declining {
    pub fn new(runs: WholeRuns, declines: Declines) -> Self {
        Self { runs, declines }
    }

    pub fn send_output_to(&mut self, output: ScriptOutput) {
        self.runs.send_output_to(output);
    }
}

impl Rehearse for Declining {
    fn rehearse(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        let run = self.runs.rehearse(rehearsal)?;
        match (self.declines)(&run) {
            Some(failure) => Err(Stop::Refused(failure)),
            None => Ok(run),
        }
    }
}

impl Runner for Declining {
    fn hold_at(&mut self, point: &SizePoint, changes: &[Change]) -> Result<Held<'_>, Stop> {
        let held = self.runs.hold_at(point, changes)?;
        if let Held::Ended { run, .. } = &held
            && let Some(failure) = (self.declines)(run)
        {
            return Err(Stop::Refused(failure));
        }
        Ok(held)
    }
}
