//! How answers look and how much is said, decided here for every command: width, colour, `--quiet` and
//! `--verbose`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use ghostgpu_text::{DEFAULT_WIDTH, Sheet};

/// Longer lines are hard to read.
const MOST_COLUMNS: usize = 100;
const LEAST_COLUMNS: usize = 40;

/// How much a command says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The verdict in one line; no progress, no notes.
    Quiet,
    /// What fits one screen.
    #[default]
    Screen,
    /// Everything that is known.
    Everything,
}

/// Where these options stand in help: behind a command's own.
const LAST: usize = 900;

/// The options of every command that choose how much it says.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct DetailOptions {
    /// Show everything that is known, not only what fits on one screen
    #[arg(short, long, global = true, display_order = LAST, conflicts_with = "quiet")]
    verbose: bool,

    /// Show only the verdict, without details, notes or progress
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

/// How an answer is to look.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    pub width: usize,
    pub has_colour: bool,
    pub detail: Detail,
    /// Files below this folder are named relative to it.
    pub current_dir: Option<&'a Path>,
}

/// What a colour says; the words say it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Good,
    Bad,
    Unknown,
}

impl<'a> Look<'a> {
    /// Text for standard output, or for standard error where JSON goes to standard output.
    pub fn of(stream: Stream, current_dir: Option<&'a Path>) -> Self {
        let columns = match stream {
            Stream::Output => terminal_size::terminal_size_of(std::io::stdout()),
            Stream::Error => terminal_size::terminal_size_of(std::io::stderr()),
        };
        Self {
            width: width(columns.map(|(width, _)| width.0)),
            has_colour: stream.has_colour(),
            detail: detail(),
            current_dir,
        }
    }

    /// Text for a file: no terminal decides how it looks.
    pub fn of_file(current_dir: Option<&'a Path>) -> Self {
        Self {
            width: DEFAULT_WIDTH,
            has_colour: false,
            detail: detail(),
            current_dir,
        }
    }

    /// A sheet as wide as this look.
    pub fn sheet(&self) -> Sheet {
        Sheet::with_width(self.width)
    }

    /// The text with its label, which stands at its beginning, in colour.
    pub fn paint_label(&self, label: &str, colour: Colour, text: &str) -> String {
        match text.strip_prefix(label) {
            Some(rest) if self.has_colour => {
                let code = match colour {
                    Colour::Good => 32,
                    Colour::Bad => 31,
                    Colour::Unknown => 33,
                };
                format!("\x1b[1;{code}m{label}\x1b[0m{rest}")
            }
            _ => text.to_owned(),
        }
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

/// A sheet for standard output.
pub fn sheet() -> Sheet {
    Look::of(Stream::Output, None).sheet()
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

/// What tests draw on: a terminal of 80 columns without colour.
#[cfg(test)]
pub const PLAIN: Look = Look {
    width: DEFAULT_WIDTH,
    has_colour: false,
    detail: Detail::Screen,
    current_dir: None,
};

/// What an answer must keep to if it is to be seen at a glance.
#[cfg(test)]
pub fn assert_fits_one_screen(text: &str) {
    assert!(text.lines().count() <= 24, "more than 24 lines:\n{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than 80: {line}\n{text}");
    }
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

    #[test]
    fn colour_is_put_on_the_label_only() {
        let coloured = Look {
            has_colour: true,
            ..PLAIN
        };
        let text = "fits           needs 1 GiB\n";
        assert_eq!(
            coloured.paint_label("fits", Colour::Good, text),
            "\x1b[1;32mfits\x1b[0m           needs 1 GiB\n"
        );
        assert_eq!(PLAIN.paint_label("fits", Colour::Good, text), text);
    }
}
