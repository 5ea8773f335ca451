//! NVRTC, as far as cuDNN calls it while making plans.
//!
//! Some of cuDNN's engines write their kernels' source when a plan is made and have NVRTC compile it, which
//! takes nearly all the time that a question about such an engine takes. The code is for a card that is not
//! there: nothing is ever launched, and what cuDNN says of a plan's workspace does not depend on it. So these
//! functions accept every program and return code of a few bytes.
//!
//! cuDNN offers these engines only from certain versions of NVRTC on. The version and the list of
//! architectures are therefore those of the real NVRTC, which [`REAL_COMPILER_VARIABLE`] names; without
//! one, every function fails, as if it were missing.
//!
//! Declarations are written from NVIDIA's public documentation of NVRTC.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

/// The path of the NVRTC that is installed beside cuDNN.
const REAL_COMPILER_VARIABLE: &CStr = c"GHOSTGPU_ORACLE_COMPILER";

/// `NVRTC_SUCCESS`, `NVRTC_ERROR_INVALID_INPUT`, `NVRTC_ERROR_INVALID_PROGRAM`,
/// `NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID`, `NVRTC_ERROR_INTERNAL_ERROR`
const SUCCESS: c_int = 0;
const INVALID_INPUT: c_int = 3;
const INVALID_PROGRAM: c_int = 4;
const UNKNOWN_NAME: c_int = 10;
const INTERNAL_ERROR: c_int = 11;

/// In place of compiled code, in any of its forms.
const CODE: [u8; 16] = [0; 16];
/// The log of a compilation without warnings: the byte that ends the text.
const LOG: [u8; 1] = [0];

/// What is known of the real compiler.
struct Real {
    major: c_int,
    minor: c_int,
    architectures: Vec<c_int>,
}

/// Read once: opening a library of a hundred megabytes takes its time.
static REAL: OnceLock<Option<Real>> = OnceLock::new();

fn real() -> Option<&'static Real> {
    REAL.get_or_init(ask_real).as_ref()
}

type VersionFunction = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type ListFunction = unsafe extern "C" fn(*mut c_int) -> c_int;

fn ask_real() -> Option<Real> {
    // SAFETY: the variable was set before cuDNN was opened, and nobody changes it later.
    let path = unsafe { libc::getenv(REAL_COMPILER_VARIABLE.as_ptr()) };
    if path.is_null() {
        return None;
    }
    // In a separate linker namespace: cuDNN opens NVRTC by name, and must still find this library.
    // SAFETY: the path is a C string; the library is one of the user's own installation.
    let library =
        unsafe { libc::dlmopen(libc::LM_ID_NEWLM, path, libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let find = |name: &CStr| {
        // SAFETY: `library` is open, and the name is a C string.
        let function = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!function.is_null()).then_some(function)
    };
    let (mut major, mut minor, mut count) = (0, 0, 0);
    // SAFETY: the types are those of NVRTC's header; the places are valid, the list has `count` of them.
    unsafe {
        let version = std::mem::transmute::<*mut c_void, VersionFunction>(find(c"nvrtcVersion")?);
        if version(&raw mut major, &raw mut minor) != SUCCESS {
            return None;
        }
        let number =
            std::mem::transmute::<*mut c_void, ListFunction>(find(c"nvrtcGetNumSupportedArchs")?);
        let list =
            std::mem::transmute::<*mut c_void, ListFunction>(find(c"nvrtcGetSupportedArchs")?);
        if number(&raw mut count) != SUCCESS {
            return None;
        }
        let mut architectures = vec![0; usize::try_from(count).ok()?];
        if list(architectures.as_mut_ptr()) != SUCCESS {
            return None;
        }
        Some(Real {
            major,
            minor,
            architectures,
        })
    }
}

/// A program: the names that its maker will ask for.
#[derive(Default)]
pub struct Program {
    names: HashMap<CString, CString>,
}

/// # Safety
/// `major` and `minor` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    if major.is_null() || minor.is_null() {
        return INVALID_INPUT;
    }
    let Some(real) = real() else {
        return INTERNAL_ERROR;
    };
    // SAFETY: not null; the caller vouches for the rest.
    unsafe {
        major.write(real.major);
        minor.write(real.minor);
    }
    SUCCESS
}

/// # Safety
/// `count` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> c_int {
    let Some(real) = real() else {
        return INTERNAL_ERROR;
    };
    // SAFETY: promised by the caller.
    unsafe { put(count, real.architectures.len() as c_int) }
}

/// # Safety
/// `list` must be null or have room for as many numbers as [`nvrtcGetNumSupportedArchs`] says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetSupportedArchs(list: *mut c_int) -> c_int {
    let Some(real) = real() else {
        return INTERNAL_ERROR;
    };
    if list.is_null() {
        return INVALID_INPUT;
    }
    let known = &real.architectures;
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { std::ptr::copy_nonoverlapping(known.as_ptr(), list, known.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvrtcGetErrorString(_: c_int) -> *const c_char {
    c"the stand-in for NVRTC was asked for something that it does not have".as_ptr()
}

/// # Safety
/// `program` must be null or valid for one pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(program: *mut *mut Program) -> c_int {
    if real().is_none() {
        return INTERNAL_ERROR;
    }
    // SAFETY: promised by the caller.
    unsafe { put(program, Box::into_raw(Box::default())) }
}

/// Creates a program too. It is not documented; cuDNN prefers it, and takes NVRTC to be missing without it.
///
/// # Safety
/// `program` must be null or valid for one pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __nvrtcCPEx(program: *mut *mut Program) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { nvrtcCreateProgram(program) }
}

/// # Safety
/// `program` must be null or point to one that was created here and is not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut *mut Program) -> c_int {
    // SAFETY: promised by the caller.
    if program.is_null() || unsafe { *program }.is_null() {
        return INVALID_PROGRAM;
    }
    // SAFETY: not null; it came from a box, and is not used again.
    unsafe {
        drop(Box::from_raw(*program));
        *program = std::ptr::null_mut();
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvrtcCompileProgram(program: *mut Program) -> c_int {
    if program.is_null() {
        INVALID_PROGRAM
    } else {
        SUCCESS
    }
}

/// # Safety
/// `program` must be null or live, `name` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcAddNameExpression(
    program: *mut Program,
    name: *const c_char,
) -> c_int {
    if program.is_null() || name.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: neither is null; the caller vouches for the rest.
    let (program, name) = unsafe { (&mut *program, CStr::from_ptr(name).to_owned()) };
    program.names.insert(name.clone(), name);
    SUCCESS
}

/// Any name will do for a kernel that nobody looks up in the code: the expression itself.
///
/// # Safety
/// `program` must be null or live, `name` null or a C string, `lowered` null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetLoweredName(
    program: *const Program,
    name: *const c_char,
    lowered: *mut *const c_char,
) -> c_int {
    if program.is_null() || name.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: neither is null; the caller vouches for the rest.
    let known = unsafe { (*program).names.get(CStr::from_ptr(name)) };
    match known {
        // SAFETY: promised by the caller; the text lives as long as the program.
        Some(known) => unsafe { put(lowered, known.as_ptr()) },
        None => UNKNOWN_NAME,
    }
}

/// The functions that say how long a text or code is, and those that copy it.
macro_rules! contents {
    ($($size:ident, $copy:ident: $bytes:expr;)+) => {
        $(
            /// # Safety
            /// `size` must be null or valid.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $size(_: *const Program, size: *mut usize) -> c_int {
                // SAFETY: promised by the caller.
                unsafe { put(size, $bytes.len()) }
            }

            /// # Safety
            /// `place` must be null or have room for as many bytes as the size that was told.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $copy(_: *const Program, place: *mut u8) -> c_int {
                if place.is_null() {
                    return INVALID_INPUT;
                }
                // SAFETY: not null; the caller vouches for the room.
                unsafe { std::ptr::copy_nonoverlapping($bytes.as_ptr(), place, $bytes.len()) };
                SUCCESS
            }
        )+
    };
}

contents!(
    nvrtcGetCUBINSize, nvrtcGetCUBIN: CODE;
    nvrtcGetPTXSize, nvrtcGetPTX: CODE;
    nvrtcGetLTOIRSize, nvrtcGetLTOIR: CODE;
    nvrtcGetProgramLogSize, nvrtcGetProgramLog: LOG;
);

/// # Safety
/// `place` must be null or valid for a value.
unsafe fn put<T>(place: *mut T, value: T) -> c_int {
    if place.is_null() {
        return INVALID_INPUT;
    }
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { place.write(value) };
    SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_under_the_expression_it_was_named_by() {
        let mut program = Program::default();
        let mut lowered = std::ptr::null();
        let name = c"kernel<float, 8>";
        // SAFETY: all places are valid, and the program lives to the end.
        unsafe {
            let asked = nvrtcGetLoweredName(&raw const program, name.as_ptr(), &raw mut lowered);
            assert_eq!(asked, UNKNOWN_NAME);
            assert_eq!(
                nvrtcAddNameExpression(&raw mut program, name.as_ptr()),
                SUCCESS
            );
            let asked = nvrtcGetLoweredName(&raw const program, name.as_ptr(), &raw mut lowered);
            assert_eq!(asked, SUCCESS);
            assert_eq!(CStr::from_ptr(lowered), name);
        }
    }

    #[test]
    fn without_a_real_compiler_there_is_none() {
        let (mut major, mut minor) = (0, 0);
        let mut program = std::ptr::null_mut();
        // SAFETY: all places are valid.
        unsafe {
            assert_eq!(nvrtcVersion(&raw mut major, &raw mut minor), INTERNAL_ERROR);
            assert_eq!(nvrtcCreateProgram(&raw mut program), INTERNAL_ERROR);
        }
        assert!(program.is_null());
    }
}
