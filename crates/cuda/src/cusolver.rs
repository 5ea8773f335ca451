//! cuSOLVER: handles exist, solvers are left undone, and the sizes of their workspaces are answered
//! from recordings ([`crate::library_sizes`]).
//!
//! Declarations written from NVIDIA's public documentation "cuSOLVER", release 13.0 (dense part).

use std::ffi::{c_int, c_void};

use crate::library_sizes::answered;
use crate::{device_work, harmless, opaque_objects, state, trace_call};

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
    trace_call!(cusolverDnCreate, handle);
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

// How large a workspace must be. No question is about a descriptor's contents.
macro_rules! define {
    ($library:literal; $($rest:tt)+) => {
        answered! { $library, NOT_SUPPORTED, (); $($rest)+ }
    };
}

ghostgpu_tables::solver_questions!(define);

// Operations in such a workspace. They leave values and their success in device memory; the host
// parts of a workspace are theirs alone.
harmless! {
    cusolverDnSgeqrf, cusolverDnDgeqrf, cusolverDnCgeqrf, cusolverDnZgeqrf, cusolverDnXgeqrf,
    cusolverDnSgesvd, cusolverDnDgesvd, cusolverDnCgesvd, cusolverDnZgesvd, cusolverDnSgesvdj,
    cusolverDnDgesvdj, cusolverDnCgesvdj, cusolverDnZgesvdj, cusolverDnSgesvdjBatched,
    cusolverDnDgesvdjBatched, cusolverDnCgesvdjBatched, cusolverDnZgesvdjBatched,
    cusolverDnSgesvdaStridedBatched, cusolverDnDgesvdaStridedBatched,
    cusolverDnCgesvdaStridedBatched, cusolverDnZgesvdaStridedBatched, cusolverDnSgetrf,
    cusolverDnDgetrf, cusolverDnCgetrf, cusolverDnZgetrf, cusolverDnSpotrf, cusolverDnDpotrf,
    cusolverDnCpotrf, cusolverDnZpotrf, cusolverDnXpotrf, cusolverDnSsytrf, cusolverDnDsytrf,
    cusolverDnCsytrf, cusolverDnZsytrf, cusolverDnXsytrs, cusolverDnSorgqr, cusolverDnDorgqr,
    cusolverDnCungqr, cusolverDnZungqr, cusolverDnSormqr, cusolverDnDormqr, cusolverDnCunmqr,
    cusolverDnZunmqr, cusolverDnSsyevd, cusolverDnDsyevd, cusolverDnCheevd, cusolverDnZheevd,
    cusolverDnXsyevd, cusolverDnXsyevBatched, cusolverDnSsyevj, cusolverDnDsyevj, cusolverDnCheevj,
    cusolverDnZheevj, cusolverDnSsyevjBatched, cusolverDnDsyevjBatched, cusolverDnCheevjBatched,
    cusolverDnZheevjBatched, cusolverDnXgeev,
}
