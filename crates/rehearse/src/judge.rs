//! Decides a run's completion from how its process ended and what was found in its folder. Pure.

use ghostgpu_session::{
    Declined, Note, OomReport, ProcessReport, RefusedCall, StackFrame, TrickRefusal,
};

use crate::History;
use crate::SizePointReport;
use crate::findings::Findings;
use crate::outcome::Peaks;
use crate::process::Ending;
use crate::ranks::{self, Unworkable};
use crate::recorded_memory::Memory;
use crate::stop::Stop;

/// The exit code of a usage error and of our own failures.
pub const EXIT_FAILURE: u8 = 2;

/// The exit code of the answer "it does not fit".
pub const EXIT_DOES_NOT_FIT: u8 = 3;

/// How one rehearsal ended. What that means for a training is the verdict, which `crates/plan` decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The script ended well, or we ended it after the requested extent.
    Completed,
    OutOfMemory,
    /// The script ended with a nonzero exit code.
    ScriptFailed,
    /// The script was killed by a signal that was not ours.
    ScriptKilled,
    TimedOut,
    /// The script stopped at a call that is not simulated.
    Refused,
    /// The library was not loaded into the script.
    PreloadBlocked,
}

/// The result of one rehearsal.
#[derive(Debug)]
pub struct Run {
    pub ending: Ending,
    /// We ended the script at its time limit.
    pub has_timed_out: bool,
    pub findings: Findings,
    /// What the script can use of one card, without what others use; `None` with unlimited memory.
    pub capacity_bytes: Option<u64>,
    /// The recording of its memory, if there is one.
    pub memory: Memory,
    /// The allocator's history, if it can be replayed.
    pub history: Option<Box<History>>,
    /// The end of the script's output, if the user did not see it.
    pub last_lines: Vec<String>,
    /// Why passes over data were not shortened, as a sentence ending.
    pub whole_passes_because: Option<String>,
}

impl Run {
    /// A run with nothing but its figures.
    pub fn new(ending: Ending, findings: Findings) -> Self {
        Self {
            ending,
            has_timed_out: false,
            findings,
            capacity_bytes: None,
            memory: Memory::Unwanted,
            history: None,
            last_lines: Vec::new(),
            whole_passes_because: None,
        }
    }

    /// Turns a timeout into a run, whose completion says that it timed out.
    pub fn even_if_timed_out(result: Result<Self, Stop>) -> Result<Self, Stop> {
        match result {
            Err(Stop::TimedOut(run)) => Ok(*run),
            other => other,
        }
    }

    /// Its peak memory.
    pub fn peaks(&self) -> Peaks {
        Peaks {
            allocated_bytes: self.findings.peak_allocated_bytes().unwrap_or(0),
            reserved_bytes: self.findings.peak_reserved_bytes().unwrap_or(0),
            device_bytes: self.findings.peak_device_bytes(),
        }
    }

    /// The report about the size point, preferably of a process that reached it.
    pub fn size_point(&self) -> Option<&SizePointReport> {
        let reports = || {
            let processes = self.findings.processes.iter();
            processes.filter_map(|process| process.size_point.as_ref())
        };
        reports().find(|seen| seen.is_found).or(reports().next())
    }

    /// How it ended.
    pub fn completion(&self) -> Completion {
        let findings = &self.findings;
        if findings.preload_blocked.is_some() {
            return Completion::PreloadBlocked;
        }
        // A launcher such as torchrun has its own exit code, or waits forever for the other ranks, so the report of the
        // process that ran out of memory comes first.
        if self.fatal_oom().is_some() || self.overflowed() {
            return Completion::OutOfMemory;
        }
        if self.has_timed_out {
            return Completion::TimedOut;
        }
        if self.has_ended_well() {
            return match self.findings.unworkable {
                Some(_) => Completion::ScriptFailed,
                None => Completion::Completed,
            };
        }
        if !self.refused_calls().is_empty() {
            return Completion::Refused;
        }
        match self.ending {
            Ending::Exited(_) => Completion::ScriptFailed,
            Ending::Killed(_) => Completion::ScriptKilled,
        }
    }

    /// Whether more was used on a card than it has. CUDA's context and libraries take memory outside PyTorch, and the
    /// stand-in grants it even on a full card, so that the script goes on.
    pub fn overflowed(&self) -> bool {
        self.capacity_bytes
            .is_some_and(|capacity| self.findings.peak_device_bytes() > capacity)
    }

    /// The out-of-memory error that ended the script.
    pub fn fatal_oom(&self) -> Option<&OomReport> {
        let processes = &self.findings.processes;
        processes
            .iter()
            .flat_map(|process| &process.ooms)
            .find(|oom| oom.is_fatal)
            .or_else(|| {
                let failed = matches!(self.ending, Ending::Exited(code) if code != 0);
                failed.then(|| processes.iter().find_map(quiet_end))?
            })
    }

    /// How often PyTorch ran out of memory for a workspace and went on with a smaller one.
    pub fn workspace_retries(&self) -> u64 {
        let processes = self.findings.processes.iter();
        processes.map(|process| process.workspace_retries).sum()
    }

    /// Out-of-memory errors that the script caught, and went on.
    pub fn recovered_ooms(&self) -> Vec<&OomReport> {
        let fatal = self.fatal_oom();
        self.findings
            .processes
            .iter()
            .flat_map(|process| &process.ooms)
            .filter(|oom| !oom.is_fatal && fatal.is_none_or(|fatal| !std::ptr::eq(*oom, fatal)))
            .collect()
    }

    /// The message of a trick that ended the script because it cannot be applied correctly.
    pub fn trick_refusal(&self) -> Option<&TrickRefusal> {
        let mut processes = self.findings.processes.iter();
        processes.find_map(|process| process.refused_trick.as_ref())
    }

    /// Why the script declines what it was asked to do, if it does.
    pub fn declined(&self) -> Option<&Declined> {
        let mut processes = self.findings.processes.iter();
        processes.find_map(|process| process.declined.as_ref())
    }

    /// Calls that were refused. The agent reports them with the user's line, the library without.
    pub fn refused_calls(&self) -> Vec<RefusedCall> {
        let mut calls: Vec<RefusedCall> = Vec::new();
        for process in &self.findings.processes {
            for call in &process.refused {
                if !calls.contains(call) {
                    calls.push(call.clone());
                }
            }
        }
        for note in &self.findings.notes {
            if let Note::Refused { function, .. } = note
                && !calls.iter().any(|call| call.function == *function)
            {
                calls.push(RefusedCall {
                    function: function.clone(),
                    stack: Vec::new(),
                });
            }
        }
        calls
    }

    /// The exception that ended the script, if one is known.
    ///
    /// It is that of the youngest process, because a launcher only says that one of its children failed.
    pub fn exception(&self) -> Option<&str> {
        if let Some(trouble) = self.ranks_trouble() {
            return Some(trouble);
        }
        let exceptions = self.findings.processes.iter().rev();
        exceptions
            .filter_map(|process| process.exception.as_deref())
            .filter(|exception| !ranks::is_consequence(&self.findings, exception))
            // If the process succeeded, a `SystemExit` was caught and did not end it.
            .find(|exception| !(self.ending.is_success() && exception.starts_with("SystemExit")))
    }

    /// Why the ranks of the job could not go on together, or do not work together.
    pub fn ranks_trouble(&self) -> Option<&str> {
        let told = ranks::trouble(&self.findings).filter(|_| !self.ending.is_success());
        told.or(self.unworkable().map(Unworkable::sentence))
    }

    /// The exit code for a script that failed: its own, unless the launcher's does not show what is wrong with its ranks.
    pub fn failure_code(&self) -> u8 {
        match self.ranks_trouble() {
            Some(_) => EXIT_FAILURE,
            None => self.ending.shell_code(),
        }
    }

    /// Whether several ranks were started and none of them made a process group.
    pub fn have_ranks_never_met(&self) -> bool {
        matches!(self.unworkable(), Some(Unworkable::NeverMet(_)))
    }

    fn unworkable(&self) -> Option<&Unworkable> {
        let found = self.findings.unworkable.as_ref();
        found.filter(|_| self.has_ended_well())
    }

    /// What the ranks of the job did when its time was up, if one waited for another.
    pub fn ranks_in_the_end(&self) -> Option<String> {
        ranks::in_the_end(&self.findings)
    }

    fn has_ended_well(&self) -> bool {
        self.ending.is_success() || self.failed_only_after_being_stopped()
    }

    /// The rank whose exception ended the job, if the job has several.
    pub fn failed_rank(&self) -> Option<u32> {
        let failed = self.failed_process()?;
        failed.rank.filter(|_| failed.world_size > Some(1))
    }

    /// The user's line that raised the exception, where the exception itself does not say it.
    pub fn exception_at(&self) -> Option<&str> {
        self.failed_process()?.exception_at.as_deref()
    }

    fn failed_process(&self) -> Option<&ProcessReport> {
        let exception = self.exception()?;
        let mut processes = self.findings.processes.iter().rev();
        processes.find(|each| each.exception.as_deref() == Some(exception))
    }

    pub fn stopped_by_step_limit(&self) -> bool {
        self.findings
            .processes
            .iter()
            .any(|process| process.stopped_by_step_limit)
    }

    /// Whether something failed only after we ended the script, such as a `finally` block that expects results. The
    /// requested steps are complete then.
    fn failed_only_after_being_stopped(&self) -> bool {
        matches!(self.ending, Ending::Exited(_))
            && self.stopped_by_step_limit()
            && self
                .findings
                .processes
                .iter()
                .all(|process| process.stopped_by_step_limit || process.exception.is_none())
    }
}

/// The innermost line of the user's own code in a stack, else the innermost line.
pub fn user_frame(stack: &[StackFrame]) -> Option<&StackFrame> {
    stack
        .iter()
        .rev()
        .find(|frame| frame.is_user_code)
        .or_else(|| stack.last())
}

/// The last out-of-memory error of a script that caught it and left with `sys.exit(1)`: there is no other exception,
/// and no further step.
fn quiet_end(process: &ProcessReport) -> Option<&OomReport> {
    let last = process.ooms.last()?;
    let left_quietly = process
        .exception
        .as_deref()
        .is_none_or(|exception| exception.starts_with("SystemExit"));
    (left_quietly && !process.stopped_by_step_limit && last.step == process.steps).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ghostgpu_session::card_usage::CardUse;

    fn oom(is_fatal: bool, step: u64) -> OomReport {
        OomReport {
            device: 0,
            requested_bytes: 1 << 30,
            message: "CUDA out of memory.".to_owned(),
            step,
            stage: "forward".to_owned(),
            stack: Vec::new(),
            is_fatal,
            moment: None,
        }
    }

    fn run(ending: Ending, processes: Vec<ProcessReport>) -> Run {
        Run::new(
            ending,
            Findings {
                processes,
                ..Findings::default()
            },
        )
    }

    #[test]
    fn a_script_that_ends_well_fits_even_after_recovering() {
        let process = ProcessReport {
            ooms: vec![oom(false, 0)],
            steps: 3,
            ..ProcessReport::default()
        };
        let run = run(Ending::Exited(0), vec![process]);
        assert_eq!(run.completion(), Completion::Completed);
        assert_eq!(run.recovered_ooms().len(), 1);
    }

    #[test]
    fn a_fatal_oom_in_any_process_does_not_fit_whatever_the_launcher_says() {
        let worker = ProcessReport {
            ooms: vec![oom(true, 0)],
            ..ProcessReport::default()
        };
        for ending in [Ending::Exited(1), Ending::Exited(0), Ending::Killed(6)] {
            let run = run(ending, vec![ProcessReport::default(), worker.clone()]);
            assert_eq!(run.completion(), Completion::OutOfMemory);
        }
        let mut hung = run(Ending::Killed(9), vec![worker]);
        hung.has_timed_out = true;
        assert_eq!(hung.completion(), Completion::OutOfMemory);
    }

    #[test]
    fn a_script_that_overfills_its_card_does_not_fit_although_it_ended_well() {
        let mut run = run(Ending::Exited(0), vec![]);
        run.findings.cards = vec![CardUse {
            used_bytes: 5,
            peak_bytes: 12,
        }];
        assert_eq!(run.completion(), Completion::Completed);
        run.capacity_bytes = Some(12);
        assert_eq!(run.completion(), Completion::Completed);
        run.capacity_bytes = Some(11);
        assert_eq!(run.completion(), Completion::OutOfMemory);
    }

    #[test]
    fn a_caught_oom_followed_by_a_quiet_exit_does_not_fit() {
        let process = ProcessReport {
            ooms: vec![oom(false, 2)],
            steps: 2,
            exception: Some("SystemExit: 1".to_owned()),
            ..ProcessReport::default()
        };
        let run = run(Ending::Exited(1), vec![process]);
        assert_eq!(run.completion(), Completion::OutOfMemory);
        assert!(run.recovered_ooms().is_empty());
    }

    #[test]
    fn a_later_error_after_a_recovered_oom_is_the_scripts_own() {
        let process = ProcessReport {
            ooms: vec![oom(false, 0)],
            exception: Some("KeyError: 'x'".to_owned()),
            ..ProcessReport::default()
        };
        let run = run(Ending::Exited(7), vec![process]);
        assert_eq!(run.completion(), Completion::ScriptFailed);
    }

    #[test]
    fn an_error_in_clean_up_after_the_step_limit_still_fits() {
        let stopped = ProcessReport {
            stopped_by_step_limit: true,
            exception: Some("NameError: best".to_owned()),
            ..ProcessReport::default()
        };
        assert_eq!(
            run(Ending::Exited(1), vec![stopped.clone()]).completion(),
            Completion::Completed
        );
        let other_rank = ProcessReport {
            exception: Some("ValueError".to_owned()),
            ..ProcessReport::default()
        };
        assert_eq!(
            run(Ending::Exited(1), vec![stopped, other_rank]).completion(),
            Completion::ScriptFailed
        );
    }

    #[test]
    fn a_refused_call_ends_the_rehearsal_unless_the_script_went_on() {
        let mut stopped = run(Ending::Exited(1), vec![]);
        stopped.findings.notes = vec![Note::Refused {
            function: "cufftExecC2C".to_owned(),
            library: "cuFFT".to_owned(),
        }];
        assert_eq!(stopped.completion(), Completion::Refused);
        stopped.ending = Ending::Exited(0);
        assert_eq!(stopped.completion(), Completion::Completed);
        assert_eq!(stopped.refused_calls().len(), 1);
    }

    #[test]
    fn the_exception_of_a_child_says_more_than_that_of_its_launcher() {
        let process = |exception: &str| ProcessReport {
            exception: Some(exception.to_owned()),
            ..ProcessReport::default()
        };
        let failed = run(
            Ending::Exited(1),
            vec![process("ChildFailedError: ==="), process("KeyError: 'x'")],
        );
        assert_eq!(failed.exception(), Some("KeyError: 'x'"));
        let left = process("SystemExit at train.py:5: no card is large enough");
        let exception = left.exception.clone();
        let given_up = run(Ending::Exited(1), vec![left.clone()]);
        assert_eq!(given_up.exception(), exception.as_deref());
        assert_eq!(run(Ending::Exited(0), vec![left]).exception(), None);
    }

    #[test]
    fn ranks_that_do_not_work_together_are_no_success_although_they_end_well() {
        let mut run = run(Ending::Exited(0), vec![]);
        let hangs = Unworkable::Hangs("rank 0 waits for rank 1".to_owned());
        run.findings.unworkable = Some(hangs);
        assert_eq!(run.completion(), Completion::ScriptFailed);
        assert_eq!(run.exception(), Some("rank 0 waits for rank 1"));
        assert_eq!(run.failure_code(), EXIT_FAILURE);
        assert!(!run.have_ranks_never_met());
        // What happened is more certain than what would have.
        run.findings.processes = vec![ProcessReport {
            exception: Some("KeyError: 'x'".to_owned()),
            ..ProcessReport::default()
        }];
        run.ending = Ending::Exited(1);
        assert_eq!(run.exception(), Some("KeyError: 'x'"));
    }

    #[test]
    fn a_killed_script_keeps_its_signal() {
        let run = run(Ending::Killed(9), vec![]);
        assert_eq!(run.completion(), Completion::ScriptKilled);
    }
}
