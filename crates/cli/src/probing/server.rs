//! Tries in forked copies of one script: it runs once up to the place at which the size matters.
//!
//! The script is started as ever. Its agent connects to a socket in the run's folder when the script has
//! come to the place, says what is there, and forks for every request (`agent/fork_server.py`). Each
//! copy has a folder with a usage file of its own, and is judged from it like any other run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use ghostgpu_session::card_usage::create_usage_file;
use ghostgpu_session::files::SESSION_FILE;
use ghostgpu_session::{Probe, ProbePlace, ProbeReport, Session};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::findings::Findings;
use crate::judge::Rehearsal;
use crate::process::{Cause, Ending, Supervised};
use crate::rehearsal::{Plan, ScriptOutput};
use crate::run_dir::RunDir;

const SOCKET_NAME: &str = "probes.socket";

/// How often it is looked whether the script has come to its place, or has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// A copy that takes longer than this, and ten times as long as the script took to its place, hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a served script ended.
#[derive(Debug)]
pub struct Served<T> {
    /// What the tries led to; none if the script never came to its place, or cannot be forked there.
    pub result: Option<anyhow::Result<T>>,
    /// The script itself.
    pub rehearsal: Rehearsal,
    /// What the agent saw of the place.
    pub report: ProbeReport,
}

/// Runs the script up to `place` and has `work` try sizes there.
pub fn serve<T: Send>(
    plan: &Plan,
    place: &ProbePlace,
    is_elastic: bool,
    log: &Path,
    tick: &mut dyn FnMut(Duration),
    work: impl FnOnce(&ProbeReport, &mut Line) -> anyhow::Result<T> + Send,
) -> anyhow::Result<Served<T>> {
    let run_dir = RunDir::create(&plan.layout.library)?;
    let folder = run_dir.path().to_owned();
    let socket = folder.join(SOCKET_NAME);
    let listener = UnixListener::bind(&socket).context("cannot make a socket for the script")?;
    listener.set_nonblocking(true)?;
    let mut plan = plan.clone();
    // Only the figures count here, and they should come quickly.
    plan.session.attribution = false;
    plan.session.probe = Some(Probe {
        place: place.clone(),
        batch: None,
        seq: None,
        socket: Some(socket),
    });
    let is_over = AtomicBool::new(false);
    let session = Session {
        elastic: is_elastic,
        ..plan.session.clone()
    };
    std::thread::scope(|scope| {
        let worker = scope.spawn(
            || -> anyhow::Result<(ProbeReport, Option<anyhow::Result<T>>)> {
                let Some(mut line) = Line::accept(&listener, &is_over, &session, &folder)? else {
                    return Ok((ProbeReport::default(), None));
                };
                let report = line.greeting.clone();
                // Dropping the line ends the script.
                let result = match report.unforkable {
                    Some(_) => None,
                    None => Some(work(&report, &mut line)),
                };
                Ok((report, result))
            },
        );
        let output = ScriptOutput::Kept(log.to_owned());
        let finished = plan.rehearse(run_dir, is_elastic, output, tick);
        is_over.store(true, Ordering::Release);
        let (greeting, result) = match worker.join() {
            Ok(done) => done?,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let rehearsal = finished?.rehearsal;
        let mut processes = rehearsal.findings.processes.iter();
        let report = match result {
            Some(_) => greeting,
            // What the script itself reported at its end says more.
            None => processes
                .find_map(|process| process.probe.clone())
                .unwrap_or(greeting),
        };
        Ok(Served {
            result,
            rehearsal,
            report,
        })
    })
}

/// The command line's side of the line to the script.
#[derive(Debug)]
pub struct Line {
    greeting: ProbeReport,
    input: BufReader<UnixStream>,
    session: Session,
    folder: PathBuf,
    count: usize,
}

/// What the script says of a copy that has ended.
#[derive(Deserialize)]
struct Ended {
    status: i32,
}

impl Line {
    /// Waits for the script; none if it ends before it calls.
    fn accept(
        listener: &UnixListener,
        is_over: &AtomicBool,
        session: &Session,
        folder: &Path,
    ) -> anyhow::Result<Option<Self>> {
        let started = Instant::now();
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("cannot listen for the script"),
            }
            if is_over.load(Ordering::Acquire) {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE + 10 * started.elapsed()))?;
        let mut line = Self {
            greeting: ProbeReport::default(),
            input: BufReader::new(stream),
            session: session.clone(),
            folder: folder.to_owned(),
            count: 0,
        };
        line.greeting = line.receive()?;
        Ok(Some(line))
    }

    /// Has a copy of the script go on with these sizes, to its end.
    pub fn try_sizes(&mut self, sizes: &[(&str, u64)]) -> anyhow::Result<Rehearsal> {
        self.count += 1;
        let run_dir = self.folder.join(format!("probe-{}", self.count));
        std::fs::create_dir(&run_dir).context("cannot make a folder for a probe")?;
        let session = Session {
            run_dir: run_dir.clone(),
            probe: None,
            ..self.session.clone()
        };
        create_usage_file(&run_dir, session.devices.len())?;
        std::fs::write(run_dir.join(SESSION_FILE), serde_json::to_vec(&session)?)?;
        let mut request = Map::new();
        request.insert("run_dir".to_owned(), Value::from(run_dir.to_str()));
        for &(name, size) in sizes {
            request.insert(name.to_owned(), Value::from(size));
        }
        let mut text = serde_json::to_vec(&request)?;
        text.push(b'\n');
        self.input.get_mut().write_all(&text)?;
        let ended: Ended = self.receive()?;
        let findings = Findings::gather(&run_dir);
        std::fs::remove_dir_all(&run_dir).ok();
        Ok(Rehearsal {
            supervised: Supervised {
                // Python writes a signal as a negative number.
                ending: match ended.status {
                    signal @ ..0 => Ending::Killed(-signal),
                    code => Ending::Exited(code),
                },
                cause: Cause::Own,
            },
            findings,
            capacity_bytes: match session.elastic {
                true => None,
                false => session.devices.first().map(|card| card.total_bytes),
            },
        })
    }

    fn receive<T: for<'a> Deserialize<'a>>(&mut self) -> anyhow::Result<T> {
        let mut text = String::new();
        let count = self
            .input
            .read_line(&mut text)
            .context("a probe did not end in time")?;
        anyhow::ensure!(count > 0, "the script ended in the middle of a probe");
        Ok(serde_json::from_str(&text)?)
    }
}
