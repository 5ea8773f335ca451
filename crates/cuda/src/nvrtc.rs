//! NVRTC, the run-time compiler: passed on to the user's own library, which needs neither a card nor
//! a driver. Jiterator and fused kernels are compiled for real; only their launches do nothing.
//!
//! Declarations written from NVIDIA's public documentation "NVRTC", release 13.0.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::{log_call, real_library, refuse};

/// `NVRTC_ERROR_INTERNAL_ERROR`.
const INTERNAL_ERROR: i32 = 11;

const LIBRARY_NAMES: [&CStr; 2] = [c"libnvrtc.so.13", c"libnvrtc.so.12"];

type Program = *mut c_void;

/// Defines exported functions that call the function of the same name in the installed NVRTC.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $type:ty),*);)+) => {
        $(
            /// # Safety
            /// As NVRTC's documentation requires: the arguments are passed on unchanged.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                log_call!($name $(, $argument)*);
                const NAME: &CStr = match CStr::from_bytes_with_nul(
                    concat!(stringify!($name), "\0").as_bytes(),
                ) {
                    Ok(name) => name,
                    Err(_) => panic!("a function's name contains a zero byte"),
                };
                let Some(address) = real_library::find_loaded(&LIBRARY_NAMES, NAME) else {
                    refuse::refuse("NVRTC", stringify!($name));
                    return INTERNAL_ERROR;
                };
                // SAFETY: the address is that of the function with this documented signature.
                let function: unsafe extern "C" fn($($type),*) -> i32 =
                    unsafe { std::mem::transmute(address) };
                // SAFETY: promised by the caller.
                unsafe { function($($argument),*) }
            }
        )+
    };
}

passed_on! {
    nvrtcVersion(major: *mut c_int, minor: *mut c_int);
    nvrtcCreateProgram(
        program: *mut Program, source: *const c_char, name: *const c_char, header_count: c_int,
        headers: *const *const c_char, header_names: *const *const c_char
    );
    nvrtcDestroyProgram(program: *mut Program);
    nvrtcCompileProgram(program: Program, option_count: c_int, options: *const *const c_char);
    nvrtcAddNameExpression(program: Program, expression: *const c_char);
    nvrtcGetLoweredName(program: Program, expression: *const c_char, name: *mut *const c_char);
    nvrtcGetCUBINSize(program: Program, bytes: *mut usize);
    nvrtcGetCUBIN(program: Program, cubin: *mut c_char);
    nvrtcGetPTXSize(program: Program, bytes: *mut usize);
    nvrtcGetPTX(program: Program, ptx: *mut c_char);
    nvrtcGetProgramLogSize(program: Program, bytes: *mut usize);
    nvrtcGetProgramLog(program: Program, log: *mut c_char);
}

#[unsafe(no_mangle)]
pub extern "C" fn nvrtcGetErrorString(code: i32) -> *const c_char {
    log_call!(nvrtcGetErrorString, code);
    match real_library::find_loaded(&LIBRARY_NAMES, c"nvrtcGetErrorString") {
        Some(address) => {
            // SAFETY: this is the documented signature of nvrtcGetErrorString.
            let function: extern "C" fn(i32) -> *const c_char =
                unsafe { std::mem::transmute(address) };
            function(code)
        }
        None => c"NVRTC is not loaded, and GhostGPU does not simulate it".as_ptr(),
    }
}
