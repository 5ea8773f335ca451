//! Decides for every command how its text looks and how much it prints: width, colour, `--quiet` and `--verbose`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use ghostgpu_answers::{Detail, Style};
use ghostgpu_text::DEFAULT_WIDTH;

/// Longer lines are hard to read.
const MOST_COLUMNS: usize = 100;
const LEAST_COLUMNS: usize = 40;

/// The position of these options in help: after a command's own.
const LAST: usize = 900;

/// The options of every command that choose how much it prints.
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

/// Stores how much to print. `main` calls this before anything is printed; later calls have no effect.
pub fn choose(options: DetailOptions) {
    let _ = DETAIL.set(options.detail());
}

pub fn detail() -> Detail {
    DETAIL.get().copied().unwrap_or_default()
}

/// The style of text on standard output, or on standard error if JSON goes to standard output.
pub fn style(stream: Stream, current_dir: Option<&Path>) -> Style<'_> {
    let columns = match stream {
        Stream::Output => terminal_size::terminal_size_of(std::io::stdout()),
        Stream::Error => terminal_size::terminal_size_of(std::io::stderr()),
    };
    Style {
        width: width(columns.map(|(width, _)| width.0)),
        has_colour: stream.has_colour(),
        detail: detail(),
        current_dir,
    }
}

/// The style of text in a file, independent of the terminal.
pub fn style_of_file(current_dir: Option<&Path>) -> Style<'_> {
    Style {
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

    /// Whether it is a terminal without `NO_COLOR`: <https://no-color.org>.
    pub fn has_colour(self) -> bool {
        self.is_terminal() && !is_set(std::env::var_os("NO_COLOR").as_deref())
    }
}

/// Prints a note to standard error, unless `--quiet` is set.
pub fn note(text: impl Display) {
    if detail() != Detail::Quiet {
        // If standard error is closed, there is no way to report that.
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
