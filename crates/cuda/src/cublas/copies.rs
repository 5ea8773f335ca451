//! Copies of vectors and matrices between host and card. Copies from the card return zeros.

use std::ffi::{c_int, c_void};

use super::{Data, status};
use crate::{device_work, log_call, notes, state};

fn nothing_more() {}

device_work! {
    before: nothing_more;
    (
        rows: c_int, columns: c_int, element_bytes: c_int,
        host: Data, host_stride: c_int, device: Data, device_stride: c_int, stream: Data
    ) => cublasSetMatrixAsync;
    (
        n: c_int, element_bytes: c_int,
        host: Data, host_stride: c_int, device: Data, device_stride: c_int, stream: Data
    ) => cublasSetVectorAsync;
}

/// # Safety
/// `host` has room for the matrix: `columns` columns, `host_stride` elements apart.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetMatrixAsync(
    rows: c_int,
    columns: c_int,
    element_bytes: c_int,
    device: Data,
    device_stride: c_int,
    host: *mut c_void,
    host_stride: c_int,
    stream: Data,
) -> i32 {
    log_call!(
        cublasGetMatrixAsync,
        rows,
        columns,
        element_bytes,
        device,
        device_stride,
        host,
        host_stride,
        stream,
    );
    // SAFETY: promised by the caller.
    unsafe { zero_columns(host, [rows, columns, host_stride, element_bytes]) }
}

/// # Safety
/// `host` has room for `n` elements, `host_stride` elements apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetVectorAsync(
    n: c_int,
    element_bytes: c_int,
    device: Data,
    device_stride: c_int,
    host: *mut c_void,
    host_stride: c_int,
    stream: Data,
) -> i32 {
    log_call!(
        cublasGetVectorAsync,
        n,
        element_bytes,
        device,
        device_stride,
        host,
        host_stride,
        stream,
    );
    // A strided vector is a matrix of one row.
    // SAFETY: promised by the caller.
    unsafe { zero_columns(host, [1, n, host_stride, element_bytes]) }
}

/// Fills the columns of a host matrix with zeros, as a copy from the virtual card does.
///
/// # Safety
/// `host` has room for the matrix that the numbers (rows, columns, elements from one column to the
/// next, bytes of an element) describe.
unsafe fn zero_columns(host: *mut c_void, numbers: [c_int; 4]) -> i32 {
    let [Ok(rows), Ok(columns), Ok(stride), Ok(element_bytes)] = numbers.map(usize::try_from)
    else {
        return status::INVALID_VALUE;
    };
    if host.is_null() || stride < rows || state::device_of_address(host as u64).is_some() {
        return status::INVALID_VALUE;
    }
    for column in 0..columns {
        // SAFETY: inside the matrix, promised by the caller.
        unsafe {
            host.cast::<u8>()
                .add(column * stride * element_bytes)
                .write_bytes(0, rows * element_bytes);
        }
    }
    notes::assume("matrices that the script copies back from the card hold zeros");
    status::SUCCESS
}
