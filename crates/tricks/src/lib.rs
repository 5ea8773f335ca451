//! The catalogue of tricks: names and options, flags of the command line, conflicts, and plan files.
//!
//! The tricks themselves are in `python/ghostgpu/tricks`, which reads the same file (`catalogue.json`) and makes the same
//! checks. Here they are made before anything starts.

mod catalogue;
mod plan;
mod request;
mod written;

pub use catalogue::{Catalogue, Conflict, FlagValue, Numerics, OptionSheet, OptionType, Trick};
pub use plan::requests_of_plan;
pub use request::{Refusal, Request, Requests, bytes_of_size};
pub use written::plan_of_requests;
