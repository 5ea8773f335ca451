//! What each of a training's first steps has the cards do: `work-<pid>.jsonl` in the run's folder.
//!
//! Every call that would start work on a card is counted here by its kind and shape, which
//! `ghostgpu_cost` turns into time. Products and convolutions say their shapes themselves; of other
//! kernels only their arguments are known, so what they move is taken to be the memory that those
//! point to. Steps are alike soon, so only the first few are looked at, and nothing afterwards.

mod arguments;
mod attention;
mod blocks;
mod caller;
mod cudnn_graphs;
mod kernels;
mod many_tensors;
mod recorder;

use std::ffi::{c_int, c_void};

pub use ghostgpu_cost::Direction;
use ghostgpu_cost::{Operation, Precision};

pub use blocks::{note_allocated, note_freed};
pub use cudnn_graphs::execute;
pub use recorder::{end_step, note_dispatch};

use crate::readback;

/// `cudaDataType_t` as the arithmetic of a product; complex numbers count as their parts.
fn precision_of(data_type: c_int, is_tf32: bool) -> Precision {
    match data_type {
        1 | 5 => Precision::Double,
        2 | 6 => Precision::Half,
        14 | 15 => Precision::Bfloat16,
        3 | 8 | 28.. => Precision::Eight,
        _ if is_tf32 => Precision::Tf32,
        _ => Precision::Single,
    }
}

/// `cudaDataType_t` of single and double precision.
pub const SINGLE: c_int = 0;
pub const DOUBLE: c_int = 1;

/// `CUBLAS_COMPUTE_32F_FAST_TF32`
const COMPUTE_TF32: c_int = 77;

/// `CUBLAS_TF32_TENSOR_OP_MATH`, below the flags that a mode can have.
const MATH_TF32: c_int = 3;

/// A matrix product as cuBLAS is asked for it.
pub struct Product {
    pub m: c_int,
    pub n: c_int,
    pub k: c_int,
    pub batch: c_int,
    pub data_type: c_int,
    pub compute_type: c_int,
    pub math_mode: c_int,
    /// Steps from one row or column to the next, of all three matrices.
    pub leading: [c_int; 3],
}

pub fn product(product: impl FnOnce() -> Product) {
    if !recorder::is_on() {
        return;
    }
    let product = product();
    let size = |value: c_int| u64::try_from(value).unwrap_or(0);
    let is_tf32 = product.compute_type == COMPUTE_TF32 || product.math_mode & 0xf == MATH_TF32;
    let precision = precision_of(product.data_type, is_tf32);
    recorder::record(Operation::Product {
        m: size(product.m),
        n: size(product.n),
        k: size(product.k),
        batch: size(product.batch),
        precision,
        is_aligned: are_whole_vectors(&product.leading, precision),
    });
}

/// Matrix units read 16 bytes at a time.
fn are_whole_vectors(leading: &[c_int], precision: Precision) -> bool {
    leading
        .iter()
        .all(|&step| (u64::try_from(step).unwrap_or(0) * precision.bytes()).is_multiple_of(16))
}

/// # Safety
/// `arguments` is null or points to the addresses of the kernel's arguments.
pub unsafe fn kernel(stub: *const c_void, grid: [u32; 3], arguments: *const *mut c_void) {
    if recorder::is_on() {
        // SAFETY: promised by the caller.
        unsafe { kernels::launched(stub, grid, arguments) };
    }
}

/// A kernel of which only the name is known.
pub fn named_kernel(name: impl FnOnce() -> String) {
    if recorder::is_on() {
        recorder::record(Operation::Kernel {
            name: name(),
            bytes: 0,
        });
    }
}

/// A library's function with these arguments, of which some are addresses on the card.
pub fn library_call(name: &'static str, arguments: &[usize]) {
    if recorder::is_on() {
        let arguments: Vec<u64> = arguments.iter().map(|&each| each as u64).collect();
        recorder::record(Operation::Kernel {
            name: name.to_owned(),
            bytes: blocks::sizes_of(&arguments).into_iter().flatten().sum(),
        });
    }
}

pub fn copy(direction: Direction, bytes: usize, is_pinned: bool) {
    if recorder::is_on() {
        recorder::record(Operation::Copy {
            direction,
            bytes: bytes as u64,
            is_pinned,
        });
    }
}

pub fn fill(bytes: usize) {
    if recorder::is_on() {
        recorder::record(Operation::Kernel {
            name: "memset".to_owned(),
            bytes: bytes as u64,
        });
    }
}

impl From<readback::Direction> for Direction {
    fn from(direction: readback::Direction) -> Self {
        match direction {
            readback::Direction::HostToDevice => Self::ToCard,
            readback::Direction::DeviceToHost => Self::ToHost,
            readback::Direction::DeviceToDevice | readback::Direction::HostToHost => Self::OnCard,
        }
    }
}

/// The host waits for work that it has handed in.
pub fn host_waits() {
    if recorder::is_on() {
        recorder::end_stretch();
    }
}
