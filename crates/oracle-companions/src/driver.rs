//! The functions of the CUDA driver that cuDNN looks up.
//!
//! Engines that compile their kernels at run time look these names up before they say that they can run
//! at all, and load the compiled code when a plan is made. There is no card: every function says so,
//! except those that take code and return handles, which are never launched.
//!
//! Declarations are written from NVIDIA's public documentation of the driver interface.

use std::ffi::{c_int, c_void};

/// `CUDA_SUCCESS`, `CUDA_ERROR_INVALID_VALUE`, `CUDA_ERROR_NO_DEVICE`
const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
const NO_DEVICE: c_int = 100;

/// CUDA 13.0
const DRIVER_VERSION: c_int = 13_000;

/// What all handles point at; never read.
static HANDLE: u64 = 0;

/// Functions that say there is no device. They are declared without parameters: in the C calling
/// conventions of Linux a callee may ignore what it was passed.
macro_rules! without_device {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                NO_DEVICE
            }
        )+
    };
}

/// Functions that have nothing to do for code that is never launched.
macro_rules! nothing_to_do {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                SUCCESS
            }
        )+
    };
}

without_device!(
    cuCtxCreate,
    cuCtxCreate_v2,
    cuCtxDestroy,
    cuCtxDestroy_v2,
    cuCtxGetCurrent,
    cuCtxGetDevice,
    cuCtxGetId,
    cuCtxGetLimit,
    cuCtxPopCurrent,
    cuCtxPopCurrent_v2,
    cuCtxPushCurrent,
    cuCtxPushCurrent_v2,
    cuCtxSetCurrent,
    cuCtxSetLimit,
    cuCtxSynchronize,
    cuDeviceGet,
    cuDeviceGetAttribute,
    cuDeviceGetCount,
    cuDeviceGetName,
    cuDeviceGetUuid,
    cuDeviceGetUuid_v2,
    cuDevicePrimaryCtxGetState,
    cuDevicePrimaryCtxRelease,
    cuDevicePrimaryCtxRelease_v2,
    cuDevicePrimaryCtxRetain,
    cuDeviceTotalMem,
    cuDeviceTotalMem_v2,
    cuEventCreate,
    cuEventRecord,
    cuFuncGetAttribute,
    cuFuncGetModule,
    cuFuncIsLoaded,
    cuFuncLoad,
    cuGetErrorName,
    cuGetErrorString,
    cuGraphAddKernelNode_v2,
    cuGraphExecKernelNodeSetParams_v2,
    cuGraphKernelNodeSetParams_v2,
    cuInit,
    cuKernelGetAttribute,
    cuLaunchCooperativeKernel,
    cuLaunchKernel,
    cuLaunchKernelEx,
    cuLibraryLoadFromFile,
    cuLinkAddData,
    cuLinkAddData_v2,
    cuLinkAddFile,
    cuLinkAddFile_v2,
    cuLinkComplete,
    cuLinkCreate,
    cuLinkCreate_v2,
    cuLinkDestroy,
    cuMemAlloc_v2,
    cuMemFree_v2,
    cuMemcpyAsync,
    cuMemcpyDtoH_v2,
    cuMemcpyHtoD_v2,
    cuMemsetD32Async,
    cuMemsetD8Async,
    cuMemsetD8_v2,
    cuModuleGetGlobal,
    cuModuleGetGlobal_v2,
    cuModuleLoadData,
    cuModuleLoadDataEx,
    cuModuleGetFunction,
    cuModuleUnload,
    cuOccupancyMaxActiveBlocksPerMultiprocessor,
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    cuOccupancyMaxActiveClusters,
    cuOccupancyMaxPotentialClusterSize,
    cuPointerGetAttribute,
    cuPointerGetAttributes,
    cuStreamBeginCapture_v2,
    cuStreamCreate,
    cuStreamDestroy_v2,
    cuStreamEndCapture,
    cuStreamGetCtx,
    cuStreamGetDevice,
    cuStreamGetId,
    cuStreamIsCapturing,
    cuStreamSynchronize,
    cuTensorMapEncodeIm2col,
    cuTensorMapEncodeTiled,
    cuTensorMapReplaceAddress,
);

nothing_to_do!(
    cuFuncSetAttribute,
    cuFuncSetCacheConfig,
    cuKernelSetAttribute,
    cuLibraryUnload
);

/// # Safety
/// `version` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    if version.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { version.write(DRIVER_VERSION) };
    SUCCESS
}

/// # Safety
/// `result` must be null or valid for one handle.
unsafe fn hand_out(result: *mut *const c_void) -> c_int {
    if result.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { result.write((&raw const HANDLE).cast()) };
    SUCCESS
}

/// # Safety
/// `library` must be null or valid for one handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryLoadData(library: *mut *const c_void) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { hand_out(library) }
}

/// # Safety
/// `kernel` must be null or valid for one handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryGetKernel(kernel: *mut *const c_void) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { hand_out(kernel) }
}

/// # Safety
/// `function` must be null or valid for one handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetFunction(function: *mut *const c_void) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { hand_out(function) }
}
