//! NVML as its users see it: the built library is opened by name and asked about two virtual cards.

mod common;

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::PathBuf;

use common::{open_library, prepare_run};
use ghostgpu_device::{Catalogue, DeviceSheet};

const UNINITIALIZED: i32 = 1;
const INVALID_ARGUMENT: i32 = 2;
const NOT_SUPPORTED: i32 = 3;
const NOT_FOUND: i32 = 6;

type Handle = usize;

/// One test: the library reads the session once per process, at the first call.
#[test]
fn two_virtual_cards_are_told_apart_and_account_for_their_memory() {
    let run_dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nvml");
    let (devices, total_bytes) = two_cards();
    prepare_run(&run_dir, devices);
    let library = Library(open_library());

    let count: fn(&Library) -> (i32, u32) = |library| {
        let mut count = 0_u32;
        let code = library.call1("nvmlDeviceGetCount_v2", (&raw mut count) as usize);
        (code, count)
    };
    assert_eq!(count(&library), (UNINITIALIZED, 0));
    assert_eq!(library.call0("nvmlInit_v2"), 0);
    assert_eq!(count(&library), (0, 2));

    let second = library.handle_by_index(1).expect("there are two cards");
    assert_eq!(library.handle_by_index(2), Err(INVALID_ARGUMENT));

    let name = library.text("nvmlDeviceGetName", second);
    assert_eq!(name, "NVIDIA H200 (GhostGPU virtual)");
    let uuid = library.text("nvmlDeviceGetUUID", second);
    assert_eq!(
        library.handle_by("nvmlDeviceGetHandleByUUID", &uuid),
        Ok(second)
    );
    assert_eq!(
        library.handle_by("nvmlDeviceGetHandleByPciBusId_v2", "00000000:07:00.0"),
        Ok(second)
    );
    assert_eq!(
        library.handle_by("nvmlDeviceGetHandleByPciBusId_v2", "00000000:70:00.0"),
        Err(NOT_FOUND)
    );

    let mut memory = [0_u64; 3];
    let code = library.call2(
        "nvmlDeviceGetMemoryInfo",
        second,
        memory.as_mut_ptr() as usize,
    );
    let [total, free, used] = memory;
    assert_eq!((code, total, free + used), (0, total_bytes, total_bytes));

    let mut temperature = 0_u32;
    let code = library.call3(
        "nvmlDeviceGetTemperature",
        second,
        0,
        (&raw mut temperature) as usize,
    );
    assert_eq!(
        (code, temperature),
        (NOT_SUPPORTED, 0),
        "never an invented reading"
    );

    assert_eq!(library.call0("nvmlShutdown"), 0);
    assert_eq!(count(&library), (UNINITIALIZED, 0));
}

/// Two H200s on buses of their own, and the memory of one as NVML counts it.
fn two_cards() -> (Vec<DeviceSheet>, u64) {
    let sheet = Catalogue::builtin()
        .find("h200")
        .expect("the catalogue has an H200")
        .sheet();
    let mut devices = vec![sheet.clone(), sheet.clone()];
    for (card, bus) in devices.iter_mut().zip([6, 7]) {
        (card.pci.domain, card.pci.bus, card.pci.device) = (0, bus, 0);
    }
    (devices, sheet.total_bytes + sheet.reserved_bytes)
}

/// The built library, opened as a program without CUDA headers would.
struct Library(*mut c_void);

impl Library {
    fn function(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).expect("a function's name has no zero byte");
        // SAFETY: the library stays open.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?} is not exported");
        address
    }

    fn call0(&self, name: &str) -> i32 {
        // SAFETY: the tests name functions of NVML with this many word-sized parameters.
        let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(self.function(name)) };
        function()
    }

    fn call1(&self, name: &str, a: usize) -> i32 {
        // SAFETY: as for `call0`.
        let function: extern "C" fn(usize) -> i32 =
            unsafe { std::mem::transmute(self.function(name)) };
        function(a)
    }

    fn call2(&self, name: &str, a: usize, b: usize) -> i32 {
        // SAFETY: as for `call0`.
        let function: extern "C" fn(usize, usize) -> i32 =
            unsafe { std::mem::transmute(self.function(name)) };
        function(a, b)
    }

    fn call3(&self, name: &str, a: usize, b: usize, c: usize) -> i32 {
        // SAFETY: as for `call0`.
        let function: extern "C" fn(usize, usize, usize) -> i32 =
            unsafe { std::mem::transmute(self.function(name)) };
        function(a, b, c)
    }

    fn handle_by_index(&self, index: usize) -> Result<Handle, i32> {
        let mut handle: Handle = 0;
        match self.call2(
            "nvmlDeviceGetHandleByIndex_v2",
            index,
            (&raw mut handle) as usize,
        ) {
            0 => Ok(handle),
            code => Err(code),
        }
    }

    fn handle_by(&self, function: &str, text: &str) -> Result<Handle, i32> {
        let text = CString::new(text).expect("no zero byte");
        let mut handle: Handle = 0;
        match self.call2(function, text.as_ptr() as usize, (&raw mut handle) as usize) {
            0 => Ok(handle),
            code => Err(code),
        }
    }

    fn text(&self, function: &str, handle: Handle) -> String {
        let mut buffer = [0 as c_char; 96];
        assert_eq!(
            self.call3(function, handle, buffer.as_mut_ptr() as usize, 96),
            0
        );
        // SAFETY: the function has written a C string into the buffer.
        let text = unsafe { CStr::from_ptr(buffer.as_ptr()) };
        text.to_str().expect("plain text").to_owned()
    }
}
