//! The share of a card's peaks that kernels reach, and how long the host takes for calls.

/// Shares of a card's published rates, and times of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency {
    /// Shares of the peak rate that products reach: in single and double precision, and on the matrix units.
    pub single_product: f64,
    pub double_product: f64,
    pub matrix_product: f64,
    /// The same if the matrix units cannot read rows in whole vectors.
    pub unaligned_product: f64,

    /// The same for convolutions, by the layout of their tensors.
    pub convolution: f64,
    pub convolution_channels_last: f64,
    /// How often a convolution moves its tensors if they must be converted before and after it.
    pub conversion_passes: f64,

    /// The same for attention in one kernel. In single precision it runs on the matrix units in several
    /// passes; its share is that of the peak of single precision.
    pub single_attention: f64,
    pub single_attention_backward: f64,
    pub half_attention: f64,
    pub half_attention_backward: f64,

    /// The share of the memory's rate that memory-bound kernels reach.
    pub memory: f64,

    /// The least time that a kernel takes.
    pub kernel_seconds: f64,

    /// Shares of the link's rate: with pinned memory, and with memory that the driver has to stage.
    pub link: f64,
    pub pageable_link: f64,

    /// How long the host takes from one call to the next: in Python while a graph is built, in what
    /// checkpointing repeats, in Python without a graph, in autograd's own threads. It depends on the
    /// host's processor more than on the card.
    pub host_with_graph_seconds: f64,
    pub host_repeated_seconds: f64,
    pub host_without_graph_seconds: f64,
    pub host_in_backward_seconds: f64,
    /// How much longer an operator takes that goes through Python on its way.
    pub host_dispatched_seconds: f64,

    /// How long the host takes to notice that the card is done, and to continue.
    pub wait_seconds: f64,
}

impl Efficiency {
    /// Fitted to 44 step times of GPT-2 and ResNet-50 on an H200; `tests/measured.rs` says how well they do on
    /// other models, and `examples/fit_efficiency.rs` fits them again. Those measurements do not separate products and
    /// attention in single precision, so the share of the former was fixed beforehand. So were the shortest kernel, a
    /// wait, and the link without pinned memory, which hardly matter there. How long an operator takes on its way through Python was
    /// fitted to seven plans of other models (`ground_truth/h200/plans`). Other cards are assumed to have the same
    /// values, which has not been measured.
    pub const FITTED: Self = Self {
        single_product: 0.80,
        double_product: 0.80,
        matrix_product: 0.62,
        unaligned_product: 0.09,
        convolution: 0.25,
        convolution_channels_last: 0.23,
        conversion_passes: 2.9,
        single_attention: 1.1,
        single_attention_backward: 0.61,
        half_attention: 0.50,
        half_attention_backward: 0.41,
        memory: 0.58,
        kernel_seconds: 2e-6,
        link: 1.0,
        pageable_link: 0.18,
        host_with_graph_seconds: 65e-6,
        host_repeated_seconds: 118e-6,
        host_without_graph_seconds: 19.5e-6,
        host_in_backward_seconds: 36e-6,
        host_dispatched_seconds: 15e-6,
        wait_seconds: 10e-6,
    };
}
