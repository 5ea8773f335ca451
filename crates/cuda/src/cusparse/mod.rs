//! cuSPARSE: descriptors know what they describe, operations are left undone, and the sizes of their
//! buffers are answered from recordings ([`crate::library_sizes`]).
//!
//! Declarations written from NVIDIA's public documentation "cuSPARSE", release 13.0.

mod descriptors;

use std::ffi::{c_char, c_int, c_void};

use crate::library_sizes::answered;
use crate::{device_work, harmless, log_call, notes, opaque_objects, refused, write_out};

const SUCCESS: i32 = 0;
const INVALID_VALUE: i32 = 3;
const NOT_SUPPORTED: i32 = 10;

type Object = *mut c_void;
type Data = *const c_void;

opaque_objects! {
    invalid: INVALID_VALUE;
    create: cusparseCreate, cusparseCreateMatDescr, cusparseCreateBsrsm2Info, cusparseCreateBsrsv2Info, cusparseSpGEMM_createDescr,
        cusparseSpSM_createDescr, cusparseSpSV_createDescr;
    destroy: cusparseDestroy, cusparseDestroyMatDescr, cusparseDestroyBsrsm2Info, cusparseDestroyBsrsv2Info, cusparseSpGEMM_destroyDescr,
        cusparseSpSM_destroyDescr, cusparseSpSV_destroyDescr;
}

fn nothing_more() {}

// Settings that nobody can read back, and work whose only results are in device memory.
device_work! {
    before: nothing_more;
    (handle: Object, stream: Data) => cusparseSetStream;
    (handle: Object, mode: c_int) => cusparseSetPointerMode;
    (descriptor: Object, value: c_int)
        => cusparseSetMatType, cusparseSetMatFillMode, cusparseSetMatDiagType,
           cusparseSetMatIndexBase;
    (matrix: Object, offsets: Data, indices: Data, values: Data) => cusparseCsrSetPointers;
    (matrix: Object, attribute: c_int, value: Data, bytes: usize) => cusparseSpMatSetAttribute;
    (handle: Object, n: c_int, permutation: Data) => cusparseCreateIdentityPermutation;
    (
        handle: Object, coo_rows: Data, non_zeros: c_int, m: c_int, csr_offsets: Data, base: c_int
    ) => cusparseXcoo2csr;
    (
        handle: Object, direction: c_int, transpose: c_int, rows: c_int, columns: c_int,
        blocks: c_int, alpha: Data, descriptor: Object, values: Data, offsets: Data, indices: Data,
        block: c_int, x: Data, beta: Data, y: Data
    ) => cusparseSbsrmv, cusparseDbsrmv, cusparseCbsrmv, cusparseZbsrmv;
    (
        handle: Object, direction: c_int, transpose_a: c_int, transpose_b: c_int, rows: c_int,
        n: c_int, columns: c_int, blocks: c_int, alpha: Data, descriptor: Object, values: Data,
        offsets: Data, indices: Data, block: c_int, b: Data, ldb: c_int, beta: Data, c: Data,
        ldc: c_int
    ) => cusparseSbsrmm, cusparseDbsrmm, cusparseCbsrmm, cusparseZbsrmm;
}

// How large a buffer must be.
macro_rules! define {
    ($library:literal; $($rest:tt)+) => {
        answered! { $library, NOT_SUPPORTED, descriptors::words; $($rest)+ }
    };
}

ghostgpu_library_sizes::sparse_questions!(define);

// Operations in such a buffer: their results are values in device memory.
device_work! {
    before: nothing_more;
    workspace: work;
    (
        handle: Object, transpose: c_int, alpha: Data, a: Object, x: Object, beta: Data,
        y: Object, compute_type: c_int, algorithm: c_int, work: Data
    ) => cusparseSpMV;
    (
        handle: Object, transpose_a: c_int, transpose_b: c_int, alpha: Data, a: Object, b: Object,
        beta: Data, c: Object, compute_type: c_int, algorithm: c_int, work: Data
    ) => cusparseSpMM, cusparseSDDMM_preprocess, cusparseSDDMM;
    (
        handle: Object, transpose: c_int, alpha: Data, a: Object, x: Object, y: Object,
        compute_type: c_int, algorithm: c_int, descriptor: Object, work: Data
    ) => cusparseSpSV_analysis;
    (
        handle: Object, transpose_a: c_int, transpose_b: c_int, alpha: Data, a: Object, b: Object,
        c: Object, compute_type: c_int, algorithm: c_int, descriptor: Object, work: Data
    ) => cusparseSpSM_analysis;
    (
        handle: Object, m: c_int, n: c_int, non_zeros: c_int, rows: Data, columns: Data,
        permutation: Data, work: Data
    ) => cusparseXcoosortByRow;
    (
        handle: Object, m: c_int, n: c_int, non_zeros: c_int, descriptor: Object, offsets: Data,
        columns: Data, permutation: Data, work: Data
    ) => cusparseXcsrsort;
    (
        handle: Object, direction: c_int, transpose: c_int, rows: c_int, blocks: c_int,
        descriptor: Object, values: Data, offsets: Data, indices: Data, block: c_int,
        info: Object, policy: c_int, work: Data
    ) => cusparseSbsrsv2_analysis, cusparseDbsrsv2_analysis, cusparseCbsrsv2_analysis,
         cusparseZbsrsv2_analysis;
    (
        handle: Object, direction: c_int, transpose: c_int, rows: c_int, blocks: c_int,
        alpha: Data, descriptor: Object, values: Data, offsets: Data, indices: Data, block: c_int,
        info: Object, right_side: Data, x: Data, policy: c_int, work: Data
    ) => cusparseSbsrsv2_solve, cusparseDbsrsv2_solve, cusparseCbsrsv2_solve,
         cusparseZbsrsv2_solve;
    (
        handle: Object, direction: c_int, transpose_a: c_int, transpose_x: c_int, rows: c_int,
        n: c_int, blocks: c_int, descriptor: Object, values: Data, offsets: Data, indices: Data,
        block: c_int, info: Object, policy: c_int, work: Data
    ) => cusparseSbsrsm2_analysis, cusparseDbsrsm2_analysis, cusparseCbsrsm2_analysis,
         cusparseZbsrsm2_analysis;
    (
        handle: Object, direction: c_int, transpose_a: c_int, transpose_x: c_int, rows: c_int,
        n: c_int, blocks: c_int, alpha: Data, descriptor: Object, values: Data, offsets: Data,
        indices: Data, block: c_int, info: Object, b: Data, ldb: c_int, x: Data, ldx: c_int,
        policy: c_int, work: Data
    ) => cusparseSbsrsm2_solve, cusparseDbsrsm2_solve, cusparseCbsrsm2_solve,
         cusparseZbsrsm2_solve;
}

// They work in the buffer that the analysis was given.
harmless! {
    cusparseSpSV_solve, cusparseSpSM_solve,
}

/// Reports that no pivot is zero, as in every solve that succeeds.
///
/// # Safety
/// `position` points to a writable integer or is null.
unsafe fn no_zero_pivot(position: *mut c_int) -> i32 {
    notes::assume("no pivot of a sparse triangular solve is zero");
    // SAFETY: promised by the caller.
    unsafe { write_out(position, -1) };
    SUCCESS
}

/// # Safety
/// `position` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseXbsrsv2_zeroPivot(
    handle: Object,
    info: Object,
    position: *mut c_int,
) -> i32 {
    log_call!(cusparseXbsrsv2_zeroPivot, handle, info, position);
    // SAFETY: promised by the caller.
    unsafe { no_zero_pivot(position) }
}

/// # Safety
/// `position` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseXbsrsm2_zeroPivot(
    handle: Object,
    info: Object,
    position: *mut c_int,
) -> i32 {
    log_call!(cusparseXbsrsm2_zeroPivot, handle, info, position);
    // SAFETY: promised by the caller.
    unsafe { no_zero_pivot(position) }
}

// Sums and products of sparse matrices: how many non-zeros the result has depends on where the
// factors have theirs, which nobody knows here; and with it everything that follows.
refused! {
    "cuSPARSE", NOT_SUPPORTED;
    cusparseScsrgeam2_bufferSizeExt, cusparseDcsrgeam2_bufferSizeExt,
    cusparseCcsrgeam2_bufferSizeExt, cusparseZcsrgeam2_bufferSizeExt,
    cusparseXcsrgeam2Nnz,
    cusparseScsrgeam2, cusparseDcsrgeam2, cusparseCcsrgeam2, cusparseZcsrgeam2,
    cusparseSpGEMM_workEstimation, cusparseSpGEMM_compute, cusparseSpGEMM_copy,
}

#[unsafe(no_mangle)]
pub extern "C" fn cusparseGetErrorString(code: i32) -> *const c_char {
    let text = match code {
        SUCCESS => c"success",
        1 => c"initialization error",
        INVALID_VALUE => c"invalid value",
        NOT_SUPPORTED => c"operation not supported (not simulated by GhostGPU)",
        _ => c"unknown cuSPARSE status",
    };
    text.as_ptr()
}
