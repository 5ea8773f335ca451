//! cuSOLVER: how large the workspaces of factorisations are.

use std::ffi::c_void;

use crate::questions::recorded;
use crate::real;

type Object = *mut c_void;
type Data = *const c_void;

// No question of cuSOLVER's is about a descriptor's contents.
macro_rules! define {
    ($library:literal; $($rest:tt)+) => {
        recorded! { real::CUSOLVER, (); $($rest)+ }
    };
}

ghostgpu_library_sizes::solver_questions!(define);
