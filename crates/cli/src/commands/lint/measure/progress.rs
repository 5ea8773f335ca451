//! One line on a terminal that says which run it is.

use std::io::Write;

use super::answer::Variant;
use crate::terminal::shows_progress;

/// The line; nothing is written where standard error is no terminal.
#[derive(Debug, Default)]
pub struct Progress {
    is_shown: bool,
}

impl Progress {
    pub fn show(&mut self, number: usize, count: usize, variant: &Variant, seconds: u64) {
        let mut stderr = std::io::stderr();
        if shows_progress() {
            self.is_shown = true;
            let text = format!("run {number} of {count}: {}, {seconds} s", variant.name());
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
