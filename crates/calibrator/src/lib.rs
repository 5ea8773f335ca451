//! The record mode: on a machine with a real card, records the sizes that NVIDIA's libraries answer.
//!
//! `ghostgpu calibrate` preloads this library. It defines the few functions whose answers are wanted, and
//! those that set up the descriptors such questions are about; each passes its call on to the real
//! library, looks at the answer, and changes nothing. Every other call goes past it.
//!
//! - [`real`] finds the function that a call would have reached without us;
//! - [`recording`] keeps the table and writes it line by line, so that a crash loses nothing;
//! - [`card`] says what card and which libraries the answers are from;
//! - [`questions`] is the way of functions whose arguments say everything, [`objects`] of descriptors;
//! - one module per library has the rest.
//!
//! Declarations are written from NVIDIA's public documentation.

mod card;
mod cublaslt;
mod cudnn;
mod cufft;
mod cusolver;
mod cusparse;
mod objects;
mod questions;
mod real;
mod recording;
