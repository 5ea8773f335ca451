//! CUPTI, the profiling interface: refused, without stopping the script.
//!
//! Nothing runs on a virtual card, so there is nothing to time. PyTorch's profiler gets the error
//! when it subscribes, warns that CUDA activities will be missing, and continues with those of the CPU.
//!
//! Declarations written from NVIDIA's public documentation "CUPTI", release 13.0.

use std::ffi::c_char;

use crate::{log_call, write_out};

/// `CUPTI_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 27;
/// `CUPTI_ERROR_INVALID_PARAMETER`.
const INVALID_PARAMETER: i32 = 1;

/// Defines exported functions that return "not supported"; the caller decides whether to continue.
macro_rules! not_supported {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> i32 {
                log_call!($name);
                NOT_SUPPORTED
            }
        )+
    };
}

not_supported! {
    cuptiActivityDisable, cuptiActivityEnable, cuptiActivityEnableCudaEventDeviceTimestamps,
    cuptiActivityEnableDriverApi, cuptiActivityEnableRuntimeApi, cuptiActivityFlushAll,
    cuptiActivityGetNextRecord, cuptiActivityGetNumDroppedRecords,
    cuptiActivityPopExternalCorrelationId, cuptiActivityPushExternalCorrelationId,
    cuptiActivityRegisterCallbacks, cuptiActivityRegisterTimestampCallback,
    cuptiActivitySetAttribute, cuptiEnableCallback, cuptiEnableDomain, cuptiFinalize,
    cuptiEventGetAttribute, cuptiEventGetIdFromName, cuptiEventGroupGetAttribute,
    cuptiEventGroupReadEvent, cuptiEventGroupSetAttribute, cuptiEventGroupSetDisable,
    cuptiEventGroupSetEnable, cuptiEventGroupSetsCreate, cuptiEventGroupSetsDestroy,
    cuptiGetCallbackName, cuptiGetDeviceId, cuptiGetVersion, cuptiMetricEnumEvents,
    cuptiMetricGetAttribute, cuptiMetricGetIdFromName, cuptiMetricGetNumEvents,
    cuptiMetricGetValue, cuptiSetEventCollectionMode, cuptiSubscribe, cuptiUnsubscribe,
}

/// # Safety
/// `text` points to writable memory for an address, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(code: i32, text: *mut *const c_char) -> i32 {
    log_call!(cuptiGetResultString, code, text);
    if text.is_null() {
        return INVALID_PARAMETER;
    }
    let words = match code {
        0 => c"CUPTI_SUCCESS",
        NOT_SUPPORTED => c"CUPTI_ERROR_NOT_SUPPORTED (a GhostGPU virtual card has no timings)",
        _ => c"unknown CUPTI result",
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(text, words.as_ptr()) };
    0
}
