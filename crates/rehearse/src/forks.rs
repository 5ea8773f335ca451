//! Rehearsals in forks of one script, which runs once up to the size point.
//!
//! The script is started as usual. When it reaches the size point, its agent connects to a socket in the run folder,
//! reports what it found there, and forks for every request (`agent/forks/fork_server.py`). Each fork has its own folder and
//! is judged from it like any other run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use ghostgpu_session::card_usage::{create_usage_file, hold_for_others};
use ghostgpu_session::files::SESSION_FILE;
use ghostgpu_session::{Session, SizePointRequest};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::change::{Change, Sizes};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::judge::Run;
use crate::last_lines::last_lines;
use crate::observer::Observer;
use crate::prepare::Prepared;
use crate::process::Ending;
use crate::rehearse::{Held, Rehearsal, Rehearse};
use crate::run_dir::RunDir;
use crate::stop::Stop;
use crate::whole::{ScriptOutput, capacity, changed, log_of, start};
use crate::{SizePoint, SizePointReport};

const SOCKET_NAME: &str = "forks.socket";

/// How often we check whether the script has reached the size point or has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// A fork counts as hanging after this long, plus twice its time budget, plus ten times what the script took to reach
/// the size point.
const PATIENCE: Duration = Duration::from_secs(60);

/// A script that waits at a size point, and continues in a fork for every rehearsal.
///
/// Dropping it ends the script.
pub struct Forks {
    /// `None` once the connection is broken.
    line: Option<Line>,
    script: Script,
    observer: Arc<dyn Observer>,
}

impl Forks {
    /// Runs the script up to `point`.
    pub(crate) fn start<'a>(
        prepared: &Prepared,
        point: &SizePoint,
        changes: &[Change],
        observer: &Arc<dyn Observer>,
    ) -> Result<Held<'a>, Stop> {
        let run_dir = RunDir::create(&prepared.layout).map_err(Stop::Failed)?;
        let folder = run_dir.path().to_owned();
        let socket = folder.join(SOCKET_NAME);
        let listener = listen(&socket)
            .map_err(|error| Stop::failed("cannot make a socket for the script", error))?;
        let mut prepared = changed(prepared, changes, &run_dir)?;
        // Only the figures are needed here, and they come faster without attribution.
        prepared.session.attribution = false;
        prepared.session.size_point = Some(SizePointRequest {
            place: point.clone(),
            batch: None,
            seq: None,
            socket: Some(socket),
        });
        let session = prepared.session.clone();
        let reserve_bytes = prepared.reserve_bytes;
        let log = log_of(&run_dir);
        let mut script = Script::start(prepared, run_dir, Arc::clone(observer));
        let line = Line::accept(
            &listener,
            &script.has_ended,
            session,
            reserve_bytes,
            folder,
            log,
        );
        let greeting = match line {
            Ok(Some((line, seen))) if seen.unforkable.is_none() => {
                let forks = Self {
                    line: Some(line),
                    script,
                    observer: Arc::clone(observer),
                };
                return Ok(Held::Waiting {
                    seen,
                    forks: Box::new(forks),
                });
            }
            Ok(Some((line, seen))) => {
                drop(line);
                seen
            }
            Ok(None) => SizePointReport::default(),
            Err(error) => {
                script.end()?;
                return Err(Stop::Failed(Failure::new(format!("{error:#}"))));
            }
        };
        let run = script.end()?;
        Ok(Held::Ended {
            // The report at the script's end has more than the greeting.
            seen: run.size_point().cloned().unwrap_or(greeting),
            run: Box::new(run),
        })
    }

    /// Ends the script after its connection broke, and returns the cause.
    fn broken(&mut self, error: &anyhow::Error) -> Stop {
        self.line = None;
        match self.script.end() {
            Err(stop) => stop,
            Ok(_) => Stop::Failed(Failure::new(format!("{error:#}"))),
        }
    }
}

impl Rehearse for Forks {
    /// A fork can have other sizes and fewer steps. Any other change needs a whole run.
    fn rehearse(&mut self, rehearsal: &Rehearsal) -> Result<Run, Stop> {
        let cannot = |what: &str| Stop::Failed(Failure::new(what));
        let (mut sizes, mut steps) = (Sizes::default(), None);
        for change in &rehearsal.changes {
            match change {
                Change::Sizes { sizes: wanted, .. } => sizes = *wanted,
                Change::Steps(wanted) => steps = Some(*wanted),
                _ => {
                    return Err(cannot(
                        "a fork cannot differ from its script in more than sizes and steps",
                    ));
                }
            }
        }
        let Some(line) = &mut self.line else {
            return Err(cannot("the script that was to be forked has ended"));
        };
        self.observer.begins(&rehearsal.purpose);
        let result = line.rehearse(sizes, steps);
        self.observer.ends();
        result.map_err(|error| self.broken(&error))
    }
}

impl Drop for Forks {
    fn drop(&mut self) {
        // The script ends when its connection is closed. Nothing may outlive us.
        self.line = None;
        let _ = self.script.end();
    }
}

/// The script itself, supervised by a thread.
struct Script {
    thread: Option<JoinHandle<Result<Run, Stop>>>,
    has_ended: Arc<AtomicBool>,
}

impl Script {
    /// Signals are held in all threads, so the thread that supervises takes them.
    fn start(prepared: Prepared, run_dir: RunDir, observer: Arc<dyn Observer>) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&has_ended);
        let thread = std::thread::spawn(move || {
            let mut tick = |_| observer.goes_on();
            let result = start(&prepared, run_dir, ScriptOutput::Kept, &mut tick);
            ended.store(true, Ordering::Release);
            result
        });
        Self {
            thread: Some(thread),
            has_ended,
        }
    }

    /// Waits for the script to end.
    fn end(&mut self) -> Result<Run, Stop> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(Stop::Failed(Failure::new("the script has ended"))),
        }
    }
}

fn listen(socket: &Path) -> std::io::Result<UnixListener> {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Our end of the connection to the script.
struct Line {
    input: BufReader<UnixStream>,
    session: Session,
    reserve_bytes: u64,
    folder: PathBuf,
    log: PathBuf,
    count: usize,
}

/// The script's message about a fork that has ended.
#[derive(Deserialize)]
struct Ended {
    status: i32,
}

impl Line {
    /// Waits for the script to connect; `None` if it ends first.
    fn accept(
        listener: &UnixListener,
        has_ended: &AtomicBool,
        session: Session,
        reserve_bytes: u64,
        folder: PathBuf,
        log: PathBuf,
    ) -> anyhow::Result<Option<(Self, SizePointReport)>> {
        let started = Instant::now();
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("cannot listen for the script"),
            }
            if has_ended.load(Ordering::Acquire) {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        };
        stream.set_nonblocking(false)?;
        let budget = session.coverage.map_or(0, |coverage| coverage.budget_ms);
        let budget = Duration::from_millis(budget);
        stream.set_read_timeout(Some(PATIENCE + 2 * budget + 10 * started.elapsed()))?;
        let mut line = Self {
            input: BufReader::new(stream),
            session,
            reserve_bytes,
            folder,
            log,
            count: 0,
        };
        let greeting = line.receive()?;
        Ok(Some((line, greeting)))
    }

    /// Lets a fork of the script continue to its end with these sizes.
    fn rehearse(&mut self, sizes: Sizes, steps: Option<u64>) -> anyhow::Result<Run> {
        self.count += 1;
        let run_dir = self.folder.join(format!("fork-{}", self.count));
        std::fs::create_dir(&run_dir).context("cannot make a folder for a fork")?;
        let session = Session {
            run_dir: run_dir.clone(),
            size_point: None,
            ..self.session.clone()
        };
        create_usage_file(&run_dir, session.devices.len())?;
        hold_for_others(&run_dir, self.reserve_bytes)?;
        std::fs::write(run_dir.join(SESSION_FILE), serde_json::to_vec(&session)?)?;
        let mut request = Map::new();
        request.insert("run_dir".to_owned(), Value::from(run_dir.to_str()));
        let steps = steps.map(|steps| ("steps", steps));
        for (name, size) in sizes.named().chain(steps) {
            request.insert(name.to_owned(), Value::from(size));
        }
        let mut text = serde_json::to_vec(&request)?;
        text.push(b'\n');
        self.input.get_mut().write_all(&text)?;
        let ended: Ended = self.receive()?;
        let findings = Findings::gather(&run_dir);
        std::fs::remove_dir_all(&run_dir).ok();
        // Python writes a signal as a negative number.
        let ending = match ended.status {
            signal @ ..0 => Ending::Killed(-signal),
            code => Ending::Exited(code),
        };
        Ok(Run {
            capacity_bytes: capacity(&session, self.reserve_bytes),
            last_lines: last_lines(&self.log),
            ..Run::new(ending, findings)
        })
    }

    fn receive<T: for<'a> Deserialize<'a>>(&mut self) -> anyhow::Result<T> {
        let mut text = String::new();
        let count = self
            .input
            .read_line(&mut text)
            .context("a fork did not end in time")?;
        anyhow::ensure!(count > 0, "the script ended in the middle of a rehearsal");
        Ok(serde_json::from_str(&text)?)
    }
}
