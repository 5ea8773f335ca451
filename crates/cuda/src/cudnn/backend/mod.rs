//! The backend descriptor interface: every operation is a tree of descriptors with attributes.
//!
//! `ghostgpu_oracle::Descriptor` keeps what a program sets and hands it back; [`finalize`] is where the few
//! descriptors that are more than their attributes get their contents: heuristics, engines, plans.

mod duration;
mod finalize;
mod functions;
