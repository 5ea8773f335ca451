//! `--call-log FILE`: one line for every call the script makes, with its arguments.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::state;

static SINK: OnceLock<Option<Mutex<File>>> = OnceLock::new();

fn sink() -> Option<&'static Mutex<File>> {
    SINK.get_or_init(|| {
        let path = state::session()?.call_log.as_ref()?;
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.ok().map(Mutex::new)
    })
    .as_ref()
}

/// False once it is known that there is no call log, which is nearly always. Every call checks it.
static MAY_BE_WANTED: AtomicBool = AtomicBool::new(true);

/// Writes one call. `arguments` is evaluated only if there is a call log.
#[inline]
pub fn call(function: &str, arguments: impl FnOnce() -> String) {
    if MAY_BE_WANTED.load(Ordering::Relaxed) {
        write(function, arguments);
    }
}

/// A call log that cannot be written must not stop the script: the command line has checked the file
/// before the start, so what fails here is a full disk.
#[cold]
#[inline(never)]
fn write(function: &str, arguments: impl FnOnce() -> String) {
    let Some(sink) = sink() else {
        MAY_BE_WANTED.store(false, Ordering::Relaxed);
        return;
    };
    // SAFETY: neither function has preconditions.
    let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
    let line = format!("{process}/{thread} {function}({})\n", arguments());
    if let Ok(mut file) = sink.lock() {
        let _ = file.write_all(line.as_bytes());
    }
}
