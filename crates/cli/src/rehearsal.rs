//! One run of the user's command on virtual cards, from its folder to what was found in it.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use ghostgpu_session::Session;

use crate::environment;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::judge::Rehearsal;
use crate::layout::Layout;
use crate::process::supervise;
use crate::recorded_memory::{self, Memory};
use crate::run_dir::RunDir;
use crate::written_files::remove_written_files;

/// A command to rehearse, ready to start any number of times.
#[derive(Clone, Debug)]
pub struct Plan {
    pub program: PathBuf,
    pub words: Vec<OsString>,
    pub layout: Layout,
    /// Everything but the run's folder, which each run has for itself.
    pub session: Session,
    pub timeout: Option<Duration>,
    /// The user's variables for python do not reach the script (`python -E`).
    pub ignores_python_variables: bool,
    /// Variables of the environment that are set for the script, beside those of the run itself.
    pub variables: Vec<(OsString, OsString)>,
}

/// Where the script's output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptOutput {
    /// To ours, untouched.
    Inherited,
    /// Standard output to our standard error, because the answer goes to standard output.
    AllToStderr,
    /// Nowhere: the user has seen it once.
    Hidden,
    /// To a file, in case somebody wants to know why the script failed.
    Kept(PathBuf),
}

/// A run that is over, and the files of the script's that were removed after it.
#[derive(Debug)]
pub struct Finished {
    pub rehearsal: Rehearsal,
    pub removed_files: Vec<PathBuf>,
    /// Whose memory it was.
    pub memory: Memory,
}

impl Plan {
    /// Runs the command in `run_dir` and gathers what it left there.
    pub fn rehearse(
        &self,
        run_dir: RunDir,
        is_elastic: bool,
        output: ScriptOutput,
        tick: &mut dyn FnMut(Duration),
    ) -> anyhow::Result<Finished> {
        let session = Session {
            run_dir: run_dir.path().to_owned(),
            elastic: is_elastic,
            // The trace is that of the run the user sees.
            trace: self.session.trace.clone().filter(|_| !is_elastic),
            ..self.session.clone()
        };
        run_dir
            .write_session(&session)
            .context("cannot write into the run's folder")?;
        let mut command = Command::new(&self.program);
        command.args(&self.words);
        let is_ignored =
            |variable: &str| self.ignores_python_variables && variable.starts_with("PYTHON");
        let changes = run_dir.with_places(&self.layout.inject_dir, |places| {
            environment::changes(places, |variable| {
                std::env::var_os(variable).filter(|_| !is_ignored(variable))
            })
        });
        for (variable, _) in std::env::vars_os() {
            if variable.to_str().is_some_and(is_ignored) {
                command.env_remove(variable);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.envs(changes.set);
        for variable in changes.removed {
            command.env_remove(variable);
        }
        match output {
            ScriptOutput::Inherited => {}
            ScriptOutput::AllToStderr => {
                command.stdout(std::io::stderr());
            }
            ScriptOutput::Hidden => {
                command
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
            }
            ScriptOutput::Kept(path) => {
                let file = File::create(&path).context("cannot keep the script's output")?;
                command
                    .stdin(Stdio::null())
                    .stdout(file.try_clone()?)
                    .stderr(file);
            }
        }
        // The kernel stamps files with the time of its last tick, a few milliseconds old.
        let started = SystemTime::now() - Duration::from_millis(50);
        let supervised = supervise(&mut command, self.timeout, tick).map_err(|error| {
            Failure::new(format!(
                "cannot start `{}`: {error}",
                self.program.display()
            ))
        })?;
        let findings = Findings::gather(run_dir.path());
        let memory = match session.attribution {
            true => recorded_memory::gather(run_dir.path(), &findings),
            false => Memory::Unwanted,
        };
        let removed_files = match session.keep_checkpoints {
            true => Vec::new(),
            false => remove_written_files(run_dir.path(), started),
        };
        Ok(Finished {
            rehearsal: Rehearsal {
                supervised,
                findings,
                capacity_bytes: match is_elastic {
                    true => None,
                    false => session.devices.first().map(|card| card.total_bytes),
                },
            },
            removed_files,
            memory,
        })
    }
}
