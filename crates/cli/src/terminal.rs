//! How answers look and how much is said, decided here for every command: width, colour, `--quiet` and
//! `--verbose`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use ghostgpu_answers::{Detail, Look};
use ghostgpu_text::DEFAULT_WIDTH;

/// Longer lines are hard to read.
const MOST_COLUMNS: usize = 100;
const LEAST_COLUMNS: usize = 40;

/// Where these options stand in help: behind a command's own.
const LAST: usize = 900;

/// The options of every command that choose how much it says.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct DetailOptions {
    /// Show everything, not only one screen
    #[arg(short, long, global = true, display_order = LAST, conflicts_with = "quiet")]
    verbose: bool,

    /// Show only the verdict, without notes or progress
    #[arg(short, long, global = true, display_order = LAST)]
    quiet: bool,
}

impl DetailOptions {
    fn detail(self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Quiet,
            (false, true) => Detail::Everything,
            (false, false) => Detail::Screen,
        }
    }
}

static DETAIL: OnceLock<Detail> = OnceLock::new();

/// Remembers how much is to be said. `main` does this before anything is said; later calls change nothing.
pub fn choose(options: DetailOptions) {
    let _ = DETAIL.set(options.detail());
}

pub fn detail() -> Detail {
    DETAIL.get().copied().unwrap_or_default()
}

/// How text looks on standard output, or on standard error where JSON goes to standard output.
pub fn look(stream: Stream, current_dir: Option<&Path>) -> Look<'_> {
    let columns = match stream {
        Stream::Output => terminal_size::terminal_size_of(std::io::stdout()),
        Stream::Error => terminal_size::terminal_size_of(std::io::stderr()),
    };
    Look {
        width: width(columns.map(|(width, _)| width.0)),
        has_colour: stream.has_colour(),
        detail: detail(),
        current_dir,
    }
}

/// How text looks in a file: no terminal decides.
pub fn look_of_file(current_dir: Option<&Path>) -> Look<'_> {
    Look {
        width: DEFAULT_WIDTH,
        has_colour: false,
        detail: detail(),
        current_dir,
    }
}

/// Where text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Output,
    Error,
}

impl Stream {
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Output => std::io::stdout().is_terminal(),
            Self::Error => std::io::stderr().is_terminal(),
        }
    }

    /// A terminal, and nobody asked for none: <https://no-color.org>.
    pub fn has_colour(self) -> bool {
        self.is_terminal() && !is_set(std::env::var_os("NO_COLOR").as_deref())
    }
}

/// Says something beside the answer, on standard error, unless `--quiet` forbids it.
pub fn note(text: impl Display) {
    if detail() != Detail::Quiet {
        // Nobody can hear that nobody hears.
        let _ = writeln!(std::io::stderr(), "ghostgpu: {text}");
    }
}

fn width(columns: Option<u16>) -> usize {
    columns.map_or(DEFAULT_WIDTH, |columns| {
        usize::from(columns).clamp(LEAST_COLUMNS, MOST_COLUMNS)
    })
}

fn is_set(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_the_terminal_but_not_wider_than_can_be_read() {
        for (columns, expected) in [
            (None, 80),
            (Some(72), 72),
            (Some(100), 100),
            (Some(240), 100),
            (Some(3), 40),
        ] {
            assert_eq!(width(columns), expected);
        }
    }

    #[test]
    fn an_empty_no_color_asks_for_nothing() {
        assert!(!is_set(None));
        assert!(!is_set(Some(OsStr::new(""))));
        assert!(is_set(Some(OsStr::new("1"))));
    }
}
