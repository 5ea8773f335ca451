//! The backend descriptor interface: every operation is a tree of descriptors with attributes.
//!
//! `ghostgpu_oracle::Descriptor` stores what a program sets and returns it; [`finalize`] computes the contents of the
//! few descriptors that are more than their attributes: heuristics, engines, plans.

mod duration;
mod finalize;
mod functions;
