//! A file to be checked: a script, or a notebook whose code cells are read as one text.

use std::ops::Range;

use ruff_notebook::{Notebook, NotebookError};
use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::TextSize;

use crate::encoding::{self, Encoding};
use crate::finding::Edit;
use crate::notebook::NotebookText;
use crate::python::Dialect;

/// Larger files are not read.
pub const LARGEST: usize = 256 << 20;

/// The most code in one file: a syntax tree takes many times the size of its text.
const LARGEST_CODE: usize = 32 << 20;

/// The byte order mark that some editors put first.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A script or a notebook, with an index of its lines.
pub struct Source {
    text: String,
    lines: LineIndex,
    notebook: Option<Box<Cells>>,
    /// Whether the file began with a byte order mark, which is written back.
    marked: bool,
    encoding: Encoding,
}

/// What is known about a notebook besides its code.
struct Cells {
    notebook: Notebook,
    text: NotebookText,
}

/// A position, counted from 1. In a notebook, lines are counted per cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The cell's number among all cells, as Jupyter counts them; `None` in a script.
    pub cell: Option<usize>,
    pub line: usize,
    /// In characters, not bytes.
    pub column: usize,
}

/// Why a file cannot be checked at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// Neither UTF-8 nor the encoding it declares, nor GBK.
    NotText,
    /// Holds zero bytes, which no Python source has.
    Binary,
    /// Ends in `.ipynb` but is not a notebook; with the reason.
    NotANotebook(String),
    /// A notebook of another language.
    NotPython,
    /// Larger than any real code file.
    TooLarge,
    /// Holds more code than [`LARGEST_CODE`].
    TooMuchCode,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotText => write!(out, "not UTF-8 text"),
            Self::Binary => write!(out, "not text: it contains zero bytes"),
            Self::NotANotebook(reason) => write!(out, "not a notebook: {reason}"),
            Self::NotPython => write!(out, "a notebook in another language than Python"),
            Self::TooLarge => write!(out, "larger than {} MiB", LARGEST >> 20),
            Self::TooMuchCode => write!(out, "more than {} MiB of code", LARGEST_CODE >> 20),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Source {
    /// A Python script.
    pub fn script(contents: &[u8]) -> Result<Self, Unreadable> {
        match text_of(contents) {
            Ok(text) => Self::of_text(text.to_owned(), None, contents.starts_with(MARK)),
            Err(Unreadable::NotText) => {
                let (text, encoding) = encoding::decoded(contents).ok_or(Unreadable::NotText)?;
                let source = Self::of_text(text, None, false)?;
                Ok(Self { encoding, ..source })
            }
            Err(error) => Err(error),
        }
    }

    /// A Jupyter notebook (`.ipynb`).
    pub fn notebook(contents: &[u8]) -> Result<Self, Unreadable> {
        let json = text_of(contents)?;
        let notebook = Notebook::from_source_code(json).or_else(|error| {
            // Cells may have keys of other tools, which Jupyter accepts too.
            without_foreign_keys(json)
                .and_then(|json| Notebook::from_source_code(&json).ok())
                .ok_or_else(|| Unreadable::NotANotebook(reason(&error)))
        })?;
        if !notebook.is_python_notebook() && !has_python_kernel(json) {
            return Err(Unreadable::NotPython);
        }
        let text = notebook.source_code().to_owned();
        let ranges = notebook
            .cell_offsets()
            .content_ranges()
            .map(|range| range.start().to_usize()..range.end().to_usize());
        let indices = notebook
            .index()
            .iter()
            .map(|cell| cell.cell_index().to_zero_indexed());
        let cells = NotebookText::new(json, indices.zip(ranges))
            .ok_or_else(|| Unreadable::NotANotebook("its cells could not be located".to_owned()))?;
        let cells = Cells {
            notebook,
            text: cells,
        };
        Self::of_text(text, Some(Box::new(cells)), contents.starts_with(MARK))
    }

    fn of_text(
        text: String,
        notebook: Option<Box<Cells>>,
        marked: bool,
    ) -> Result<Self, Unreadable> {
        if text.len() > LARGEST_CODE {
            return Err(Unreadable::TooMuchCode);
        }
        let lines = LineIndex::from_source_text(&text);
        Ok(Self {
            text,
            lines,
            notebook,
            marked,
            encoding: Encoding::UTF_8,
        })
    }

    /// The Python text: the script, or the notebook's code cells one after the other.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_notebook(&self) -> bool {
        self.notebook.is_some()
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
            Some(cells) => {
                let cells = cells.notebook.index();
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

    /// The line that contains a byte, without its line ending.
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

    /// Line and column (in characters) of a byte in the file as it is on disk: of a notebook, in its
    /// JSON.
    pub fn place_in_file(&self, byte: usize) -> (usize, usize) {
        match &self.notebook {
            None => {
                let Position { line, column, .. } = self.position(byte);
                (line, column)
            }
            Some(cells) => {
                let before = &cells.text.json()[..cells.text.byte_in_json(byte)];
                let start = before.rfind('\n').map_or(0, |at| at + 1);
                let line = before.matches('\n').count() + 1;
                (line, before[start..].chars().count() + 1)
            }
        }
    }

    /// Whether an edit can be made: inside the text, between characters, and inside one cell.
    pub fn takes(&self, edit: &Edit) -> bool {
        let Range { start, end } = edit.range;
        start <= end
            && self.text.is_char_boundary(start)
            && self.text.is_char_boundary(end)
            && (self.notebook.as_ref()).is_none_or(|cells| cells.text.takes(edit))
    }

    /// The same file with other contents, to be written in the same encoding.
    pub fn reread(&self, contents: &str) -> Result<Self, Unreadable> {
        let source = match self.notebook {
            None => Self::script(contents.as_bytes())?,
            Some(_) => Self::notebook(contents.as_bytes())?,
        };
        Ok(Self {
            encoding: self.encoding,
            ..source
        })
    }

    /// The bytes of a text in the encoding of this file; `None` if it has no such characters.
    pub fn encoded(&self, contents: &str) -> Option<Vec<u8>> {
        self.encoding.encoded(contents)
    }

    /// The file as it is.
    pub fn contents(&self) -> String {
        self.with_edits(&[])
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
            Some(cells) => cells.text.with_edits(edits),
        };
        if self.marked {
            format!("\u{feff}{written}")
        } else {
            written
        }
    }
}

/// The notebook with only the keys that the format defines, so that it can be parsed; `None` if it is
/// not a notebook.
fn without_foreign_keys(json: &str) -> Option<String> {
    const KNOWN: &[&str] = &[
        "attachments",
        "cell_type",
        "execution_count",
        "id",
        "metadata",
        "outputs",
        "source",
    ];
    const KNOWN_OUTSIDE: &[&str] = &["cells", "metadata", "nbformat", "nbformat_minor"];
    let mut notebook: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).ok()?;
    notebook.retain(|key, _| KNOWN_OUTSIDE.contains(&key.as_str()));
    for cell in notebook.get_mut("cells")?.as_array_mut()? {
        cell.as_object_mut()?
            .retain(|key, _| KNOWN.contains(&key.as_str()));
    }
    serde_json::to_string(&notebook).ok()
}

/// Whether a notebook without a language has a Python kernel, as in Colab.
fn has_python_kernel(json: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Notebook {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        language_info: Option<serde::de::IgnoredAny>,
        kernelspec: Option<Kernel>,
    }
    #[derive(serde::Deserialize)]
    struct Kernel {
        language: Option<String>,
        #[serde(default)]
        name: String,
    }
    let Ok(Notebook { metadata }) = serde_json::from_str(json) else {
        return false;
    };
    let is_python =
        |kernel: Kernel| kernel.language.is_none() && kernel.name.to_lowercase().contains("python");
    metadata.language_info.is_none() && metadata.kernelspec.is_some_and(is_python)
}

fn reason(error: &NotebookError) -> String {
    match error {
        NotebookError::Io(error) => error.to_string(),
        NotebookError::Json(error) | NotebookError::InvalidJson(error) => {
            format!("its JSON is broken: {error}")
        }
        NotebookError::InvalidSchema(error) => error.to_string(),
        NotebookError::InvalidFormat(version) => {
            format!("its format is version {version}; only version 4 is supported")
        }
    }
}

fn text_of(contents: &[u8]) -> Result<&str, Unreadable> {
    if contents.len() > LARGEST {
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
    TextSize::new(u32::try_from(byte).expect("files are smaller than 4 GiB"))
}
