//! Asks the user's own cuDNN how it would run an operation on a virtual card.
//!
//! Input is an operation graph: cuDNN's own descriptors without anything that differs from run to
//! run. Output is the engines that cuDNN would choose and the workspace that each one takes.
//!
//! cuDNN answers such questions without a device through its documented "deviceless" mode (from
//! version 9.8 on). It runs in a separate process, because one version was seen to crash on one
//! card's description, and because cuDNN must not find the stand-in library in its own process.
//! [`Oracle`] starts that process at the first question, restarts it after a crash, and keeps the
//! answers in a [`Store`]; [`serve`] is what runs inside it.
//!
//! The crate knows nothing of PyTorch, and nothing of the stand-in library that asks the questions.

mod client;
mod descriptor;
mod device_text;
mod installed;
mod numbers;
mod protocol;
mod replay;
mod server;
mod store;

pub use client::{Companions, Oracle, OracleError};
pub use descriptor::{Contents, Descriptor, Stored};
pub use device_text::device_text;
pub use numbers::{attribute, element_bytes, kind, value_type};
pub use protocol::{
    Answer, Attribute, EngineAnswer, EngineConfig, KnobRange, Node, PlanAnswer, Question, Request,
    Value,
};
pub use server::serve;
pub use store::Store;

/// The first cuDNN that answers without a device.
pub const FIRST_DEVICELESS_VERSION: usize = 90_800;
