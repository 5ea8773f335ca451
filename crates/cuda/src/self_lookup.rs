//! Finding this library's own functions by name, for programs that ask the runtime for driver
//! functions instead of linking them.

use std::ffi::{CStr, CString, c_void};
use std::sync::OnceLock;

fn own_handle() -> Option<*mut c_void> {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    let handle = *HANDLE.get_or_init(|| {
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
        let inside = own_handle as *const c_void;
        // SAFETY: `dladdr` fills `info` when it returns non-zero.
        let info = unsafe {
            if libc::dladdr(inside, info.as_mut_ptr()) == 0 {
                return 0;
            }
            info.assume_init()
        };
        // SAFETY: `dli_fname` is a valid C string; the library is loaded, so nothing is run.
        unsafe { libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) as usize }
    });
    (handle != 0).then_some(handle as *mut c_void)
}

/// The driver function of this name, in the newest form we have.
///
/// Driver functions carry a suffix from their second version on (`cuMemGetAddressRange_v2`), while
/// programs that ask at run time give the bare name.
pub fn find(name: &CStr) -> Option<*mut c_void> {
    let handle = own_handle()?;
    let bare = name.to_str().ok()?;
    for suffix in ["_v4", "_v3", "_v2", ""] {
        let candidate = CString::new(format!("{bare}{suffix}")).ok()?;
        // SAFETY: `handle` stays open for the life of the process.
        let address = unsafe { libc::dlsym(handle, candidate.as_ptr()) };
        if !address.is_null() {
            return Some(address);
        }
    }
    None
}
