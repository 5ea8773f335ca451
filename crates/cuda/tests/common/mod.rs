//! What tests that open the built library share.

use std::ffi::{CString, c_void};
use std::path::Path;

use ghostgpu_device::DeviceSheet;
use ghostgpu_session::card_usage::create_usage_file;
use ghostgpu_session::files::SESSION_FILE;
use ghostgpu_session::{SESSION_VARIABLE, Session};

/// Writes the session and the usage file of a run with these cards, which the library will find.
///
/// Call it before anything else: the library reads the session once per process, at the first call.
pub fn prepare_run(run_dir: &Path, devices: Vec<DeviceSheet>) {
    std::fs::create_dir_all(run_dir).expect("the target folder is writable");
    create_usage_file(run_dir, devices.len()).expect("the target folder is writable");
    let session = Session::plain(run_dir.to_owned(), devices);
    let text = serde_json::to_string(&session).expect("a session can be written as JSON");
    let path = run_dir.join(SESSION_FILE);
    std::fs::write(&path, text).expect("the target folder is writable");
    // SAFETY: no other thread of these test programs reads the environment.
    unsafe { std::env::set_var(SESSION_VARIABLE, path) };
}

/// Opens the library that was built beside the test program.
pub fn open_library() -> *mut c_void {
    let test_program = std::env::current_exe().expect("a test knows its own path");
    let path = test_program.with_file_name("libghostgpu.so");
    let path = CString::new(path.to_str().expect("a plain path")).expect("a plain path");
    // SAFETY: the library's constructors do nothing.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "{path:?} cannot be opened");
    handle
}
