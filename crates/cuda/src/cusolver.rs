//! cuSOLVER: handles exist, solvers that need no workspace are left undone, and the sizes of
//! workspaces are refused until they have been measured.
//!
//! Declarations written from NVIDIA's public documentation "cuSOLVER", release 13.0 (dense part).

use std::ffi::{c_int, c_void};

use crate::{device_work, opaque_objects, refused};

const INVALID_VALUE: i32 = 3;
const NOT_SUPPORTED: i32 = 9;

type Object = *mut c_void;
type Data = *const c_void;
type DataArray = *const *const c_void;

opaque_objects! {
    invalid: INVALID_VALUE;
    create: cusolverDnCreate, cusolverDnCreateParams, cusolverDnCreateGesvdjInfo,
        cusolverDnCreateSyevjInfo;
    destroy: cusolverDnDestroy, cusolverDnDestroyParams, cusolverDnDestroyGesvdjInfo,
        cusolverDnDestroySyevjInfo;
}

fn nothing_more() {}

// Settings that nobody reads back, and solvers without a workspace. They report their success in
// device memory.
device_work! {
    before: nothing_more;
    (handle: Object, stream: Data) => cusolverDnSetStream;
    (parameters: Object, tolerance: f64) => cusolverDnXgesvdjSetTolerance;
    (parameters: Object, value: c_int) => cusolverDnXgesvdjSetMaxSweeps, cusolverDnXgesvdjSetSortEig;
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

// How large a workspace must be.
refused! {
    "cuSOLVER", NOT_SUPPORTED;
    cusolverDnSgeqrf_bufferSize, cusolverDnDgeqrf_bufferSize, cusolverDnCgeqrf_bufferSize,
    cusolverDnZgeqrf_bufferSize, cusolverDnXgeqrf_bufferSize,
    cusolverDnSgesvd_bufferSize, cusolverDnDgesvd_bufferSize, cusolverDnCgesvd_bufferSize,
    cusolverDnZgesvd_bufferSize,
    cusolverDnSgesvdj_bufferSize, cusolverDnDgesvdj_bufferSize, cusolverDnCgesvdj_bufferSize,
    cusolverDnZgesvdj_bufferSize,
    cusolverDnSgesvdjBatched_bufferSize, cusolverDnDgesvdjBatched_bufferSize,
    cusolverDnCgesvdjBatched_bufferSize, cusolverDnZgesvdjBatched_bufferSize,
    cusolverDnSgesvdaStridedBatched_bufferSize, cusolverDnDgesvdaStridedBatched_bufferSize,
    cusolverDnCgesvdaStridedBatched_bufferSize, cusolverDnZgesvdaStridedBatched_bufferSize,
    cusolverDnSgetrf_bufferSize, cusolverDnDgetrf_bufferSize, cusolverDnCgetrf_bufferSize,
    cusolverDnZgetrf_bufferSize,
    cusolverDnSpotrf_bufferSize, cusolverDnDpotrf_bufferSize, cusolverDnCpotrf_bufferSize,
    cusolverDnZpotrf_bufferSize, cusolverDnXpotrf_bufferSize,
    cusolverDnSsytrf_bufferSize, cusolverDnDsytrf_bufferSize, cusolverDnCsytrf_bufferSize,
    cusolverDnZsytrf_bufferSize, cusolverDnXsytrs_bufferSize,
    cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize, cusolverDnCungqr_bufferSize,
    cusolverDnZungqr_bufferSize,
    cusolverDnSormqr_bufferSize, cusolverDnDormqr_bufferSize, cusolverDnCunmqr_bufferSize,
    cusolverDnZunmqr_bufferSize,
    cusolverDnSsyevd_bufferSize, cusolverDnDsyevd_bufferSize, cusolverDnCheevd_bufferSize,
    cusolverDnZheevd_bufferSize, cusolverDnXsyevd_bufferSize, cusolverDnXsyevBatched_bufferSize,
    cusolverDnSsyevj_bufferSize, cusolverDnDsyevj_bufferSize, cusolverDnCheevj_bufferSize,
    cusolverDnZheevj_bufferSize,
    cusolverDnSsyevjBatched_bufferSize, cusolverDnDsyevjBatched_bufferSize,
    cusolverDnCheevjBatched_bufferSize, cusolverDnZheevjBatched_bufferSize,
    cusolverDnXgeev_bufferSize,
}

// Operations that need such a workspace, and cannot be reached without its size.
refused! {
    "cuSOLVER", NOT_SUPPORTED;
    cusolverDnSgeqrf, cusolverDnDgeqrf, cusolverDnCgeqrf, cusolverDnZgeqrf, cusolverDnXgeqrf,
    cusolverDnSgesvd, cusolverDnDgesvd, cusolverDnCgesvd, cusolverDnZgesvd,
    cusolverDnSgesvdj, cusolverDnDgesvdj, cusolverDnCgesvdj, cusolverDnZgesvdj,
    cusolverDnSgesvdjBatched, cusolverDnDgesvdjBatched, cusolverDnCgesvdjBatched,
    cusolverDnZgesvdjBatched,
    cusolverDnSgesvdaStridedBatched, cusolverDnDgesvdaStridedBatched,
    cusolverDnCgesvdaStridedBatched, cusolverDnZgesvdaStridedBatched,
    cusolverDnSgetrf, cusolverDnDgetrf, cusolverDnCgetrf, cusolverDnZgetrf,
    cusolverDnSpotrf, cusolverDnDpotrf, cusolverDnCpotrf, cusolverDnZpotrf, cusolverDnXpotrf,
    cusolverDnSsytrf, cusolverDnDsytrf, cusolverDnCsytrf, cusolverDnZsytrf, cusolverDnXsytrs,
    cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr, cusolverDnZungqr,
    cusolverDnSormqr, cusolverDnDormqr, cusolverDnCunmqr, cusolverDnZunmqr,
    cusolverDnSsyevd, cusolverDnDsyevd, cusolverDnCheevd, cusolverDnZheevd, cusolverDnXsyevd,
    cusolverDnXsyevBatched,
    cusolverDnSsyevj, cusolverDnDsyevj, cusolverDnCheevj, cusolverDnZheevj,
    cusolverDnSsyevjBatched, cusolverDnDsyevjBatched, cusolverDnCheevjBatched,
    cusolverDnZheevjBatched,
    cusolverDnXgeev,
}
