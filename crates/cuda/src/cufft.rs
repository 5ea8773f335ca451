//! cuFFT: plans, and how large a work area each wants ([`library_sizes`]).
//!
//! Declarations written from NVIDIA's public documentation "cuFFT", release 13.0.

use std::ffi::{c_int, c_void};

use ghostgpu_library_sizes::fft::{Plan, Side, WORK_BYTES};

use crate::handles::Handles;
use crate::{library_sizes, log_call, observer, state, write_out};

const SUCCESS: i32 = 0;
const INVALID_PLAN: i32 = 1;
const INVALID_VALUE: i32 = 4;
const INVALID_SIZE: i32 = 8;
const NOT_SUPPORTED: i32 = 16;

/// Plans are small integers in cuFFT's interface.
static PLANS: Handles<()> = Handles::starting_at(0x0FF7_0000);

/// # Safety
/// `plan` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cufftCreate(plan: *mut c_int) -> i32 {
    log_call!(cufftCreate, plan);
    let number = c_int::try_from(PLANS.insert(()));
    let (Ok(number), false) = (number, plan.is_null()) else {
        return INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(plan, number) };
    SUCCESS
}

/// Runs `action` on a plan's handle; `INVALID_PLAN` if it does not find the plan.
fn with_plan(plan: c_int, action: impl FnOnce(usize) -> bool) -> i32 {
    let is_known = usize::try_from(plan).is_ok_and(action);
    if is_known { SUCCESS } else { INVALID_PLAN }
}

fn is_plan(number: usize) -> bool {
    PLANS.with(number, |()| ()).is_some()
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftDestroy(plan: c_int) -> i32 {
    log_call!(cufftDestroy, plan);
    with_plan(plan, |number| PLANS.remove(number).is_some())
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetStream(plan: c_int, stream: *mut c_void) -> i32 {
    log_call!(cufftSetStream, plan, stream);
    with_plan(plan, is_plan)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetAutoAllocation(plan: c_int, automatic: c_int) -> i32 {
    log_call!(cufftSetAutoAllocation, plan, automatic);
    with_plan(plan, is_plan)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetWorkArea(plan: c_int, area: *mut c_void) -> i32 {
    log_call!(cufftSetWorkArea, plan, area);
    observer::workspace(area);
    with_plan(plan, is_plan)
}

/// # Safety
/// Arrays have `rank` elements or are null; `work_bytes` is valid or null.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cufftXtMakePlanMany(
    plan: c_int,
    rank: c_int,
    sizes: *const i64,
    input_embedded: *const i64,
    input_stride: i64,
    input_distance: i64,
    input_type: c_int,
    output_embedded: *const i64,
    output_stride: i64,
    output_distance: i64,
    output_type: c_int,
    batch: i64,
    work_bytes: *mut usize,
    execution_type: c_int,
) -> i32 {
    // SAFETY: promised by the caller.
    let wanted = unsafe {
        Plan {
            sizes: array(sizes, rank).unwrap_or_default(),
            input: Side {
                embedded: array(input_embedded, rank),
                stride: input_stride,
                distance: input_distance,
                element: input_type,
            },
            output: Side {
                embedded: array(output_embedded, rank),
                stride: output_stride,
                distance: output_distance,
                element: output_type,
            },
            batch,
            execution: execution_type,
        }
    };
    log_call!(cufftXtMakePlanMany, plan, wanted, work_bytes);
    if with_plan(plan, is_plan) != SUCCESS {
        return INVALID_PLAN;
    }
    if wanted.sizes.is_empty() || wanted.sizes.iter().any(|&size| size < 1) {
        return INVALID_SIZE;
    }
    let Some(answer) = library_sizes::answer("cuFFT", &wanted.question()) else {
        return NOT_SUPPORTED;
    };
    state::note_transform_use();
    let bytes = answer.number(WORK_BYTES).unwrap_or(0);
    // SAFETY: promised by the caller.
    unsafe { write_out(work_bytes, bytes as usize) };
    SUCCESS
}

/// # Safety
/// `start` is null or points to `count` numbers.
unsafe fn array(start: *const i64, count: c_int) -> Option<Vec<i64>> {
    let count = usize::try_from(count).ok()?;
    if start.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    Some(unsafe { std::slice::from_raw_parts(start, count) }.to_vec())
}

/// The transform itself leaves values in device memory, and nothing else.
#[unsafe(no_mangle)]
pub extern "C" fn cufftXtExec(
    plan: c_int,
    input: *mut c_void,
    output: *mut c_void,
    direction: c_int,
) -> i32 {
    log_call!(cufftXtExec, plan, input, output, direction);
    with_plan(plan, is_plan)
}
