//! cuSPARSE: what descriptors describe, and how large the buffers of operations on them are.

use std::ffi::{c_int, c_void};

use ghostgpu_library_sizes::descriptions::{DenseMatrix, SparseFormat, SparseMatrix, dense_vector};

use crate::objects::Objects;
use crate::questions::{followed, recorded};
use crate::real;

type Object = *mut c_void;
type Data = *const c_void;

#[derive(Clone)]
enum Described {
    Sparse(SparseMatrix),
    Dense(DenseMatrix),
    Vector(String),
}

static OBJECTS: Objects<Described> = Objects::new();

fn words(_parameter: &str, handle: Object) -> String {
    match OBJECTS.get(handle) {
        Some(Described::Sparse(matrix)) => matrix.words(),
        Some(Described::Dense(matrix)) => matrix.words(),
        Some(Described::Vector(words)) => words,
        None => "unknown".to_owned(),
    }
}

macro_rules! define {
    ($library:literal; $($rest:tt)+) => {
        recorded! { real::CUSPARSE, words; $($rest)+ }
    };
}

ghostgpu_library_sizes::sparse_questions!(define);

/// Remembers what was made.
///
/// # Safety
/// `target` holds the handle that the real library has just written.
unsafe fn made(target: *mut Object, described: Described) {
    if !target.is_null() {
        // SAFETY: promised by the caller.
        OBJECTS.insert(unsafe { target.read_unaligned() }, described);
    }
}

followed! {
    real::CUSPARSE;
    cusparseCreateCsr(
        target: *mut Object, rows: i64, columns: i64, non_zeros: i64, offsets: Data,
        indices: Data, values: Data, offset_type: c_int, index_type: c_int, base: c_int,
        element: c_int
    ) {
        let sizes = [rows, columns, non_zeros];
        let matrix = SparseMatrix::new(SparseFormat::CompressedRows, sizes, index_type, element);
        // SAFETY: the real library has just written there.
        unsafe { made(target, Described::Sparse(matrix)) };
    }
    cusparseCreateCoo(
        target: *mut Object, rows: i64, columns: i64, non_zeros: i64, row_indices: Data,
        column_indices: Data, values: Data, index_type: c_int, base: c_int, element: c_int
    ) {
        let sizes = [rows, columns, non_zeros];
        let matrix = SparseMatrix::new(SparseFormat::Coordinates, sizes, index_type, element);
        // SAFETY: the real library has just written there.
        unsafe { made(target, Described::Sparse(matrix)) };
    }
    cusparseCreateDnMat(
        target: *mut Object, rows: i64, columns: i64, leading: i64, values: Data, element: c_int,
        order: c_int
    ) {
        let matrix = DenseMatrix { rows, columns, leading, element, order, batch: 1 };
        // SAFETY: the real library has just written there.
        unsafe { made(target, Described::Dense(matrix)) };
    }
    cusparseCreateDnVec(target: *mut Object, length: i64, values: Data, element: c_int) {
        // SAFETY: the real library has just written there.
        unsafe { made(target, Described::Vector(dense_vector(length, element))) };
    }
    cusparseCsrSetStridedBatch(matrix: Object, batch: c_int, offset_step: i64, value_step: i64) {
        OBJECTS.change(matrix, |one| {
            if let Described::Sparse(matrix) = one {
                matrix.batch = batch;
            }
        });
    }
    cusparseDnMatSetStridedBatch(matrix: Object, batch: c_int, step: i64) {
        OBJECTS.change(matrix, |one| {
            if let Described::Dense(matrix) = one {
                matrix.batch = batch;
            }
        });
    }
    cusparseDestroySpMat(object: Object) {
        OBJECTS.remove(object);
    }
    cusparseDestroyDnMat(object: Object) {
        OBJECTS.remove(object);
    }
    cusparseDestroyDnVec(object: Object) {
        OBJECTS.remove(object);
    }
}
