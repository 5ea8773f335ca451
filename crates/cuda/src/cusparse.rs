//! cuSPARSE: descriptors exist and know their shapes; every operation begins by asking how large its
//! buffer must be, and that question is refused until such sizes have been measured.
//!
//! Declarations written from NVIDIA's public documentation "cuSPARSE", release 13.0.

use std::ffi::{c_char, c_int, c_void};

use crate::handles::Handles;
use crate::{device_work, opaque_objects, refused, trace_call, write_out};

const SUCCESS: i32 = 0;
const INVALID_VALUE: i32 = 3;
const NOT_SUPPORTED: i32 = 10;

type Object = *mut c_void;
type Data = *const c_void;

opaque_objects! {
    invalid: INVALID_VALUE;
    create: cusparseCreate, cusparseCreateMatDescr, cusparseCreateDnMat, cusparseCreateDnVec,
        cusparseCreateBsrsm2Info, cusparseCreateBsrsv2Info, cusparseSpGEMM_createDescr,
        cusparseSpSM_createDescr, cusparseSpSV_createDescr;
    destroy: cusparseDestroy, cusparseDestroyMatDescr, cusparseDestroyDnMat, cusparseDestroyDnVec,
        cusparseDestroyBsrsm2Info, cusparseDestroyBsrsv2Info, cusparseSpGEMM_destroyDescr,
        cusparseSpSM_destroyDescr, cusparseSpSV_destroyDescr;
}

/// Rows, columns, non-zeros.
static SPARSE_MATRICES: Handles<[i64; 3]> = Handles::starting_at(0x5BA5_0000);

/// # Safety
/// `matrix` points to writable memory for a handle, or is null.
unsafe fn create_sparse(matrix: *mut Object, shape: [i64; 3]) -> i32 {
    if matrix.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(matrix, SPARSE_MATRICES.insert(shape) as Object) };
    SUCCESS
}

/// The parameters that follow (addresses, types, index base) do not change any answer of ours.
///
/// # Safety
/// `matrix` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseCreateCsr(
    matrix: *mut Object,
    rows: i64,
    columns: i64,
    non_zeros: i64,
) -> i32 {
    trace_call!(cusparseCreateCsr, matrix, rows, columns, non_zeros);
    // SAFETY: promised by the caller.
    unsafe { create_sparse(matrix, [rows, columns, non_zeros]) }
}

/// As [`cusparseCreateCsr`].
///
/// # Safety
/// `matrix` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseCreateCoo(
    matrix: *mut Object,
    rows: i64,
    columns: i64,
    non_zeros: i64,
) -> i32 {
    trace_call!(cusparseCreateCoo, matrix, rows, columns, non_zeros);
    // SAFETY: promised by the caller.
    unsafe { create_sparse(matrix, [rows, columns, non_zeros]) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cusparseDestroySpMat(matrix: Object) -> i32 {
    trace_call!(cusparseDestroySpMat, matrix);
    match SPARSE_MATRICES.remove(matrix as usize) {
        Some(_) => SUCCESS,
        None => INVALID_VALUE,
    }
}

/// The shape that the matrix was made with. Only products of sparse matrices change the number of
/// non-zeros afterwards, and those are refused.
///
/// # Safety
/// The last three point to writable integers or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseSpMatGetSize(
    matrix: Object,
    rows: *mut i64,
    columns: *mut i64,
    non_zeros: *mut i64,
) -> i32 {
    trace_call!(cusparseSpMatGetSize, matrix, rows, columns, non_zeros);
    let Some(shape) = SPARSE_MATRICES.with(matrix as usize, |shape| *shape) else {
        return INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(rows, shape[0]);
        write_out(columns, shape[1]);
        write_out(non_zeros, shape[2]);
    }
    SUCCESS
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
    (matrix: Object, batch: c_int, offset_step: i64, value_step: i64) => cusparseCsrSetStridedBatch;
    (matrix: Object, batch: c_int, step: i64) => cusparseDnMatSetStridedBatch;
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

// Sizes of buffers.
refused! {
    "cuSPARSE", NOT_SUPPORTED;
    cusparseSpMV_bufferSize, cusparseSpMM_bufferSize, cusparseSDDMM_bufferSize,
    cusparseSpSV_bufferSize, cusparseSpSM_bufferSize,
    cusparseXcoosort_bufferSizeExt, cusparseXcsrsort_bufferSizeExt,
    cusparseSbsrsv2_bufferSize, cusparseDbsrsv2_bufferSize, cusparseCbsrsv2_bufferSize,
    cusparseZbsrsv2_bufferSize,
    cusparseSbsrsm2_bufferSize, cusparseDbsrsm2_bufferSize, cusparseCbsrsm2_bufferSize,
    cusparseZbsrsm2_bufferSize,
    cusparseScsrgeam2_bufferSizeExt, cusparseDcsrgeam2_bufferSizeExt,
    cusparseCcsrgeam2_bufferSizeExt, cusparseZcsrgeam2_bufferSizeExt,
    cusparseSpGEMM_workEstimation, cusparseSpGEMM_compute,
}

// Numbers that depend on the values: how many non-zeros a sum has, where a pivot is zero.
refused! {
    "cuSPARSE", NOT_SUPPORTED;
    cusparseXcsrgeam2Nnz, cusparseXbsrsv2_zeroPivot, cusparseXbsrsm2_zeroPivot,
}

// Operations that cannot be reached without the answers above.
refused! {
    "cuSPARSE", NOT_SUPPORTED;
    cusparseSpMV, cusparseSpMM, cusparseSDDMM_preprocess, cusparseSDDMM,
    cusparseSpSV_analysis, cusparseSpSV_solve, cusparseSpSM_analysis, cusparseSpSM_solve,
    cusparseSpGEMM_copy, cusparseXcoosortByRow, cusparseXcsrsort,
    cusparseSbsrsv2_analysis, cusparseDbsrsv2_analysis, cusparseCbsrsv2_analysis,
    cusparseZbsrsv2_analysis,
    cusparseSbsrsv2_solve, cusparseDbsrsv2_solve, cusparseCbsrsv2_solve, cusparseZbsrsv2_solve,
    cusparseSbsrsm2_analysis, cusparseDbsrsm2_analysis, cusparseCbsrsm2_analysis,
    cusparseZbsrsm2_analysis,
    cusparseSbsrsm2_solve, cusparseDbsrsm2_solve, cusparseCbsrsm2_solve, cusparseZbsrsm2_solve,
    cusparseScsrgeam2, cusparseDcsrgeam2, cusparseCcsrgeam2, cusparseZcsrgeam2,
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
