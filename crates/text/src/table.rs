//! Columns of text, aligned.

use crate::wrap::columns;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Rows under a heading.
#[derive(Clone, Debug)]
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings; a column whose heading begins with `>` is right-aligned.
    pub fn new(headings: &[&str]) -> Self {
        let sides = headings
            .iter()
            .map(|heading| match heading.starts_with('>') {
                true => Side::Right,
                false => Side::Left,
            })
            .collect();
        let first = headings
            .iter()
            .map(|heading| heading.trim_start_matches('>').to_owned())
            .collect();
        Self {
            sides,
            rows: vec![first],
        }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.sides.len())
            .map(|column| {
                let entries = self.rows.iter().filter_map(|row| row.get(column));
                entries.map(|entry| columns(entry)).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((entry, &width), side) in row.iter().zip(&widths).zip(&self.sides) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let padding = " ".repeat(width.saturating_sub(columns(entry)));
                line.push_str(&match side {
                    Side::Left => format!("{entry}{padding}"),
                    Side::Right => format!("{padding}{entry}"),
                });
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_entry() {
        let mut table = Table::new(&["name", ">memory", "also"]);
        table.push(vec![
            "NVIDIA H200".into(),
            "139.80 GiB".into(),
            "h200".into(),
        ]);
        table.push(vec!["T4".into(), "14.56 GiB".into(), String::new()]);
        assert_eq!(
            table.render(),
            "name             memory  also\n\
             NVIDIA H200  139.80 GiB  h200\n\
             T4            14.56 GiB\n"
        );
    }
}
