//! How the text of an answer looks, as plain data. The caller decides it.

use std::path::Path;

use ghostgpu_text::Sheet;

/// How much a command prints.
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

/// How the text of an answer looks: width, colour, amount of detail.
#[derive(Clone, Copy, Debug)]
pub struct Style<'a> {
    pub width: usize,
    pub has_colour: bool,
    pub detail: Detail,
    /// Files below this folder are named relative to it.
    pub current_dir: Option<&'a Path>,
}

/// What a colour means; the words say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Good,
    Bad,
    Unknown,
}

impl Style<'_> {
    /// An empty sheet of this width.
    pub(crate) fn sheet(&self) -> Sheet {
        Sheet::with_width(self.width)
    }

    /// The text with the label at its beginning in colour.
    pub(crate) fn paint_label(&self, label: &str, colour: Colour, text: &str) -> String {
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

/// The style of tests: 80 columns without colour.
#[cfg(test)]
pub const PLAIN: Style = Style {
    width: ghostgpu_text::DEFAULT_WIDTH,
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
    fn colour_is_put_on_the_label_only() {
        let coloured = Style {
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
