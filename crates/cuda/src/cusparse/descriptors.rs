//! Descriptors of matrices and vectors: they know what they were made with, since sizes of buffers
//! depend on it.

use std::ffi::{c_int, c_void};

use ghostgpu_library_sizes::descriptions::{DenseMatrix, SparseFormat, SparseMatrix, dense_vector};

use super::{Data, INVALID_VALUE, Object, SUCCESS};
use crate::handles::Handles;
use crate::{log_call, write_out};

enum Described {
    Sparse(SparseMatrix),
    Dense(DenseMatrix),
    Vector(String),
}

static OBJECTS: Handles<Described> = Handles::starting_at(0x5BA5_0000);

/// A descriptor as it stands in a question about it.
pub fn words(object: Object) -> String {
    let words = OBJECTS.with(object as usize, |described| match described {
        Described::Sparse(matrix) => matrix.words(),
        Described::Dense(matrix) => matrix.words(),
        Described::Vector(words) => words.clone(),
    });
    words.unwrap_or_else(|| "unknown".to_owned())
}

/// # Safety
/// `target` points to writable memory for a handle, or is null.
unsafe fn create(target: *mut Object, described: Described) -> i32 {
    if target.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: promised by the caller.
    unsafe { write_out(target, OBJECTS.insert(described) as Object) };
    SUCCESS
}

fn destroy(object: Object) -> i32 {
    match OBJECTS.remove(object as usize) {
        Some(_) => SUCCESS,
        None => INVALID_VALUE,
    }
}

/// # Safety
/// `matrix` points to writable memory for a handle, or is null.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseCreateCsr(
    matrix: *mut Object,
    rows: i64,
    columns: i64,
    non_zeros: i64,
    offsets: Data,
    indices: Data,
    values: Data,
    offset_type: c_int,
    index_type: c_int,
    base: c_int,
    element: c_int,
) -> i32 {
    log_call!(
        cusparseCreateCsr,
        matrix,
        rows,
        columns,
        non_zeros,
        offsets,
        indices,
        values,
        offset_type,
        index_type,
        base,
        element,
    );
    let sizes = [rows, columns, non_zeros];
    let made = SparseMatrix::new(SparseFormat::CompressedRows, sizes, index_type, element);
    // SAFETY: promised by the caller.
    unsafe { create(matrix, Described::Sparse(made)) }
}

/// # Safety
/// `matrix` points to writable memory for a handle, or is null.
#[allow(clippy::too_many_arguments)] // NVIDIA's interface, not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseCreateCoo(
    matrix: *mut Object,
    rows: i64,
    columns: i64,
    non_zeros: i64,
    row_indices: Data,
    column_indices: Data,
    values: Data,
    index_type: c_int,
    base: c_int,
    element: c_int,
) -> i32 {
    log_call!(
        cusparseCreateCoo,
        matrix,
        rows,
        columns,
        non_zeros,
        row_indices,
        column_indices,
        values,
        index_type,
        base,
        element,
    );
    let sizes = [rows, columns, non_zeros];
    let made = SparseMatrix::new(SparseFormat::Coordinates, sizes, index_type, element);
    // SAFETY: promised by the caller.
    unsafe { create(matrix, Described::Sparse(made)) }
}

/// # Safety
/// `matrix` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseCreateDnMat(
    matrix: *mut Object,
    rows: i64,
    columns: i64,
    leading: i64,
    values: Data,
    element: c_int,
    order: c_int,
) -> i32 {
    log_call!(
        cusparseCreateDnMat,
        matrix,
        rows,
        columns,
        leading,
        values,
        element,
        order,
    );
    let made = DenseMatrix {
        rows,
        columns,
        leading,
        element,
        order,
        batch: 1,
    };
    // SAFETY: promised by the caller.
    unsafe { create(matrix, Described::Dense(made)) }
}

/// # Safety
/// `vector` points to writable memory for a handle, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseCreateDnVec(
    vector: *mut Object,
    length: i64,
    values: Data,
    element: c_int,
) -> i32 {
    log_call!(cusparseCreateDnVec, vector, length, values, element);
    // SAFETY: promised by the caller.
    unsafe { create(vector, Described::Vector(dense_vector(length, element))) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cusparseDestroySpMat(matrix: Object) -> i32 {
    log_call!(cusparseDestroySpMat, matrix);
    destroy(matrix)
}

#[unsafe(no_mangle)]
pub extern "C" fn cusparseDestroyDnMat(matrix: Object) -> i32 {
    log_call!(cusparseDestroyDnMat, matrix);
    destroy(matrix)
}

#[unsafe(no_mangle)]
pub extern "C" fn cusparseDestroyDnVec(vector: Object) -> i32 {
    log_call!(cusparseDestroyDnVec, vector);
    destroy(vector)
}

#[unsafe(no_mangle)]
pub extern "C" fn cusparseCsrSetStridedBatch(
    matrix: Object,
    batch: c_int,
    offset_step: i64,
    value_step: i64,
) -> i32 {
    log_call!(
        cusparseCsrSetStridedBatch,
        matrix,
        batch,
        offset_step,
        value_step
    );
    set_batch(matrix, batch)
}

#[unsafe(no_mangle)]
pub extern "C" fn cusparseDnMatSetStridedBatch(matrix: Object, batch: c_int, step: i64) -> i32 {
    log_call!(cusparseDnMatSetStridedBatch, matrix, batch, step);
    set_batch(matrix, batch)
}

fn set_batch(matrix: *mut c_void, batch: c_int) -> i32 {
    let place = |described: &mut Described| match described {
        Described::Sparse(matrix) => {
            matrix.batch = batch;
            true
        }
        Described::Dense(matrix) => {
            matrix.batch = batch;
            true
        }
        Described::Vector(_) => false,
    };
    match OBJECTS.with(matrix as usize, place) {
        Some(true) => SUCCESS,
        _ => INVALID_VALUE,
    }
}

/// The shape that the matrix was made with. Only products of sparse matrices change the number of
/// non-zeros afterwards, and those are refused.
///
/// # Safety
/// The last three point to writable integers or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cusparseSpMatGetSize(
    matrix: Object,
    rows: *mut i64,
    columns: *mut i64,
    non_zeros: *mut i64,
) -> i32 {
    log_call!(cusparseSpMatGetSize, matrix, rows, columns, non_zeros);
    let shape = OBJECTS.with(matrix as usize, |described| match described {
        Described::Sparse(matrix) => Some([matrix.rows, matrix.columns, matrix.non_zeros]),
        _ => None,
    });
    let Some(shape) = shape.flatten() else {
        return INVALID_VALUE;
    };
    // SAFETY: promised by the caller.
    unsafe {
        write_out(rows, shape[0]);
        write_out(columns, shape[1]);
        write_out(non_zeros, shape[2]);
    }
    SUCCESS
}
