//! The user's Python and the torch in it: found and read, never imported.

mod find;
pub mod isolation;
mod libraries;
mod probe;
mod torch;

pub use find::{Search, find_interpreter, find_program};
pub use libraries::cuda_libraries;
pub use probe::Interpreter;
pub use torch::{Support, TorchInstallation};
