//! cuSOLVER: handles exist, solvers are left undone, and the sizes of their workspaces are answered
//! from recordings ([`crate::library_sizes`]).
//!
//! Declarations written from NVIDIA's public documentation "cuSOLVER", release 13.0 (dense part).

use std::ffi::{c_int, c_void};

use crate::library_sizes::answered;
use crate::{device_work, log_call, opaque_objects, state};

const INVALID_VALUE: i32 = 3;
const NOT_SUPPORTED: i32 = 9;

type Object = *mut c_void;
type Data = *const c_void;
type DataArray = *const *const c_void;

opaque_objects! {
    invalid: INVALID_VALUE;
    create: cusolverDnCreateParams, cusolverDnCreateGesvdjInfo,
        cusolverDnCreateSyevjInfo;
    destroy: cusolverDnDestroy, cusolverDnDestroyParams, cusolverDnDestroyGesvdjInfo,
        cusolverDnDestroySyevjInfo;
}

/// # Safety
/// `handle` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusolverDnCreate(handle: *mut Object) -> i32 {
    log_call!(cusolverDnCreate, handle);
    state::note_solver_use();
    // SAFETY: promised by the caller.
    match unsafe { opaque_objects::create(handle) } {
        true => 0,
        false => INVALID_VALUE,
    }
}

fn nothing_more() {}

// Settings that nobody reads back, and solvers without a workspace. They report their success in
// device memory.
device_work! {
    before: nothing_more;
    (handle: Object, stream: Data) => cusolverDnSetStream;
    (parameters: Object, tolerance: f64) => cusolverDnXgesvdjSetTolerance;
    (parameters: Object, value: c_int) => cusolverDnXgesvdjSetMaxSweeps, cusolverDnXgesvdjSetSortEig,
        cusolverDnXsyevjSetSortEig;
    (
        handle: Object, transpose: c_int, n: c_int, right_sides: c_int, a: Data, lda: c_int,
        pivots: Data, b: Data, ldb: c_int, device_status: Data
    ) => cusolverDnSgetrs, cusolverDnDgetrs, cusolverDnCgetrs, cusolverDnZgetrs;
    (
        handle: Object, triangle: c_int, n: c_int, right_sides: c_int, a: Data, lda: c_int,
        b: Data, ldb: c_int, device_status: Data
    ) => cusolverDnSpotrs, cusolverDnDpotrs, cusolverDnCpotrs, cusolverDnZpotrs;
    (
        handle: Object, parameters: Object, triangle: c_int, n: i64, right_sides: i64,
        a_type: c_int, a: Data, lda: i64, b_type: c_int, b: Data, ldb: i64, device_status: Data
    ) => cusolverDnXpotrs;
    (
        handle: Object, triangle: c_int, n: c_int, a: DataArray, lda: c_int, device_status: Data,
        batch: c_int
    ) => cusolverDnSpotrfBatched, cusolverDnDpotrfBatched, cusolverDnCpotrfBatched,
         cusolverDnZpotrfBatched;
    (
        handle: Object, triangle: c_int, n: c_int, right_sides: c_int, a: DataArray, lda: c_int,
        b: DataArray, ldb: c_int, device_status: Data, batch: c_int
    ) => cusolverDnSpotrsBatched, cusolverDnDpotrsBatched, cusolverDnCpotrsBatched,
         cusolverDnZpotrsBatched;
}

// How large a workspace must be. No question is about a descriptor's contents.
macro_rules! define {
    ($library:literal; $($rest:tt)+) => {
        answered! { $library, NOT_SUPPORTED, (); $($rest)+ }
    };
}

ghostgpu_library_sizes::solver_questions!(define);

// Operations in such a workspace. They leave values and their success in device memory; the host
// parts of a workspace are theirs alone. The letters are those of the interface: sizes m, n, k,
// matrices a, b, c, u, v with their leading dimensions.
device_work! {
    before: nothing_more;
    workspace: work;
    (
        handle: Object, m: c_int, n: c_int, a: Data, lda: c_int, scales: Data, work: Data,
        work_size: c_int, device_status: Data
    ) => cusolverDnSgeqrf, cusolverDnDgeqrf, cusolverDnCgeqrf, cusolverDnZgeqrf;
    (
        handle: Object, parameters: Object, m: i64, n: i64, a_type: c_int, a: Data, lda: i64,
        scales_type: c_int, scales: Data, compute_type: c_int, work: Data, work_bytes: usize,
        host_work: Data, host_work_bytes: usize, device_status: Data
    ) => cusolverDnXgeqrf;
    (
        handle: Object, left_job: i8, right_job: i8, m: c_int, n: c_int, a: Data, lda: c_int,
        s: Data, u: Data, ldu: c_int, v: Data, ldv: c_int, work: Data, work_size: c_int,
        real_work: Data, device_status: Data
    ) => cusolverDnSgesvd, cusolverDnDgesvd, cusolverDnCgesvd, cusolverDnZgesvd;
    (
        handle: Object, job: c_int, is_economic: c_int, m: c_int, n: c_int, a: Data, lda: c_int,
        s: Data, u: Data, ldu: c_int, v: Data, ldv: c_int, work: Data, work_size: c_int,
        device_status: Data, parameters: Object
    ) => cusolverDnSgesvdj, cusolverDnDgesvdj, cusolverDnCgesvdj, cusolverDnZgesvdj;
    (
        handle: Object, job: c_int, m: c_int, n: c_int, a: Data, lda: c_int, s: Data, u: Data,
        ldu: c_int, v: Data, ldv: c_int, work: Data, work_size: c_int, device_status: Data,
        parameters: Object, batch: c_int
    ) => cusolverDnSgesvdjBatched, cusolverDnDgesvdjBatched, cusolverDnCgesvdjBatched,
         cusolverDnZgesvdjBatched;
    (
        handle: Object, job: c_int, rank: c_int, m: c_int, n: c_int, a: Data, lda: c_int,
        a_stride: i64, s: Data, s_stride: i64, u: Data, ldu: c_int, u_stride: i64, v: Data,
        ldv: c_int, v_stride: i64, work: Data, work_size: c_int, device_status: Data,
        residuals: Data, batch: c_int
    ) => cusolverDnSgesvdaStridedBatched, cusolverDnDgesvdaStridedBatched,
         cusolverDnCgesvdaStridedBatched, cusolverDnZgesvdaStridedBatched;
    (
        handle: Object, m: c_int, n: c_int, a: Data, lda: c_int, work: Data, pivots: Data,
        device_status: Data
    ) => cusolverDnSgetrf, cusolverDnDgetrf, cusolverDnCgetrf, cusolverDnZgetrf;
    (
        handle: Object, triangle: c_int, n: c_int, a: Data, lda: c_int, work: Data,
        work_size: c_int, device_status: Data
    ) => cusolverDnSpotrf, cusolverDnDpotrf, cusolverDnCpotrf, cusolverDnZpotrf;
    (
        handle: Object, parameters: Object, triangle: c_int, n: i64, a_type: c_int, a: Data,
        lda: i64, compute_type: c_int, work: Data, work_bytes: usize, host_work: Data,
        host_work_bytes: usize, device_status: Data
    ) => cusolverDnXpotrf;
    (
        handle: Object, triangle: c_int, n: c_int, a: Data, lda: c_int, pivots: Data, work: Data,
        work_size: c_int, device_status: Data
    ) => cusolverDnSsytrf, cusolverDnDsytrf, cusolverDnCsytrf, cusolverDnZsytrf;
    (
        handle: Object, triangle: c_int, n: i64, right_sides: i64, a_type: c_int, a: Data,
        lda: i64, pivots: Data, b_type: c_int, b: Data, ldb: i64, work: Data, work_bytes: usize,
        host_work: Data, host_work_bytes: usize, device_status: Data
    ) => cusolverDnXsytrs;
    (
        handle: Object, m: c_int, n: c_int, k: c_int, a: Data, lda: c_int, scales: Data,
        work: Data, work_size: c_int, device_status: Data
    ) => cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr, cusolverDnZungqr;
    (
        handle: Object, side: c_int, transpose: c_int, m: c_int, n: c_int, k: c_int, a: Data,
        lda: c_int, scales: Data, c: Data, ldc: c_int, work: Data, work_size: c_int,
        device_status: Data
    ) => cusolverDnSormqr, cusolverDnDormqr, cusolverDnCunmqr, cusolverDnZunmqr;
    (
        handle: Object, job: c_int, triangle: c_int, n: c_int, a: Data, lda: c_int, w: Data,
        work: Data, work_size: c_int, device_status: Data
    ) => cusolverDnSsyevd, cusolverDnDsyevd, cusolverDnCheevd, cusolverDnZheevd;
    (
        handle: Object, parameters: Object, job: c_int, triangle: c_int, n: i64, a_type: c_int,
        a: Data, lda: i64, w_type: c_int, w: Data, compute_type: c_int, work: Data,
        work_bytes: usize, host_work: Data, host_work_bytes: usize, device_status: Data
    ) => cusolverDnXsyevd;
    (
        handle: Object, parameters: Object, job: c_int, triangle: c_int, n: i64, a_type: c_int,
        a: Data, lda: i64, w_type: c_int, w: Data, compute_type: c_int, work: Data,
        work_bytes: usize, host_work: Data, host_work_bytes: usize, device_status: Data,
        batch: i64
    ) => cusolverDnXsyevBatched;
    (
        handle: Object, job: c_int, triangle: c_int, n: c_int, a: Data, lda: c_int, w: Data,
        work: Data, work_size: c_int, device_status: Data, parameters: Object
    ) => cusolverDnSsyevj, cusolverDnDsyevj, cusolverDnCheevj, cusolverDnZheevj;
    (
        handle: Object, job: c_int, triangle: c_int, n: c_int, a: Data, lda: c_int, w: Data,
        work: Data, work_size: c_int, device_status: Data, parameters: Object, batch: c_int
    ) => cusolverDnSsyevjBatched, cusolverDnDsyevjBatched, cusolverDnCheevjBatched,
         cusolverDnZheevjBatched;
    (
        handle: Object, parameters: Object, left_job: c_int, right_job: c_int, n: i64,
        a_type: c_int, a: Data, lda: i64, w_type: c_int, w: Data, left_type: c_int, left: Data,
        left_ld: i64, right_type: c_int, right: Data, right_ld: i64, compute_type: c_int,
        work: Data, work_bytes: usize, host_work: Data, host_work_bytes: usize,
        device_status: Data
    ) => cusolverDnXgeev;
}
