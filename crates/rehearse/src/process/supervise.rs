//! Runs one command to its end, or ends it.

use std::io::{self, Read, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::descendants::living_descendants;
use super::kept::kept;
use super::signals::{become_subreaper, next_signal, prepare_child, reap_one, send};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exited(i32),
    Killed(i32),
}

impl Ending {
    fn from_wait_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Killed(libc::WTERMSIG(status))
        } else {
            Self::Exited(libc::WEXITSTATUS(status))
        }
    }

    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The exit code that a shell would report: the script's own, or 128 plus the signal.
    pub fn shell_code(self) -> u8 {
        match self {
            Self::Exited(code) => code as u8,
            Self::Killed(signal) => 128u8.saturating_add(signal as u8),
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program ended by itself, successfully or not.
    Own,
    /// We ended it at its time limit.
    TimedOut,
    /// We were asked to stop, by this signal.
    Interrupted(i32),
}

/// The end of a supervised run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supervised {
    pub ending: Ending,
    pub cause: Cause,
}

/// Runs `command` for at most `timeout`; `tick` is called about once a second with the elapsed time.
///
/// When this returns, the command and everything it started have ended, except for [kept](super::keep) processes.
/// Signals must be held (see [`hold_signals`](super::hold_signals)).
pub fn supervise(
    command: &mut Command,
    timeout: Option<Duration>,
    tick: &mut dyn FnMut(Duration),
) -> io::Result<Supervised> {
    supervise_and_keep(command, timeout, tick, &mut || {})
}

/// The same. `at_end` is called when the command has ended by itself, and may keep a process that it left behind.
pub fn supervise_and_keep(
    command: &mut Command,
    timeout: Option<Duration>,
    tick: &mut dyn FnMut(Duration),
    at_end: &mut dyn FnMut(),
) -> io::Result<Supervised> {
    become_subreaper()?;
    prepare_child(command);
    let child = command.spawn()?.id() as i32;
    let supervised = watch(&mut || reap_until(child), None, timeout, tick);
    if supervised.cause == Cause::Own {
        at_end();
    }
    end_what_is_left();
    Ok(supervised)
}

/// The same for a process that is not our child. `ended` says how it ended, once it has.
pub fn supervise_other(
    ended: &mut dyn FnMut() -> Option<Ending>,
    timeout: Option<Duration>,
    tick: &mut dyn FnMut(Duration),
) -> Supervised {
    /// We get no signal when it ends, so we have to poll.
    const PAUSE: Duration = Duration::from_millis(10);
    let supervised = watch(ended, Some(PAUSE), timeout, tick);
    end_what_is_left();
    supervised
}

/// Waits until `ended` returns an ending, and ends the process at its time limit or on a signal to stop. `ended` is
/// called after every signal, and every `pause`.
fn watch(
    ended: &mut dyn FnMut() -> Option<Ending>,
    pause: Option<Duration>,
    timeout: Option<Duration>,
    tick: &mut dyn FnMut(Duration),
) -> Supervised {
    let started = Instant::now();
    let mut cause = Cause::Own;
    let mut requests = 0;
    let mut escalation: Option<Escalation> = None;
    let mut next_tick = Duration::from_secs(1);
    let ending = loop {
        if let Some(ending) = ended() {
            break ending;
        }
        let elapsed = started.elapsed();
        if elapsed >= next_tick {
            tick(elapsed);
            next_tick = elapsed + Duration::from_secs(1);
        }
        if escalation.is_none() && timeout.is_some_and(|limit| elapsed >= limit) {
            cause = Cause::TimedOut;
            escalation = Some(Escalation::after_timeout());
        }
        if let Some(escalation) = &mut escalation {
            escalation.advance();
        }
        let mut patience = next_tick.saturating_sub(started.elapsed());
        if let Some(limit) = timeout {
            patience = patience.min(limit.saturating_sub(elapsed));
        }
        if let Some(escalation) = &escalation {
            patience = escalation.patience();
        }
        if let Some(pause) = pause {
            patience = patience.min(pause);
        }
        let Some(received) = next_signal(patience) else {
            continue;
        };
        if received.signal == libc::SIGCHLD {
            continue;
        }
        requests += 1;
        cause = Cause::Interrupted(received.signal);
        if !received.is_from_terminal {
            send_to_all(received.signal);
        }
        escalation = Some(match requests {
            1 => Escalation::after_request(),
            // The second signal: the user does not want to wait.
            _ => Escalation::at_once(),
        });
    };
    Supervised { ending, cause }
}

/// Runs a short command and returns its end, standard output and standard error.
pub fn capture(
    command: &mut Command,
    timeout: Duration,
) -> io::Result<(Supervised, String, String)> {
    // Files instead of pipes, because nothing has to read them while the command runs.
    let mut output = tempfile::tempfile()?;
    let mut errors = tempfile::tempfile()?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?);
    let supervised = supervise(command, Some(timeout), &mut |_| {})?;
    let read_back = |file: &mut std::fs::File| -> io::Result<String> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok((supervised, read_back(&mut output)?, read_back(&mut errors)?))
}

/// Reaps all children that have ended; returns how `child` ended, if it is one of them.
fn reap_until(child: i32) -> Option<Ending> {
    while let Some((pid, status)) = reap_one() {
        if pid == child {
            return Some(Ending::from_wait_status(status));
        }
    }
    None
}

fn send_to_all(signal: i32) {
    for pid in living_descendants() {
        send(pid, signal);
    }
}

/// The processes that still have to end. Kept ones may stay; they have no children while they wait.
fn leftovers() -> Vec<i32> {
    let kept = kept();
    let mut left = living_descendants();
    left.retain(|pid| !kept.contains(pid));
    left
}

/// Ends the processes that outlived the command.
///
/// Python's helpers (its resource tracker, a data loader's workers) need a moment to notice that their parent is gone.
/// Whatever is still there after that gets SIGTERM, then SIGKILL.
fn end_what_is_left() {
    let mut escalation = Escalation::for_leftovers();
    loop {
        while reap_one().is_some() {}
        if leftovers().is_empty() {
            return;
        }
        escalation.advance();
        if escalation.is_hopeless() {
            return;
        }
        // A leftover may still have another parent, so we may get no signal when it ends.
        next_signal(escalation.patience().min(Duration::from_millis(20)));
    }
}

/// Increasingly forceful signals, each after a delay, to all our descendants.
struct Escalation {
    started: Instant,
    pending: Vec<(Duration, i32)>,
    spares_kept: bool,
}

impl Escalation {
    /// The last signal is repeated at this interval, for processes started in the meantime.
    const REPEAT: Duration = Duration::from_millis(200);
    /// A process in an uninterruptible system call may survive even SIGKILL for a while.
    const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

    /// `steps` are milliseconds from now, each with the signal to send then.
    fn new(steps: &[(u64, i32)]) -> Self {
        Self {
            started: Instant::now(),
            pending: steps
                .iter()
                .map(|&(milliseconds, signal)| (Duration::from_millis(milliseconds), signal))
                .collect(),
            spares_kept: false,
        }
    }

    /// SIGINT first: Python turns it into an exception, and the agent can still report.
    fn after_timeout() -> Self {
        Self::new(&[
            (0, libc::SIGINT),
            (3_000, libc::SIGTERM),
            (5_000, libc::SIGKILL),
        ])
    }

    /// The user's own signal has been sent; `finally` blocks get time to run.
    fn after_request() -> Self {
        Self::new(&[(10_000, libc::SIGTERM), (12_000, libc::SIGKILL)])
    }

    fn at_once() -> Self {
        Self::new(&[(500, libc::SIGKILL)])
    }

    fn for_leftovers() -> Self {
        Self {
            spares_kept: true,
            ..Self::new(&[(500, libc::SIGTERM), (2_500, libc::SIGKILL)])
        }
    }

    /// Sends the signals that are due.
    fn advance(&mut self) {
        while let Some(&(due, signal)) = self.pending.first() {
            if self.started.elapsed() < due {
                return;
            }
            match self.spares_kept {
                true => leftovers().into_iter().for_each(|pid| send(pid, signal)),
                false => send_to_all(signal),
            }
            if self.pending.len() == 1 {
                self.pending[0].0 = self.started.elapsed() + Self::REPEAT;
                return;
            }
            self.pending.remove(0);
        }
    }

    /// How long until the next signal is due.
    fn patience(&self) -> Duration {
        let due = self.pending.first().map_or(Self::REPEAT, |step| step.0);
        due.saturating_sub(self.started.elapsed())
    }

    fn is_hopeless(&self) -> bool {
        self.started.elapsed() > Self::GIVE_UP_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_have_the_code_a_shell_would_give() {
        assert_eq!(Ending::Exited(7).shell_code(), 7);
        assert_eq!(Ending::Killed(libc::SIGKILL).shell_code(), 137);
        assert_eq!(Ending::from_wait_status(7 << 8), Ending::Exited(7));
        assert_eq!(Ending::from_wait_status(9), Ending::Killed(9));
    }

    #[test]
    fn the_last_signal_of_an_escalation_stays_due() {
        let mut escalation = Escalation::new(&[(0, 0), (0, 0)]);
        // Signal 0 is sent to nobody in particular and does nothing.
        escalation.advance();
        assert_eq!(escalation.pending.len(), 1);
        assert!(escalation.patience() <= Escalation::REPEAT);
        assert!(!escalation.is_hopeless());
    }
}
