//! Device code loaded at run time, objects kept alive by graphs, and memory of graphs.

use std::ffi::{c_int, c_void};

use super::errors::{
    INVALID_DEVICE, INVALID_RESOURCE_HANDLE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, report,
};
use crate::handles::Handles;
use crate::{call_log, state, write_out};

struct Library;

static LIBRARIES: Handles<Library> = Handles::starting_at(0x1b00_0000);
static KERNELS: Handles<usize> = Handles::starting_at(0x4e00_0000);

/// Accepts a bundle of device code without looking into it.
///
/// # Safety
/// `library` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaLibraryLoadData(library: *mut usize, code: *const c_void) -> c_int {
    call_log::call("cudaLibraryLoadData", || format!("{code:p}"));
    if code.is_null() || library.is_null() {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(library, LIBRARIES.insert(Library)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaLibraryUnload(library: usize) -> c_int {
    match LIBRARIES.remove(library) {
        Some(_) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

/// # Safety
/// `kernel` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaLibraryGetKernel(kernel: *mut usize, library: usize) -> c_int {
    if LIBRARIES.with(library, |_| ()).is_none() {
        return report(INVALID_RESOURCE_HANDLE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(kernel, KERNELS.insert(library)) };
    SUCCESS
}

crate::refused! { "CUDA runtime", NOT_SUPPORTED;
    cudaLibraryLoadFromFile, cudaLibraryGetGlobal, cudaLibraryGetManaged,
    cudaLibraryGetUnifiedFunction, cudaLibraryGetKernelCount,
}

/// An object that a graph keeps alive until it is destroyed.
struct UserObject {
    pointer: usize,
    destroy: unsafe extern "C" fn(*mut c_void),
    references: u64,
}

static USER_OBJECTS: Handles<UserObject> = Handles::starting_at(0x0b00_0000);

/// # Safety
/// `object` is null or writable; `destroy` may be called with `pointer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaUserObjectCreate(
    object: *mut usize,
    pointer: *mut c_void,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    references: u32,
    _flags: u32,
) -> c_int {
    let Some(destroy) = destroy else {
        return report(INVALID_VALUE);
    };
    let made = UserObject {
        pointer: pointer as usize,
        destroy,
        references: u64::from(references),
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(object, USER_OBJECTS.insert(made)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaUserObjectRelease(object: usize, count: u32) -> c_int {
    let left = USER_OBJECTS.with(object, |object| {
        object.references = object.references.saturating_sub(u64::from(count));
        object.references
    });
    match left {
        None => report(INVALID_RESOURCE_HANDLE),
        Some(0) => {
            if let Some(object) = USER_OBJECTS.remove(object) {
                // SAFETY: promised when the object was made, and it is called once.
                unsafe { (object.destroy)(object.pointer as *mut c_void) };
            }
            SUCCESS
        }
        Some(_) => SUCCESS,
    }
}

/// The graph's reference lives as long as the process; graphs are few.
#[unsafe(no_mangle)]
pub extern "C" fn cudaGraphRetainUserObject(
    _graph: usize,
    object: usize,
    count: u32,
    flags: u32,
) -> c_int {
    const MOVE: u32 = 1;
    let found = USER_OBJECTS.with(object, |object| {
        if flags & MOVE == 0 {
            object.references += u64::from(count);
        }
    });
    match found {
        Some(()) => SUCCESS,
        None => report(INVALID_RESOURCE_HANDLE),
    }
}

/// Graphs allocate nothing here: PyTorch gives them memory from its own pools.
///
/// # Safety
/// `value` is null or points to 64 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaDeviceGetGraphMemAttribute(
    device: c_int,
    _attribute: c_int,
    value: *mut u64,
) -> c_int {
    if state::visible_device(device).is_none() {
        return report(INVALID_DEVICE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(value, 0) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaDeviceSetGraphMemAttribute(
    device: c_int,
    _attribute: c_int,
    _value: *mut c_void,
) -> c_int {
    report(match state::visible_device(device) {
        Some(_) => SUCCESS,
        None => INVALID_DEVICE,
    })
}
