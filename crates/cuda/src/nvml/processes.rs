//! Who uses a card: the processes of this run and what each holds. The text of PyTorch's
//! out-of-memory error quotes it.

use super::{Device, device, status};
use crate::{log_call, write_out};

/// `nvmlProcessInfo_v1_t`, of the function without a version in its name.
#[repr(C)]
pub struct ProcessV1 {
    process: u32,
    used_bytes: u64,
}

/// `nvmlProcessInfo_v2_t`, also of version 3 of the function.
#[repr(C)]
pub struct ProcessV2 {
    process: u32,
    used_bytes: u64,
    gpu_instance: u32,
    compute_instance: u32,
}

const _: () = assert!(size_of::<ProcessV1>() == 16 && size_of::<ProcessV2>() == 24);

/// The value for "not partitioned" in the instance fields.
const NO_INSTANCE: u32 = u32::MAX;

impl From<(u32, u64)> for ProcessV1 {
    fn from((process, used_bytes): (u32, u64)) -> Self {
        Self {
            process,
            used_bytes,
        }
    }
}

impl From<(u32, u64)> for ProcessV2 {
    fn from((process, used_bytes): (u32, u64)) -> Self {
        Self {
            process,
            used_bytes,
            gpu_instance: NO_INSTANCE,
            compute_instance: NO_INSTANCE,
        }
    }
}

/// Fills the caller's list. `count` is its capacity before and the number of processes after the call; if
/// the list is too small, only the number is written.
///
/// # Safety
/// `count` points to an integer; `list` has room for as many entries as it says, or is null.
unsafe fn fill<T>(count: *mut u32, list: *mut T, processes: Result<Vec<T>, i32>) -> i32 {
    let processes = match processes {
        Ok(processes) => processes,
        Err(code) => return code,
    };
    if count.is_null() {
        return status::INVALID_ARGUMENT;
    }
    // SAFETY: promised by the caller.
    let room = unsafe { count.read_unaligned() } as usize;
    // SAFETY: promised by the caller.
    unsafe { write_out(count, processes.len() as u32) };
    if processes.len() > room {
        return status::INSUFFICIENT_SIZE;
    }
    if list.is_null() && !processes.is_empty() {
        return status::INVALID_ARGUMENT;
    }
    for (place, process) in processes.into_iter().enumerate() {
        // SAFETY: `place` is below the caller's room.
        unsafe { list.add(place).write_unaligned(process) };
    }
    status::SUCCESS
}

fn computing<T: From<(u32, u64)>>(handle: Device) -> Result<Vec<T>, i32> {
    let card = device(handle)?;
    Ok(card.used_by_process().into_iter().map(T::from).collect())
}

/// No process uses a virtual card for graphics.
fn drawing<T>(handle: Device) -> Result<Vec<T>, i32> {
    device(handle).map(|_| Vec::new())
}

macro_rules! process_lists {
    ($($name:ident: $source:ident as $entry:ty;)+) => {
        $(
            /// # Safety
            /// `count` points to an integer; `list` has room for as many entries as it says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(handle: Device, count: *mut u32, list: *mut $entry) -> i32 {
                log_call!($name, handle, count, list);
                // SAFETY: promised by the caller.
                unsafe { fill(count, list, $source(handle)) }
            }
        )+
    };
}

process_lists! {
    nvmlDeviceGetComputeRunningProcesses: computing as ProcessV1;
    nvmlDeviceGetComputeRunningProcesses_v2: computing as ProcessV2;
    nvmlDeviceGetComputeRunningProcesses_v3: computing as ProcessV2;
    nvmlDeviceGetGraphicsRunningProcesses: drawing as ProcessV1;
    nvmlDeviceGetGraphicsRunningProcesses_v2: drawing as ProcessV2;
    nvmlDeviceGetGraphicsRunningProcesses_v3: drawing as ProcessV2;
    nvmlDeviceGetMPSComputeRunningProcesses: drawing as ProcessV1;
    nvmlDeviceGetMPSComputeRunningProcesses_v2: drawing as ProcessV2;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: drawing as ProcessV2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_without_room_only_gets_the_number() {
        let processes = || Ok(vec![ProcessV1::from((7, 100)), ProcessV1::from((8, 200))]);
        let mut list = [ProcessV1::from((0, 0)), ProcessV1::from((0, 0))];
        let mut count = 1;
        // SAFETY: the list has room for two, more than `count` says.
        let code = unsafe { fill(&raw mut count, list.as_mut_ptr(), processes()) };
        assert_eq!(
            (code, count, list[0].process),
            (status::INSUFFICIENT_SIZE, 2, 0)
        );
        // SAFETY: the list has room for two.
        let code = unsafe { fill(&raw mut count, list.as_mut_ptr(), processes()) };
        assert_eq!((code, count), (status::SUCCESS, 2));
        assert_eq!((list[1].process, list[1].used_bytes), (8, 200));
    }
}
