//! cuFile (GPUDirect Storage): refused. Moving files to and from a card that holds no values would
//! lose the user's data.
//!
//! Names and the error structure written from NVIDIA's public documentation "cuFile API Reference
//! Guide", release 1.15.

use crate::log_call;
use crate::refuse::refuse;

/// `CUfileError_t`: the library's own code and the driver's.
#[repr(C)]
pub struct FileError {
    code: i32,
    driver_code: i32,
}

/// `CU_FILE_DRIVER_NOT_INITIALIZED`, what a machine without the storage driver answers.
const DRIVER_NOT_INITIALIZED: i32 = 5001;

macro_rules! refused_with_error {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> FileError {
                refuse("cuFile", stringify!($name));
                FileError { code: DRIVER_NOT_INITIALIZED, driver_code: 0 }
            }
        )+
    };
}

refused_with_error! {
    cuFileBufRegister, cuFileHandleRegister,
}

/// Transfers return the number of bytes, or a negative code.
macro_rules! refused_transfer {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> isize {
                refuse("cuFile", stringify!($name));
                -(DRIVER_NOT_INITIALIZED as isize)
            }
        )+
    };
}

refused_transfer! {
    cuFileRead, cuFileWrite,
}

/// Ends a registration that cannot exist. It runs in destructors, where an error would hide the
/// first one.
#[unsafe(no_mangle)]
pub extern "C" fn cuFileBufDeregister() -> FileError {
    log_call!(cuFileBufDeregister);
    FileError {
        code: 0,
        driver_code: 0,
    }
}

/// As [`cuFileBufDeregister`]; it returns nothing.
#[unsafe(no_mangle)]
pub extern "C" fn cuFileHandleDeregister() {
    log_call!(cuFileHandleDeregister);
}
