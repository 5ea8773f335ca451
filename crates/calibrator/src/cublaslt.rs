//! cuBLASLt: the workspaces of the algorithms that its heuristic proposes for a matrix product.
//!
//! PyTorch chooses the workspace of its products itself, whatever is proposed, so no peak depends on these lines.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use ghostgpu_library_sizes::descriptions::attributes;
use ghostgpu_library_sizes::{Answer, Question};

use crate::objects::Objects;
use crate::questions::{NOT_INITIALIZED, followed};
use crate::{real, real_function, recording};

type Object = *mut c_void;

static OBJECTS: Objects<BTreeMap<i32, Vec<u8>>> = Objects::new();

/// Attributes of an operation that hold addresses: bias, scales and auxiliary results.
const OPERATION_ADDRESSES: [i32; 9] = [8, 11, 16, 17, 18, 19, 20, 21, 22];

/// A heuristic result is 12 words of 64 bits; the ninth is the workspace.
const RESULT_WORDS: usize = 12;
const WORKSPACE_WORD: usize = 8;

fn number(value: u64, bytes: usize) -> Vec<u8> {
    value.to_le_bytes()[..bytes].to_vec()
}

/// # Safety
/// `target` holds the handle that the real library has just written.
unsafe fn made(target: *mut Object, preset: impl IntoIterator<Item = (i32, Vec<u8>)>) {
    if !target.is_null() {
        // SAFETY: promised by the caller.
        let handle = unsafe { target.read_unaligned() };
        OBJECTS.insert(handle, preset.into_iter().collect());
    }
}

/// # Safety
/// `value` points to `bytes` bytes, which the real library has just accepted.
unsafe fn set(object: Object, name: c_int, value: *const c_void, bytes: usize) {
    if value.is_null() {
        return;
    }
    // SAFETY: promised by the caller.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), bytes) }.to_vec();
    OBJECTS.change(object, |known| {
        known.insert(name, value);
    });
}

followed! {
    real::CUBLASLT;
    cublasLtMatmulDescCreate(target: *mut Object, compute_type: u32, scale_type: u32) {
        let preset = [(0, number(compute_type.into(), 4)), (1, number(scale_type.into(), 4))];
        // SAFETY: the real library has just written there.
        unsafe { made(target, preset) };
    }
    cublasLtMatmulDescSetAttribute(
        object: Object, name: c_int, value: *const c_void, bytes: usize
    ) {
        // SAFETY: the real library has accepted the value.
        unsafe { set(object, name, value, bytes) };
    }
    cublasLtMatmulDescDestroy(object: Object) {
        OBJECTS.remove(object);
    }
    cublasLtMatrixLayoutCreate(
        target: *mut Object, element: u32, rows: u64, columns: u64, leading: i64
    ) {
        let preset = [
            (0, number(element.into(), 4)),
            (2, number(rows, 8)),
            (3, number(columns, 8)),
            (4, number(leading.cast_unsigned(), 8)),
        ];
        // SAFETY: the real library has just written there.
        unsafe { made(target, preset) };
    }
    cublasLtMatrixLayoutSetAttribute(
        object: Object, name: c_int, value: *const c_void, bytes: usize
    ) {
        // SAFETY: the real library has accepted the value.
        unsafe { set(object, name, value, bytes) };
    }
    cublasLtMatrixLayoutDestroy(object: Object) {
        OBJECTS.remove(object);
    }
    cublasLtMatmulPreferenceCreate(target: *mut Object) {
        // SAFETY: the real library has just written there.
        unsafe { made(target, []) };
    }
    cublasLtMatmulPreferenceSetAttribute(
        object: Object, name: c_int, value: *const c_void, bytes: usize
    ) {
        // SAFETY: the real library has accepted the value.
        unsafe { set(object, name, value, bytes) };
    }
    cublasLtMatmulPreferenceDestroy(object: Object) {
        OBJECTS.remove(object);
    }
}

type GetHeuristic = unsafe extern "C" fn(
    Object,
    Object,
    Object,
    Object,
    Object,
    Object,
    Object,
    c_int,
    *mut u64,
    *mut c_int,
) -> c_int;

/// # Safety
/// As cuBLASLt's documentation says: there is room for `wanted` results.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    handle: Object,
    operation: Object,
    a: Object,
    b: Object,
    c: Object,
    d: Object,
    preference: Object,
    wanted: c_int,
    results: *mut u64,
    found: *mut c_int,
) -> c_int {
    let real = real_function!(real::CUBLASLT, cublasLtMatmulAlgoGetHeuristic, GetHeuristic);
    let Some(real) = real else {
        return NOT_INITIALIZED;
    };
    // SAFETY: passed on as it came.
    let status = unsafe {
        real(
            handle, operation, a, b, c, d, preference, wanted, results, found,
        )
    };
    if status != 0 || results.is_null() || found.is_null() {
        return status;
    }
    let words = |object, addresses: &[i32]| match OBJECTS.get(object) {
        Some(known) => attributes(&known, addresses),
        None => "unknown".to_owned(),
    };
    let mut question = Question::new("cublasLtMatmulAlgoGetHeuristic");
    question
        .add("operation", words(operation, &OPERATION_ADDRESSES))
        .add("a", words(a, &[]))
        .add("b", words(b, &[]))
        .add("c", words(c, &[]))
        .add("d", words(d, &[]))
        .add("preference", words(preference, &[]))
        .add("wanted", wanted);
    // SAFETY: the real library has written `found` results.
    let workspaces: Vec<String> = unsafe {
        let count = usize::try_from(found.read_unaligned()).unwrap_or(0);
        (0..count)
            .map(|index| results.add(index * RESULT_WORDS + WORKSPACE_WORD))
            .map(|place| place.read_unaligned().to_string())
            .collect()
    };
    let mut answer = Answer::default();
    answer.add("workspace_bytes", workspaces.join(","));
    recording::record(question, answer);
    status
}
