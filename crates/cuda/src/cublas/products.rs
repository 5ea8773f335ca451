//! Vector and matrix operations whose results stay on the card: nothing is computed.
//!
//! In the names, S, D, C and Z stand for float, double, and the complex forms of both. Scalars are
//! passed as addresses on the host or the card, and are not read.

use std::ffi::{c_int, c_longlong};

use super::handle::math_mode;
use super::{Data, DataArray, Handle, begin_work};
use crate::runtime::stream::submit_library_work;
use crate::work::{self, Product};
use crate::{clock, device_work, log_call};

// Level 1: vectors.
device_work! {
    before: begin_work;
    (handle: Handle, n: c_int, alpha: Data, x: Data, x_stride: c_int, y: Data, y_stride: c_int)
        => cublasSaxpy_v2, cublasDaxpy_v2, cublasCaxpy_v2, cublasZaxpy_v2;
    (handle: Handle, n: c_int, x: Data, x_stride: c_int, y: Data, y_stride: c_int)
        => cublasScopy_v2, cublasDcopy_v2, cublasCcopy_v2, cublasZcopy_v2,
           cublasSswap_v2, cublasDswap_v2, cublasCswap_v2, cublasZswap_v2;
    (handle: Handle, n: c_int, alpha: Data, x: Data, x_stride: c_int)
        => cublasSscal_v2, cublasDscal_v2, cublasCscal_v2, cublasZscal_v2,
           cublasCsscal_v2, cublasZdscal_v2;
    (
        handle: Handle, n: c_int, x: Data, x_stride: c_int, y: Data, y_stride: c_int,
        cosine: Data, sine: Data
    ) => cublasSrot_v2, cublasDrot_v2, cublasCrot_v2, cublasZrot_v2, cublasCsrot_v2, cublasZdrot_v2;
    (
        handle: Handle, n: c_int, x: Data, x_stride: c_int, y: Data, y_stride: c_int,
        parameters: Data
    ) => cublasSrotm_v2, cublasDrotm_v2;
}

// Level 2: a matrix and vectors.
device_work! {
    before: begin_work;
    (
        handle: Handle, transpose: c_int, m: c_int, n: c_int, alpha: Data, a: Data, lda: c_int,
        x: Data, x_stride: c_int, beta: Data, y: Data, y_stride: c_int
    ) => cublasSgemv_v2, cublasDgemv_v2, cublasCgemv_v2, cublasZgemv_v2;
    (
        handle: Handle, m: c_int, n: c_int, alpha: Data, x: Data, x_stride: c_int,
        y: Data, y_stride: c_int, a: Data, lda: c_int
    ) => cublasSger_v2, cublasDger_v2, cublasCgeru_v2, cublasCgerc_v2, cublasZgeru_v2, cublasZgerc_v2;
    (
        handle: Handle, triangle: c_int, n: c_int, alpha: Data, a: Data, lda: c_int,
        x: Data, x_stride: c_int, beta: Data, y: Data, y_stride: c_int
    ) => cublasSsymv_v2, cublasDsymv_v2, cublasCsymv_v2, cublasZsymv_v2,
         cublasChemv_v2, cublasZhemv_v2;
    (
        handle: Handle, triangle: c_int, n: c_int, alpha: Data, x: Data, x_stride: c_int,
        a: Data, lda: c_int
    ) => cublasSsyr_v2, cublasDsyr_v2, cublasCsyr_v2, cublasZsyr_v2, cublasCher_v2, cublasZher_v2;
    (
        handle: Handle, triangle: c_int, n: c_int, alpha: Data, x: Data, x_stride: c_int,
        y: Data, y_stride: c_int, a: Data, lda: c_int
    ) => cublasSsyr2_v2, cublasDsyr2_v2, cublasCsyr2_v2, cublasZsyr2_v2,
         cublasCher2_v2, cublasZher2_v2;
    (
        handle: Handle, triangle: c_int, transpose: c_int, diagonal: c_int, n: c_int,
        a: Data, lda: c_int, x: Data, x_stride: c_int
    ) => cublasStrmv_v2, cublasDtrmv_v2, cublasCtrmv_v2, cublasZtrmv_v2,
         cublasStrsv_v2, cublasDtrsv_v2, cublasCtrsv_v2, cublasZtrsv_v2;
}

/// Counts products whose types follow from the function's name.
fn record(name: &str, handle: Handle, [m, n, k, batch]: [c_int; 4], leading: [c_int; 3]) {
    let data_type = match name.as_bytes().get("cublas".len()) {
        Some(b'D' | b'Z') => work::DOUBLE,
        _ => work::SINGLE,
    };
    work::product(|| Product {
        m,
        n,
        k,
        batch,
        data_type,
        compute_type: 0,
        math_mode: math_mode(handle),
        leading,
    });
}

#[allow(clippy::too_many_arguments)] // Those of a product.
fn record_one(
    name: &str,
    handle: Handle,
    m: c_int,
    n: c_int,
    k: c_int,
    lda: c_int,
    ldb: c_int,
    ldc: c_int,
) {
    record(name, handle, [m, n, k, 1], [lda, ldb, ldc]);
}

#[allow(clippy::too_many_arguments)] // Those of a product.
fn record_many(
    name: &str,
    handle: Handle,
    m: c_int,
    n: c_int,
    k: c_int,
    batch: c_int,
    lda: c_int,
    ldb: c_int,
    ldc: c_int,
) {
    record(name, handle, [m, n, k, batch], [lda, ldb, ldc]);
}

// Level 3: matrices.
device_work! {
    before: begin_work;
    records: record_one(handle, m, n, k, lda, ldb, ldc);
    (
        handle: Handle, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: Data, a: Data, lda: c_int, b: Data, ldb: c_int, beta: Data, c: Data, ldc: c_int
    ) => cublasSgemm_v2, cublasDgemm_v2, cublasCgemm_v2, cublasZgemm_v2;
    (
        handle: Handle, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: Data, a: Data, a_type: c_int, lda: c_int, b: Data, b_type: c_int, ldb: c_int,
        beta: Data, c: Data, c_type: c_int, ldc: c_int
    ) => cublasSgemmEx;
}

device_work! {
    before: begin_work;
    (
        handle: Handle, side: c_int, triangle: c_int, m: c_int, n: c_int,
        alpha: Data, a: Data, lda: c_int, b: Data, ldb: c_int, beta: Data, c: Data, ldc: c_int
    ) => cublasSsymm_v2, cublasDsymm_v2, cublasCsymm_v2, cublasZsymm_v2,
         cublasChemm_v2, cublasZhemm_v2;
    (
        handle: Handle, triangle: c_int, transpose: c_int, n: c_int, k: c_int,
        alpha: Data, a: Data, lda: c_int, beta: Data, c: Data, ldc: c_int
    ) => cublasSsyrk_v2, cublasDsyrk_v2, cublasCsyrk_v2, cublasZsyrk_v2,
         cublasCherk_v2, cublasZherk_v2;
    (
        handle: Handle, triangle: c_int, transpose: c_int, n: c_int, k: c_int,
        alpha: Data, a: Data, lda: c_int, b: Data, ldb: c_int, beta: Data, c: Data, ldc: c_int
    ) => cublasSsyr2k_v2, cublasDsyr2k_v2, cublasCsyr2k_v2, cublasZsyr2k_v2,
         cublasCher2k_v2, cublasZher2k_v2;
    (
        handle: Handle, side: c_int, triangle: c_int, transpose: c_int, diagonal: c_int,
        m: c_int, n: c_int, alpha: Data, a: Data, lda: c_int, b: Data, ldb: c_int,
        c: Data, ldc: c_int
    ) => cublasStrmm_v2, cublasDtrmm_v2, cublasCtrmm_v2, cublasZtrmm_v2;
    (
        handle: Handle, side: c_int, triangle: c_int, transpose: c_int, diagonal: c_int,
        m: c_int, n: c_int, alpha: Data, a: Data, lda: c_int, b: Data, ldb: c_int
    ) => cublasStrsm_v2, cublasDtrsm_v2, cublasCtrsm_v2, cublasZtrsm_v2;
}

// Many matrices at once, and types named by parameters.
device_work! {
    before: begin_work;
    records: record_many(handle, m, n, k, batch, lda, ldb, ldc);
    (
        handle: Handle, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: Data, a: DataArray, lda: c_int, b: DataArray, ldb: c_int,
        beta: Data, c: DataArray, ldc: c_int, batch: c_int
    ) => cublasSgemmBatched, cublasDgemmBatched, cublasCgemmBatched, cublasZgemmBatched;
    (
        handle: Handle, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: Data, a: Data, lda: c_int, a_step: c_longlong, b: Data, ldb: c_int,
        b_step: c_longlong, beta: Data, c: Data, ldc: c_int, c_step: c_longlong, batch: c_int
    ) => cublasSgemmStridedBatched, cublasDgemmStridedBatched, cublasCgemmStridedBatched,
         cublasZgemmStridedBatched;
}

/// Counts products whose types are named by parameters.
#[allow(clippy::too_many_arguments)] // Those of a product.
fn record_typed(
    _name: &str,
    handle: Handle,
    m: c_int,
    n: c_int,
    k: c_int,
    batch: c_int,
    a_type: c_int,
    compute_type: c_int,
    lda: c_int,
    ldb: c_int,
    ldc: c_int,
) {
    work::product(|| Product {
        m,
        n,
        k,
        batch,
        data_type: a_type,
        compute_type,
        math_mode: math_mode(handle),
        leading: [lda, ldb, ldc],
    });
}

device_work! {
    before: begin_work;
    records: record_typed(handle, m, n, k, batch, a_type, compute_type, lda, ldb, ldc);
    (
        handle: Handle, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
        alpha: Data, a: Data, a_type: c_int, lda: c_int, a_step: c_longlong,
        b: Data, b_type: c_int, ldb: c_int, b_step: c_longlong,
        beta: Data, c: Data, c_type: c_int, ldc: c_int, c_step: c_longlong,
        batch: c_int, compute_type: c_int, algorithm: c_int
    ) => cublasGemmStridedBatchedEx;
}

device_work! {
    before: begin_work;
    (
        handle: Handle, side: c_int, triangle: c_int, transpose: c_int, diagonal: c_int,
        m: c_int, n: c_int, alpha: Data, a: DataArray, lda: c_int, b: DataArray, ldb: c_int,
        batch: c_int
    ) => cublasStrsmBatched, cublasDtrsmBatched, cublasCtrsmBatched, cublasZtrsmBatched;
}

/// `cudaDataType_t` of half-precision numbers.
const HALF_PRECISION: [c_int; 2] = [2, 14];

/// Matrix units read 16 bytes at a time.
const HALVES_PER_READ: c_int = 8;

/// The product that half-precision layers call. Its time depends on the layout of its matrices.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub extern "C" fn cublasGemmEx(
    handle: Handle,
    transpose_a: c_int,
    transpose_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: Data,
    a: Data,
    a_type: c_int,
    lda: c_int,
    b: Data,
    b_type: c_int,
    ldb: c_int,
    beta: Data,
    c: Data,
    c_type: c_int,
    ldc: c_int,
    compute_type: c_int,
    algorithm: c_int,
) -> i32 {
    log_call!(
        cublasGemmEx,
        handle,
        transpose_a,
        transpose_b,
        m,
        n,
        k,
        alpha,
        a,
        a_type,
        lda,
        b,
        b_type,
        ldb,
        beta,
        c,
        c_type,
        ldc,
        compute_type,
        algorithm
    );
    begin_work();
    record_typed(
        "cublasGemmEx",
        handle,
        m,
        n,
        k,
        1,
        a_type,
        compute_type,
        lda,
        ldb,
        ldc,
    );
    let is_aligned = [lda, ldb, ldc]
        .iter()
        .all(|step| step % HALVES_PER_READ == 0);
    if HALF_PRECISION.contains(&a_type) && !is_aligned {
        submit_library_work(clock::UNALIGNED_PRODUCT - clock::KERNEL);
    }
    0
}
