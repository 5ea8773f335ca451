//! Finds this library's own functions by name, for programs that ask the runtime or the driver for
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

/// Driver functions whose parameters changed, and the CUDA version (1000 × major + 10 × minor) that
/// introduced the form with the suffix `_v2`. The driver exports both forms; a program that asks by name
/// says which version it was written for, and gets the newest form that is not newer.
const SECOND_FORMS: [(&str, u32); 19] = [
    ("cuCtxPopCurrent", 4000),
    ("cuCtxPushCurrent", 4000),
    ("cuDeviceGetUuid", 11040),
    ("cuDevicePrimaryCtxRelease", 11000),
    ("cuDeviceTotalMem", 3020),
    ("cuGetProcAddress", 12000),
    ("cuLinkAddData", 6050),
    ("cuLinkCreate", 6050),
    ("cuMemAlloc", 3020),
    ("cuMemFree", 3020),
    ("cuMemGetAddressRange", 3020),
    ("cuMemGetInfo", 3020),
    ("cuMemcpyDtoH", 3020),
    ("cuMemcpyHtoD", 3020),
    ("cuModuleGetGlobal", 3020),
    ("cuStreamWaitValue32", 11070),
    ("cuStreamWaitValue64", 11070),
    ("cuStreamWriteValue32", 11070),
    ("cuStreamWriteValue64", 11070),
];

/// The version for programs that do not name one.
pub const NEWEST: u32 = u32::MAX;

/// The result of looking up a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    Found(*mut c_void),
    /// There is such a function, but only in a form that is newer than the requested version.
    OnlyNewer,
    Unknown,
}

impl Lookup {
    pub fn address(self) -> *mut c_void {
        match self {
            Self::Found(address) => address,
            Self::OnlyNewer | Self::Unknown => std::ptr::null_mut(),
        }
    }
}

/// The driver function of this name, in the form that a program written for CUDA `version` expects.
pub fn find(name: &CStr, version: u32) -> Lookup {
    let Ok(bare) = name.to_str() else {
        return Lookup::Unknown;
    };
    let second_form = SECOND_FORMS.iter().find(|&&(known, _)| known == bare);
    let symbol = symbol_for(bare, second_form.map(|&(_, since)| since), version);
    match exported(&symbol) {
        Some(address) => Lookup::Found(address),
        None if second_form.is_some() => Lookup::OnlyNewer,
        None => Lookup::Unknown,
    }
}

fn symbol_for(bare: &str, second_form_since: Option<u32>, version: u32) -> String {
    match second_form_since {
        Some(since) if version >= since => format!("{bare}_v2"),
        _ => bare.to_owned(),
    }
}

fn exported(symbol: &str) -> Option<*mut c_void> {
    let handle = own_handle()?;
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: `handle` stays open for the life of the process.
    let address = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    (!address.is_null()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_the_newest_form_that_is_not_newer_than_what_it_was_written_for() {
        let cases = [
            (
                "cuStreamWriteValue32",
                Some(11070),
                8000,
                "cuStreamWriteValue32",
            ),
            (
                "cuStreamWriteValue32",
                Some(11070),
                11060,
                "cuStreamWriteValue32",
            ),
            (
                "cuStreamWriteValue32",
                Some(11070),
                11070,
                "cuStreamWriteValue32_v2",
            ),
            (
                "cuStreamWriteValue32",
                Some(11070),
                NEWEST,
                "cuStreamWriteValue32_v2",
            ),
            ("cuMemCreate", None, 10020, "cuMemCreate"),
        ];
        for (bare, since, version, expected) in cases {
            assert_eq!(
                symbol_for(bare, since, version),
                expected,
                "{bare} of {version}"
            );
        }
    }

    #[test]
    fn every_driver_function_with_a_second_form_is_known_to_have_one() {
        for entry in ghostgpu_symbols::entries() {
            let is_driver = entry.family == ghostgpu_symbols::Family::Driver;
            if let Some(bare) = entry.symbol.strip_suffix("_v2").filter(|_| is_driver) {
                let is_known = SECOND_FORMS.iter().any(|&(known, _)| known == bare);
                assert!(is_known, "{bare} is missing in SECOND_FORMS");
            }
            assert!(
                !is_driver || !entry.symbol.ends_with("_v3"),
                "{} has a third form",
                entry.symbol
            );
        }
        for (bare, _) in SECOND_FORMS {
            assert!(
                ghostgpu_symbols::lookup(&format!("{bare}_v2")).is_some(),
                "{bare}_v2 is not exported"
            );
        }
    }
}
