//! Sizes, durations, tables and labelled sections, as every part of GhostGPU prints them.
//!
//! This crate turns values into text; it knows neither terminals nor what the numbers mean. Sizes follow one rule
//! everywhere: the largest binary unit that gives at least one, with two decimals. The report page has the same rule in
//! `web/format.js`, and tests check both against `sizes.tsv`.
//!
//! ```
//! use ghostgpu_text::{Table, human};
//!
//! let mut table = Table::new(&["part", ">memory"]);
//! table.push(vec!["parameters".to_owned(), human(3 << 29)]);
//! assert_eq!(table.render(), "part          memory\nparameters  1.50 GiB\n");
//! ```

mod duration;
mod sheet;
mod size;
mod table;
mod wrap;

pub use duration::{parse_duration, seconds};
pub use sheet::{DEFAULT_WIDTH, Sheet};
pub use size::{
    counted, grouped, human, human_in_few, parse_card_memory, parse_size, signed_change,
};
pub use table::Table;
pub use wrap::{columns, shortened, wrap};
