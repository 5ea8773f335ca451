//! Every CUDA function that PyTorch can reach, and what the stand-in library does with it.
//!
//! Maps a symbol's name to the library it belongs to and its [`Treatment`]. The answers are in one
//! hand-written table, `table.csv`. Two tests check it: one reads the imports of the installed torch,
//! the other the exports of the stand-in library.
//! [`SymbolSurvey`] compares an installed torch with the table.
//!
//! ```
//! use ghostgpu_symbols::{Family, Treatment, is_cuda_symbol, lookup};
//!
//! let entry = lookup("cudaMalloc").expect("PyTorch imports it");
//! assert_eq!(entry.family, Family::Runtime);
//! assert_eq!(entry.treatment, Treatment::Simulated);
//!
//! // A name of CUDA's that is not in the table is one we have not thought about.
//! assert!(is_cuda_symbol("cudaMallocOnTheMoon") && lookup("cudaMallocOnTheMoon").is_none());
//! ```

mod family;
mod survey;
mod table;

pub use family::{Family, family_of, is_cuda_symbol};
pub use survey::{FamilyCounts, SymbolSurvey};
pub use table::{Entry, Treatment, entries, lookup};
