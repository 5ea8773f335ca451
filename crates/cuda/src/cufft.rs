//! cuFFT: plans exist, but making one tells the caller how large its work area must be, and that is
//! refused until such sizes have been measured.
//!
//! Declarations written from NVIDIA's public documentation "cuFFT", release 13.0.

use std::ffi::{c_int, c_void};

use crate::handles::Handles;
use crate::{refused, trace_call, write_out};

const SUCCESS: i32 = 0;
const INVALID_PLAN: i32 = 1;
const INVALID_VALUE: i32 = 4;
const NOT_SUPPORTED: i32 = 16;

/// Plans are small integers in cuFFT's interface.
static PLANS: Handles<()> = Handles::starting_at(0x0FF7_0000);

/// # Safety
/// `plan` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cufftCreate(plan: *mut c_int) -> i32 {
    trace_call!(cufftCreate, plan);
    let number = c_int::try_from(PLANS.insert(()));
    let (Ok(number), false) = (number, plan.is_null()) else {
        return INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(plan, number) };
    SUCCESS
}

/// Reports whether there is such a plan, after running `action` on it.
fn with_plan(plan: c_int, action: impl FnOnce(usize) -> bool) -> i32 {
    let is_known = usize::try_from(plan).is_ok_and(action);
    if is_known { SUCCESS } else { INVALID_PLAN }
}

fn is_plan(number: usize) -> bool {
    PLANS.with(number, |()| ()).is_some()
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftDestroy(plan: c_int) -> i32 {
    trace_call!(cufftDestroy, plan);
    with_plan(plan, |number| PLANS.remove(number).is_some())
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetStream(plan: c_int, stream: *mut c_void) -> i32 {
    trace_call!(cufftSetStream, plan, stream);
    with_plan(plan, is_plan)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetAutoAllocation(plan: c_int, automatic: c_int) -> i32 {
    trace_call!(cufftSetAutoAllocation, plan, automatic);
    with_plan(plan, is_plan)
}

#[unsafe(no_mangle)]
pub extern "C" fn cufftSetWorkArea(plan: c_int, area: *mut c_void) -> i32 {
    trace_call!(cufftSetWorkArea, plan, area);
    with_plan(plan, is_plan)
}

refused! {
    "cuFFT", NOT_SUPPORTED;
    cufftXtMakePlanMany, cufftXtExec,
}
