//! cuBLASLt, as far as cuDNN calls it while choosing engines.
//!
//! cuDNN runs 1×1 convolutions as matrix products of cuBLASLt, and asks it whether it has an algorithm
//! and how much workspace that needs. The real cuBLASLt cannot answer without a card, and cuDNN then
//! leaves those engines out of its list, although they are the first choice for most such layers.
//! These are the functions that cuDNN calls; they store their arguments and answer from measurements
//! ([`crate::product_workspace`]).
//!
//! Declarations are written from NVIDIA's public documentation of cuBLASLt.

use std::ffi::{c_int, c_void};

use crate::product_workspace::{self, Element, Product, Transposition};

/// `CUBLAS_STATUS_SUCCESS`, `CUBLAS_STATUS_INVALID_VALUE`
const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 7;

/// A version that every cuDNN 9 accepts.
const VERSION: usize = 130_100;

/// A matrix layout, an operation or a preference: numbered 64-bit attributes.
pub struct Attributes {
    values: [u64; MOST_ATTRIBUTES],
}

const MOST_ATTRIBUTES: usize = 64;

/// `cublasLtMatrixLayoutAttribute_t`
mod layout {
    pub const TYPE: usize = 0;
    pub const ROWS: usize = 2;
    pub const COLUMNS: usize = 3;
    pub const LEADING: usize = 4;
    pub const BATCH: usize = 5;
}

/// `cublasLtMatmulDescAttributes_t`
mod operation {
    pub const COMPUTE_TYPE: usize = 0;
    pub const SCALE_TYPE: usize = 1;
    pub const TRANSPOSE_A: usize = 3;
    pub const TRANSPOSE_B: usize = 4;
}

/// `cublasLtMatmulPreferenceAttributes_t`
mod preference {
    pub const MOST_WORKSPACE_BYTES: usize = 1;
}

/// `cublasLtMatmulHeuristicResult_t`
#[repr(C)]
pub struct HeuristicResult {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// # Safety
/// `place` must be null or valid for one pointer.
unsafe fn create(place: *mut *mut Attributes, preset: &[(usize, u64)]) -> c_int {
    if place.is_null() {
        return INVALID_VALUE;
    }
    let mut values = [0; MOST_ATTRIBUTES];
    for &(name, value) in preset {
        values[name] = value;
    }
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { *place = Box::into_raw(Box::new(Attributes { values })) };
    SUCCESS
}

/// # Safety
/// `attributes` must come from [`create`] and not be destroyed yet, or be null.
unsafe fn destroy(attributes: *mut Attributes) -> c_int {
    if !attributes.is_null() {
        // SAFETY: promised by the caller.
        drop(unsafe { Box::from_raw(attributes) });
    }
    SUCCESS
}

/// # Safety
/// `attributes` must be alive or null, `value` must hold `bytes` bytes.
unsafe fn set(
    attributes: *mut Attributes,
    name: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    let Some(attributes) = (unsafe { attributes.as_mut() }) else {
        return INVALID_VALUE;
    };
    let Some(place) = usize::try_from(name)
        .ok()
        .and_then(|name| attributes.values.get_mut(name))
    else {
        // Other attributes change no answer.
        return SUCCESS;
    };
    if value.is_null() {
        return INVALID_VALUE;
    }
    let mut word = [0u8; 8];
    let length = bytes.min(word.len());
    // SAFETY: `length` is at most `bytes`.
    unsafe { std::ptr::copy_nonoverlapping(value.cast(), word.as_mut_ptr(), length) };
    *place = u64::from_le_bytes(word);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetVersion() -> usize {
    VERSION
}

/// # Safety
/// `handle` must be null or valid for one pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtCreate(handle: *mut *mut Attributes) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { create(handle, &[]) }
}

/// # Safety
/// `handle` must come from [`cublasLtCreate`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtDestroy(handle: *mut Attributes) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { destroy(handle) }
}

/// # Safety
/// `descriptor` must be null or valid for one pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescCreate(
    descriptor: *mut *mut Attributes,
    compute_type: c_int,
    scale_type: c_int,
) -> c_int {
    let preset = [
        (
            operation::COMPUTE_TYPE,
            u64::from(compute_type.cast_unsigned()),
        ),
        (operation::SCALE_TYPE, u64::from(scale_type.cast_unsigned())),
    ];
    // SAFETY: promised by the caller.
    unsafe { create(descriptor, &preset) }
}

/// # Safety
/// `descriptor` must be alive or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescDestroy(descriptor: *mut Attributes) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { destroy(descriptor) }
}

/// # Safety
/// `descriptor` must be alive or null, `value` must hold `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    descriptor: *mut Attributes,
    name: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { set(descriptor, name, value, bytes) }
}

/// # Safety
/// `matrix` must be null or valid for one pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    matrix: *mut *mut Attributes,
    element: c_int,
    rows: u64,
    columns: u64,
    leading: i64,
) -> c_int {
    let preset = [
        (layout::TYPE, u64::from(element.cast_unsigned())),
        (layout::ROWS, rows),
        (layout::COLUMNS, columns),
        (layout::LEADING, leading.cast_unsigned()),
        (layout::BATCH, 1),
    ];
    // SAFETY: promised by the caller.
    unsafe { create(matrix, &preset) }
}

/// # Safety
/// `matrix` must be alive or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutDestroy(matrix: *mut Attributes) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { destroy(matrix) }
}

/// # Safety
/// `matrix` must be alive or null, `value` must hold `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutSetAttribute(
    matrix: *mut Attributes,
    name: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { set(matrix, name, value, bytes) }
}

/// # Safety
/// `preference` must be null or valid for one pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceCreate(preference: *mut *mut Attributes) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { create(preference, &[]) }
}

/// # Safety
/// `preference` must be alive or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceDestroy(preference: *mut Attributes) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { destroy(preference) }
}

/// # Safety
/// `preference` must be alive or null, `value` must hold `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    preference: *mut Attributes,
    name: c_int,
    value: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: promised by the caller.
    unsafe { set(preference, name, value, bytes) }
}

/// # Safety
/// The descriptors must be alive or null; `results` must have room for `wanted` results.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    _handle: *mut Attributes,
    descriptor: *const Attributes,
    a: *const Attributes,
    _b: *const Attributes,
    _c: *const Attributes,
    d: *const Attributes,
    preference: *const Attributes,
    wanted: c_int,
    results: *mut HeuristicResult,
    found: *mut c_int,
) -> c_int {
    // SAFETY: promised by the caller.
    let given = unsafe {
        (
            descriptor.as_ref(),
            a.as_ref(),
            d.as_ref(),
            preference.as_ref(),
        )
    };
    let (Some(descriptor), Some(a), Some(d), Some(preference)) = given else {
        return INVALID_VALUE;
    };
    if wanted < 1 || results.is_null() || found.is_null() {
        return INVALID_VALUE;
    }
    let is_transposed = |name: usize| descriptor.values[name] != 0;
    let transposed_a = is_transposed(operation::TRANSPOSE_A);
    let product = Product {
        element: Element::from_number(a.values[layout::TYPE]),
        result: Element::from_number(d.values[layout::TYPE]),
        transposition: Transposition::new(transposed_a, is_transposed(operation::TRANSPOSE_B)),
        m: d.values[layout::ROWS],
        n: d.values[layout::COLUMNS],
        k: a.values[if transposed_a {
            layout::ROWS
        } else {
            layout::COLUMNS
        }],
        batch: d.values[layout::BATCH],
    };
    let limit = preference.values[preference::MOST_WORKSPACE_BYTES];
    let result = HeuristicResult {
        algorithm: [0; 8],
        workspace_bytes: product_workspace::bytes(&product, limit) as usize,
        state: SUCCESS,
        waves: 1.0,
        reserved: [0; 4],
    };
    // SAFETY: neither is null, and there is room for at least one result.
    unsafe {
        results.write(result);
        found.write(1);
    }
    SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_laid_out_as_documented() {
        assert_eq!(std::mem::size_of::<HeuristicResult>(), 96);
    }

    #[test]
    fn the_product_is_read_from_the_descriptors() {
        let mut made = [std::ptr::null_mut(); 5];
        let mut found = 0;
        let mut results = std::mem::MaybeUninit::<[HeuristicResult; 8]>::uninit();
        // SAFETY: all places are valid, and everything made is destroyed once.
        let bytes = unsafe {
            let [descriptor, a, b, d, preference] = &mut made;
            assert_eq!(cublasLtMatmulDescCreate(descriptor, 77, 0), SUCCESS);
            assert_eq!(cublasLtMatrixLayoutCreate(a, 0, 784, 512, 784), SUCCESS);
            assert_eq!(cublasLtMatrixLayoutCreate(b, 0, 512, 128, 512), SUCCESS);
            assert_eq!(cublasLtMatrixLayoutCreate(d, 0, 784, 128, 784), SUCCESS);
            assert_eq!(cublasLtMatmulPreferenceCreate(preference), SUCCESS);
            let batch = 16i32;
            cublasLtMatrixLayoutSetAttribute(*d, 5, (&raw const batch).cast(), 4);
            let limit = 4u64 << 20;
            cublasLtMatmulPreferenceSetAttribute(*preference, 1, (&raw const limit).cast(), 8);
            let status = cublasLtMatmulAlgoGetHeuristic(
                std::ptr::null_mut(),
                *descriptor,
                *a,
                *b,
                *d,
                *d,
                *preference,
                8,
                results.as_mut_ptr().cast(),
                &raw mut found,
            );
            assert_eq!(status, SUCCESS);
            for one in made {
                destroy(one);
            }
            (*results.as_ptr().cast::<HeuristicResult>()).workspace_bytes
        };
        // Forward 16x512x28x28 -> 128, 1x1, single precision, on an H200.
        assert_eq!((found, bytes), (1, 144));
    }
}
