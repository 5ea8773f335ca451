//! Whole runs: the user's command, from its first line to its end, in a folder of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ghostgpu_session::{Declined, Session, TrainingPart};

use crate::SizePoint;
use crate::change::Change;
use crate::copies::{Listener, WaitingCopy, is_for_copies, was_the_copys_fault};
use crate::environment;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::forks::Forks;
use crate::judge::{Completion, Run};
use crate::last_lines::last_lines;
use crate::observer::{Observer, Purpose};
use crate::prepare::Prepared;
use crate::process::{Cause, Supervised, supervise_and_keep};
use crate::recorded_memory::{self, Memory};
use crate::rehearse::{Held, Records, Rehearsal, Rehearse, Runner, ends_everything};
use crate::run_dir::{RunDir, TICK};
use crate::stop::Stop;
use crate::written_files::remove_written_files;

/// How many rehearsals run at the same time. Each may take as much of the host's memory as the script.
const MOST_AT_ONCE: usize = 2;

/// Where the script's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptOutput {
    /// To ours, untouched.
    Inherited,
    /// Standard output to our standard error, because the answer goes to standard output.
    AllToStderr,
    /// Only to [`Run::last_lines`], in case the script fails.
    Kept,
}

impl ScriptOutput {
    fn is_seen(self) -> bool {
        self != Self::Kept
    }
}

/// Starts the command anew for every rehearsal.
pub struct WholeRuns {
    prepared: Prepared,
    observer: Arc<dyn Observer>,
    output: ScriptOutput,
    /// The copy that waits just before the script first uses the card.
    copy: Option<WaitingCopy>,
}

impl WholeRuns {
    /// A runner for a job, whose output is kept and not shown.
    pub fn new(prepared: Prepared, observer: Arc<dyn Observer>) -> Self {
        Self {
            prepared,
            observer,
            output: ScriptOutput::Kept,
            copy: None,
        }
    }

    /// Sets where the script's output goes.
    pub fn send_output_to(&mut self, output: ScriptOutput) {
        self.output = output;
    }
}

impl Rehearse for WholeRuns {
    fn rehearse(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        let mut run = self.once(rehearsal)?;
        // A brief rehearsal is not repeated with whole passes.
        let is_brief = rehearsal.changes.contains(&Change::Briefly);
        let Some(because) = self.why_whole_passes(&run).filter(|_| !is_brief) else {
            return Ok(run);
        };
        if let Some(coverage) = &mut self.prepared.session.coverage {
            coverage.shortens_passes = false;
        }
        run = self.once(rehearsal)?;
        run.whole_passes_because = Some(because);
        Ok(run)
    }

    /// In copies, up to `MOST_AT_ONCE` at the same time; without copies, one after the other.
    fn rehearse_all(&mut self, rehearsals: &[Rehearsal]) -> Vec<Result<Run, Stop>> {
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let mut results = Vec::new();
        for some in rehearsals.chunks(most.min(MOST_AT_ONCE)) {
            match self.in_copies_at_once(some) {
                Ok(runs) => {
                    for (rehearsal, run) in some.iter().zip(runs) {
                        results.push(match run {
                            Some(run) => run,
                            None => self.rehearse(rehearsal),
                        });
                        if ends_everything(&results) {
                            return results;
                        }
                    }
                }
                Err(stop) => {
                    results.push(Err(stop));
                    break;
                }
            }
        }
        results
    }
}

impl WholeRuns {
    /// Rehearses in copies at the same time. `None` for a rehearsal that must be made on its own.
    fn in_copies_at_once(
        &mut self,
        rehearsals: &[Rehearsal],
    ) -> Result<Vec<Option<Result<Run, Stop>>>, Stop> {
        let none = || rehearsals.iter().map(|_| None).collect();
        let can_be_copies = |one: &Rehearsal| {
            // Rehearsals that are not brief may have to be repeated with whole passes.
            let is_brief = one.changes.contains(&Change::Briefly);
            is_brief && one.records == Records::Nothing && is_for_copies(&one.changes)
        };
        if rehearsals.len() < 2 || self.output.is_seen() || !rehearsals.iter().all(can_be_copies) {
            return Ok(none());
        }
        let folder = RunDir::create(&self.prepared.layout).map_err(Stop::Failed)?;
        let prepared: Vec<Prepared> = rehearsals
            .iter()
            .map(|one| {
                let mut prepared = changed(&self.prepared, &one.changes, &folder)?;
                prepared.session.attribution = false;
                Ok(prepared)
            })
            .collect::<Result<_, Stop>>()?;
        let Some(copy) = &mut self.copy else {
            return Ok(none());
        };
        if !prepared.iter().all(|one| copy.can_be(&one.session)) {
            return Ok(none());
        }
        self.observer.begins(&rehearsals[0].purpose);
        let observer = Arc::clone(&self.observer);
        let runs = copy.rehearse(&prepared, &mut |_| observer.goes_on());
        self.observer.ends();
        runs
    }

    fn once(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        let run_dir = RunDir::create(&self.prepared.layout).map_err(Stop::Failed)?;
        let mut prepared = changed(&self.prepared, &rehearsal.changes, &run_dir)?;
        let wants_memory = prepared.session.attribution;
        prepared.session.attribution = match rehearsal.records {
            Records::Nothing => false,
            Records::Memory => wants_memory,
            Records::History => true,
        };
        let mut run = if self.output.is_seen() {
            let mut tick = |elapsed| self.observer.goes_on_in_sight(elapsed);
            let makes_copy = self.makes_copy(&prepared);
            let result = start_with_copy(&prepared, run_dir, self.output, makes_copy, &mut tick);
            result.map(|(run, copy)| {
                self.copy = copy;
                run
            })
        } else {
            self.observer.begins(&rehearsal.purpose);
            let result = self.out_of_sight(&prepared, run_dir, rehearsal);
            self.observer.ends();
            result
        }?;
        if !wants_memory {
            run.memory = Memory::Unwanted;
        }
        Ok(run)
    }

    /// Rehearses in the waiting copy, if there is one that can do this; else from the script's first line.
    fn out_of_sight(
        &mut self,
        prepared: &Prepared,
        run_dir: RunDir,
        rehearsal: &Rehearsal,
    ) -> Result<Run, Stop> {
        let observer = Arc::clone(&self.observer);
        let mut tick = |_| observer.goes_on();
        if let Some(copy) = &mut self.copy
            && is_for_copies(&rehearsal.changes)
            && copy.can_be(&prepared.session)
        {
            let mut runs = copy.rehearse(std::slice::from_ref(prepared), &mut tick)?;
            if let Some(Some(run)) = runs.pop() {
                return run;
            }
            // The script itself may succeed where a copy fails. If it fails too, the copy was not to blame.
            let run = start(prepared, run_dir, self.output, &mut tick)?;
            if was_the_copys_fault(&run) {
                self.copy = None;
            }
            return Ok(run);
        }
        let makes_copy = self.copy.is_none() && self.makes_copy(prepared);
        let result = start_with_copy(prepared, run_dir, self.output, makes_copy, &mut tick);
        result.map(|(run, copy)| {
            self.copy = self.copy.take().or(copy);
            run
        })
    }

    /// Whether other rehearsals can continue a copy of this one, because up to the card it is the script as it is.
    fn makes_copy(&self, prepared: &Prepared) -> bool {
        prepared.words == self.prepared.words
            && prepared.variables == self.prepared.variables
            && prepared.session.size_point.is_none()
            && prepared.session.tricks == self.prepared.session.tricks
            && !prepared.session.halves_sizes
            && !prepared.session.unlimited_memory
            && prepared.session.call_log.is_none()
    }

    /// Why the script must be rehearsed again with whole passes, as a sentence ending.
    fn why_whole_passes(&self, run: &Run) -> Option<String> {
        if !self.prepared.session.coverage?.shortens_passes {
            return None;
        }
        let reports = run.findings.processes.iter();
        let mut shortened = reports
            .filter_map(|process| process.coverage.as_ref())
            .filter(|coverage| coverage.is_shortened);
        let first = shortened.next()?;
        match run.completion() {
            // The script may depend on whole passes, for example on one result per sample.
            Completion::ScriptFailed if run.have_ranks_never_met() => None,
            Completion::ScriptFailed => Some(format!(
                "with shortened ones the script ended with {}",
                run.exception().unwrap_or("an error of its own")
            )),
            // The script may do something only every so many steps, and shortened passes had fewer.
            Completion::Completed => first
                .not_reached
                .iter()
                .find(|missed| missed.part == TrainingPart::Evaluation)
                .map(|missed| format!("with shortened ones {}", missed.because)),
            _ => None,
        }
    }
}

impl Runner for WholeRuns {
    fn hold_at(&mut self, point: &SizePoint, changes: &[Change]) -> Result<Held<'_>, Stop> {
        self.observer.begins(&Purpose::ReachingSizePoint);
        let result = Forks::start(&self.prepared, point, changes, &self.observer);
        self.observer.ends();
        result
    }
}

/// The job with the changes of one rehearsal.
pub(crate) fn changed(
    prepared: &Prepared,
    changes: &[Change],
    run_dir: &RunDir,
) -> Result<Prepared, Stop> {
    let changed = prepared.with(changes, run_dir.path());
    changed.map_err(|error| Stop::failed("cannot write into the run's folder", error))
}

/// Runs the command in `run_dir` and gathers what it left there; `tick` is called with the elapsed time.
pub(crate) fn start(
    prepared: &Prepared,
    run_dir: RunDir,
    output: ScriptOutput,
    tick: &mut dyn FnMut(Duration),
) -> Result<Run, Stop> {
    start_with_copy(prepared, run_dir, output, false, tick).map(|(run, _)| run)
}

/// The same. With `makes_copy`, it may also return a copy of the script that further rehearsals can continue.
fn start_with_copy(
    prepared: &Prepared,
    run_dir: RunDir,
    output: ScriptOutput,
    makes_copy: bool,
    tick: &mut dyn FnMut(Duration),
) -> Result<(Run, Option<WaitingCopy>), Stop> {
    let mut session = prepared.session.clone();
    session.run_dir = run_dir.path().to_owned();
    if session.unlimited_memory || !output.is_seen() {
        // Only the run whose output the user sees writes the call log.
        session.call_log = None;
    }
    let listener = match makes_copy {
        true => Listener::in_folder(run_dir.path()),
        false => None,
    };
    session.copy_socket = listener.as_ref().map(|listener| listener.socket.clone());
    write_session(&run_dir, &session, prepared.reserve_bytes)?;
    let mut command = Command::new(&prepared.program);
    command.args(&prepared.words);
    set_environment(&mut command, prepared, &run_dir);
    let log = log_of(&run_dir);
    match output {
        ScriptOutput::Inherited => {}
        ScriptOutput::AllToStderr => {
            command.stdout(std::io::stderr());
        }
        ScriptOutput::Kept => {
            keep_output(&mut command, &log)
                .map_err(|error| Stop::failed("cannot keep the script's output", error))?;
        }
    }
    let started = SystemTime::now() - TICK;
    let mut line = None;
    let mut at_end = || line = listener.as_ref().and_then(Listener::accept);
    let supervised = supervise_and_keep(&mut command, prepared.timeout, tick, &mut at_end)
        .map_err(|error| {
            Stop::failed(
                format!("cannot start `{}`", prepared.program.display()),
                error,
            )
        })?;
    let run = gather(prepared, &session, &run_dir, supervised, started)?;
    Ok((
        run,
        line.map(|line| WaitingCopy::new(line, session, run_dir)),
    ))
}

pub(crate) fn write_session(
    run_dir: &RunDir,
    session: &Session,
    reserve_bytes: u64,
) -> Result<(), Stop> {
    run_dir
        .write_session(session, reserve_bytes)
        .map_err(|error| Stop::failed("cannot write into the run's folder", format!("{error:#}")))
}

/// What a rehearsal that has ended left in its folder.
pub(crate) fn gather(
    prepared: &Prepared,
    session: &Session,
    run_dir: &RunDir,
    supervised: Supervised,
    started: SystemTime,
) -> Result<Run, Stop> {
    let findings = Findings::gather(run_dir.path());
    let (memory, history) = match session.attribution {
        true => recorded_memory::gather(run_dir.path(), &findings),
        false => (Memory::Unwanted, None),
    };
    if !session.keep_checkpoints {
        remove_written_files(run_dir.path(), started);
    }
    let run = Run {
        ending: supervised.ending,
        has_timed_out: supervised.cause == Cause::TimedOut,
        findings,
        capacity_bytes: capacity(session, prepared.reserve_bytes),
        memory,
        history,
        last_lines: last_lines(&log_of(run_dir)),
        whole_passes_because: None,
    };
    match (supervised.cause, run.completion()) {
        (Cause::Interrupted(signal), _) => Err(Stop::Interrupted(signal)),
        (_, Completion::PreloadBlocked) => Err(Stop::Failed(preload_failure(&run))),
        (_, Completion::TimedOut) => Err(Stop::TimedOut(Box::new(run))),
        (_, Completion::ScriptFailed) => match run.declined() {
            Some(declined) => Err(Stop::Refused(declined_failure(declined))),
            None => Ok(run),
        },
        _ => Ok(run),
    }
}

fn declined_failure(declined: &Declined) -> Failure {
    let failure = Failure::new(&declined.sentence);
    match &declined.hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// The file for the output of a script that is not shown.
pub(crate) fn log_of(run_dir: &RunDir) -> PathBuf {
    run_dir.path().join("output.txt")
}

/// What the script can use of one card; `None` with unlimited memory.
pub(crate) fn capacity(session: &Session, reserve_bytes: u64) -> Option<u64> {
    let card = session.devices.first()?;
    (!session.unlimited_memory).then_some(card.total_bytes.saturating_sub(reserve_bytes))
}

fn set_environment(command: &mut Command, prepared: &Prepared, run_dir: &RunDir) {
    let is_ignored =
        |variable: &str| prepared.ignores_python_variables && variable.starts_with("PYTHON");
    let changes = run_dir.with_places(&prepared.layout.inject_dir, |places| {
        environment::changes(places, |variable| {
            let own = prepared.variables.iter().rev();
            let own = own.filter(|(name, _)| name == variable);
            let own = own.map(|(_, value)| value.clone()).next();
            own.or_else(|| std::env::var_os(variable).filter(|_| !is_ignored(variable)))
        })
    });
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(is_ignored) {
            command.env_remove(variable);
        }
    }
    command.envs(prepared.variables.iter().map(|(name, value)| (name, value)));
    command.envs(changes.set);
    for variable in changes.removed {
        command.env_remove(variable);
    }
}

fn keep_output(command: &mut Command, log: &Path) -> std::io::Result<()> {
    let file = File::create(log)?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    Ok(())
}

fn preload_failure(run: &Run) -> Failure {
    let reason = run.findings.preload_blocked.as_deref().unwrap_or_default();
    let separator = if reason.is_empty() { "" } else { ": " };
    Failure::new(format!(
        "the stand-in library was not loaded into the script's process{separator}{reason}"
    ))
    .with_hint(
        "something between us and the script dropped LD_PRELOAD (`env -i`, `sudo`, a setuid program \
         or a security policy): start the script without it",
    )
}
