//! Registering and launching kernels. Launches do nothing; registrations are kept for their names.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;

use super::errors::{INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, SUCCESS, report};
use super::graph::Node;
use super::properties::{MAX_THREADS_PER_BLOCK, REGISTERS, WARP_SIZE};
use super::stream::submit;
use crate::{call_log, clock, state, with_threads_own, work, write_out};

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

/// Host stubs and the addresses of their names. Torch registers some hundred thousand kernels while
/// it is loaded, before `main`, so registering only appends.
static KERNELS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The name under which a kernel was registered.
pub fn kernel_name(stub: *const c_void) -> String {
    let found = KERNELS.lock().ok().and_then(|kernels| {
        kernels
            .iter()
            .find(|&&(known, _)| known == stub as usize)
            .map(|&(_, name)| name)
    });
    match found {
        // SAFETY: registered names are string constants of the library that registered them.
        Some(name) => unsafe { CStr::from_ptr(name as *const c_char) }
            .to_string_lossy()
            .into_owned(),
        None => format!("{stub:p}"),
    }
}

/// A handle for a bundle of device code: any address that stays the same will do.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinary(bundle: *mut c_void) -> *mut *mut c_void {
    bundle.cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFatBinaryEnd(_bundle: *mut *mut c_void) {}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaUnregisterFatBinary(_bundle: *mut *mut c_void) {}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaInitModule(_bundle: *mut *mut c_void) -> c_char {
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterFunction(
    _bundle: *mut *mut c_void,
    stub: *const c_char,
    _device_function: *mut c_char,
    name: *const c_char,
) {
    if let Ok(mut kernels) = KERNELS.lock() {
        kernels.push((stub as usize, name as usize));
    }
}

/// Variables in device memory: their host shadow's address stands for them.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterVar() {}

#[unsafe(no_mangle)]
pub extern "C" fn __cudaRegisterManagedVar() {}

/// # Safety
/// `kernel` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaGetKernel(kernel: *mut *const c_void, stub: *const c_void) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(kernel, stub) };
    SUCCESS
}

/// # Safety
/// `address` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetSymbolAddress(
    address: *mut *const c_void,
    symbol: *const c_void,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(address, symbol) };
    SUCCESS
}

struct CallConfiguration {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<CallConfiguration>> = const { RefCell::new(Vec::new()) };
}

/// What `kernel<<<grid, block, shared, stream>>>` calls before the stub; 0 means continue.
#[unsafe(no_mangle)]
pub extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
) -> u32 {
    let configuration = CallConfiguration {
        grid,
        block,
        shared_bytes,
        stream,
    };
    let pushed = with_threads_own(&CONFIGURATIONS, |stack| stack.push(configuration));
    u32::from(pushed.is_none())
}

/// # Safety
/// Every pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dim3,
    block: *mut Dim3,
    shared_bytes: *mut usize,
    stream: *mut usize,
) -> c_int {
    let Some(top) = with_threads_own(&CONFIGURATIONS, Vec::pop).flatten() else {
        return report(INVALID_VALUE);
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(grid, top.grid);
        write_out(block, top.block);
        write_out(shared_bytes, top.shared_bytes);
        write_out(stream, top.stream);
    }
    SUCCESS
}

/// PyTorch's kernels that only let time pass (`torch.cuda._sleep`), among the registered kernels that
/// were searched so far.
struct Spinning {
    looked_through: usize,
    stubs: Vec<usize>,
}

static SPINNING: Mutex<Spinning> = Mutex::new(Spinning {
    looked_through: 0,
    stubs: Vec::new(),
});

fn is_spinning(stub: *const c_void) -> bool {
    let (Ok(mut spinning), Ok(kernels)) = (SPINNING.lock(), KERNELS.lock()) else {
        return false;
    };
    for &(known, name) in &kernels[spinning.looked_through..] {
        // SAFETY: registered names are string constants of the library that registered them.
        let found = unsafe { libc::strstr(name as *const c_char, c"spin_kernel".as_ptr()) };
        if !found.is_null() {
            spinning.stubs.push(known);
        }
    }
    spinning.looked_through = kernels.len();
    spinning.stubs.contains(&(stub as usize))
}

/// How long a kernel takes.
///
/// # Safety
/// `arguments` points to the addresses of the kernel's arguments.
unsafe fn duration(stub: *const c_void, arguments: *const *mut c_void, clock_khz: u32) -> u64 {
    if arguments.is_null() || !is_spinning(stub) {
        return clock::KERNEL;
    }
    // SAFETY: promised by the caller; its only argument is a number of cycles.
    clock::cycles(
        unsafe { (*arguments).cast::<i64>().read_unaligned() },
        clock_khz,
    )
}

/// # Safety
/// `arguments` is null or points to the addresses of the kernel's arguments.
unsafe fn launch(
    function: &str,
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *mut c_void,
    stream: usize,
) -> c_int {
    let Some(card) = state::current_device() else {
        return report(NO_DEVICE);
    };
    card.note_kernel_use();
    // SAFETY: promised by the caller.
    let duration = unsafe { duration(stub, arguments, card.sheet.clock_khz) };
    submit(stream, Node::Kernel, duration);
    // SAFETY: promised by the caller.
    unsafe { work::kernel(stub, [grid.x, grid.y, grid.z], arguments) };
    call_log::call(function, || {
        let name = kernel_name(stub);
        format!("{name}, grid {grid:?}, block {block:?}, stream {stream:#x}")
    });
    SUCCESS
}

/// # Safety
/// `arguments` is null or points to the addresses of the kernel's arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaLaunchKernel(
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    _shared_bytes: usize,
    stream: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { launch("cudaLaunchKernel", stub, grid, block, arguments, stream) }
}

/// The form that code built with CUDA 13 uses; its kernel handle comes from [`__cudaGetKernel`].
///
/// # Safety
/// `arguments` is null or points to the addresses of the kernel's arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __cudaLaunchKernel(
    kernel: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    _shared_bytes: usize,
    stream: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { launch("__cudaLaunchKernel", kernel, grid, block, arguments, stream) }
}

/// # Safety
/// `arguments` is null or points to the addresses of the kernel's arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaLaunchCooperativeKernel(
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    _shared_bytes: usize,
    stream: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        launch(
            "cudaLaunchCooperativeKernel",
            stub,
            grid,
            block,
            arguments,
            stream,
        )
    }
}

/// `cudaLaunchConfig_t`, as far as it is read here.
#[repr(C)]
pub struct LaunchConfig {
    grid: Dim3,
    block: Dim3,
    shared_bytes: usize,
    stream: usize,
}

/// # Safety
/// `config` is null or readable; `arguments` as for [`cudaLaunchKernel`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaLaunchKernelExC(
    config: *const LaunchConfig,
    stub: *const c_void,
    arguments: *mut *mut c_void,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some(config) = (unsafe { config.as_ref() }) else {
        return report(INVALID_VALUE);
    };
    let name = "cudaLaunchKernelExC";
    // SAFETY: promised by the caller.
    unsafe {
        launch(
            name,
            stub,
            config.grid,
            config.block,
            arguments,
            config.stream,
        )
    }
}

/// The part of `cudaFuncAttributes` that is the same in CUDA 12 and 13.
#[repr(C)]
pub struct FuncAttributes {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    max_threads_per_block: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode_ca: c_int,
    max_dynamic_shared_bytes: c_int,
    preferred_shared_carveout: c_int,
}

/// The registers of a kernel are not known without looking into its code, which we do not do. A
/// kernel of up to 32 registers can fill a multiprocessor with threads.
pub const ASSUMED_REGISTERS: c_int = 32;

/// # Safety
/// `attributes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaFuncGetAttributes(
    attributes: *mut FuncAttributes,
    stub: *const c_void,
) -> c_int {
    let Some(sheet) = state::current_sheet() else {
        return report(NO_DEVICE);
    };
    let architecture = state::code_architecture(sheet.capability) as c_int;
    call_log::call("cudaFuncGetAttributes", || {
        format!("{} -> architecture {architecture}", kernel_name(stub))
    });
    let answer = FuncAttributes {
        shared_bytes: 0,
        constant_bytes: 0,
        local_bytes: 0,
        max_threads_per_block: MAX_THREADS_PER_BLOCK,
        registers: ASSUMED_REGISTERS,
        ptx_version: architecture,
        binary_version: architecture,
        cache_mode_ca: 0,
        max_dynamic_shared_bytes: super::properties::SHARED_MEMORY_PER_BLOCK_BYTES,
        preferred_shared_carveout: -1,
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(attributes, answer) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaFuncSetAttribute(
    stub: *const c_void,
    attribute: c_int,
    value: c_int,
) -> c_int {
    call_log::call("cudaFuncSetAttribute", || {
        format!("{}, {attribute}, {value}", kernel_name(stub))
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaKernelSetAttributeForDevice(
    _kernel: *const c_void,
    _attribute: c_int,
    _value: c_int,
    device: c_int,
) -> c_int {
    match state::visible_device(device) {
        Some(_) => SUCCESS,
        None => report(INVALID_DEVICE),
    }
}

/// How many blocks of `threads` threads with `shared_bytes` of shared memory fit on one multiprocessor.
pub fn occupancy(threads: c_int, shared_bytes: usize) -> Option<c_int> {
    let sheet = state::current_sheet()?;
    let threads = threads.max(1);
    let rounded = (threads as u32).next_multiple_of(WARP_SIZE as u32) as c_int;
    let by_threads = sheet.max_threads_per_multiprocessor as c_int / rounded;
    let by_registers = REGISTERS / (ASSUMED_REGISTERS * rounded);
    let per_block = shared_bytes + sheet.reserved_shared_memory_per_block_bytes as usize;
    let by_shared = if shared_bytes == 0 {
        c_int::MAX
    } else {
        (sheet.shared_memory_per_multiprocessor_bytes as usize / per_block) as c_int
    };
    Some(
        by_threads
            .min(by_registers)
            .min(by_shared)
            .min(sheet.max_blocks_per_multiprocessor as c_int),
    )
}

/// # Safety
/// `blocks` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut c_int,
    stub: *const c_void,
    threads: c_int,
    shared_bytes: usize,
    _flags: u32,
) -> c_int {
    let Some(answer) = occupancy(threads, shared_bytes) else {
        return report(NO_DEVICE);
    };
    call_log::call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", || {
        format!(
            "{}, {threads} threads, {shared_bytes} bytes -> {answer}",
            kernel_name(stub)
        )
    });
    // SAFETY: promised by the caller.
    unsafe { write_out(blocks, answer) };
    SUCCESS
}

/// # Safety
/// `blocks` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    stub: *const c_void,
    threads: c_int,
    shared_bytes: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe {
        cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            blocks,
            stub,
            threads,
            shared_bytes,
            0,
        )
    }
}

/// # Safety
/// `clusters` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaOccupancyMaxActiveClusters(
    clusters: *mut c_int,
    stub: *const c_void,
    _config: *const LaunchConfig,
) -> c_int {
    let Some(sheet) = state::current_sheet() else {
        return report(NO_DEVICE);
    };
    call_log::call("cudaOccupancyMaxActiveClusters", || kernel_name(stub));
    // SAFETY: promised by the caller.
    unsafe { write_out(clusters, sheet.multiprocessors as c_int) };
    SUCCESS
}
