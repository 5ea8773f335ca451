//! Descendants that wait for further work and outlive the command that made them.
//!
//! There is one list for the whole program, because whatever ends a command's leftovers must spare all of them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::signals::{reap_killed, send};

static KEPT: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn list() -> MutexGuard<'static, BTreeSet<i32>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps this process: from now on it does not count as left behind.
pub fn keep(pid: i32) {
    list().insert(pid);
}

/// Ends a process that was kept. Afterwards it is gone: it is our child, since what made it has ended.
pub fn let_go(pid: i32) {
    if list().remove(&pid) {
        send(pid, libc::SIGKILL);
        reap_killed(pid);
    }
}

pub(super) fn kept() -> BTreeSet<i32> {
    list().clone()
}
