//! Calibration: on a machine with a real card, records the sizes that NVIDIA's libraries return.
//!
//! `ghostgpu calibrate` preloads this library. It defines the few functions whose answers are recorded, and those that
//! set up the descriptors they are asked about. Each passes its call on to the real library, reads the answer and
//! changes nothing. All other calls go directly to the real libraries.
//!
//! - [`real`] finds the function that a call would have reached without us;
//! - [`recording`] keeps the table and writes it line by line, so that a crash loses nothing;
//! - [`card`] finds out which card and which libraries the answers come from;
//! - [`questions`] defines the functions whose arguments say everything, [`objects`] keeps track of descriptors;
//! - the rest is in one module per library.
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
