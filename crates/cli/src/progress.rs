//! The one progress display, which says what is being done.
//!
//! Work that takes less than two seconds shows nothing. On a terminal, one line is updated in place. Elsewhere, a line
//! is written after two seconds and then every ten; while a script itself prints to the log, only every ten.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::terminal::{Stream, detail};
use ghostgpu_answers::Detail;
use ghostgpu_rehearse::{Dimension, Observer, Purpose};
use ghostgpu_text::{human, seconds};

/// Shorter work shows no line.
const QUIET_FOR: Duration = Duration::from_secs(2);
/// How often the line of a terminal is updated at most.
const RENEWED_EVERY: Duration = Duration::from_millis(100);
/// How often a line is written to a log, which needs few of them.
const REPEATED_EVERY: Duration = Duration::from_secs(10);
/// Work that begins this soon after other work counts as its continuation.
const SHORT_PAUSE: Duration = Duration::from_millis(500);
const BAR_WIDTH: usize = 30;

/// When a line is due, and what is on the screen. The time is a parameter, so that tests need not wait.
#[derive(Debug)]
struct Line {
    is_terminal: bool,
    /// When the current work began.
    began: Instant,
    /// When the last work ended, if none is going on.
    paused: Option<Instant>,
    /// When a line was last written.
    shown: Option<Instant>,
    is_on_screen: bool,
}

impl Line {
    fn new(is_terminal: bool, now: Instant) -> Self {
        Self {
            is_terminal,
            began: now,
            paused: None,
            shown: None,
            is_on_screen: false,
        }
    }

    /// Work begins, or continues after a short pause.
    fn begin(&mut self, now: Instant) {
        let is_new = self
            .paused
            .take()
            .is_some_and(|since| now - since > SHORT_PAUSE);
        if is_new {
            self.began = now;
            self.shown = None;
        }
    }

    /// What to write for `text` now, if anything.
    fn due(&mut self, text: &str, now: Instant) -> Option<String> {
        if now - self.began < QUIET_FOR {
            return None;
        }
        let pause = match self.is_terminal {
            true => RENEWED_EVERY,
            false => REPEATED_EVERY,
        };
        if self.shown.is_some_and(|shown| now - shown < pause) {
            return None;
        }
        self.shown = Some(now);
        self.is_on_screen = self.is_terminal;
        Some(match self.is_terminal {
            true => format!("\rghostgpu: {text}\x1b[K"),
            false => format!("ghostgpu: {text}\n"),
        })
    }

    /// Work ends; returns what to write to clear the line.
    fn end(&mut self, now: Instant) -> Option<&'static str> {
        self.paused = Some(now);
        std::mem::take(&mut self.is_on_screen).then_some("\r\x1b[K")
    }
}

/// Progress of one piece of work on standard error; any thread may report it.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: usize,
    line: Mutex<Line>,
}

impl Progress {
    /// Counts up to `total`; with a total of 0, only `what` is shown.
    pub fn new(what: &'static str, total: usize) -> Self {
        Self {
            what,
            total,
            line: Mutex::new(Line::new(Stream::Error.is_terminal(), Instant::now())),
        }
    }

    /// Reports that `count` things are done.
    pub fn done(&self, count: usize) {
        self.show(|| bar(self.what, count, self.total));
    }

    /// Reports that this many bytes were read, of an unknown total.
    pub fn bytes(&self, bytes: u64) {
        self.show(|| format!("{}, {}", self.what, human(bytes)));
    }

    fn show(&self, text: impl FnOnce() -> String) {
        // If another thread is writing, its line is just as good.
        if let Ok(mut line) = self.line.try_lock() {
            let now = Instant::now();
            if now - line.began >= QUIET_FOR {
                write(line.due(&text(), now).as_deref());
            }
        }
    }
}

/// Shows how long work takes that has nothing to count.
pub fn during<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            let (progress, began) = (Progress::new(what, 0), Instant::now());
            while ended.recv_timeout(RENEWED_EVERY) == Err(RecvTimeoutError::Timeout) {
                let whole = Duration::from_secs(began.elapsed().as_secs());
                progress.show(|| format!("{what}, {}", seconds(whole)));
            }
        });
        let result = work();
        drop(working);
        result
    })
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Ok(line) = self.line.get_mut() {
            write(line.end(Instant::now()));
        }
    }
}

/// What is being rehearsed, on standard error.
#[derive(Debug)]
pub struct Rehearsing {
    state: Mutex<(Line, String, Instant)>,
    /// When a line about a script with visible output was last written, in multiples of [`REPEATED_EVERY`].
    said_in_sight: AtomicU64,
}

impl Default for Rehearsing {
    fn default() -> Self {
        let now = Instant::now();
        let mut line = Line::new(Stream::Error.is_terminal(), now);
        line.paused = Some(now);
        Self {
            state: Mutex::new((line, String::new(), now)),
            said_in_sight: AtomicU64::new(0),
        }
    }
}

impl Observer for Rehearsing {
    fn begins(&self, purpose: &Purpose) {
        if let Ok(mut state) = self.state.lock() {
            let (line, text, began) = &mut *state;
            *text = in_words(purpose);
            *began = Instant::now();
            line.begin(*began);
            write(line.due(text, *began).as_deref());
        }
    }

    fn goes_on(&self) {
        if let Ok(mut state) = self.state.lock() {
            let (line, text, began) = &mut *state;
            // Without announced work there is nothing to update.
            if line.paused.is_none() {
                let whole = Duration::from_secs(began.elapsed().as_secs());
                let text = format!("{text}, {}", seconds(whole));
                write(line.due(&text, Instant::now()).as_deref());
            }
        }
    }

    fn ends(&self) {
        if let Ok(mut state) = self.state.lock() {
            write(state.0.end(Instant::now()));
        }
    }

    /// On a terminal the script has the screen to itself. A log gets a line that it is still running.
    fn goes_on_in_sight(&self, elapsed: Duration) {
        let times = elapsed.as_secs() / REPEATED_EVERY.as_secs();
        let before = self.said_in_sight.swap(times, Ordering::Relaxed);
        if !Stream::Error.is_terminal() {
            write(still_running(before, times).as_deref());
        }
    }
}

/// The line about a script that has been running for `times` × [`REPEATED_EVERY`], unless it was already written.
fn still_running(said_after: u64, times: u64) -> Option<String> {
    let whole = Duration::from_secs(REPEATED_EVERY.as_secs().saturating_mul(times));
    (times > said_after).then(|| {
        format!(
            "ghostgpu: the script has been running for {}\n",
            seconds(whole)
        )
    })
}

fn in_words(purpose: &Purpose) -> String {
    match purpose {
        Purpose::AsItIs => "rehearsing the script as it is".to_owned(),
        Purpose::Need => "rehearsing with unlimited memory, to find the need".to_owned(),
        Purpose::AssumedSizes => "rehearsing with half of the sizes that were assumed".to_owned(),
        Purpose::OnCard {
            name,
            is_unlimited: true,
        } => format!("rehearsing on a {name} with unlimited memory"),
        Purpose::OnCard { name, .. } => format!("rehearsing on a {name}"),
        Purpose::SmallestMemory { bytes } => {
            format!("rehearsing with {}, the least it may need", human(*bytes))
        }
        Purpose::ReachingSizePoint => "running the script up to its first batch".to_owned(),
        Purpose::Size {
            dimension,
            size,
            count,
        } => match dimension {
            Dimension::Batch => format!("rehearsing a batch of {size} (rehearsal {count})"),
            Dimension::Sequence => {
                format!("rehearsing sequences of {size} tokens (rehearsal {count})")
            }
        },
        Purpose::Confirmation { batch } => {
            format!("confirming a batch of {batch} with a whole run")
        }
        Purpose::Candidate(what) => format!("rehearsing {what}"),
        Purpose::Fix { name, number, of } => format!("rehearsal {number} of {of}: {name}"),
    }
}

/// Writes what is due, unless `--quiet` forbids it.
fn write(text: Option<&str>) {
    if let Some(text) = text.filter(|_| detail() != Detail::Quiet) {
        let mut stderr = std::io::stderr().lock();
        // A closed terminal is not an error.
        let _ = stderr
            .write_all(text.as_bytes())
            .and_then(|()| stderr.flush());
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

    /// What is written if the same progress is reported every second.
    fn written(is_terminal: bool, until_s: u64) -> Vec<(u64, String)> {
        let start = Instant::now();
        let mut line = Line::new(is_terminal, start);
        let ticks = (0..=until_s).filter_map(|second| {
            let text = line.due("work", start + Duration::from_secs(second))?;
            Some((second, text))
        });
        ticks.collect()
    }

    #[test]
    fn short_work_says_nothing() {
        assert_eq!(written(true, 1), []);
        assert_eq!(written(false, 1), []);
    }

    #[test]
    fn a_terminal_has_one_line_that_is_renewed() {
        let lines = written(true, 4);
        let seconds: Vec<u64> = lines.iter().map(|line| line.0).collect();
        assert_eq!(seconds, [2, 3, 4]);
        assert!(lines.iter().all(|line| line.1 == "\rghostgpu: work\x1b[K"));
    }

    #[test]
    fn elsewhere_a_line_comes_after_two_seconds_and_then_every_ten() {
        let lines = written(false, 25);
        let seconds: Vec<u64> = lines.iter().map(|line| line.0).collect();
        assert_eq!(seconds, [2, 12, 22]);
        assert!(lines.iter().all(|line| line.1 == "ghostgpu: work\n"));
    }

    #[test]
    fn a_script_in_sight_is_said_to_run_once_every_ten_seconds() {
        assert_eq!(still_running(0, 0), None);
        let line = "ghostgpu: the script has been running for 20 s\n";
        assert_eq!(still_running(1, 2).as_deref(), Some(line));
        assert_eq!(still_running(2, 2), None);
        // Another script has begun.
        assert_eq!(still_running(5, 0), None);
    }

    #[test]
    fn the_line_goes_when_the_work_ends_and_work_after_a_pause_is_new() {
        let start = Instant::now();
        let mut line = Line::new(true, start);
        assert!(line.due("work", start + QUIET_FOR).is_some());
        assert_eq!(line.end(start + QUIET_FOR), Some("\r\x1b[K"));
        assert_eq!(line.end(start + QUIET_FOR), None);
        let later = start + Duration::from_secs(60);
        line.begin(later);
        assert_eq!(line.due("more", later + Duration::from_secs(1)), None);
        assert!(line.due("more", later + QUIET_FOR).is_some());
    }

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
