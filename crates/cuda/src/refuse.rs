//! Calls that are not simulated: they are reported by name, never answered with made-up data.

use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{call_log, notes};

/// The agent's callback, which finds out which line of the script makes the call.
pub type RefusalCallback = extern "C" fn(function: *const c_char);

static CALLBACK: AtomicUsize = AtomicUsize::new(0);

/// Tells the user that `function` is not simulated. The caller then returns its library's own
/// "not supported" status, which PyTorch raises as an exception at the user's line.
pub fn refuse(library: &str, function: &str) {
    call_log::call(function, || "refused: not simulated".to_owned());
    notes::refused(library, function);
    let callback = CALLBACK.load(Ordering::Acquire);
    let Ok(name) = CString::new(function) else {
        return;
    };
    if callback != 0 {
        // SAFETY: only `set_callback` stores here, and it stores a `RefusalCallback` or zero.
        let callback: RefusalCallback = unsafe { std::mem::transmute(callback) };
        callback(name.as_ptr());
    }
}

pub fn set_callback(callback: Option<RefusalCallback>) {
    let address = callback.map_or(0, |function| function as usize);
    CALLBACK.store(address, Ordering::Release);
}

/// Defines exported functions that refuse: `refused! { "cuFFT", 16; cufftXtMakePlanMany, … }`.
///
/// They are declared without parameters. In the C calling conventions of Linux the caller passes
/// arguments in registers or on its own part of the stack and cleans up after itself, so a callee
/// that ignores them is well defined at the machine level.
#[macro_export]
macro_rules! refused {
    ($library:literal, $status:expr; $($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> i32 {
                $crate::refuse::refuse($library, stringify!($name));
                $status
            }
        )+
    };
}

/// Defines exported functions for which doing nothing and reporting success cannot mislead:
/// destructors, setters, and work whose only results are values in device memory.
#[macro_export]
macro_rules! harmless {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> i32 {
                $crate::call_log::call(stringify!($name), String::new);
                0
            }
        )+
    };
}
