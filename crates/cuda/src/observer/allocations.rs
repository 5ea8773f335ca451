//! Replaces the functions through which PyTorch's allocator reports to PyTorch's profiler.
//!
//! They are in `libc10.so` and are called by `libc10_cuda.so`, which finds ours first. Their (mangled) names and
//! arguments are the same in all releases from 1.10 to 2.15 (`c10/core/Allocator.h`). The allocator calls them while it
//! holds its lock, in the order of its own history.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use ghostgpu_session::memory_log::{LogEntry, Totals};

use super::{context, log};
use crate::{real_library, work};

/// `c10::Device`: the kind of device in the low byte, its index in the high one.
type Device = u16;

/// `c10::DeviceType::CUDA`.
const KIND_CUDA: u16 = 1;

type ReportUsage = extern "C" fn(*mut c_void, i64, usize, usize, Device);
type ReportFailure = extern "C" fn(i64, usize, usize, Device);

const LIBRARY: [&CStr; 1] = [c"libc10.so"];

fn cuda_index(device: Device) -> Option<u8> {
    (device & 0xff == KIND_CUDA).then_some((device >> 8) as u8)
}

/// `c10::reportMemoryUsageToProfiler`: `bytes` is negative when a block is freed.
#[unsafe(export_name = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE")]
pub extern "C" fn report_memory_usage(
    address: *mut c_void,
    bytes: i64,
    total_allocated: usize,
    total_reserved: usize,
    device: Device,
) {
    if cuda_index(device).is_some() {
        match u64::try_from(bytes) {
            Ok(bytes) => work::note_allocated(address as u64, bytes),
            Err(_) => work::note_freed(address as u64),
        }
    }
    if log::is_on()
        && let Some(device) = cuda_index(device)
    {
        let address = address as u64;
        let totals = Totals {
            allocated_bytes: total_allocated as u64,
            reserved_bytes: total_reserved as u64,
        };
        log::write(if bytes >= 0 {
            let (operator, module) = context::current();
            LogEntry::Allocated {
                device,
                address,
                block_bytes: bytes.unsigned_abs(),
                operator,
                module,
                totals,
            }
        } else {
            LogEntry::Freed {
                device,
                address,
                totals,
            }
        });
    }
    static ORIGINAL: OnceLock<Option<ReportUsage>> = OnceLock::new();
    let original = ORIGINAL.get_or_init(|| {
        let name = c"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
        let function = real_library::find_loaded(&LIBRARY, name)?;
        // SAFETY: the function of this name has this signature, see above.
        Some(unsafe { std::mem::transmute::<*mut c_void, ReportUsage>(function) })
    });
    if let Some(original) = original {
        original(address, bytes, total_allocated, total_reserved, device);
    }
}

/// `c10::reportOutOfMemoryToProfiler`.
#[unsafe(export_name = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE")]
pub extern "C" fn report_out_of_memory(
    bytes: i64,
    total_allocated: usize,
    total_reserved: usize,
    device: Device,
) {
    if let Some(device) = cuda_index(device) {
        log::write(LogEntry::OutOfMemory {
            device,
            requested_bytes: bytes.unsigned_abs(),
        });
    }
    static ORIGINAL: OnceLock<Option<ReportFailure>> = OnceLock::new();
    let original = ORIGINAL.get_or_init(|| {
        let name = c"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE";
        let function = real_library::find_loaded(&LIBRARY, name)?;
        // SAFETY: the function of this name has this signature, see above.
        Some(unsafe { std::mem::transmute::<*mut c_void, ReportFailure>(function) })
    });
    if let Some(original) = original {
        original(bytes, total_allocated, total_reserved, device);
    }
}
