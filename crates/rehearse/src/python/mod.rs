//! The user's Python and the torch in it: found and read, never imported.

mod find;
mod inspect;
pub mod isolation;
mod libraries;
mod torch;

pub use find::{LAUNCHER_VARIABLE, Search, find_interpreter, find_program, find_program_beside};
pub use inspect::Interpreter;
pub use libraries::cuda_libraries;
pub use torch::{Support, TorchInstallation};
