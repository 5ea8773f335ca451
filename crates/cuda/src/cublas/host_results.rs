//! Reductions: dot products, norms, the place of the largest element.
//!
//! A result on the device is not written, like every other value there. A result on the host is that of
//! a vector of zeros, which is also what a copy of the vector would return; the first such answer is
//! noted as an assumption.

use std::ffi::{c_int, c_void};

use super::handle::{PointerMode, pointer_mode};
use super::{Data, Handle, begin_work, status};
use crate::{log_call, notes, refuse, state};

/// Writes the answer if the result is on the host.
///
/// # Safety
/// In host mode `result` points to writable memory for a `T`, or is null.
unsafe fn answer<T: Copy>(handle: Handle, result: *mut T, value: T) -> i32 {
    begin_work();
    if pointer_mode(handle) == PointerMode::Device {
        return status::SUCCESS;
    }
    // A device address in host mode is the caller's mistake, but no reason to crash.
    if result.is_null() || state::device_of_address(result as u64).is_some() {
        return status::INVALID_VALUE;
    }
    notes::assume(
        "dot products, norms and searches for the largest element that the script reads back \
         from cuBLAS were answered as for vectors of zeros",
    );
    // SAFETY: not null, not on the card, and promised by the caller.
    unsafe { result.write_unaligned(value) };
    status::SUCCESS
}

/// Reductions of one vector: `name: type of the result = its value for n zeros`.
macro_rules! of_one_vector {
    ($($name:ident: $type:ty = $value:expr;)+) => {
        $(
            /// # Safety
            /// `result` points to writable memory on the side that the pointer mode says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                handle: Handle, n: c_int, x: Data, x_stride: c_int, result: *mut $type,
            ) -> i32 {
                log_call!($name, handle, n, x, x_stride, result);
                let value: fn(c_int) -> $type = $value;
                // SAFETY: promised by the caller.
                unsafe { answer(handle, result, value(n)) }
            }
        )+
    };
}

/// Indices count from one; for an empty vector the documentation specifies 0.
fn first_index(n: c_int) -> c_int {
    c_int::from(n > 0)
}

of_one_vector! {
    cublasIsamax_v2: c_int = first_index;
    cublasIdamax_v2: c_int = first_index;
    cublasIcamax_v2: c_int = first_index;
    cublasIzamax_v2: c_int = first_index;
    cublasIsamin_v2: c_int = first_index;
    cublasIdamin_v2: c_int = first_index;
    cublasIcamin_v2: c_int = first_index;
    cublasIzamin_v2: c_int = first_index;
    cublasSasum_v2: f32 = |_| 0.0;
    cublasDasum_v2: f64 = |_| 0.0;
    cublasScasum_v2: f32 = |_| 0.0;
    cublasDzasum_v2: f64 = |_| 0.0;
    cublasSnrm2_v2: f32 = |_| 0.0;
    cublasDnrm2_v2: f64 = |_| 0.0;
    cublasScnrm2_v2: f32 = |_| 0.0;
    cublasDznrm2_v2: f64 = |_| 0.0;
}

/// Dot products: `name: type of the result`.
macro_rules! of_two_vectors {
    ($($name:ident: $type:ty;)+) => {
        $(
            /// # Safety
            /// `result` points to writable memory on the side that the pointer mode says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                handle: Handle, n: c_int,
                x: Data, x_stride: c_int, y: Data, y_stride: c_int,
                result: *mut $type,
            ) -> i32 {
                log_call!($name, handle, n, x, x_stride, y, y_stride, result);
                // SAFETY: promised by the caller.
                unsafe { answer(handle, result, <$type>::default()) }
            }
        )+
    };
}

of_two_vectors! {
    cublasSdot_v2: f32;
    cublasDdot_v2: f64;
    cublasCdotc_v2: [f32; 2];
    cublasCdotu_v2: [f32; 2];
    cublasZdotc_v2: [f64; 2];
    cublasZdotu_v2: [f64; 2];
}

/// # Safety
/// `result` points to writable memory for the result's type, on the side that the pointer mode says.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasDotEx(
    handle: Handle,
    n: c_int,
    x: Data,
    x_type: c_int,
    x_stride: c_int,
    y: Data,
    y_type: c_int,
    y_stride: c_int,
    result: *mut c_void,
    result_type: c_int,
    execution_type: c_int,
) -> i32 {
    log_call!(
        cublasDotEx,
        handle,
        n,
        x,
        x_type,
        x_stride,
        y,
        y_type,
        y_stride,
        result,
        result_type,
        execution_type,
    );
    // `cudaDataType`; zero is all bits clear in each of them.
    // SAFETY: promised by the caller.
    unsafe {
        match result_type {
            0 | 6 | 15 => answer(handle, result.cast(), 0_u32), // float, complex half or bfloat16
            1 | 4 => answer(handle, result.cast(), 0_u64),      // double, complex float
            5 => answer(handle, result.cast(), 0_u128),         // complex double
            2 | 14 => answer(handle, result.cast(), 0_u16),     // half, bfloat16
            _ => status::NOT_SUPPORTED,
        }
    }
}

/// Making a rotation reads and writes scalars. On the host these are real values of the script, and
/// leaving them unchanged would be a wrong answer.
macro_rules! rotation_makers {
    ($($name:ident($($argument:ident),+);)+) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(handle: Handle, $($argument: Data),+) -> i32 {
                log_call!($name, handle $(, $argument)+);
                if pointer_mode(handle) == PointerMode::Device {
                    begin_work();
                    return status::SUCCESS;
                }
                refuse::refuse("cuBLAS", stringify!($name));
                status::NOT_SUPPORTED
            }
        )+
    };
}

rotation_makers! {
    cublasSrotg_v2(a, b, cosine, sine);
    cublasDrotg_v2(a, b, cosine, sine);
    cublasCrotg_v2(a, b, cosine, sine);
    cublasZrotg_v2(a, b, cosine, sine);
    cublasSrotmg_v2(d1, d2, x1, y1, parameters);
    cublasDrotmg_v2(d1, d2, x1, y1, parameters);
}
