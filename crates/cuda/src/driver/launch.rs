//! Launching loaded functions, and asking about them.

use std::ffi::{c_int, c_void};

use super::module::{function_name, is_function};
use super::{INVALID_VALUE, NO_DEVICE, SUCCESS};
use crate::runtime::graph::Node;
use crate::runtime::stream::submit;
use crate::runtime::{ASSUMED_REGISTERS, MAX_THREADS_PER_BLOCK, occupancy};
use crate::{call_log, clock, state, work, write_out};

fn launch(caller: &str, function: usize, grid: [u32; 3], block: [u32; 3], stream: usize) -> c_int {
    let Some(card) = state::current_device() else {
        return NO_DEVICE;
    };
    if !is_function(function) {
        return INVALID_VALUE;
    }
    card.note_kernel_use();
    submit(stream, Node::Kernel, clock::KERNEL);
    work::named_kernel(|| function_name(function));
    call_log::call(caller, || {
        let name = function_name(function);
        format!("{name}, grid {grid:?}, block {block:?}, stream {stream:#x}")
    });
    SUCCESS
}

#[allow(clippy::too_many_arguments)] // The driver's interface.
#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    _shared_bytes: u32,
    stream: usize,
    _arguments: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    launch("cuLaunchKernel", function, grid, block, stream)
}

#[allow(clippy::too_many_arguments)] // The driver's interface.
#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchCooperativeKernel(
    function: usize,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    _shared_bytes: u32,
    stream: usize,
    _arguments: *mut *mut c_void,
) -> c_int {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    launch("cuLaunchCooperativeKernel", function, grid, block, stream)
}

/// `CUlaunchConfig`, as far as it is read here.
#[repr(C)]
pub struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
}

/// # Safety
/// `config` is null or readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: usize,
    _arguments: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some(config) = (unsafe { config.as_ref() }) else {
        return INVALID_VALUE;
    };
    launch(
        "cuLaunchKernelEx",
        function,
        config.grid,
        config.block,
        config.stream,
    )
}

/// # Safety
/// `value` is null or writable.
unsafe fn function_attribute(value: *mut c_int, attribute: c_int, function: usize) -> c_int {
    let Some(sheet) = state::current_sheet() else {
        return NO_DEVICE;
    };
    let answer = match attribute {
        0 => MAX_THREADS_PER_BLOCK,
        1..=3 | 7 => 0, // static shared, constant and local memory; cache mode
        4 => ASSUMED_REGISTERS,
        5 | 6 => state::code_architecture(sheet.capability) as c_int,
        8 => sheet.shared_memory_per_block_optin_bytes as c_int,
        9 => -1, // no preferred carve-out
        10..=15 => 0,
        _ => return INVALID_VALUE,
    };
    call_log::call("cuFuncGetAttribute", || {
        format!("{attribute}, {} -> {answer}", function_name(function))
    });
    // SAFETY: promised by the caller.
    unsafe { write_out(value, answer) };
    SUCCESS
}

/// # Safety
/// `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    function: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { function_attribute(value, attribute, function) }
}

/// # Safety
/// `value` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    kernel: usize,
    _device: c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { function_attribute(value, attribute, kernel) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) -> c_int {
    call_log::call("cuFuncSetAttribute", || {
        format!("{}, {attribute}, {value}", function_name(function))
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuKernelSetAttribute(
    attribute: c_int,
    value: c_int,
    kernel: usize,
    _device: c_int,
) -> c_int {
    cuFuncSetAttribute(kernel, attribute, value)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetCacheConfig(_function: usize, _config: c_int) -> c_int {
    SUCCESS
}

/// # Safety
/// `blocks` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    _function: usize,
    threads: c_int,
    shared_bytes: usize,
) -> c_int {
    let Some(answer) = occupancy(threads, shared_bytes) else {
        return NO_DEVICE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(blocks, answer) };
    SUCCESS
}

/// # Safety
/// `clusters` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveClusters(
    clusters: *mut c_int,
    _function: usize,
    _config: *const LaunchConfig,
) -> c_int {
    let Some(sheet) = state::current_sheet() else {
        return NO_DEVICE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(clusters, sheet.multiprocessors as c_int) };
    SUCCESS
}

/// # Safety
/// `size` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxPotentialClusterSize(
    size: *mut c_int,
    _function: usize,
    _config: *const LaunchConfig,
) -> c_int {
    const PORTABLE_CLUSTER_SIZE: c_int = 8;
    // SAFETY: promised by the caller.
    unsafe { write_out(size, PORTABLE_CLUSTER_SIZE) };
    SUCCESS
}

/// A description of a tensor for the copy engine of Hopper and later; only kernels read it.
///
/// # Safety
/// `map` is null or valid for 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTensorMapEncodeTiled(map: *mut [u8; 128]) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { write_out(map, [0; 128]) };
    SUCCESS
}
