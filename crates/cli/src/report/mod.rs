//! Answers as people and programs read them.

mod breakdown;
mod json;
mod text;

pub use breakdown::breakdown_report;
pub use json::json_report;
pub use text::{Look, text_report};
