//! Rehearsals in copies of a script that was held where it first uses the card.
//!
//! Everything before that moment is the same in every rehearsal of a job, whatever the card and its memory: imports,
//! data, a model built on the host. So the agent of a rehearsal forks there (`agent/forks/card_point.py`). The script itself
//! continues as usual. The copy connects to our socket, waits, and forks again for each further rehearsal, each with its
//! own folder and session; several of them may run at the same time. A copy that cannot be made, or that fails where
//! the script might not have, costs nothing but time: the script is started again.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ghostgpu_session::Session;
use serde::Deserialize;
use serde_json::json;

use crate::change::Change;
use crate::judge::{Completion, Run};
use crate::prepare::Prepared;
use crate::process::{Cause, Ending, Supervised, keep, let_go, supervise_other};
use crate::run_dir::{RunDir, TICK};
use crate::stop::Stop;
use crate::whole::{gather, log_of, write_session};

/// How long a copy may take to identify itself after it connected.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a copy can apply all of these changes. Anything decided before the card is first used cannot change any more.
pub(crate) fn is_for_copies(changes: &[Change]) -> bool {
    changes.iter().all(|change| match change {
        Change::Card(_)
        | Change::Memory(_)
        | Change::LessMemory(_)
        | Change::UnlimitedMemory
        | Change::Steps(_)
        | Change::Briefly
        | Change::WithoutLaterPasses => true,
        // PyTorch reads the allocator's settings when it is imported.
        Change::Trick(request) => request.name != "allocator",
        _ => false,
    })
}

/// The socket to which a copy of a script connects.
pub(crate) struct Listener {
    listener: UnixListener,
    pub socket: PathBuf,
}

impl Listener {
    /// `None` if the socket cannot be created; then there is no copy.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let socket = folder.join("copy.socket");
        let listener = UnixListener::bind(&socket).ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Self { listener, socket })
    }

    /// The copy that has connected, if any; from now on its process is kept. A copy connects before the script goes on.
    pub fn accept(&self) -> Option<CopyLine> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut input = BufReader::new(stream);
        let mut text = String::new();
        input.read_line(&mut text).ok()?;
        let greeting: Greeting = serde_json::from_str(&text).ok()?;
        input.get_ref().set_nonblocking(true).ok()?;
        keep(greeting.pid);
        Some(CopyLine {
            input,
            pid: greeting.pid,
        })
    }
}

#[derive(Deserialize)]
struct Greeting {
    pid: i32,
}

/// The copy's message about a rehearsal that has ended.
#[derive(Deserialize)]
struct Ended {
    run_dir: PathBuf,
    status: i32,
}

impl Ended {
    /// Python writes a signal as a negative number.
    fn ending(&self) -> Ending {
        match self.status {
            status if status >= 0 => Ending::Exited(status),
            status => Ending::Killed(-status),
        }
    }
}

/// Our end of the connection to a waiting copy. Dropping it ends the copy.
pub(crate) struct CopyLine {
    input: BufReader<UnixStream>,
    pid: i32,
}

impl CopyLine {
    fn ask_for(&mut self, run_dir: &RunDir) -> std::io::Result<()> {
        let request = json!({"run_dir": run_dir.path(), "output": log_of(run_dir)});
        writeln!(self.input.get_mut(), "{request}")
    }

    /// A rehearsal that has ended, if one has.
    fn next_ended(&mut self, received: &mut String) -> Word {
        match self.input.read_line(received) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Word::None,
            Ok(count) if count > 0 && !received.ends_with('\n') => Word::None,
            Ok(count) if count > 0 => {
                let ended = serde_json::from_str(received);
                received.clear();
                ended.map_or(Word::HungUp, Word::Ended)
            }
            _ => Word::HungUp,
        }
    }
}

/// What was read from the connection.
enum Word {
    None,
    Ended(Ended),
    /// The connection is closed, because the copy was killed.
    HungUp,
}

impl Drop for CopyLine {
    fn drop(&mut self) {
        let_go(self.pid);
    }
}

/// A waiting copy, with the folder of the rehearsal it was forked from, whose files it still uses.
pub(crate) struct WaitingCopy {
    line: CopyLine,
    session: Session,
    _run_dir: RunDir,
}

impl WaitingCopy {
    pub fn new(line: CopyLine, session: Session, run_dir: RunDir) -> Self {
        Self {
            line,
            session,
            _run_dir: run_dir,
        }
    }

    /// Whether a copy can run this session. Parts of the agent can be switched off in a copy, but not added.
    pub fn can_be(&self, session: &Session) -> bool {
        let own = &self.session;
        session.devices.len() == own.devices.len()
            && (own.attribution || !session.attribution)
            && (own.coverage.is_some() || session.coverage.is_none())
            && session.size_point.is_none()
            && session.halves_sizes == own.halves_sizes
            && (own.tricks.is_empty() || session.tricks == own.tricks)
    }

    /// Rehearses in copies, all at the same time. `None` for a rehearsal that must be repeated with the script itself.
    pub fn rehearse(
        &mut self,
        all: &[Prepared],
        tick: &mut dyn FnMut(Duration),
    ) -> Result<Vec<Option<Result<Run, Stop>>>, Stop> {
        let started = SystemTime::now() - TICK;
        let clock = Instant::now();
        let mut under_way = Vec::new();
        for prepared in all {
            let one = UnderWay::new(prepared)?;
            if self.line.ask_for(&one.run_dir).is_err() {
                return Ok(all.iter().map(|_| None).collect());
            }
            under_way.push(one);
        }
        let mut received = String::new();
        let line = &mut self.line;
        let mut ended = || {
            match line.next_ended(&mut received) {
                Word::None => {}
                Word::Ended(ended) => {
                    let mut all = under_way.iter_mut();
                    if let Some(one) = all.find(|one| one.run_dir.path() == ended.run_dir) {
                        one.ending = Some(ended.ending());
                        one.took = clock.elapsed();
                    }
                }
                Word::HungUp => {
                    for one in &mut under_way {
                        one.ending.get_or_insert(Ending::Killed(libc::SIGKILL));
                    }
                }
            }
            let endings: Option<Vec<Ending>> = under_way.iter().map(|one| one.ending).collect();
            endings?.last().copied()
        };
        let timeout = all.iter().filter_map(|prepared| prepared.timeout).max();
        let supervised = supervise_other(&mut ended, timeout, tick);
        let runs = all.iter().zip(&under_way).map(|(prepared, one)| {
            // The time limit ended only those that were still running.
            let is_in_time = prepared.timeout.is_none_or(|timeout| one.took < timeout);
            let supervised = Supervised {
                ending: one.ending.unwrap_or(supervised.ending),
                cause: match supervised.cause {
                    Cause::TimedOut if is_in_time => Cause::Own,
                    cause => cause,
                },
            };
            let run = gather(prepared, &one.session, &one.run_dir, supervised, started);
            match run.as_ref().map(Run::completion) {
                Ok(Completion::Completed | Completion::OutOfMemory) | Err(_) => Some(run),
                // A trick that refuses the script would also refuse it outside a copy.
                Ok(_) if run.as_ref().is_ok_and(|run| run.trick_refusal().is_some()) => Some(run),
                Ok(_) => None,
            }
        });
        Ok(runs.collect())
    }
}

/// A rehearsal in a copy, running or ended.
struct UnderWay {
    run_dir: RunDir,
    session: Session,
    ending: Option<Ending>,
    /// How long it ran.
    took: Duration,
}

impl UnderWay {
    fn new(prepared: &Prepared) -> Result<Self, Stop> {
        let run_dir = RunDir::create(&prepared.layout).map_err(Stop::Failed)?;
        let session = Session {
            run_dir: run_dir.path().to_owned(),
            copy_socket: None,
            call_log: None,
            ..prepared.session.clone()
        };
        write_session(&run_dir, &session, prepared.reserve_bytes)?;
        Ok(Self {
            run_dir,
            session,
            ending: None,
            took: Duration::MAX,
        })
    }
}

/// Whether a rehearsal that failed in a copy failed because of the copy: the script itself did not, with the same
/// changes.
pub(crate) fn was_the_copys_fault(whole: &Run) -> bool {
    matches!(
        whole.completion(),
        Completion::Completed | Completion::OutOfMemory
    )
}
