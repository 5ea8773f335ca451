//! Pinned host memory: ordinary host memory whose addresses are remembered.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use super::errors::{INVALID_VALUE, MEMORY_ALLOCATION, NO_DEVICE, SUCCESS, report};
use crate::{call_log, clock, notes, state, write_out};

/// All pieces, by start address.
static PINNED: Mutex<BTreeMap<usize, Pinned>> = Mutex::new(BTreeMap::new());

struct Pinned {
    bytes: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Allocated here.
    Allocated,
    /// The program's own memory.
    Registered,
    /// Managed memory, shared with the card.
    Managed,
}

/// Whether the address is in pinned or registered host memory.
pub fn is_pinned(address: usize) -> bool {
    let Ok(pinned) = PINNED.lock() else {
        return false;
    };
    pinned
        .range(..=address)
        .next_back()
        .is_some_and(|(&start, piece)| address - start < piece.bytes)
}

fn remember(start: usize, piece: Pinned) {
    if let Ok(mut pinned) = PINNED.lock() {
        pinned.insert(start, piece);
    }
}

/// Whether the address is in managed memory.
pub fn is_managed(address: usize) -> bool {
    let Ok(pinned) = PINNED.lock() else {
        return false;
    };
    let before = pinned.range(..=address).next_back();
    before
        .is_some_and(|(&start, piece)| address - start < piece.bytes && piece.kind == Kind::Managed)
}

/// Smaller pieces are simply overwritten: returning pages costs a system call.
const LEAST_GIVEN_BACK_BYTES: usize = 1 << 20;

/// Zeroes pinned memory that was allocated here by returning its pages to the system, so that tensors that a script
/// moves to the host cost no memory there. False, without any change, if that is not possible.
///
/// # Safety
/// `start` is valid for writes of `bytes` bytes.
pub unsafe fn zero_without_pages(start: *mut u8, bytes: usize) -> bool {
    if bytes < LEAST_GIVEN_BACK_BYTES {
        return false;
    }
    let address = start as usize;
    let Ok(pinned) = PINNED.lock() else {
        return false;
    };
    let is_own = pinned
        .range(..=address)
        .next_back()
        .is_some_and(|(&first, piece)| {
            piece.kind == Kind::Allocated && address - first + bytes <= piece.bytes
        });
    if !is_own {
        return false;
    }
    // SAFETY: a number of the system, which it always has.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let (inner, end) = (address.next_multiple_of(page), address + bytes);
    let whole = (end - inner) / page * page;
    // SAFETY: whole pages inside a private anonymous mapping of our own, which read as zeros afterwards; the caller
    // promises the rest.
    unsafe {
        if libc::madvise(inner as *mut c_void, whole, libc::MADV_DONTNEED) != 0 {
            return false;
        }
        std::ptr::write_bytes(start, 0, inner - address);
        std::ptr::write_bytes((inner + whole) as *mut u8, 0, end - inner - whole);
    }
    true
}

/// # Safety
/// `pointer` is null or writable.
unsafe fn allocate(pointer: *mut *mut c_void, bytes: usize, kind: Kind) -> c_int {
    if state::current_with_context().is_none() {
        return report(NO_DEVICE);
    }
    if pointer.is_null() {
        return report(INVALID_VALUE);
    }
    // The virtual clock does not advance: loaders pin memory in their own thread, at arbitrary times.
    // Mapped, not touched: pages that the script never writes cost nothing.
    // SAFETY: a fresh private mapping.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes.max(1),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return report(MEMORY_ALLOCATION);
    }
    let piece = Pinned {
        bytes: bytes.max(1),
        kind,
    };
    remember(start as usize, piece);
    // SAFETY: promised by the caller.
    unsafe { write_out(pointer, start) };
    SUCCESS
}

/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaHostAlloc(
    pointer: *mut *mut c_void,
    bytes: usize,
    flags: u32,
) -> c_int {
    call_log::call("cudaHostAlloc", || format!("{bytes} bytes, flags {flags}"));
    // SAFETY: promised by the caller.
    unsafe { allocate(pointer, bytes, Kind::Allocated) }
}

/// Managed memory is counted on the host: how much of it is on the card at a time depends on what
/// kernels touch, which is not known.
///
/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMallocManaged(
    pointer: *mut *mut c_void,
    bytes: usize,
    flags: u32,
) -> c_int {
    call_log::call("cudaMallocManaged", || {
        format!("{bytes} bytes, flags {flags}")
    });
    notes::assume(
        "managed memory (cudaMallocManaged) moves between host and card as it is used, and is not \
         counted on the card",
    );
    // SAFETY: promised by the caller.
    unsafe { allocate(pointer, bytes, Kind::Managed) }
}

/// Frees managed memory; `None` if there is none at this address.
pub fn free_managed(pointer: *mut c_void) -> Option<()> {
    let piece = {
        let mut pinned = PINNED.lock().ok()?;
        let kind = pinned.get(&(pointer as usize)).map(|piece| piece.kind);
        (kind == Some(Kind::Managed)).then(|| pinned.remove(&(pointer as usize)))??
    };
    // SAFETY: mapped by `allocate` with this length, and no longer remembered.
    unsafe { libc::munmap(pointer, piece.bytes) };
    Some(())
}

/// # Safety
/// `pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMallocHost(pointer: *mut *mut c_void, bytes: usize) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { cudaHostAlloc(pointer, bytes, 0) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaFreeHost(pointer: *mut c_void) -> c_int {
    call_log::call("cudaFreeHost", || format!("{pointer:p}"));
    if pointer.is_null() {
        return SUCCESS;
    }
    clock::wait_for_device(state::current_index());
    let Ok(mut pinned) = PINNED.lock() else {
        return report(INVALID_VALUE);
    };
    match pinned.remove(&(pointer as usize)) {
        Some(piece) if piece.kind == Kind::Allocated => {
            // SAFETY: mapped by `allocate` with this length, and no longer remembered.
            unsafe { libc::munmap(pointer, piece.bytes) };
            SUCCESS
        }
        Some(piece) => {
            pinned.insert(pointer as usize, piece);
            report(INVALID_VALUE)
        }
        None => report(INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaHostRegister(pointer: *mut c_void, bytes: usize, flags: u32) -> c_int {
    call_log::call("cudaHostRegister", || {
        format!("{pointer:p}, {bytes} bytes, flags {flags}")
    });
    if state::current_with_context().is_none() {
        return report(NO_DEVICE);
    }
    if pointer.is_null() || bytes == 0 {
        return report(INVALID_VALUE);
    }
    let piece = Pinned {
        bytes,
        kind: Kind::Registered,
    };
    remember(pointer as usize, piece);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaHostUnregister(pointer: *mut c_void) -> c_int {
    call_log::call("cudaHostUnregister", || format!("{pointer:p}"));
    let Ok(mut pinned) = PINNED.lock() else {
        return report(INVALID_VALUE);
    };
    match pinned.remove(&(pointer as usize)) {
        Some(_) => SUCCESS,
        None => report(INVALID_VALUE),
    }
}

/// Pinned memory has the same address on the card.
///
/// # Safety
/// `device_pointer` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaHostGetDevicePointer(
    device_pointer: *mut *mut c_void,
    host_pointer: *mut c_void,
    _flags: u32,
) -> c_int {
    if !is_pinned(host_pointer as usize) {
        return report(INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(device_pointer, host_pointer) };
    SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_bytes_that_are_read_back_become_zero() {
        const BYTES: usize = 4 << 20;
        // SAFETY: a fresh private mapping of this length.
        let memory = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            std::slice::from_raw_parts_mut(start.cast::<u8>(), BYTES)
        };
        let start = memory.as_ptr() as usize;
        let cases = [(0, BYTES), (100, 2 << 20), (4096, 1 << 20), (5, BYTES - 5)];
        for kind in [Kind::Allocated, Kind::Registered] {
            remember(start, Pinned { bytes: BYTES, kind });
            for (from, count) in cases {
                memory.fill(7);
                // SAFETY: inside the mapping.
                let done = unsafe { zero_without_pages(memory[from..].as_mut_ptr(), count) };
                let is_own = kind == Kind::Allocated;
                assert_eq!(done, is_own);
                let zeros = |byte: &u8| *byte == if is_own { 0 } else { 7 };
                assert!(
                    memory[from..from + count].iter().all(zeros),
                    "{from} {count}"
                );
                let rest = memory[..from].iter().chain(&memory[from + count..]);
                assert!(rest.into_iter().all(|byte| *byte == 7), "{from} {count}");
            }
        }
        // SAFETY: inside the mapping; what is small is left to be written.
        assert!(!unsafe { zero_without_pages(memory.as_mut_ptr(), 4096) });
        PINNED.lock().expect("not poisoned").remove(&start);
    }
}
