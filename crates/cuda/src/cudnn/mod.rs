//! cuDNN, at its public interface.
//!
//! * [`backend`]: the descriptor interface, through which PyTorch's convolutions and attention go.
//!   Descriptors are kept as they were set; engines and workspace sizes come from [`sizes`].
//! * [`sizes`]: asks the user's own cuDNN in a child process, corrects for what it cannot know
//!   without a card, and falls back on a model where it cannot be asked.
//! * the older interface, one module per subject: [`tensors`], [`dropout`], [`recurrent`],
//!   [`batch_norm`], [`ctc`], [`convolution`], [`vision`].
//!
//! Declarations are written from the public headers of cuDNN 9 (`cudnn_graph_v9.h`,
//! `cudnn_ops_v9.h`, `cudnn_cnn_v9.h`, `cudnn_adv_v9.h`) and NVIDIA's API reference.

mod backend;
mod batch_norm;
mod choices;
mod convolution;
mod ctc;
mod dropout;
mod handle;
mod objects;
mod recurrent;
mod sizes;
mod tensors;
mod vision;

/// `cudnnStatus_t`, as far as we return it ourselves.
mod status {
    pub const SUCCESS: i32 = 0;
    pub const NOT_INITIALIZED: i32 = 1001;
    pub const BAD_PARAM: i32 = 2000;
    pub const BAD_PARAM_NULL_POINTER: i32 = 2002;
    pub const BAD_PARAM_NOT_FINALIZED: i32 = 2004;
    pub const NOT_SUPPORTED: i32 = 3000;
}

/// `cudnnDataType_t`
pub mod data_type {
    pub const FLOAT: i32 = 0;
    pub const DOUBLE: i32 = 1;
    pub const HALF: i32 = 2;
    pub const BFLOAT16: i32 = 9;

    /// Bytes per element; the types not listed here are of one byte or not used by PyTorch.
    pub fn bytes(data_type: i32) -> u64 {
        match data_type {
            DOUBLE | 10 => 8,
            FLOAT | 4 | 19 => 4,
            HALF | BFLOAT16 => 2,
            _ => 1,
        }
    }
}

/// Defines exported functions that start work on the card. Their only results are values in device
/// memory, so they only count cuDNN's code as loaded.
///
/// They are declared without parameters, see [`crate::harmless`].
macro_rules! computed {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> i32 {
                $crate::call_log::call(stringify!($name), String::new);
                $crate::state::note_dnn_use();
                $crate::cudnn::status::SUCCESS
            }
        )+
    };
}
pub(crate) use computed;

/// Like [`computed`], for functions with a workspace: the parameters up to it are named in NVIDIA's order.
/// Floating-point parameters are passed in other registers and are left out.
macro_rules! computed_in_workspace {
    ($($name:ident($($argument:ident),+ $(,)?);)+) => {
        $(
            #[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(
                $($argument: usize,)+
                workspace: *const std::ffi::c_void,
            ) -> i32 {
                $crate::log_call!($name $(, $argument)+, workspace);
                $crate::work::library_call(stringify!($name), &[$($argument),+]);
                $crate::state::note_dnn_use();
                $crate::observer::workspace(workspace);
                $crate::cudnn::status::SUCCESS
            }
        )+
    };
}
pub(crate) use computed_in_workspace;
