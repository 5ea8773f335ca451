//! Answers as people and programs read them.

mod breakdown;
mod json;
mod paragraphs;
mod sheet;
mod table;
mod text;

pub use breakdown::breakdown_report;
pub use json::json_report;
pub use sheet::Sheet;
pub use table::Table;
pub use text::{Look, text_report};
