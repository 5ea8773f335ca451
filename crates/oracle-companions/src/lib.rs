//! Stand-ins for the libraries that cuDNN opens by name when it answers for a virtual card.
//!
//! cuDNN opens cuBLASLt, NVRTC and the CUDA driver by name, and omits engines from its answers when they are
//! missing or see no card. The process that holds cuDNN (`ghostgpu-oracle`) puts this library
//! under their names instead, so that cuDNN's list of engines is the one it gives on the card itself:
//! [`blas`] answers for cuBLASLt, [`compiler`] for NVRTC, [`driver`] for the driver. Nothing is ever computed here, and where
//! there is a real card, it is out of reach.

mod blas;
mod compiler;
mod driver;
mod product_workspace;
mod recorded_products;
