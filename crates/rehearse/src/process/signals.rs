//! Signals as values: held back from the moment a run is prepared, and taken one at a time.
//!
//! A handler could interrupt us anywhere, even between creating a folder and noting that it must be removed. Held
//! signals wait until we ask for them.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

/// The signals we take: a child's end, and everything that asks us to stop.
const HELD: [libc::c_int; 5] = [
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
];

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub signal: i32,
    /// The terminal sent it to the whole foreground group, so the child has it already.
    pub is_from_terminal: bool,
}

fn held_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set it is given, and `sigaddset` is then called on an
    // initialised set with valid signal numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in HELD {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Holds the signals back from now on. Call it before any thread is started.
pub fn hold_signals() {
    let set = held_set();
    // SAFETY: `set` is initialised; a null old set is allowed.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
    }
}

/// Makes this process the one that adopts orphaned descendants.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: this option of `prctl` takes one integer and touches no memory of ours.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives the child an ordinary signal mask, and has the kernel send it SIGTERM if we are killed.
pub fn prepare_child(command: &mut Command) {
    let set = held_set();
    // SAFETY: the closure runs between fork and exec and only makes async-signal-safe system
    // calls; `set` is plain data that it owns.
    unsafe {
        command.pre_exec(move || {
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0);
            Ok(())
        });
    }
}

/// Waits for a held signal, at most for `patience`.
pub fn next_signal(patience: Duration) -> Option<Received> {
    let set = held_set();
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(patience.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(patience.subsec_nanos() as i32),
    };
    let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: all three pointers are to live values of the right type.
    let signal = unsafe { libc::sigtimedwait(&set, information.as_mut_ptr(), &timeout) };
    if signal <= 0 {
        // Nothing came in time, or a stop and continue interrupted the wait. Either way the caller checks the clock and
        // asks again.
        return None;
    }
    // SAFETY: zeroes are a valid `siginfo_t`, and the kernel has filled it in.
    let information = unsafe { information.assume_init() };
    Some(Received {
        signal,
        is_from_terminal: information.si_code == libc::SI_KERNEL,
    })
}

/// Sends a signal to one process; one that has just ended is not an error.
pub fn send(pid: i32, signal: i32) {
    // SAFETY: `kill` touches no memory. `pid` is a positive process id, never a group.
    unsafe {
        libc::kill(pid, signal);
    }
}

/// Waits a moment until a child that was killed has ended, and reaps it; returns at once if it is no child of ours.
pub fn reap_killed(pid: i32) {
    const PATIENCE: Duration = Duration::from_secs(2);
    let killed = Instant::now();
    // SAFETY: without a status to fill in, `waitpid` touches no memory.
    while unsafe { libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG) } == 0 {
        if killed.elapsed() > PATIENCE {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reaps one child that has ended, if there is one: its id and raw wait status.
pub fn reap_one() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: `status` is a live integer.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}
