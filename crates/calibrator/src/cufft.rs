//! cuFFT: how large the work area of a plan is.

use std::ffi::{c_int, c_longlong};

use ghostgpu_library_sizes::Answer;
use ghostgpu_library_sizes::fft::{Plan, Side, WORK_BYTES};

use crate::questions::NOT_INITIALIZED;
use crate::{real, real_function, recording};

type MakePlan = unsafe extern "C" fn(
    c_int,
    c_int,
    *const c_longlong,
    *const c_longlong,
    c_longlong,
    c_longlong,
    c_int,
    *const c_longlong,
    c_longlong,
    c_longlong,
    c_int,
    c_longlong,
    *mut usize,
    c_int,
) -> c_int;

/// # Safety
/// As cuFFT's documentation says: arrays have `rank` elements or are null where they may be.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cufftXtMakePlanMany(
    plan: c_int,
    rank: c_int,
    sizes: *const c_longlong,
    input_embedded: *const c_longlong,
    input_stride: c_longlong,
    input_distance: c_longlong,
    input_type: c_int,
    output_embedded: *const c_longlong,
    output_stride: c_longlong,
    output_distance: c_longlong,
    output_type: c_int,
    batch: c_longlong,
    work_bytes: *mut usize,
    execution_type: c_int,
) -> c_int {
    let Some(real) = real_function!(real::CUFFT, cufftXtMakePlanMany, MakePlan) else {
        return NOT_INITIALIZED;
    };
    // SAFETY: passed on as it came.
    let status = unsafe {
        real(
            plan,
            rank,
            sizes,
            input_embedded,
            input_stride,
            input_distance,
            input_type,
            output_embedded,
            output_stride,
            output_distance,
            output_type,
            batch,
            work_bytes,
            execution_type,
        )
    };
    if status != 0 || work_bytes.is_null() {
        return status;
    }
    // SAFETY: the real function has accepted these arrays and written the size.
    let (asked, bytes) = unsafe {
        let side = |embedded, stride, distance, element| Side {
            embedded: array(embedded, rank),
            stride,
            distance,
            element,
        };
        let asked = Plan {
            sizes: array(sizes, rank).unwrap_or_default(),
            input: side(input_embedded, input_stride, input_distance, input_type),
            output: side(output_embedded, output_stride, output_distance, output_type),
            batch,
            execution: execution_type,
        };
        (asked, work_bytes.read_unaligned())
    };
    let mut answer = Answer::default();
    answer.add(WORK_BYTES, bytes);
    recording::record(asked.question(), answer);
    status
}

/// # Safety
/// `start` must be null or point to `count` numbers.
unsafe fn array(start: *const c_longlong, count: c_int) -> Option<Vec<i64>> {
    let count = usize::try_from(count).ok()?;
    if start.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    Some(unsafe { std::slice::from_raw_parts(start, count) }.to_vec())
}
