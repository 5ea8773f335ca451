//! Objects of the companion libraries that only have to exist: library handles, descriptors, plans.
//!
//! Programs cannot look into them, and the functions that would use their contents either do nothing
//! or are refused. So they only have to be created, told apart, and destroyed once.

use std::ffi::c_void;

use crate::handles::Handles;
use crate::write_out;

static OBJECTS: Handles<()> = Handles::starting_at(0x0B1E_0000_0000);

/// Creates an object and stores its handle. False if `target` is null.
///
/// # Safety
/// `target` points to writable memory for a handle, or is null.
pub unsafe fn create(target: *mut *mut c_void) -> bool {
    if target.is_null() {
        return false;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(target, OBJECTS.insert(()) as *mut c_void) };
    true
}

/// Destroys an object. False if there is none with this handle.
pub fn destroy(object: *mut c_void) -> bool {
    OBJECTS.remove(object as usize).is_some()
}

/// Defines exported constructors (`fn(target, …)`) and destructors (`fn(object)`) that return
/// `invalid` for a null target or an unknown object.
///
/// Constructors are declared with their first parameter alone; for those that follow see [`refused`].
///
/// [`refused`]: crate::refused
#[macro_export]
macro_rules! opaque_objects {
    (invalid: $invalid:expr; create: $($create:ident),+; destroy: $($destroy:ident),+;) => {
        $(
            /// # Safety
            /// `target` points to writable memory for a handle, or is null.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $create(target: *mut *mut ::std::ffi::c_void) -> i32 {
                $crate::log_call!($create, target);
                // SAFETY: promised by the caller.
                if unsafe { $crate::opaque_objects::create(target) } { 0 } else { $invalid }
            }
        )+
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $destroy(object: *mut ::std::ffi::c_void) -> i32 {
                $crate::log_call!($destroy, object);
                if $crate::opaque_objects::destroy(object) { 0 } else { $invalid }
            }
        )+
    };
}
