//! What is being tried, for people who wait.

use std::io::Write;
use std::time::Duration;

use crate::terminal::{note, shows_progress};

/// One line on standard error that says what is being tried.
#[derive(Debug, Default)]
pub struct Line {
    said: Option<String>,
}

impl Line {
    const QUIET_FOR: Duration = Duration::from_secs(1);

    pub fn tick(&mut self, what: &str, elapsed: Duration) {
        if elapsed >= Self::QUIET_FOR {
            let mut stderr = std::io::stderr();
            match shows_progress() {
                true => {
                    // Nobody can be told that telling failed.
                    let _ = write!(
                        stderr,
                        "\rghostgpu: rehearsing {what} ({} s)\x1b[K",
                        elapsed.as_secs()
                    );
                    self.said = Some(what.to_owned());
                }
                false => self.say(what),
            }
        }
    }

    /// Once for each, where nobody watches.
    pub fn say(&mut self, what: &str) {
        if !shows_progress() && self.said.as_deref() != Some(what) {
            note(format_args!("rehearsing {what}"));
            self.said = Some(what.to_owned());
        }
    }

    pub fn clear(&mut self) {
        let mut stderr = std::io::stderr();
        if self.said.is_some() && shows_progress() {
            let _ = write!(stderr, "\r\x1b[K");
        }
    }
}
