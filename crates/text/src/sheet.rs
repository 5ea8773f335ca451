//! Labelled sections: a narrow column of labels, with text next to it.

use crate::table::Table;
use crate::wrap::{columns, wrap};

/// Width of the column of labels.
const LABEL_WIDTH: usize = 15;

/// The default width of lines.
pub const DEFAULT_WIDTH: usize = 80;

/// If it were narrower, the text next to the labels would have one word per line.
const LEAST_TEXT_WIDTH: usize = 25;

/// An answer that is being built.
#[derive(Clone, Debug)]
pub struct Sheet {
    lines: Vec<String>,
    text_width: usize,
}

impl Default for Sheet {
    fn default() -> Self {
        Self::with_width(DEFAULT_WIDTH)
    }
}

impl Sheet {
    /// A sheet whose text is wrapped so that lines, with the labels, are at most this wide.
    pub fn with_width(width: usize) -> Self {
        Self {
            lines: Vec::new(),
            text_width: width.saturating_sub(LABEL_WIDTH).max(LEAST_TEXT_WIDTH),
        }
    }

    /// Width of the text next to the labels.
    pub fn text_width(&self) -> usize {
        self.text_width
    }

    /// Adds a section. The first line has the label, the others are aligned below its text.
    pub fn section(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        for (index, text) in texts.into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let padding = " ".repeat(LABEL_WIDTH.saturating_sub(columns(label)));
            let line = format!("{label}{padding}{text}");
            self.lines.push(line.trim_end().to_owned());
        }
    }

    /// A section of running text.
    pub fn paragraph(&mut self, label: &str, text: &str) {
        self.section(label, wrap(text, self.text_width));
    }

    /// A section of sentences, one after the other, each with a dash.
    pub fn list(&mut self, label: &str, sentences: &[String]) {
        let lines: Vec<String> = sentences
            .iter()
            .flat_map(|sentence| {
                wrap(sentence, self.text_width - 2)
                    .into_iter()
                    .enumerate()
                    .map(|(index, line)| match index {
                        0 => format!("- {line}"),
                        _ => format!("  {line}"),
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        self.section(label, lines);
    }

    /// A section that is a table.
    pub fn table(&mut self, label: &str, table: &Table) {
        self.section(label, table.render().lines().map(str::to_owned));
    }

    /// All lines, each with its end.
    pub fn render(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}
