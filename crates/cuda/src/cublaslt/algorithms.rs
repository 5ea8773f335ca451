//! Algorithms: the one that the heuristic offers, and its settings.

use std::ffi::{c_int, c_void};

use super::{Descriptor, Handle};
use crate::cublas::status;
use crate::{log_call, write_out};

/// How many settings an algorithm has (`cublasLtMatmulAlgoConfigAttributes_t`, 0 to 8).
const SETTINGS: usize = 9;

/// `cublasLtMatmulAlgo_t`: 64 opaque bytes that belong to the library. We keep the settings there.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Algorithm {
    settings: [u32; SETTINGS],
    unused: [u32; 16 - SETTINGS],
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeuristicResult {
    algorithm: Algorithm,
    workspace_bytes: usize,
    state: i32,
    waves: f32,
    reserved: [c_int; 4],
}

const _: () = assert!(size_of::<Algorithm>() == 64 && size_of::<HeuristicResult>() == 96);

impl HeuristicResult {
    /// An algorithm that can run, fills the card once, and needs no workspace.
    fn runs(algorithm: Algorithm) -> Self {
        Self {
            algorithm,
            state: status::SUCCESS,
            waves: 1.0,
            ..Self::default()
        }
    }
}

/// # Safety
/// `results` has room for `wanted` results; `found` points to a writable integer.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    handle: Handle,
    operation: Descriptor,
    a: Descriptor,
    b: Descriptor,
    c: Descriptor,
    d: Descriptor,
    preference: Descriptor,
    wanted: c_int,
    results: *mut HeuristicResult,
    found: *mut c_int,
) -> i32 {
    log_call!(
        cublasLtMatmulAlgoGetHeuristic,
        handle,
        operation,
        a,
        b,
        c,
        d,
        preference,
        wanted,
        results,
        found,
    );
    if wanted < 1 || results.is_null() || found.is_null() {
        return status::INVALID_VALUE;
    }
    // SAFETY: promised by the caller; there is room for at least one.
    unsafe {
        write_out(results, HeuristicResult::runs(Algorithm::default()));
        write_out(found, 1);
    }
    status::SUCCESS
}

/// # Safety
/// `algorithm` points to writable memory for one algorithm, or is null.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoInit(
    handle: Handle,
    compute_type: c_int,
    scale_type: c_int,
    a_type: c_int,
    b_type: c_int,
    c_type: c_int,
    d_type: c_int,
    number: c_int,
    algorithm: *mut Algorithm,
) -> i32 {
    log_call!(
        cublasLtMatmulAlgoInit,
        handle,
        compute_type,
        scale_type,
        a_type,
        b_type,
        c_type,
        d_type,
        number,
        algorithm,
    );
    if algorithm.is_null() {
        return status::INVALID_VALUE;
    }
    let mut initial = Algorithm::default();
    initial.settings[0] = number.cast_unsigned();
    // SAFETY: promised by the caller.
    unsafe { write_out(algorithm, initial) };
    status::SUCCESS
}

/// # Safety
/// `algorithm` points to an algorithm, `result` to writable memory for one result, or they are null.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoCheck(
    handle: Handle,
    operation: Descriptor,
    a: Descriptor,
    b: Descriptor,
    c: Descriptor,
    d: Descriptor,
    algorithm: *const Algorithm,
    result: *mut HeuristicResult,
) -> i32 {
    log_call!(
        cublasLtMatmulAlgoCheck,
        handle,
        operation,
        a,
        b,
        c,
        d,
        algorithm,
        result,
    );
    if algorithm.is_null() || result.is_null() {
        return status::INVALID_VALUE;
    }
    // SAFETY: promised by the caller. The algorithm may lie inside the result: read first.
    unsafe {
        let checked = algorithm.read_unaligned();
        write_out(result, HeuristicResult::runs(checked));
    }
    status::SUCCESS
}

/// The size of a setting: the last two are 16 bits wide, the others 32.
fn setting_bytes(attribute: usize) -> Option<usize> {
    match attribute {
        0..=6 => Some(4),
        7 | 8 => Some(2),
        _ => None,
    }
}

/// # Safety
/// `algorithm` points to an algorithm and `value` to `bytes` readable bytes, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoConfigSetAttribute(
    algorithm: *mut Algorithm,
    attribute: c_int,
    value: *const c_void,
    bytes: usize,
) -> i32 {
    log_call!(
        cublasLtMatmulAlgoConfigSetAttribute,
        algorithm,
        attribute,
        value,
        bytes
    );
    let index = usize::try_from(attribute).unwrap_or(usize::MAX);
    if algorithm.is_null() || value.is_null() || setting_bytes(index) != Some(bytes) {
        return status::INVALID_VALUE;
    }
    let mut word = [0_u8; 4];
    // SAFETY: promised by the caller; a setting has 2 or 4 bytes and `index` is within bounds.
    unsafe {
        std::ptr::copy_nonoverlapping(value.cast::<u8>(), word.as_mut_ptr(), bytes);
        let mut changed = algorithm.read_unaligned();
        changed.settings[index] = u32::from_le_bytes(word);
        algorithm.write_unaligned(changed);
    }
    status::SUCCESS
}

/// # Safety
/// `algorithm` points to an algorithm, `value` to `bytes` writable bytes, `written` to a writable
/// integer, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoConfigGetAttribute(
    algorithm: *const Algorithm,
    attribute: c_int,
    value: *mut c_void,
    bytes: usize,
    written: *mut usize,
) -> i32 {
    log_call!(
        cublasLtMatmulAlgoConfigGetAttribute,
        algorithm,
        attribute,
        value,
        bytes
    );
    let index = usize::try_from(attribute).unwrap_or(usize::MAX);
    let Some(needed) = setting_bytes(index) else {
        return status::INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(written, needed) };
    if bytes == 0 {
        return status::SUCCESS;
    }
    if algorithm.is_null() || value.is_null() || bytes < needed {
        return status::INVALID_VALUE;
    }
    // SAFETY: promised by the caller; `needed` is 2 or 4 and `index` is within bounds.
    unsafe {
        let word = algorithm.read_unaligned().settings[index].to_le_bytes();
        std::ptr::copy_nonoverlapping(word.as_ptr(), value.cast::<u8>(), needed);
    }
    status::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heuristic_offers_one_algorithm_without_a_workspace() {
        let nothing = std::ptr::null_mut();
        let mut results = [HeuristicResult::default(); 3];
        let mut found = 0;
        // SAFETY: the array has room for the three results asked for.
        let status = unsafe {
            cublasLtMatmulAlgoGetHeuristic(
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                nothing,
                3,
                results.as_mut_ptr(),
                &raw mut found,
            )
        };
        assert_eq!((status, found), (0, 1));
        assert_eq!((results[0].workspace_bytes, results[0].state), (0, 0));
    }

    #[test]
    fn an_algorithm_remembers_its_settings() {
        let mut algorithm = Algorithm::default();
        let cluster_shape = 7_u16;
        let mut read = 0_u16;
        // SAFETY: both values are two bytes long.
        unsafe {
            let value = (&raw const cluster_shape).cast();
            assert_eq!(
                cublasLtMatmulAlgoConfigSetAttribute(&raw mut algorithm, 8, value, 2),
                status::SUCCESS
            );
            assert_eq!(
                cublasLtMatmulAlgoConfigSetAttribute(&raw mut algorithm, 8, value, 4),
                status::INVALID_VALUE
            );
            cublasLtMatmulAlgoConfigGetAttribute(
                &raw const algorithm,
                8,
                (&raw mut read).cast(),
                2,
                std::ptr::null_mut(),
            );
        }
        assert_eq!(read, 7);
    }
}
