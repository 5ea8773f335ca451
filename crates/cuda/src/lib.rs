//! The stand-in for CUDA: the C interface of the runtime, the driver and their companion libraries,
//! answered by a virtual card.
//!
//! Built as a shared library that is preloaded into the user's process. Its functions replace the
//! real ones by name: kernels do nothing, device memory is only addresses, and every answer that
//! PyTorch's behaviour depends on (sizes, capabilities, free memory) is the real card's. Nothing here
//! opens a real driver.
//!
//! One module per API family. Each exported function is listed in the `ghostgpu-symbols` table as
//! simulated, harmless or refused.

mod agent_interface;
mod allocation_faults;
mod call_log;
mod card_usage;
mod clock;
mod cublas;
mod cublaslt;
mod cudnn;
mod cufft;
mod cufile;
mod cupti;
mod cusolver;
mod cusparse;
mod cusparselt;
mod device_work;
mod driver;
mod handed_on;
mod handles;
mod library_sizes;
mod memory_window;
mod nccl;
mod notes;
mod nvjpeg;
mod nvml;
mod nvrtc;
mod nvshmem;
mod observer;
mod opaque_objects;
mod readback;
mod real_library;
mod refuse;
mod runtime;
mod self_lookup;
mod slots;
mod state;
mod virtual_device;
mod work;

/// Stores `value` at a C caller's pointer, which is null for results that it does not want.
///
/// # Safety
/// `target` is null or valid for a write of `T`.
pub(crate) unsafe fn write_out<T>(target: *mut T, value: T) {
    if !target.is_null() {
        // SAFETY: promised by the caller. Structures in C may be less aligned than Rust expects.
        unsafe { target.write_unaligned(value) };
    }
}

/// Accesses a thread-local variable; `None` if the thread is ending and has already dropped it.
///
/// Programs call CUDA while their threads end, from their own destructors. A panic there would cross
/// into C and abort the program.
pub(crate) fn with_threads_own<T, R>(
    variable: &'static std::thread::LocalKey<std::cell::RefCell<T>>,
    work: impl FnOnce(&mut T) -> R,
) -> Option<R> {
    variable
        .try_with(|value| Some(work(&mut *value.try_borrow_mut().ok()?)))
        .ok()?
}
