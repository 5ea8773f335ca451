//! The functions that calls would have reached without this library.

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;

/// One of NVIDIA's libraries, by how its file name begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library(pub &'static str);

pub const CUBLASLT: Library = Library("libcublasLt.so");
pub const CUDNN: Library = Library("libcudnn.so");
pub const CUFFT: Library = Library("libcufft.so");
pub const CUSOLVER: Library = Library("libcusolver.so");
pub const CUSPARSE: Library = Library("libcusparse.so");
pub const DRIVER: Library = Library("libcuda.so");
pub const RUNTIME: Library = Library("libcudart.so");

/// The next definition of `function` after ours, or null.
///
/// PyTorch loads its libraries with local scope, which the search order does not cover. They are already in the
/// process, though, and can be opened by the name they were loaded with.
pub fn find(library: Library, function: &CStr) -> *mut c_void {
    // SAFETY: the name is a valid C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, function.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    for path in loaded_files(library) {
        // SAFETY: the name is valid; RTLD_NOLOAD loads nothing and runs no constructors. The handle
        // is never closed, so the function stays valid.
        let found = unsafe {
            match libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) {
                handle if handle.is_null() => handle,
                handle => libc::dlsym(handle, function.as_ptr()),
            }
        };
        if !found.is_null() {
            return found;
        }
    }
    std::ptr::null_mut()
}

/// The files of this library that are in the process, as the dynamic linker names them.
fn loaded_files(library: Library) -> Vec<CString> {
    let mut search = Search {
        library,
        files: Vec::new(),
    };
    // Nothing is opened in the callback: the linker's list is locked there.
    // SAFETY: the callback gets the address of `search`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(note_file), (&raw mut search).cast()) };
    search.files
}

struct Search {
    library: Library,
    files: Vec<CString>,
}

/// Called for each loaded library; returns 0 to continue with the next.
unsafe extern "C" fn note_file(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `loaded_files` passes the address of its `Search`, and the system a valid description.
    let (search, name) = unsafe { (&mut *data.cast::<Search>(), (*info).dlpi_name) };
    if name.is_null() {
        return 0;
    }
    // SAFETY: the system's names are C strings.
    let path = unsafe { CStr::from_ptr(name) };
    let file = path.to_str().ok().map(Path::new).and_then(Path::file_name);
    if file.is_some_and(|file| file.to_string_lossy().starts_with(search.library.0)) {
        search.files.push(path.to_owned());
    }
    0
}

/// What to return when there is nothing to pass a call on to: the real library is not in the process, so without this
/// one the call could not have been made either.
pub fn report_missing(function: &str) {
    eprintln!("ghostgpu: the recorder found no real `{function}` to call");
}

/// Like [`find`], for a name that is composed at run time.
pub fn find_by_name(library: Library, function: &str) -> *mut c_void {
    match CString::new(function) {
        Ok(name) => find(library, &name),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Evaluates to `Some(function)` of the given type, looked up once, or to `None`.
#[macro_export]
macro_rules! real_function {
    ($library:expr, $name:ident, $type:ty) => {{
        static ADDRESS: ::std::sync::OnceLock<usize> = ::std::sync::OnceLock::new();
        let address = *ADDRESS
            .get_or_init(|| $crate::real::find_by_name($library, stringify!($name)) as usize);
        if address == 0 {
            $crate::real::report_missing(stringify!($name));
            None
        } else {
            // SAFETY: the type is the documented signature of this function.
            Some(unsafe { ::std::mem::transmute::<usize, $type>(address) })
        }
    }};
}
