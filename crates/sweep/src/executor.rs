//! Passes command lines to `python/ghostgpu/sweep_executors`, and receives how each ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use ghostgpu_rehearse::process::{Cause, supervise};
use ghostgpu_rehearse::{Failure, Stop, tricks_inject_dir};
use serde::Deserialize;
use serde_json::json;

/// The engine that runs rehearsals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    #[default]
    Processes,
    Ray,
    Dask,
    Submitit,
}

impl Engine {
    pub const ALL: [Self; 4] = [Self::Processes, Self::Ray, Self::Dask, Self::Submitit];

    /// The engine in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Processes => "Processes on this machine",
            Self::Ray => "The Ray cluster at `RAY_ADDRESS`, else this machine",
            Self::Dask => "The Dask cluster at `DASK_SCHEDULER_ADDRESS`, else this machine",
            Self::Submitit => "A Slurm job array, else this machine",
        }
    }

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Ray => "ray",
            Self::Dask => "dask",
            Self::Submitit => "submitit",
        }
    }
}

/// How one command line ended.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Done {
    pub number: usize,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// One line of the executor's output.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Done(Done),
    Missing { failure: String, hint: String },
}

/// Runs the package without adding a folder to the path of what it starts.
const START: &str = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); \
                     runpy.run_module('sweep_executors', run_name='__main__', alter_sys=True)";

/// The engine that runs command lines, and how many run at the same time.
#[derive(Clone, Debug)]
pub struct Executor {
    pub engine: Engine,
    pub jobs: usize,
    /// The Python in which the engine is installed.
    pub python: PathBuf,
}

impl Executor {
    /// Runs all command lines; `each` is called soon after each of them has ended. An interrupt is a stop.
    pub(crate) fn run_all(
        &self,
        commands: &[Vec<OsString>],
        each: &mut dyn FnMut(Done),
    ) -> anyhow::Result<()> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let tasks = folder.path().join("tasks.jsonl");
        let results = folder.path().join("results.jsonl");
        let log = folder.path().join("engine.txt");
        write_tasks(&tasks, commands).context("cannot write the sweep's tasks")?;
        let mut command = Command::new(&self.python);
        command
            .args(["-c", START])
            .arg(package_folder()?)
            .arg(self.engine.name())
            .arg(self.jobs.to_string())
            .stdin(Stdio::from(File::open(&tasks)?))
            .stdout(Stdio::from(File::create(&results)?))
            .stderr(Stdio::from(File::create(&log)?));
        let mut reader = Reader {
            lines: BufReader::new(File::open(&results)?),
            begun: String::new(),
            missing: None,
        };
        let supervised = supervise(&mut command, None, &mut |_| reader.read(each))
            .with_context(|| format!("cannot start `{}`", self.python.display()))?;
        reader.read(each);
        if let Cause::Interrupted(signal) = supervised.cause {
            return Err(Stop::Interrupted(signal).into());
        }
        if let Some(failure) = reader.missing {
            return Err(failure.into());
        }
        match supervised.ending.is_success() {
            true => Ok(()),
            false => {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                let last = log.lines().rev().find(|line| !line.trim().is_empty());
                let reason = last.unwrap_or("it ended without a word");
                Err(Failure::new(format!(
                    "the executor {} failed: {reason}",
                    self.engine.name()
                ))
                .into())
            }
        }
    }
}

fn write_tasks(path: &Path, commands: &[Vec<OsString>]) -> std::io::Result<()> {
    let current = std::env::current_dir()?;
    let mut file = File::create(path)?;
    for (number, words) in commands.iter().enumerate() {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let task = json!({"number": number, "command": words, "folder": current.to_string_lossy()});
        writeln!(file, "{task}")?;
    }
    Ok(())
}

/// The folder that contains the package.
fn package_folder() -> Result<PathBuf, Failure> {
    let tricks = tricks_inject_dir()?;
    let folder = tricks.ancestors().nth(2).unwrap_or(&tricks).to_owned();
    match folder.join("sweep_executors").is_dir() {
        true => Ok(folder),
        false => Err(Failure::new(
            "the executors are missing: no folder `sweep_executors` was found",
        )
        .with_hint("reinstall the package, or run the program from inside a checkout")),
    }
}

/// Reads lines as they are written.
struct Reader {
    lines: BufReader<File>,
    /// The beginning of a line that is not complete yet.
    begun: String,
    missing: Option<Failure>,
}

impl Reader {
    fn read(&mut self, each: &mut dyn FnMut(Done)) {
        while matches!(self.lines.read_line(&mut self.begun), Ok(1..)) {
            if !self.begun.ends_with('\n') {
                return;
            }
            match serde_json::from_str(&self.begun) {
                Ok(Line::Done(done)) => each(done),
                Ok(Line::Missing { failure, hint }) => {
                    self.missing = Some(Failure::new(failure).with_hint(hint));
                }
                // Output of the engine itself.
                Err(_) => {}
            }
            self.begun.clear();
        }
    }
}
