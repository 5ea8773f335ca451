//! Processes below us that wait for further work and outlive the command that made them.
//!
//! One list for the whole program: whoever ends what a command has left behind must know them all.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::signals::send;

static KEPT: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn list() -> MutexGuard<'static, BTreeSet<i32>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, this process is not taken for one that was left behind.
pub fn keep(pid: i32) {
    list().insert(pid);
}

/// Ends a process that was kept.
pub fn let_go(pid: i32) {
    if list().remove(&pid) {
        send(pid, libc::SIGKILL);
    }
}

pub(super) fn kept() -> BTreeSet<i32> {
    list().clone()
}
