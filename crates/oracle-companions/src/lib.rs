//! What cuDNN finds under the names of its companions when it is asked about a card that is not there.
//!
//! cuDNN opens cuBLASLt and the CUDA driver by name, and leaves engines out of its answers when they
//! are not there or see no card. The process that holds cuDNN (`ghostgpu-oracle`) puts this library
//! under their names instead, so that cuDNN's list of engines is the one it gives on the card itself:
//! [`blas`] answers for cuBLASLt, [`driver`] for the driver. Nothing is ever computed here, and where
//! there is a real card, it is out of reach.

mod blas;
mod driver;
mod product_workspace;
mod recorded_products;
