//! A card's data sheet in the forms that CUDA hands out: two structure layouts and numbered attributes.
//!
//! CUDA 13 dropped and added fields of `cudaDeviceProp`, so code built against CUDA 12 would read the
//! wrong numbers from the newer layout. Fields that no PyTorch code reads (textures, surfaces) hold the
//! values that are the same on every card of compute capability 6 and later.

use std::ffi::{c_char, c_int};

use ghostgpu_device::DeviceSheet;

pub const WARP_SIZE: c_int = 32;
pub const MAX_THREADS_PER_BLOCK: c_int = 1024;
pub const SHARED_MEMORY_PER_BLOCK_BYTES: c_int =
    ghostgpu_device::SHARED_MEMORY_PER_BLOCK_BYTES as c_int;
pub const REGISTERS: c_int = ghostgpu_device::REGISTERS_PER_MULTIPROCESSOR as c_int;
const CONSTANT_MEMORY_BYTES: c_int = 65_536;
const MAX_PITCH: c_int = c_int::MAX;
const MAX_GRID: [c_int; 3] = [c_int::MAX, 65_535, 65_535];
const MAX_BLOCK: [c_int; 3] = [1024, 1024, 64];

/// Declares a layout: the fields both versions share come from one list, in order, with the fields of
/// the other versions in between.
macro_rules! layout {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty,)+ }) => {
        $(#[$doc])*
        #[repr(C)]
        #[allow(non_snake_case)]
        pub struct $name { $($field: $kind,)+ }
    };
}

layout! {
    /// `cudaDeviceProp` of CUDA 13.
    DeviceProp13 {
        name: [c_char; 256], uuid: [u8; 16], luid: [u8; 8], luidDeviceNodeMask: u32,
        totalGlobalMem: usize, sharedMemPerBlock: usize, regsPerBlock: c_int, warpSize: c_int,
        memPitch: usize, maxThreadsPerBlock: c_int, maxThreadsDim: [c_int; 3],
        maxGridSize: [c_int; 3], totalConstMem: usize, major: c_int, minor: c_int,
        textureAlignment: usize, texturePitchAlignment: usize, multiProcessorCount: c_int,
        integrated: c_int, canMapHostMemory: c_int, textures_and_surfaces: [c_int; 39],
        surfaceAlignment: usize, concurrentKernels: c_int, ECCEnabled: c_int, pciBusID: c_int,
        pciDeviceID: c_int, pciDomainID: c_int, tccDriver: c_int, asyncEngineCount: c_int,
        unifiedAddressing: c_int, memoryBusWidth: c_int, l2CacheSize: c_int,
        persistingL2CacheMaxSize: c_int, maxThreadsPerMultiProcessor: c_int,
        streamPrioritiesSupported: c_int, globalL1CacheSupported: c_int,
        localL1CacheSupported: c_int, sharedMemPerMultiprocessor: usize,
        regsPerMultiprocessor: c_int, managedMemory: c_int, isMultiGpuBoard: c_int,
        multiGpuBoardGroupID: c_int, hostNativeAtomicSupported: c_int,
        pageableMemoryAccess: c_int, concurrentManagedAccess: c_int,
        computePreemptionSupported: c_int, canUseHostPointerForRegisteredMem: c_int,
        cooperativeLaunch: c_int, sharedMemPerBlockOptin: usize,
        pageableMemoryAccessUsesHostPageTables: c_int, directManagedMemAccessFromHost: c_int,
        maxBlocksPerMultiProcessor: c_int, accessPolicyMaxWindowSize: c_int,
        reservedSharedMemPerBlock: usize, hostRegisterSupported: c_int,
        sparseCudaArraySupported: c_int, hostRegisterReadOnlySupported: c_int,
        timelineSemaphoreInteropSupported: c_int, memoryPoolsSupported: c_int,
        gpuDirectRDMASupported: c_int, gpuDirectRDMAFlushWritesOptions: u32,
        gpuDirectRDMAWritesOrdering: c_int, memoryPoolSupportedHandleTypes: u32,
        deferredMappingCudaArraySupported: c_int, ipcEventSupported: c_int,
        clusterLaunch: c_int, unifiedFunctionPointers: c_int, deviceNumaConfig: c_int,
        deviceNumaId: c_int, mpsEnabled: c_int, hostNumaId: c_int, gpuPciDeviceID: u32,
        gpuPciSubsystemID: u32, hostNumaMultinodeIpcSupported: c_int, reserved: [c_int; 56],
    }
}

layout! {
    /// `cudaDeviceProp` of CUDA 12.
    DeviceProp12 {
        name: [c_char; 256], uuid: [u8; 16], luid: [u8; 8], luidDeviceNodeMask: u32,
        totalGlobalMem: usize, sharedMemPerBlock: usize, regsPerBlock: c_int, warpSize: c_int,
        memPitch: usize, maxThreadsPerBlock: c_int, maxThreadsDim: [c_int; 3],
        maxGridSize: [c_int; 3], clockRate: c_int, totalConstMem: usize, major: c_int,
        minor: c_int, textureAlignment: usize, texturePitchAlignment: usize,
        deviceOverlap: c_int, multiProcessorCount: c_int, kernelExecTimeoutEnabled: c_int,
        integrated: c_int, canMapHostMemory: c_int, computeMode: c_int,
        textures_and_surfaces: [c_int; 40], surfaceAlignment: usize, concurrentKernels: c_int,
        ECCEnabled: c_int, pciBusID: c_int, pciDeviceID: c_int, pciDomainID: c_int,
        tccDriver: c_int, asyncEngineCount: c_int, unifiedAddressing: c_int,
        memoryClockRate: c_int, memoryBusWidth: c_int, l2CacheSize: c_int,
        persistingL2CacheMaxSize: c_int, maxThreadsPerMultiProcessor: c_int,
        streamPrioritiesSupported: c_int, globalL1CacheSupported: c_int,
        localL1CacheSupported: c_int, sharedMemPerMultiprocessor: usize,
        regsPerMultiprocessor: c_int, managedMemory: c_int, isMultiGpuBoard: c_int,
        multiGpuBoardGroupID: c_int, hostNativeAtomicSupported: c_int,
        singleToDoublePrecisionPerfRatio: c_int, pageableMemoryAccess: c_int,
        concurrentManagedAccess: c_int, computePreemptionSupported: c_int,
        canUseHostPointerForRegisteredMem: c_int, cooperativeLaunch: c_int,
        cooperativeMultiDeviceLaunch: c_int, sharedMemPerBlockOptin: usize,
        pageableMemoryAccessUsesHostPageTables: c_int, directManagedMemAccessFromHost: c_int,
        maxBlocksPerMultiProcessor: c_int, accessPolicyMaxWindowSize: c_int,
        reservedSharedMemPerBlock: usize, hostRegisterSupported: c_int,
        sparseCudaArraySupported: c_int, hostRegisterReadOnlySupported: c_int,
        timelineSemaphoreInteropSupported: c_int, memoryPoolsSupported: c_int,
        gpuDirectRDMASupported: c_int, gpuDirectRDMAFlushWritesOptions: u32,
        gpuDirectRDMAWritesOrdering: c_int, memoryPoolSupportedHandleTypes: u32,
        deferredMappingCudaArraySupported: c_int, ipcEventSupported: c_int,
        clusterLaunch: c_int, unifiedFunctionPointers: c_int, reserved: [c_int; 63],
    }
}

/// Fills the fields that have the same name in both layouts.
macro_rules! fill_common {
    ($prop:expr, $sheet:expr, $uuid:expr) => {{
        let (prop, sheet) = ($prop, $sheet);
        let name = sheet.marked_name();
        for (target, byte) in prop.name.iter_mut().zip(name.bytes().take(255)) {
            *target = byte as c_char;
        }
        prop.uuid = $uuid;
        prop.totalGlobalMem = sheet.total_bytes as usize;
        prop.sharedMemPerBlock = SHARED_MEMORY_PER_BLOCK_BYTES as usize;
        prop.regsPerBlock = REGISTERS;
        prop.warpSize = WARP_SIZE;
        prop.memPitch = MAX_PITCH as usize;
        prop.maxThreadsPerBlock = MAX_THREADS_PER_BLOCK;
        prop.maxThreadsDim = MAX_BLOCK;
        prop.maxGridSize = MAX_GRID;
        prop.totalConstMem = CONSTANT_MEMORY_BYTES as usize;
        prop.major = sheet.capability.major as c_int;
        prop.minor = sheet.capability.minor as c_int;
        prop.textureAlignment = 512;
        prop.texturePitchAlignment = 32;
        prop.multiProcessorCount = sheet.multiprocessors as c_int;
        prop.integrated = c_int::from(sheet.is_integrated);
        prop.canMapHostMemory = 1;
        prop.surfaceAlignment = 512;
        prop.concurrentKernels = 1;
        prop.ECCEnabled = c_int::from(sheet.ecc_enabled);
        prop.pciBusID = sheet.pci.bus as c_int;
        prop.pciDeviceID = sheet.pci.device as c_int;
        prop.pciDomainID = sheet.pci.domain as c_int;
        prop.asyncEngineCount = 3;
        prop.unifiedAddressing = 1;
        prop.memoryBusWidth = sheet.memory_bus_bits as c_int;
        prop.l2CacheSize = sheet.l2_cache_bytes as c_int;
        prop.persistingL2CacheMaxSize = sheet.persisting_l2_cache_max_bytes as c_int;
        prop.maxThreadsPerMultiProcessor = sheet.max_threads_per_multiprocessor as c_int;
        prop.streamPrioritiesSupported = 1;
        prop.globalL1CacheSupported = 1;
        prop.localL1CacheSupported = 1;
        prop.sharedMemPerMultiprocessor = sheet.shared_memory_per_multiprocessor_bytes as usize;
        prop.regsPerMultiprocessor = REGISTERS;
        prop.managedMemory = 1;
        prop.concurrentManagedAccess = 1;
        prop.computePreemptionSupported = 1;
        prop.canUseHostPointerForRegisteredMem = 1;
        prop.cooperativeLaunch = 1;
        prop.sharedMemPerBlockOptin = sheet.shared_memory_per_block_optin_bytes as usize;
        prop.maxBlocksPerMultiProcessor = sheet.max_blocks_per_multiprocessor as c_int;
        prop.reservedSharedMemPerBlock = sheet.reserved_shared_memory_per_block_bytes as usize;
        prop.hostRegisterSupported = 1;
        prop.memoryPoolsSupported = 1;
        prop.clusterLaunch = c_int::from(sheet.capability.major >= 9);
        prop.unifiedFunctionPointers = 1;
    }};
}

pub fn for_cuda_13(sheet: &DeviceSheet, uuid: [u8; 16]) -> DeviceProp13 {
    // SAFETY: the structure consists of integers, for which all zeros is a value.
    let mut prop: DeviceProp13 = unsafe { std::mem::zeroed() };
    fill_common!(&mut prop, sheet, uuid);
    prop.gpuPciDeviceID = pci_device_id(sheet);
    prop
}

pub fn for_cuda_12(sheet: &DeviceSheet, uuid: [u8; 16]) -> DeviceProp12 {
    // SAFETY: as above.
    let mut prop: DeviceProp12 = unsafe { std::mem::zeroed() };
    fill_common!(&mut prop, sheet, uuid);
    prop.clockRate = sheet.clock_khz as c_int;
    prop.memoryClockRate = sheet.memory_clock_khz as c_int;
    prop.deviceOverlap = 1;
    prop.singleToDoublePrecisionPerfRatio = 2;
    prop
}

/// Vendor and device number as PCI writes them into one word (0x10de is NVIDIA).
pub fn pci_device_id(sheet: &DeviceSheet) -> u32 {
    (sheet.pci_device_number << 16) | 0x10de
}

/// The answer to `cudaDeviceGetAttribute` and `cuDeviceGetAttribute`, which share their numbers.
/// `None` for a number that CUDA 13 does not define.
pub fn attribute(sheet: &DeviceSheet, number: c_int) -> Option<c_int> {
    let from_hopper_on = c_int::from(sheet.capability.major >= 9);
    let answer = match number {
        13 => sheet.clock_khz as c_int,
        16 => sheet.multiprocessors as c_int,
        18 => c_int::from(sheet.is_integrated),
        32 => c_int::from(sheet.ecc_enabled),
        33 => sheet.pci.bus as c_int,
        34 => sheet.pci.device as c_int,
        36 => sheet.memory_clock_khz as c_int,
        37 => sheet.memory_bus_bits as c_int,
        38 => sheet.l2_cache_bytes as c_int,
        39 => sheet.max_threads_per_multiprocessor as c_int,
        50 => sheet.pci.domain as c_int,
        75 => sheet.capability.major as c_int,
        76 => sheet.capability.minor as c_int,
        81 => sheet.shared_memory_per_multiprocessor_bytes as c_int,
        97 => sheet.shared_memory_per_block_optin_bytes as c_int,
        106 => sheet.max_blocks_per_multiprocessor as c_int,
        108 => sheet.persisting_l2_cache_max_bytes as c_int,
        111 => sheet.reserved_shared_memory_per_block_bytes as c_int,
        119 => POSIX_FILE_DESCRIPTOR, // pool handle types: fabric handles are not simulated
        120 | 127 => from_hopper_on,  // clusters of blocks, tensor maps
        128 => 0,                     // fabric handles
        139 => pci_device_id(sheet) as c_int,
        140 => 0, // the board maker's number
        _ => *READ_ON_AN_H200.get(usize::try_from(number).ok()?.checked_sub(1)?)?,
    };
    Some(answer)
}

const POSIX_FILE_DESCRIPTOR: c_int = 1;

/// Attributes 1 to 147 of a real H200 with driver 580.159.04, for those that do not tell cards apart
/// (recorded by `ground_truth/harness/probe_card.py`).
#[rustfmt::skip]
const READ_ON_AN_H200: [c_int; 147] = [
    1024, 1024, 1024, 64, 2_147_483_647, 65_535, 65_535, 49_152, 65_536, 32, 2_147_483_647, 65_536, 1_980_000, 512,
    1, 132, 0, 0, 1, 0, 131_072, 131_072, 65_536, 16_384, 16_384, 16_384, 32_768, 32_768,
    2048, 512, 1, 1, 0, 6, 0, 3_201_000, 6016, 62_914_560, 2048, 3, 1, 32_768,
    2048, 1, 32_768, 32_768, 8192, 8192, 32_768, 0, 32, 32_768, 32_768, 2046, 32_768, 131_072,
    65_536, 16_384, 16_384, 16_384, 32_768, 2048, 32_768, 32_768, 2048, 32_768, 32_768, 2046, 268_435_456, 131_072,
    65_000, 2_097_120, 32_768, 32_768, 9, 0, 32_768, 1, 1, 1, 233_472, 65_536, 1, 0,
    0, 0, 2, 0, 1, 1, 1, 0, 0, 0, 1, 1, 232_448, 0,
    1, 0, 0, 1, 1, 0, 0, 32, 1, 39_321_600, 134_217_728, 1, 1024, 1,
    1, 1, 1, 1, 1, 100, 9, 1, 1, 1, 1, 1, 1, 4,
    1, 1, 1, 0, -1, 0, 0, 0, 0, 0, 0, 0, 590_680_286, 415_174_878,
    1, 1, 0, 1, 1, 0, 0,
];

#[cfg(test)]
mod tests {
    use super::{DeviceProp12, DeviceProp13};
    use std::mem::{offset_of, size_of};

    /// Sizes and offsets of the published headers of CUDA 12 and 13.
    #[test]
    fn the_layouts_are_those_of_the_published_headers() {
        assert_eq!(size_of::<DeviceProp13>(), 1008);
        assert_eq!(offset_of!(DeviceProp13, totalGlobalMem), 288);
        assert_eq!(offset_of!(DeviceProp13, major), 360);
        assert_eq!(offset_of!(DeviceProp13, multiProcessorCount), 384);
        assert_eq!(offset_of!(DeviceProp13, pciBusID), 568);
        assert_eq!(offset_of!(DeviceProp13, l2CacheSize), 596);
        assert_eq!(offset_of!(DeviceProp13, regsPerMultiprocessor), 632);
        assert_eq!(offset_of!(DeviceProp13, sharedMemPerBlockOptin), 672);
        assert_eq!(size_of::<DeviceProp12>(), 1032);
        assert_eq!(offset_of!(DeviceProp12, totalGlobalMem), 288);
        assert_eq!(offset_of!(DeviceProp12, major), 360);
        assert_eq!(offset_of!(DeviceProp12, multiProcessorCount), 388);
        assert_eq!(offset_of!(DeviceProp12, pciBusID), 584);
        assert_eq!(offset_of!(DeviceProp12, l2CacheSize), 616);
        assert_eq!(offset_of!(DeviceProp12, regsPerMultiprocessor), 648);
        assert_eq!(offset_of!(DeviceProp12, sharedMemPerBlockOptin), 696);
    }
}
