//! What kernels reach of a card's peaks, and how long the host takes for calls.
//!
//! Fitted to 44 step times of GPT-2 and ResNet-50 on an H200; `tests/measured.rs` says how well they do on other
//! models. What products and attention in single precision take cannot be told apart there, so the share of the
//! former was set beforehand. So were the shortest kernel, a wait, and the link without pinned memory, which
//! hardly matter there. On other cards all of them are taken to be the same, which nobody has measured.

/// Shares of the peak rate that products reach: in single precision, and on the matrix units.
pub const SINGLE_PRODUCT: f64 = 0.80;
pub const DOUBLE_PRODUCT: f64 = 0.80;
pub const MATRIX_PRODUCT: f64 = 0.62;
/// The same where the matrix units cannot read rows in whole vectors.
pub const UNALIGNED_PRODUCT: f64 = 0.09;

/// The same for convolutions, by the layout of their tensors.
pub const CONVOLUTION: f64 = 0.25;
pub const CONVOLUTION_CHANNELS_LAST: f64 = 0.23;
/// How often a convolution moves its tensors that have to be converted before and after it.
pub const CONVERSION_PASSES: f64 = 2.9;

/// The same for attention in one kernel. In single precision it runs on the matrix units in several passes;
/// its share is that of the peak of single precision.
pub const SINGLE_ATTENTION: f64 = 1.1;
pub const SINGLE_ATTENTION_BACKWARD: f64 = 0.61;
pub const HALF_ATTENTION: f64 = 0.50;
pub const HALF_ATTENTION_BACKWARD: f64 = 0.41;

/// The share of the memory's rate that kernels reach which do little else.
pub const MEMORY: f64 = 0.58;

/// What every kernel takes, however little it does.
pub const KERNEL_SECONDS: f64 = 2e-6;

/// Shares of the link's rate: with pinned memory, and with memory that the driver has to stage.
pub const LINK: f64 = 1.0;
pub const PAGEABLE_LINK: f64 = 0.18;

/// How long the host takes from one call to the next: in Python while a graph is built, in what checkpointing
/// repeats, in Python without a graph, in autograd's own threads. It depends on the host's
/// processor more than on the card.
pub const HOST_WITH_GRAPH_SECONDS: f64 = 65e-6;
pub const HOST_REPEATED_SECONDS: f64 = 118e-6;
pub const HOST_WITHOUT_GRAPH_SECONDS: f64 = 19.5e-6;
pub const HOST_IN_BACKWARD_SECONDS: f64 = 36e-6;

/// What it takes the host to hear that the card is ready, and to begin again.
pub const WAIT_SECONDS: f64 = 10e-6;
