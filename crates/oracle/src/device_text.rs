//! A card's data sheet in the JSON form that cuDNN's device-properties descriptor reads.

use ghostgpu_device::DeviceSheet;
use serde_json::json;

/// The driver that the virtual card pretends to have, in CUDA's own numbering.
const DRIVER_VERSION: u32 = 13_000;

/// The text of `CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION` for this card.
///
/// The field names are those of the text that cuDNN 9 itself writes on a real card.
pub fn device_text(sheet: &DeviceSheet) -> String {
    let capability = sheet.capability;
    json!({
        "maxGridSize": [2_147_483_647u32, 65_535, 65_535],
        "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65_536,
        "multiProcessorCount": sheet.multiprocessors,
        "warpSize": 32,
        "maxSharedMemoryPerBlock": 49_152,
        "maxSharedMemoryPerBlockOptin": sheet.shared_memory_per_block_optin_bytes,
        "reservedSharedMemoryPerBlock": sheet.reserved_shared_memory_per_block_bytes,
        "maxRegistersPerSM": 65_536,
        "maxCtasPerSM": sheet.max_blocks_per_multiprocessor,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": sheet.max_threads_per_multiprocessor,
        "pciDeviceId": sheet.pci.bus,
        "isTccDriver": 0,
        "supportCoopLaunch": 1,
        "totalGlobalMem": sheet.total_bytes,
        "smClockRateKHz": sheet.clock_khz,
        "memClockRateKHz": sheet.memory_clock_khz,
        "l2CacheSize": sheet.l2_cache_bytes,
        "cudaDeviceId": 0,
        "deviceVer": capability.major * 100 + capability.minor * 10,
        "driverVer": DRIVER_VERSION,
        "deviceName": sheet.name,
    })
    .to_string()
}
