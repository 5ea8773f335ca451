//! A file to be checked: a script, or a notebook whose code cells are read as one text.

use std::io::Write;
use std::ops::Range;

use ruff_notebook::{Notebook, NotebookError};
use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::TextSize;

use crate::finding::Edit;
use crate::python::Dialect;

/// The byte order mark that some editors put first.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A script or a notebook, with what is needed to speak of lines in it.
pub struct Source {
    text: String,
    lines: LineIndex,
    notebook: Option<Box<Notebook>>,
    /// Whether the file began with a byte order mark, which belongs back when it is written.
    marked: bool,
}

/// Where something stands, counted from 1. A notebook's line is counted inside its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The code cell as Jupyter counts all cells; nothing in a script.
    pub cell: Option<usize>,
    pub line: usize,
    /// In characters, not bytes.
    pub column: usize,
}

/// Why a file cannot be checked at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// Not UTF-8 text.
    NotText,
    /// Holds zero bytes, which no Python source has.
    Binary,
    /// Ends in `.ipynb`, but is not a notebook; with the reason.
    NotANotebook(String),
    /// A notebook of another language.
    NotPython,
    /// Longer than the parser can count.
    TooLarge,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotText => write!(out, "not UTF-8 text"),
            Self::Binary => write!(out, "not text: it holds zero bytes"),
            Self::NotANotebook(reason) => write!(out, "not a notebook: {reason}"),
            Self::NotPython => write!(out, "a notebook of another language than Python"),
            Self::TooLarge => write!(out, "larger than 1 GiB"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Source {
    /// A Python script.
    pub fn script(contents: &[u8]) -> Result<Self, Unreadable> {
        Ok(Self::of_text(
            text_of(contents)?.to_owned(),
            None,
            contents.starts_with(MARK),
        ))
    }

    /// A Jupyter notebook (`.ipynb`).
    pub fn notebook(contents: &[u8]) -> Result<Self, Unreadable> {
        let notebook = Notebook::from_source_code(text_of(contents)?)
            .map_err(|error| Unreadable::NotANotebook(reason(&error)))?;
        if !notebook.is_python_notebook() {
            return Err(Unreadable::NotPython);
        }
        let text = notebook.source_code().to_owned();
        Ok(Self::of_text(
            text,
            Some(Box::new(notebook)),
            contents.starts_with(MARK),
        ))
    }

    fn of_text(text: String, notebook: Option<Box<Notebook>>, marked: bool) -> Self {
        let lines = LineIndex::from_source_text(&text);
        Self {
            text,
            lines,
            notebook,
            marked,
        }
    }

    /// The Python text: the script, or the notebook's code cells one after the other.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn dialect(&self) -> Dialect {
        if self.notebook.is_some() {
            Dialect::Notebook
        } else {
            Dialect::Python
        }
    }

    /// The position of a byte of [`Self::text`].
    pub fn position(&self, byte: usize) -> Position {
        let place = self
            .lines
            .line_column(offset(byte.min(self.text.len())), &self.text);
        let (line, column) = (place.line.get(), place.column.get());
        match &self.notebook {
            None => Position {
                cell: None,
                line,
                column,
            },
            Some(notebook) => {
                let cells = notebook.index();
                Position {
                    cell: cells.cell(place.line).map(OneIndexed::get),
                    line: cells.cell_row(place.line).map_or(line, OneIndexed::get),
                    column,
                }
            }
        }
    }

    /// The line of [`Self::text`] that holds a byte, counted from 0 through all cells.
    pub fn row(&self, byte: usize) -> usize {
        let byte = offset(byte.min(self.text.len()));
        self.lines.line_index(byte).to_zero_indexed()
    }

    /// The line of text that holds a byte, without its line end.
    pub fn line_at(&self, byte: usize) -> &str {
        let line = self.lines.line_index(offset(byte.min(self.text.len())));
        let range = self.lines.line_range(line, &self.text);
        self.text[range.start().to_usize()..range.end().to_usize()].trim_end_matches(['\r', '\n'])
    }

    /// The bytes from the start of the first line of `range` to the end of its last line.
    pub fn whole_lines(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.lines.line_index(offset(range.start));
        let last = self
            .lines
            .line_index(offset(range.end.max(range.start + 1) - 1));
        self.lines.line_start(first, &self.text).to_usize()
            ..self.lines.line_end(last, &self.text).to_usize()
    }

    /// The whole file (of a notebook: its JSON) after `edits`, which are in order of position and
    /// do not overlap.
    pub fn with_edits(&self, edits: &[Edit]) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut copied = 0;
        for edit in edits {
            text.push_str(&self.text[copied..edit.range.start]);
            text.push_str(&edit.text);
            copied = edit.range.end;
        }
        text.push_str(&self.text[copied..]);
        let written = match &self.notebook {
            None => text,
            Some(notebook) => notebook_with(notebook, edits, text),
        };
        if self.marked {
            format!("\u{feff}{written}")
        } else {
            written
        }
    }
}

/// Puts the changed text back into the notebook's cells.
fn notebook_with(notebook: &Notebook, edits: &[Edit], text: String) -> String {
    let mut notebook = notebook.clone();
    let mut map = ruff_diagnostics::SourceMap::default();
    let mut shift: isize = 0;
    for edit in edits {
        let at = |byte: usize, shift: isize| offset(byte.saturating_add_signed(shift));
        map.push_marker(offset(edit.range.start), at(edit.range.start, shift));
        shift += edit.text.len() as isize - edit.range.len() as isize;
        map.push_marker(offset(edit.range.end), at(edit.range.end, shift));
    }
    notebook.update(&map, text);
    let mut written = Vec::new();
    notebook
        .write(&mut written as &mut dyn Write)
        .expect("a vector takes everything");
    String::from_utf8(written).expect("JSON is UTF-8")
}

fn reason(error: &NotebookError) -> String {
    match error {
        NotebookError::Io(error) => error.to_string(),
        NotebookError::Json(error) | NotebookError::InvalidJson(error) => {
            format!("its JSON is broken: {error}")
        }
        NotebookError::InvalidSchema(error) => error.to_string(),
        NotebookError::InvalidFormat(version) => {
            format!("its format is version {version}, and only version 4 is known")
        }
    }
}

fn text_of(contents: &[u8]) -> Result<&str, Unreadable> {
    if contents.len() > 1 << 30 {
        return Err(Unreadable::TooLarge);
    }
    let contents = contents.strip_prefix(MARK).unwrap_or(contents);
    let text = std::str::from_utf8(contents).map_err(|_| Unreadable::NotText)?;
    match text.contains('\0') {
        true => Err(Unreadable::Binary),
        false => Ok(text),
    }
}

fn offset(byte: usize) -> TextSize {
    TextSize::new(u32::try_from(byte).expect("files are smaller than 1 GiB"))
}
