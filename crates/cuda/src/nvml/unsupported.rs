//! Readings that a virtual card does not have.

use super::{Device, answer, device, status};
use crate::log_call;

/// `nvmlUtilization_t`: percent of the time that kernels ran and memory was read or written.
#[repr(C)]
pub struct Utilization {
    gpu: u32,
    memory: u32,
}

/// Nothing ever runs on the card, so this reading is known.
///
/// # Safety
/// `utilization` points to a writable structure or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    handle: Device,
    utilization: *mut Utilization,
) -> i32 {
    log_call!(nvmlDeviceGetUtilizationRates, handle, utilization);
    let value = device(handle).map(|_| Utilization { gpu: 0, memory: 0 });
    // SAFETY: promised by the caller.
    unsafe { answer(utilization, value) }
}

/// Defines exported functions that say "not supported" of the card in their first parameter.
macro_rules! not_supported {
    ($($name:ident),+ $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name(handle: Device) -> i32 {
                log_call!($name, handle);
                match device(handle) {
                    Ok(_) => status::NOT_SUPPORTED,
                    Err(code) => code,
                }
            }
        )+
    };
}

// Sensors and settings.
not_supported! {
    nvmlDeviceGetBAR1MemoryInfo, nvmlDeviceGetBrand, nvmlDeviceGetClockInfo,
    nvmlDeviceGetComputeMode, nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetCurrPcieLinkWidth,
    nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons,
    nvmlDeviceGetDecoderUtilization, nvmlDeviceGetDisplayActive, nvmlDeviceGetDisplayMode,
    nvmlDeviceGetEncoderUtilization, nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetFanSpeed,
    nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetMaxPcieLinkWidth,
    nvmlDeviceGetPcieThroughput, nvmlDeviceGetPerformanceState, nvmlDeviceGetPersistenceMode,
    nvmlDeviceGetPowerManagementLimit, nvmlDeviceGetPowerUsage, nvmlDeviceGetProcessUtilization,
    nvmlDeviceGetSerial, nvmlDeviceGetTemperature, nvmlDeviceGetTotalEccErrors,
    nvmlDeviceGetTotalEnergyConsumption, nvmlDeviceGetVbiosVersion,
}

// Partitions of a card, and links between cards.
not_supported! {
    nvmlDeviceGetFieldValues, nvmlDeviceGetGpuFabricInfo, nvmlDeviceGetGpuFabricInfoV,
    nvmlDeviceGetMaxMigDeviceCount, nvmlDeviceGetMigMode, nvmlDeviceGetNvLinkCapability,
    nvmlDeviceGetNvLinkRemoteDeviceType, nvmlDeviceGetNvLinkRemotePciInfo_v2,
    nvmlDeviceGetNvLinkState, nvmlDeviceGetNvLinkVersion, nvmlDeviceGetP2PStatus,
    nvmlDeviceGetTopologyCommonAncestor, nvmlDeviceGetCpuAffinity,
}

/// Whether a handle is a partition: never.
///
/// # Safety
/// `is_partition` points to a writable integer or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceIsMigDeviceHandle(
    handle: Device,
    is_partition: *mut u32,
) -> i32 {
    log_call!(nvmlDeviceIsMigDeviceHandle, handle, is_partition);
    // SAFETY: promised by the caller.
    unsafe { answer(is_partition, device(handle).map(|_| 0)) }
}
