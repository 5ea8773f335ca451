//! Presents this library as an NVTX tool, to which PyTorch's profiler announces operators.
//!
//! Written from the public headers of NVTX 3 (`nvtx3/nvtxDetail/nvtxTypes.h`): a program that uses NVTX
//! opens the library named by `NVTX_INJECTION64_PATH` and calls its `InitializeInjectionNvtx2` with a
//! function that returns tables; the tool puts its own functions into the table of the core module.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::context;

/// `NVTX_ETID_CALLBACKS`.
const TABLE_OF_CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE`.
const MODULE_CORE: c_int = 1;
/// `NVTX_CBID_CORE_RangePushEx`, `…RangePushA`, `…RangePop`.
const RANGE_PUSH_EX: usize = 8;
const RANGE_PUSH_A: usize = 9;
const RANGE_POP: usize = 11;

type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;
type FunctionTable = *mut *mut *const c_void;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    struct_bytes: usize,
    get_module_function_table:
        Option<unsafe extern "C" fn(c_int, *mut FunctionTable, *mut c_uint) -> c_int>,
}

/// The part of `nvtxEventAttributes_t` before its message, and the message.
#[repr(C)]
struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    colour_kind: i32,
    colour: u32,
    payload_kind: i32,
    reserved: i32,
    payload: u64,
    message_kind: i32,
    message: *const c_char,
}

/// `NVTX_MESSAGE_TYPE_ASCII`.
const MESSAGE_ASCII: i32 = 1;

/// Called by NVTX at its first use; returns 1 for success.
///
/// # Safety
/// `get_table` is NVTX's own function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_table: Option<GetExportTable>) -> c_int {
    let Some(get_table) = get_table else {
        return 0;
    };
    // SAFETY: NVTX hands out a pointer to a static table, or null.
    let callbacks = unsafe { get_table(TABLE_OF_CALLBACKS).cast::<Callbacks>().as_ref() };
    let Some(get_functions) = callbacks.and_then(|each| each.get_module_function_table) else {
        return 0;
    };
    let mut table: FunctionTable = std::ptr::null_mut();
    let mut entries: c_uint = 0;
    // SAFETY: both pointers are valid for writes.
    let found = unsafe { get_functions(MODULE_CORE, &raw mut table, &raw mut entries) };
    if found == 0 || table.is_null() {
        return 0;
    }
    for (index, function) in [
        (RANGE_PUSH_A, push as *const c_void),
        (RANGE_PUSH_EX, push_with_attributes as *const c_void),
        (RANGE_POP, pop as *const c_void),
    ] {
        if index < entries as usize {
            // SAFETY: the table has `entries` entries, each of which points to where a function goes.
            unsafe {
                let place = *table.add(index);
                if !place.is_null() {
                    *place = function;
                }
            }
        }
    }
    1
}

/// `nvtxRangePushA`.
unsafe extern "C" fn push(message: *const c_char) -> c_int {
    // SAFETY: NVTX's callers pass a C string.
    context::enter(unsafe { text(message) });
    0
}

/// `nvtxRangePushEx`.
unsafe extern "C" fn push_with_attributes(attributes: *const EventAttributes) -> c_int {
    // SAFETY: NVTX's callers pass a structure of theirs; its message is a C string if it says so.
    let message = unsafe {
        match attributes.as_ref() {
            Some(attributes) if attributes.message_kind == MESSAGE_ASCII => {
                text(attributes.message)
            }
            _ => "",
        }
    };
    context::enter(message);
    0
}

/// `nvtxRangePop`.
unsafe extern "C" fn pop() -> c_int {
    context::leave();
    0
}

/// # Safety
/// `message` is null or a C string.
unsafe fn text<'a>(message: *const c_char) -> &'a str {
    if message.is_null() {
        return "";
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(message) }.to_str().unwrap_or("")
}
