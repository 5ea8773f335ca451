//! Batched factorisations and solvers. The per-matrix status is in device memory; what three of the
//! four kinds tell the host is only whether the *parameters* were valid.

use std::ffi::c_int;

use super::{DataArray, Handle, begin_work, status};
use crate::{device_work, log_call, write_out};

device_work! {
    before: begin_work;
    (
        handle: Handle, n: c_int, a: DataArray, lda: c_int, pivots: *mut c_int,
        device_status: *mut c_int, batch: c_int
    ) => cublasSgetrfBatched, cublasDgetrfBatched, cublasCgetrfBatched, cublasZgetrfBatched;
}

/// Functions whose parameter named `host_status` is set to zero: all parameters are valid.
macro_rules! with_host_status {
    ($($parameters:tt => $($name:ident),+;)+) => {
        $($(with_host_status!(@define $name $parameters);)+)+
    };
    (@define $name:ident (
        ($($before:ident: $before_type:ty),+), host_status, ($($after:ident: $after_type:ty),*)
    )) => {
        /// # Safety
        /// `host_status` points to a writable integer on the host, or is null.
        #[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $before_type,)+ host_status: *mut c_int $(, $after: $after_type)*
        ) -> i32 {
            log_call!($name $(, $before)+, host_status $(, $after)*);
            begin_work();
            // SAFETY: promised by the caller.
            unsafe { write_out(host_status, 0) };
            status::SUCCESS
        }
    };
}

with_host_status! {
    ((
        handle: Handle, transpose: c_int, n: c_int, right_sides: c_int, a: DataArray, lda: c_int,
        pivots: *const c_int, b: DataArray, ldb: c_int
    ), host_status, (batch: c_int))
        => cublasSgetrsBatched, cublasDgetrsBatched, cublasCgetrsBatched, cublasZgetrsBatched;
    ((
        handle: Handle, m: c_int, n: c_int, a: DataArray, lda: c_int, tau: DataArray
    ), host_status, (batch: c_int))
        => cublasSgeqrfBatched, cublasDgeqrfBatched, cublasCgeqrfBatched, cublasZgeqrfBatched;
    ((
        handle: Handle, transpose: c_int, m: c_int, n: c_int, right_sides: c_int,
        a: DataArray, lda: c_int, c: DataArray, ldc: c_int
    ), host_status, (device_status: *mut c_int, batch: c_int))
        => cublasSgelsBatched, cublasDgelsBatched, cublasCgelsBatched, cublasZgelsBatched;
}
