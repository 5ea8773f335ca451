//! Labelled sections: a narrow column of labels, and text beside it.

use crate::table::Table;
use crate::wrap::wrap;

/// Width of the column of labels.
const LABEL_WIDTH: usize = 15;

/// Width of the text beside it: together they fit a line of 100.
pub const TEXT_WIDTH: usize = 85;

/// A report in the making.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    lines: Vec<String>,
}

impl Sheet {
    /// The first line has the label, the others stand below its text.
    pub fn section(&mut self, label: &str, texts: impl IntoIterator<Item = String>) {
        for (index, text) in texts.into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let line = format!("{label:<LABEL_WIDTH$}{text}");
            self.lines.push(line.trim_end().to_owned());
        }
    }

    /// A section of running text.
    pub fn paragraph(&mut self, label: &str, text: &str) {
        self.section(label, wrap(text, TEXT_WIDTH));
    }

    /// A section of sentences, one after the other, each with a dash.
    pub fn list(&mut self, label: &str, sentences: &[String]) {
        let lines: Vec<String> = sentences
            .iter()
            .flat_map(|sentence| {
                wrap(sentence, TEXT_WIDTH - 2)
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
