//! Descriptors of operations, matrix layouts and preferences: bags of numbered attributes.

use std::ffi::{c_int, c_void};

use super::Descriptor;
use crate::cublas::status;
use crate::handles::Handles;
use crate::work::Product;
use crate::{log_call, refuse, write_out};

/// The attributes that were set: a list, because there are few, and every product makes new ones.
type Attributes = Vec<(c_int, Bytes)>;

/// An attribute's value as the bytes that the caller gave.
#[derive(Clone)]
enum Bytes {
    /// A number or a pointer, which nearly all of them are.
    Short {
        length: usize,
        bytes: [u8; 8],
    },
    Long(Box<[u8]>),
}

impl Bytes {
    fn new(given: &[u8]) -> Self {
        let mut bytes = [0; 8];
        match bytes.get_mut(..given.len()) {
            Some(start) => {
                start.copy_from_slice(given);
                Self::Short {
                    length: given.len(),
                    bytes,
                }
            }
            None => Self::Long(given.into()),
        }
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..*length],
            Self::Long(bytes) => bytes,
        }
    }
}

static DESCRIPTORS: Handles<Attributes> = Handles::starting_at(0xB1A5_2000_0000);

/// No attribute of cuBLASLt is larger than a few words; a larger size is a caller's mistake.
const LARGEST_ATTRIBUTE_BYTES: usize = 4096;

/// # Safety
/// `descriptor` points to writable memory for one descriptor, or is null.
unsafe fn create(descriptor: *mut Descriptor, attributes: Attributes) -> i32 {
    if descriptor.is_null() {
        return status::INVALID_VALUE;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(descriptor, DESCRIPTORS.insert(attributes) as Descriptor) };
    status::SUCCESS
}

/// # Safety
/// `value` points to `bytes` readable bytes, or is null.
unsafe fn set(descriptor: Descriptor, attribute: c_int, value: *const c_void, bytes: usize) -> i32 {
    if value.is_null() || bytes > LARGEST_ATTRIBUTE_BYTES {
        return status::INVALID_VALUE;
    }
    // SAFETY: promised by the caller.
    let value = Bytes::new(unsafe { std::slice::from_raw_parts(value.cast::<u8>(), bytes) });
    match DESCRIPTORS.with(descriptor as usize, |attributes| {
        match attributes.iter_mut().find(|(name, _)| *name == attribute) {
            Some((_, before)) => *before = value,
            None => attributes.push((attribute, value)),
        }
    }) {
        Some(_) => status::SUCCESS,
        None => status::INVALID_VALUE,
    }
}

/// Returns what was set. Attributes that were not set are refused: not all defaults are documented.
///
/// # Safety
/// `value` points to `bytes` writable bytes or is null; `written` to a writable integer or is null.
unsafe fn get(
    function: &str,
    descriptor: Descriptor,
    attribute: c_int,
    (value, bytes): (*mut c_void, usize),
    written: *mut usize,
) -> i32 {
    let stored = DESCRIPTORS.with(descriptor as usize, |all| {
        let found = all.iter().find(|(name, _)| *name == attribute);
        found.map(|(_, value)| value.clone())
    });
    let Some(stored) = stored else {
        return status::INVALID_VALUE;
    };
    let Some(stored) = stored.as_ref().map(Bytes::as_slice) else {
        refuse::refuse("cuBLASLt", function);
        return status::NOT_SUPPORTED;
    };
    // SAFETY: promised by the caller.
    unsafe { write_out(written, stored.len()) };
    // The documented way to ask for the size alone is a buffer of no bytes.
    if bytes == 0 {
        return status::SUCCESS;
    }
    if value.is_null() || bytes < stored.len() {
        return status::INVALID_VALUE;
    }
    // SAFETY: promised by the caller, and the buffer is long enough.
    unsafe { std::ptr::copy_nonoverlapping(stored.as_ptr(), value.cast::<u8>(), stored.len()) };
    status::SUCCESS
}

/// A number that was set, or 0, which is the default of the attributes read here.
fn number_of(descriptor: Descriptor, attribute: c_int) -> u64 {
    let stored = DESCRIPTORS.with(descriptor as usize, |all| {
        let found = all.iter().find(|(name, _)| *name == attribute);
        found.map(|(_, value)| value.clone())
    });
    match stored.flatten() {
        Some(Bytes::Short { bytes, .. }) => u64::from_le_bytes(bytes),
        _ => 0,
    }
}

/// The product that an operation and the layouts of its matrices describe.
pub fn product(operation: Descriptor, a: Descriptor, b: Descriptor, d: Descriptor) -> Product {
    const COMPUTE_TYPE: c_int = 0;
    const TRANSPOSE_A: c_int = 3;
    const TYPE: c_int = 0;
    const ROWS: c_int = 2;
    const COLUMNS: c_int = 3;
    const LEADING: c_int = 4;
    const BATCH: c_int = 5;
    let number = |descriptor, attribute| {
        c_int::try_from(number_of(descriptor, attribute)).unwrap_or(c_int::MAX)
    };
    let is_transposed = number_of(operation, TRANSPOSE_A) != 0;
    Product {
        m: number(d, ROWS),
        n: number(d, COLUMNS),
        k: number(a, if is_transposed { ROWS } else { COLUMNS }),
        batch: number(d, BATCH).max(1),
        data_type: number(a, TYPE),
        compute_type: number(operation, COMPUTE_TYPE),
        math_mode: 0,
        leading: [a, b, d].map(|layout| number(layout, LEADING)),
    }
}

fn number(attribute: c_int, value: impl Into<u64>, bytes: usize) -> (c_int, Bytes) {
    (attribute, Bytes::new(&value.into().to_le_bytes()[..bytes]))
}

/// # Safety
/// `descriptor` points to writable memory for one descriptor, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescCreate(
    descriptor: *mut Descriptor,
    compute_type: u32,
    scale_type: u32,
) -> i32 {
    log_call!(
        cublasLtMatmulDescCreate,
        descriptor,
        compute_type,
        scale_type
    );
    let attributes = [number(0, compute_type, 4), number(1, scale_type, 4)];
    // SAFETY: promised by the caller.
    unsafe { create(descriptor, attributes.into()) }
}

/// # Safety
/// `layout` points to writable memory for one descriptor, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    layout: *mut Descriptor,
    data_type: u32,
    rows: u64,
    columns: u64,
    leading_dimension: i64,
) -> i32 {
    log_call!(
        cublasLtMatrixLayoutCreate,
        layout,
        data_type,
        rows,
        columns,
        leading_dimension,
    );
    let attributes = [
        number(0, data_type, 4),
        number(2, rows, 8),
        number(3, columns, 8),
        number(4, leading_dimension.cast_unsigned(), 8),
    ];
    // SAFETY: promised by the caller.
    unsafe { create(layout, attributes.into()) }
}

/// # Safety
/// `preference` points to writable memory for one descriptor, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceCreate(preference: *mut Descriptor) -> i32 {
    log_call!(cublasLtMatmulPreferenceCreate, preference);
    // SAFETY: promised by the caller.
    unsafe { create(preference, Attributes::new()) }
}

/// The three functions that every kind of descriptor has besides its constructor.
macro_rules! descriptor_kind {
    ($($destroy:ident, $set:ident, $get:ident;)+) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $destroy(descriptor: Descriptor) -> i32 {
                log_call!($destroy, descriptor);
                match DESCRIPTORS.remove(descriptor as usize) {
                    Some(_) => status::SUCCESS,
                    None => status::INVALID_VALUE,
                }
            }

            /// # Safety
            /// `value` points to `bytes` readable bytes, or is null.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $set(
                descriptor: Descriptor, attribute: c_int, value: *const c_void, bytes: usize,
            ) -> i32 {
                log_call!($set, descriptor, attribute, value, bytes);
                // SAFETY: promised by the caller.
                unsafe { set(descriptor, attribute, value, bytes) }
            }

            /// # Safety
            /// `value` points to `bytes` writable bytes, `written` to an integer, or they are null.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $get(
                descriptor: Descriptor, attribute: c_int, value: *mut c_void, bytes: usize,
                written: *mut usize,
            ) -> i32 {
                log_call!($get, descriptor, attribute, value, bytes, written);
                // SAFETY: promised by the caller.
                unsafe { get(stringify!($get), descriptor, attribute, (value, bytes), written) }
            }
        )+
    };
}

descriptor_kind! {
    cublasLtMatmulDescDestroy, cublasLtMatmulDescSetAttribute, cublasLtMatmulDescGetAttribute;
    cublasLtMatrixLayoutDestroy, cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayoutGetAttribute;
    cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreferenceSetAttribute,
        cublasLtMatmulPreferenceGetAttribute;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_gives_back_what_it_was_made_of_and_what_was_set() {
        let mut layout: Descriptor = std::ptr::null_mut();
        let batch = 12_i32;
        let mut rows = 0_u64;
        let mut read = 0_i32;
        let mut written = 0_usize;
        // SAFETY: every pointer is to a local of the right size.
        unsafe {
            assert_eq!(
                cublasLtMatrixLayoutCreate(&raw mut layout, 0, 768, 64, 768),
                0
            );
            assert_eq!(
                cublasLtMatrixLayoutSetAttribute(layout, 5, (&raw const batch).cast(), 4),
                0
            );
            assert_eq!(
                cublasLtMatrixLayoutGetAttribute(
                    layout,
                    2,
                    (&raw mut rows).cast(),
                    8,
                    &raw mut written
                ),
                0
            );
            assert_eq!(
                cublasLtMatrixLayoutGetAttribute(
                    layout,
                    5,
                    (&raw mut read).cast(),
                    4,
                    std::ptr::null_mut()
                ),
                0
            );
        }
        assert_eq!((rows, written, read), (768, 8, 12));
        assert_eq!(cublasLtMatrixLayoutDestroy(layout), 0);
        assert_eq!(cublasLtMatrixLayoutDestroy(layout), status::INVALID_VALUE);
    }
}
