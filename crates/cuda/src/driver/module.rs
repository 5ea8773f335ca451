//! Loading device code. The code is accepted without reading it; functions are remembered by name.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::{INVALID_RESOURCE_HANDLE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS};
use crate::handles::Handles;
use crate::{call_log, state, write_out};

pub struct Module;

pub struct Function {
    pub name: String,
}

static MODULES: Handles<Module> = Handles::starting_at(0x3d00_0000);
static FUNCTIONS: Handles<Function> = Handles::starting_at(0xf000_0000);

/// The name of a loaded function, for traces.
pub fn function_name(function: usize) -> String {
    FUNCTIONS
        .with(function, |function| function.name.clone())
        .unwrap_or_else(|| format!("{function:#x}"))
}

pub fn is_function(function: usize) -> bool {
    FUNCTIONS.with(function, |_| ()).is_some()
}

fn load(module: *mut usize, image: *const c_void, name: &str) -> c_int {
    call_log::call(name, || format!("{image:p}"));
    if module.is_null() || image.is_null() {
        return INVALID_VALUE;
    }
    if let Some(card) = state::current_with_context() {
        card.note_kernel_use();
    }
    // SAFETY: the exported functions below promise that `module` is writable.
    unsafe { write_out(module, MODULES.insert(Module)) };
    SUCCESS
}

/// # Safety
/// `module` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut usize, image: *const c_void) -> c_int {
    load(module, image, "cuModuleLoadData")
}

/// # Safety
/// `module` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut usize,
    image: *const c_void,
    _count: u32,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> c_int {
    load(module, image, "cuModuleLoadDataEx")
}

/// # Safety
/// `module` is null or writable; `path` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoad(module: *mut usize, path: *const c_char) -> c_int {
    load(module, path.cast(), "cuModuleLoad")
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: usize) -> c_int {
    match MODULES.remove(module) {
        Some(_) => SUCCESS,
        None => INVALID_RESOURCE_HANDLE,
    }
}

/// # Safety
/// `function` is null or writable; `name` is a C string.
unsafe fn get_function(
    function: *mut usize,
    module: usize,
    name: *const c_char,
    caller: &str,
) -> c_int {
    if name.is_null() || MODULES.with(module, |_| ()).is_none() {
        return INVALID_VALUE;
    }
    // SAFETY: promised by the caller.
    let name = unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned();
    call_log::call(caller, || format!("{module:#x}, {name}"));
    // SAFETY: promised by the caller.
    unsafe { write_out(function, FUNCTIONS.insert(Function { name })) };
    SUCCESS
}

/// # Safety
/// `function` is null or writable; `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut usize,
    module: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { get_function(function, module, name, "cuModuleGetFunction") }
}

/// # Safety
/// `library` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryLoadData(library: *mut usize, code: *const c_void) -> c_int {
    load(library, code, "cuLibraryLoadData")
}

/// # Safety
/// `library` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryLoadFromFile(library: *mut usize, path: *const c_char) -> c_int {
    load(library, path.cast(), "cuLibraryLoadFromFile")
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLibraryUnload(library: usize) -> c_int {
    cuModuleUnload(library)
}

/// # Safety
/// `kernel` is null or writable; `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryGetKernel(
    kernel: *mut usize,
    library: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { get_function(kernel, library, name, "cuLibraryGetKernel") }
}

/// # Safety
/// `function` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetFunction(function: *mut usize, kernel: usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(function, kernel) };
    SUCCESS
}

crate::refused! { "CUDA driver", NOT_SUPPORTED;
    cuLinkCreate, cuLinkCreate_v2, cuLinkAddData, cuLinkAddData_v2, cuLinkComplete, cuLinkDestroy, cuModuleGetGlobal_v2,
}
