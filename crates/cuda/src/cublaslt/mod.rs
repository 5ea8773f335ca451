//! cuBLASLt: descriptors keep their attributes, the heuristic offers one algorithm that needs no
//! workspace, products are not computed.
//!
//! PyTorch allocates a workspace of its own choice before it asks the heuristic, so the algorithm's
//! workspace does not change what is allocated.
//!
//! Declarations written from NVIDIA's public documentation "cuBLAS", release 13.0, chapter "Using the
//! cuBLASLt API".

mod algorithms;
mod descriptors;

use std::ffi::{c_int, c_void};

use algorithms::Algorithm;

use crate::cublas::status;
use crate::{device_work, log_call, real_library, refuse, state, work, write_out};

/// `cublasLtHandle_t`. It has no settings; PyTorch passes cuBLAS handles in its place, as the
/// documentation allows.
type Handle = *mut c_void;
type Data = *const c_void;
type Descriptor = *mut c_void;

/// Any non-null value will do.
const THE_HANDLE: usize = 0xB1A5_1000_0000;

/// # Safety
/// `handle` points to writable memory for one handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtCreate(handle: *mut Handle) -> i32 {
    log_call!(cublasLtCreate, handle);
    if handle.is_null() {
        return status::INVALID_VALUE;
    }
    if state::current_with_context().is_none() {
        return status::NOT_INITIALIZED;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(handle, THE_HANDLE as Handle) };
    status::SUCCESS
}

device_work! {
    before: nothing_more;
    (handle: Handle) => cublasLtDestroy;
}

device_work! {
    before: state::note_blas_use;
    workspace: workspace;
    records: record(operation, a_layout, d_layout, b_layout);
    (
        handle: Handle, operation: Descriptor, alpha: Data, a: Data, a_layout: Descriptor,
        b: Data, b_layout: Descriptor, beta: Data, c: Data, c_layout: Descriptor,
        d: Data, d_layout: Descriptor, algorithm: *const Algorithm,
        workspace: Data, workspace_bytes: usize, stream: Data
    ) => cublasLtMatmul;
}

fn nothing_more() {}

/// Counts a product by its descriptors.
fn record(_name: &str, operation: Descriptor, a: Descriptor, d: Descriptor, b: Descriptor) {
    work::product(|| descriptors::product(operation, a, b, d));
}

/// The version of the installed cuBLASLt, from the library itself: the question needs no card.
pub fn installed_version() -> Option<usize> {
    let names = [c"libcublasLt.so.13", c"libcublasLt.so.12"];
    let address = real_library::find_loaded(&names, c"cublasLtGetVersion")?;
    // SAFETY: this is the documented signature of cublasLtGetVersion.
    let function: extern "C" fn() -> usize = unsafe { std::mem::transmute(address) };
    Some(function())
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetVersion() -> usize {
    log_call!(cublasLtGetVersion);
    installed_version().unwrap_or_else(|| {
        refuse::refuse("cuBLASLt", "cublasLtGetVersion");
        0
    })
}

/// The version of the CUDA runtime that cuBLASLt was built with.
#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetCudartVersion() -> usize {
    log_call!(cublasLtGetCudartVersion);
    usize::try_from(real_library::cuda_runtime_version()).unwrap_or(0)
}

/// Part of the version: 0 major, 1 minor, 2 patch level.
///
/// # Safety
/// `value` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtGetProperty(property: c_int, value: *mut c_int) -> i32 {
    log_call!(cublasLtGetProperty, property, value);
    let Some(version) = installed_version().and_then(|version| c_int::try_from(version).ok())
    else {
        refuse::refuse("cuBLASLt", "cublasLtGetProperty");
        return status::NOT_SUPPORTED;
    };
    let part = match property {
        0 => version / 10_000,
        1 => version / 100 % 100,
        2 => version % 100,
        _ => return status::INVALID_VALUE,
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(value, part) };
    status::SUCCESS
}
