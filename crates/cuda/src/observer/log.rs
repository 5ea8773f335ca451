//! The memory log itself: a file, and a buffer in front of it.

use std::ffi::c_void;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use ghostgpu_session::memory_log::LogEntry;

const BUFFER_BYTES: usize = 1 << 20;

struct Log {
    file: File,
    buffer: Vec<u8>,
}

impl Log {
    fn flush(&mut self) {
        // A full disk must not stop the script: the log then ends early, and its reader accepts that.
        let _ = self.file.write_all(&self.buffer);
        self.buffer.clear();
    }
}

static LOG: Mutex<Option<Log>> = Mutex::new(None);

/// Whether there is a log. Checked at each allocation.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Begins a log; returns whether its file could be created.
pub fn start(path: &Path) -> bool {
    let (Ok(file), Ok(mut log)) = (File::create(path), LOG.lock()) else {
        return false;
    };
    *log = Some(Log {
        file,
        buffer: Vec::with_capacity(BUFFER_BYTES),
    });
    IS_ON.store(true, Ordering::Release);
    true
}

/// Writes the buffer to the file.
pub fn flush() {
    if let Ok(mut log) = LOG.lock()
        && let Some(log) = log.as_mut()
    {
        log.flush();
    }
}

/// Ends the log without flushing: a forked child also has its parent's buffer.
pub fn stop() {
    IS_ON.store(false, Ordering::Release);
    // `try_lock`: if the parent was writing during the fork, the child's lock is never released.
    if let Ok(mut log) = LOG.try_lock() {
        *log = None;
    }
}

#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Acquire)
}

/// Writes one entry, if there is a log.
#[inline]
pub fn write(entry: LogEntry) {
    if is_on() {
        append(entry);
    }
}

#[inline(never)]
fn append(entry: LogEntry) {
    if let Ok(mut log) = LOG.lock()
        && let Some(log) = log.as_mut()
    {
        entry.write(&mut log.buffer);
        if log.buffer.len() >= BUFFER_BYTES {
            log.flush();
        }
    }
}

/// Logs memory that takes part in a collective of several ranks.
#[inline]
pub fn exchanged(address: *const c_void) {
    if is_on() && !address.is_null() {
        append(LogEntry::Exchanged {
            address: address as u64,
        });
    }
}

/// Logs memory that a library was given as a workspace.
#[inline]
pub fn workspace(address: *const c_void) {
    if is_on() && !address.is_null() {
        append(LogEntry::Workspace {
            address: address as u64,
        });
    }
}
