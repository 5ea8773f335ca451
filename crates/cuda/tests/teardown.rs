//! Calls from a thread that is ending: its thread-local variables are gone, and the program must survive.

mod common;

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{open_library, prepare_run};
use ghostgpu_device::Catalogue;

static LIBRARY: AtomicUsize = AtomicUsize::new(0);
static HAS_CALLED: AtomicBool = AtomicBool::new(false);

/// One test: the library reads the session once per process, at the first call.
#[test]
fn a_destructor_may_call_cuda_when_its_thread_ends() {
    let run_dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("teardown");
    let catalogue = Catalogue::builtin();
    let sheet = catalogue.find("h200").expect("in the catalogue").sheet();
    prepare_run(&run_dir, vec![sheet]);
    LIBRARY.store(open_library() as usize, Ordering::Release);
    start_memory_log(&run_dir);
    let thread = std::thread::spawn(|| {
        let mut key = 0;
        // SAFETY: the destructor is a function of this program. It runs after those of Rust.
        unsafe {
            assert_eq!(libc::pthread_key_create(&raw mut key, Some(call_again)), 0);
            libc::pthread_setspecific(key, std::ptr::dangling::<c_void>());
        }
        call_everything();
    });
    thread.join().expect("the thread ends as threads do");
    assert!(HAS_CALLED.load(Ordering::Acquire));
}

extern "C" fn call_again(_value: *mut c_void) {
    call_everything();
    HAS_CALLED.store(true, Ordering::Release);
}

/// Every function that keeps something for its thread.
fn call_everything() {
    let mut context = 0_usize;
    let out = (&raw mut context) as usize;
    call("cuDevicePrimaryCtxRetain", [out, 0, 0, 0, 0]);
    call("cuCtxPushCurrent_v2", [context, 0, 0, 0, 0]);
    call("cuCtxPopCurrent_v2", [out, 0, 0, 0, 0]);
    // Grid and block take two words each.
    call("__cudaPushCallConfiguration", [1, 1, 1, 1, 0]);
    call("__cudaPopCallConfiguration", [0, 0, 0, 0, 0]);
    call("cudaSetDevice", [0, 0, 0, 0, 0]);
    call("cudaGetLastError", [0, 0, 0, 0, 0]);
    call("ncclGroupStart", [0, 0, 0, 0, 0]);
    call("ncclGroupEnd", [0, 0, 0, 0, 0]);
    call("ghostgpu_context_cell", [0, 0, 0, 0, 0]);
    let (device_zero_of_cuda, bytes) = (1, 512);
    call(
        "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
        [512, bytes, 512, 512, device_zero_of_cuda],
    );
    announce();
}

fn call(name: &str, arguments: [usize; 5]) {
    let name = CString::new(name).expect("no zero byte");
    let library = LIBRARY.load(Ordering::Acquire) as *mut c_void;
    // SAFETY: the library stays open.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?} is not exported");
    // SAFETY: the functions above take at most five words; further ones are not looked at.
    let function: extern "C" fn(usize, usize, usize, usize, usize) -> usize =
        unsafe { std::mem::transmute(address) };
    let [a, b, c, d, e] = arguments;
    function(a, b, c, d, e);
}

/// NVTX's side of the interface: slots for functions, some of which the library fills.
static PUSH: AtomicUsize = AtomicUsize::new(0);
static POP: AtomicUsize = AtomicUsize::new(0);

#[repr(C)]
struct Callbacks {
    struct_bytes: usize,
    get_functions: extern "C" fn(i32, *mut *mut *mut usize, *mut u32) -> i32,
}

extern "C" fn get_functions(_module: i32, table: *mut *mut *mut usize, count: *mut u32) -> i32 {
    const NONE: usize = 0;
    let mut places = [NONE as *mut usize; 12];
    places[9] = PUSH.as_ptr();
    places[11] = POP.as_ptr();
    let places = Box::leak(Box::new(places));
    // SAFETY: the library passes pointers to its own variables.
    unsafe {
        *table = places.as_mut_ptr();
        *count = 12;
    }
    1
}

extern "C" fn get_table(_number: u32) -> *const Callbacks {
    Box::leak(Box::new(Callbacks {
        struct_bytes: size_of::<Callbacks>(),
        get_functions,
    }))
}

/// Enters a range as PyTorch's profiler does, and leaves it.
fn announce() {
    if PUSH.load(Ordering::Acquire) == 0 {
        let table: extern "C" fn(u32) -> *const Callbacks = get_table;
        call("InitializeInjectionNvtx2", [table as usize, 0, 0, 0, 0]);
    }
    type Push = extern "C" fn(*const i8) -> i32;
    type Pop = extern "C" fn() -> i32;
    // SAFETY: the library has put functions with these signatures there.
    let (push, pop) = unsafe {
        (
            std::mem::transmute::<usize, Push>(PUSH.load(Ordering::Acquire)),
            std::mem::transmute::<usize, Pop>(POP.load(Ordering::Acquire)),
        )
    };
    push(c"aten::mm, seq = 12, op_id = 7".as_ptr());
    pop();
}

fn start_memory_log(run_dir: &Path) {
    let log = CString::new(run_dir.join("memory.log").to_str().expect("plain")).expect("plain");
    call(
        "ghostgpu_start_memory_log",
        [log.as_ptr() as usize, 0, 0, 0, 0],
    );
}
