//! Rehearsals in copies of a script that was held where it first uses the card.
//!
//! Everything before that moment is the same in every rehearsal of a job, whichever card it is and whatever memory it has:
//! imports, data, a model built on the host. So the agent of a rehearsal forks there (`agent/card_point.py`).
//! The script itself continues as if nothing had been; the copy calls us, waits, and forks again for each
//! further rehearsal, in a folder of its own and with a session of its own. A copy that cannot be made, or
//! that fails in a way the script might not have, is nothing but time lost: the script is started again.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ghostgpu_session::Session;
use serde::Deserialize;
use serde_json::json;

use crate::change::Change;
use crate::judge::{Completion, Run};
use crate::prepare::Prepared;
use crate::process::{Ending, keep, let_go, supervise_other};
use crate::run_dir::{RunDir, TICK};
use crate::stop::Stop;
use crate::whole::{gather, log_of, write_session};

/// How long a copy that has called may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a copy can differ from its script in all of this: what is decided before the card is first used cannot
/// change any more.
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

/// Where a copy of a script calls.
pub(crate) struct Listener {
    listener: UnixListener,
    pub socket: PathBuf,
}

impl Listener {
    /// None where no socket can be made; then there is no copy.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let socket = folder.join("copy.socket");
        let listener = UnixListener::bind(&socket).ok()?;
        listener.set_nonblocking(true).ok()?;
        Some(Self { listener, socket })
    }

    /// The copy that has called, which from now on is kept. It does so before the script goes on.
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

/// What the copy says of a rehearsal that has ended.
#[derive(Deserialize)]
struct Ended {
    status: i32,
}

/// Our side of the line to a copy that waits. Dropping it ends the copy.
pub(crate) struct CopyLine {
    input: BufReader<UnixStream>,
    pid: i32,
}

impl CopyLine {
    fn ask_for(&mut self, run_dir: &RunDir) -> std::io::Result<()> {
        let request = json!({"run_dir": run_dir.path(), "output": log_of(run_dir)});
        writeln!(self.input.get_mut(), "{request}")
    }

    /// How the rehearsal ended, if it has; a copy that hung up was killed.
    fn ended(&mut self, received: &mut String) -> Option<Ending> {
        match self.input.read_line(received) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Ok(count) if count > 0 && !received.ends_with('\n') => None,
            Ok(count) if count > 0 => {
                let ended = serde_json::from_str(received).ok();
                Some(match ended {
                    // Python writes a signal as a negative number.
                    Some(Ended { status }) if status >= 0 => Ending::Exited(status),
                    Some(Ended { status }) => Ending::Killed(-status),
                    None => Ending::Killed(libc::SIGKILL),
                })
            }
            _ => Some(Ending::Killed(libc::SIGKILL)),
        }
    }
}

impl Drop for CopyLine {
    fn drop(&mut self) {
        let_go(self.pid);
    }
}

/// A copy that waits, with the folder of the rehearsal it comes from, whose files it still uses.
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

    /// Whether a copy can do what this session asks for: parts of the agent can be left out in it, not added.
    pub fn can_be(&self, session: &Session) -> bool {
        let own = &self.session;
        session.devices.len() == own.devices.len()
            && (own.attribution || !session.attribution)
            && (own.coverage.is_some() || session.coverage.is_none())
            && session.size_point.is_none()
            && session.halves_sizes == own.halves_sizes
            && (own.tricks.is_empty() || session.tricks == own.tricks)
    }

    /// One rehearsal in a copy; none if it has to be made with the script itself.
    pub fn rehearse(
        &mut self,
        prepared: &Prepared,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<Option<Run>, Stop> {
        let run_dir = RunDir::create(&prepared.layout).map_err(Stop::Failed)?;
        let session = Session {
            run_dir: run_dir.path().to_owned(),
            copy_socket: None,
            call_log: None,
            ..prepared.session.clone()
        };
        write_session(&run_dir, &session, prepared.reserve_bytes)?;
        let started = SystemTime::now() - TICK;
        if self.line.ask_for(&run_dir).is_err() {
            return Ok(None);
        }
        let mut received = String::new();
        let line = &mut self.line;
        let supervised = supervise_other(&mut || line.ended(&mut received), prepared.timeout, tick);
        let run = gather(prepared, &session, &run_dir, supervised, started)?;
        Ok(match run.completion() {
            Completion::Completed | Completion::OutOfMemory => Some(run),
            // A trick that cannot be right for the script cannot be right for a copy either.
            _ if run.trick_refusal().is_some() => Some(run),
            _ => None,
        })
    }
}

/// Whether a rehearsal that failed in a copy failed because of that: the script itself, with the same changes, did not.
pub(crate) fn was_the_copys_fault(whole: &Run) -> bool {
    matches!(
        whole.completion(),
        Completion::Completed | Completion::OutOfMemory
    )
}
