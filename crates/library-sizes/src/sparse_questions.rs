//! What cuSPARSE is asked: how large is the buffer of this operation?

/// Calls `$define!` with every such function, as [`solver_questions`](crate::solver_questions) does;
/// an `object` is a descriptor, which is in the question in words.
#[macro_export]
macro_rules! sparse_questions {
    ($define:ident) => {
        $define! {
            "cuSPARSE";
            (
                skip handle: Object, key transpose: i32, skip alpha: Data, object a: Object,
                object x: Object, skip beta: Data, object y: Object, key compute_type: i32,
                key algorithm: i32, out bytes: *mut usize
            ) => cusparseSpMV_bufferSize;
            (
                skip handle: Object, key transpose_a: i32, key transpose_b: i32, skip alpha: Data,
                object a: Object, object b: Object, skip beta: Data, object c: Object,
                key compute_type: i32, key algorithm: i32, out bytes: *mut usize
            ) => cusparseSpMM_bufferSize, cusparseSDDMM_bufferSize;
            (
                skip handle: Object, key transpose: i32, skip alpha: Data, object a: Object,
                object x: Object, object y: Object, key compute_type: i32, key algorithm: i32,
                skip solver: Object, out bytes: *mut usize
            ) => cusparseSpSV_bufferSize;
            (
                skip handle: Object, key transpose_a: i32, key transpose_b: i32, skip alpha: Data,
                object a: Object, object b: Object, object c: Object, key compute_type: i32,
                key algorithm: i32, skip solver: Object, out bytes: *mut usize
            ) => cusparseSpSM_bufferSize;
            (
                skip handle: Object, key m: i32, key n: i32, key non_zeros: i32, skip rows: Data,
                skip columns: Data, out bytes: *mut usize
            ) => cusparseXcoosort_bufferSizeExt, cusparseXcsrsort_bufferSizeExt;
            (
                skip handle: Object, key direction: i32, key transpose: i32, key block_rows: i32,
                key blocks: i32, skip descriptor: Object, skip values: Data, skip offsets: Data,
                skip indices: Data, key block: i32, skip info: Object, out bytes: *mut i32
            ) => cusparseSbsrsv2_bufferSize, cusparseDbsrsv2_bufferSize,
                 cusparseCbsrsv2_bufferSize, cusparseZbsrsv2_bufferSize;
            (
                skip handle: Object, key direction: i32, key transpose_a: i32, key transpose_x: i32,
                key block_rows: i32, key n: i32, key blocks: i32, skip descriptor: Object,
                skip values: Data, skip offsets: Data, skip indices: Data, key block: i32,
                skip info: Object, out bytes: *mut i32
            ) => cusparseSbsrsm2_bufferSize, cusparseDbsrsm2_bufferSize,
                 cusparseCbsrsm2_bufferSize, cusparseZbsrsm2_bufferSize;
        }
    };
}
