//! A line on a terminal that says how far something is.

use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::terminal::shows_progress;

/// Nobody reads a line that changes more often.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
/// What is over by then needs no line.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
const BAR_WIDTH: usize = 30;

/// How many of a known number of things are done, on standard error, if that is a terminal.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: usize,
    started: Instant,
    /// When the line was last written.
    shown: Option<Mutex<Option<Instant>>>,
}

impl Progress {
    pub fn new(what: &'static str, total: usize) -> Self {
        Self {
            what,
            total,
            started: Instant::now(),
            shown: shows_progress().then(Mutex::default),
        }
    }

    /// So many are done; any thread may say so.
    pub fn done(&self, count: usize) {
        let Some(shown) = &self.shown else { return };
        let Ok(mut last) = shown.try_lock() else {
            return;
        };
        let now = Instant::now();
        let is_due = match *last {
            Some(before) => now - before >= LEAST_PAUSE,
            None => now - self.started >= FIRST_PAUSE,
        };
        if is_due {
            *last = Some(now);
            let line = bar(self.what, count, self.total);
            let mut stderr = std::io::stderr().lock();
            // A terminal that is gone takes no progress, and needs none.
            let _ = write!(stderr, "\r{line}\x1b[K").and_then(|()| stderr.flush());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some(shown) = &self.shown else { return };
        if shown.lock().is_ok_and(|last| last.is_some()) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn bar(what: &str, count: usize, total: usize) -> String {
    let full = (count * BAR_WIDTH).checked_div(total).unwrap_or(BAR_WIDTH);
    let full = full.min(BAR_WIDTH);
    format!(
        "{what} [{}{}] {count} of {total}",
        "#".repeat(full),
        "-".repeat(BAR_WIDTH - full)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_full_when_all_is_done() {
        assert_eq!(
            bar("settings", 100, 200),
            "settings [###############---------------] 100 of 200"
        );
        assert!(bar("settings", 7, 7).contains(&"#".repeat(BAR_WIDTH)));
        assert!(bar("nothing", 0, 0).contains(&"#".repeat(BAR_WIDTH)));
    }
}
