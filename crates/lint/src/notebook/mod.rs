//! Where a notebook's code is in its JSON, so that an edit of the code becomes an edit of the
//! text of the file and nothing else of it changes: not its indentation, not the order of its keys,
//! not its escapes.

mod cells;
mod write;

use std::ops::Range;

use cells::{Code, code_of_cells};

use crate::finding::Edit;

/// The JSON of a notebook, with the locations of its code.
#[derive(Debug, Clone)]
pub struct NotebookText {
    json: String,
    /// The cells that are read as Python, in order.
    cells: Vec<Cell>,
}

/// A cell that is read as Python.
#[derive(Debug, Clone)]
struct Cell {
    /// Its code in the joined text, without the line ending that joins it to the next cell.
    range: Range<usize>,
    code: Code,
}

impl NotebookText {
    /// `cells` are the cells that are read as Python: the index of each among all cells, and its
    /// bytes of the joined text without separators. `None` if the JSON does not match.
    pub fn new(json: &str, cells: impl Iterator<Item = (usize, Range<usize>)>) -> Option<Self> {
        let mut codes = code_of_cells(json)?;
        let cells = cells
            .map(|(index, range)| {
                let code = codes.get_mut(index)?.take()?;
                (code.len() == range.len()).then_some(Cell { range, code })
            })
            .collect::<Option<Vec<Cell>>>()?;
        Some(Self {
            json: json.to_owned(),
            cells,
        })
    }

    pub fn json(&self) -> &str {
        &self.json
    }

    /// The byte of the JSON that a byte of the joined text was read from.
    pub fn byte_in_json(&self, byte: usize) -> usize {
        let after = self.cells.partition_point(|cell| cell.range.start <= byte);
        let Some(cell) = after.checked_sub(1).map(|index| &self.cells[index]) else {
            return 0;
        };
        cell.code.byte_in_json(&self.json, byte - cell.range.start)
    }

    /// Whether an edit stays inside one cell; it may include the line ending of the cell's last line.
    pub fn takes(&self, edit: &Edit) -> bool {
        self.cell_of(edit).is_some()
    }

    fn cell_of(&self, edit: &Edit) -> Option<usize> {
        let after = self
            .cells
            .partition_point(|cell| cell.range.start <= edit.range.start);
        let index = after.checked_sub(1)?;
        let cell = &self.cells[index];
        let is_inside = edit.range.start <= cell.range.end && edit.range.end <= cell.range.end + 1;
        is_inside.then_some(index)
    }

    /// The JSON after edits of the joined text, which are in order and do not overlap.
    pub fn with_edits(&self, edits: &[Edit]) -> String {
        let mut written = String::with_capacity(self.json.len());
        let mut copied = 0;
        for (index, cell) in self.cells.iter().enumerate() {
            let own: Vec<Edit> = edits
                .iter()
                .filter(|edit| self.cell_of(edit) == Some(index))
                .map(|edit| inside(cell, edit))
                .collect();
            if own.is_empty() {
                continue;
            }
            let (range, text) = write::edited(&self.json, &cell.code, &own);
            written.push_str(&self.json[copied..range.start]);
            written.push_str(&text);
            copied = range.end;
        }
        written.push_str(&self.json[copied..]);
        written
    }
}

/// The edit relative to the start of the cell, without the last line ending, which the JSON does not
/// have.
fn inside(cell: &Cell, edit: &Edit) -> Edit {
    let start = edit.range.start - cell.range.start;
    let end = edit.range.end - cell.range.start;
    let length = cell.range.len();
    if end <= length {
        return Edit::replace(start..end, edit.text.clone());
    }
    match edit.text.strip_suffix('\n') {
        Some(text) => Edit::replace(start.min(length)..length, text),
        None => Edit::replace(start.min(length)..length, edit.text.clone()),
    }
}

#[cfg(test)]
mod tests;
