//! The header of a table: which card, driver and libraries its answers come from.

use std::ffi::{CStr, c_char, c_int, c_void};

use ghostgpu_library_sizes::Header;

use crate::real::{self, Library};

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT` and the two halves of the compute capability.
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

/// As much as can be found out; a library that is not loaded is left out.
pub fn header() -> Header {
    let mut header = Header::new();
    describe_card(&mut header);
    for (name, library, function) in [
        ("cuda-driver", real::DRIVER, "cuDriverGetVersion"),
        ("cuda-runtime", real::RUNTIME, "cudaRuntimeGetVersion"),
        ("cufft", real::CUFFT, "cufftGetVersion"),
        ("cusolver", real::CUSOLVER, "cusolverGetVersion"),
    ] {
        if let Some(version) = stored_version(library, function) {
            header.insert(name.to_owned(), version.to_string());
        }
    }
    for (name, library, function) in [
        ("cublaslt", real::CUBLASLT, "cublasLtGetVersion"),
        ("cudnn", real::CUDNN, "cudnnGetVersion"),
    ] {
        if let Some(version) = returned_version(library, function) {
            header.insert(name.to_owned(), version.to_string());
        }
    }
    if let Some(version) = sparse_version() {
        header.insert("cusparse".to_owned(), version);
    }
    if let Some(version) = driver_package() {
        header.insert("driver".to_owned(), version);
    }
    header
}

/// The version of the driver's package, as `nvidia-smi` shows it.
fn driver_package() -> Option<String> {
    let text = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(text.trim().to_owned())
}

fn describe_card(header: &mut Header) {
    type CurrentDevice = unsafe extern "C" fn(*mut c_int) -> c_int;
    type DeviceName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
    type DeviceAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
    let current = real::find_by_name(real::DRIVER, "cuCtxGetDevice");
    let name = real::find_by_name(real::DRIVER, "cuDeviceGetName");
    let attribute = real::find_by_name(real::DRIVER, "cuDeviceGetAttribute");
    if name.is_null() || attribute.is_null() {
        return;
    }
    // SAFETY: these are the documented signatures.
    let (name, attribute) = unsafe {
        (
            std::mem::transmute::<*mut c_void, DeviceName>(name),
            std::mem::transmute::<*mut c_void, DeviceAttribute>(attribute),
        )
    };
    let mut device = 0;
    if !current.is_null() {
        // SAFETY: the documented signature; without a context the first device stays.
        unsafe {
            let current = std::mem::transmute::<*mut c_void, CurrentDevice>(current);
            if current(&raw mut device) != 0 {
                device = 0;
            }
        }
    }
    let mut text = [0 as c_char; 128];
    // SAFETY: the array has the length that is passed, and is zero-terminated in any case.
    unsafe {
        if name(text.as_mut_ptr(), text.len() as c_int - 1, device) == 0 {
            let words = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
            header.insert("card".to_owned(), words);
        }
    }
    let ask = |number| {
        let mut value = 0;
        // SAFETY: the pointer is valid.
        let status = unsafe { attribute(&raw mut value, number, device) };
        (status == 0).then_some(value)
    };
    if let Some(count) = ask(MULTIPROCESSORS) {
        header.insert("multiprocessors".to_owned(), count.to_string());
    }
    if let (Some(major), Some(minor)) = (ask(CAPABILITY_MAJOR), ask(CAPABILITY_MINOR)) {
        header.insert("capability".to_owned(), format!("{major}.{minor}"));
    }
}

/// From a function that stores its version: `cufftGetVersion(int *)` and the like.
fn stored_version(library: Library, function: &str) -> Option<c_int> {
    let address = real::find_by_name(library, function);
    if address.is_null() {
        return None;
    }
    let mut version = 0;
    // SAFETY: all these functions take the address of an integer, and return a status.
    let status = unsafe {
        let ask =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(address);
        ask(&raw mut version)
    };
    (status == 0).then_some(version)
}

/// From a function that returns its version: `size_t cudnnGetVersion(void)`.
fn returned_version(library: Library, function: &str) -> Option<usize> {
    let address = real::find_by_name(library, function);
    if address.is_null() {
        return None;
    }
    // SAFETY: both functions take nothing and return a size.
    let ask =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> usize>(address) };
    // SAFETY: they have no preconditions.
    Some(unsafe { ask() })
}

/// cuSPARSE returns its version in three parts, from `cusparseGetProperty`.
fn sparse_version() -> Option<String> {
    let address = real::find_by_name(real::CUSPARSE, "cusparseGetProperty");
    if address.is_null() {
        return None;
    }
    // SAFETY: the documented signature: the number of the part, and where to store it.
    let ask = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int, *mut c_int) -> c_int>(
            address,
        )
    };
    let mut parts = [0; 3];
    for (number, part) in parts.iter_mut().enumerate() {
        // SAFETY: the pointer is valid.
        if unsafe { ask(number as c_int, part) } != 0 {
            return None;
        }
    }
    let [major, minor, patch] = parts;
    Some(format!("{major}.{minor}.{patch}"))
}
