//! One line on a terminal that says what is being tried.

use std::io::Write;
use std::time::Duration;

use crate::terminal::shows_progress;

/// The line; nothing is written where standard error is no terminal.
#[derive(Debug, Default)]
pub struct Progress {
    is_shown: bool,
}

impl Progress {
    /// The script is on its way to the place at which its batch is set.
    pub fn starting(&mut self, elapsed: Duration) {
        self.show(&format!(
            "running the script up to its first batch, {} s",
            elapsed.as_secs()
        ));
    }

    pub fn trying(&mut self, batch: u64, tries: usize) {
        self.show(&format!("trying batch {batch} (try {tries})"));
    }

    pub fn confirming(&mut self, batch: u64, elapsed: Duration) {
        self.show(&format!(
            "confirming batch {batch} by a run of its own, {} s",
            elapsed.as_secs()
        ));
    }

    fn show(&mut self, text: &str) {
        let mut stderr = std::io::stderr();
        if shows_progress() {
            self.is_shown = true;
            // Nobody can be told that telling failed.
            let _ = write!(stderr, "\rghostgpu: {text}\x1b[K").and_then(|()| stderr.flush());
        }
    }

    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
