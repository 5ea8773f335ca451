//! What cuSOLVER is asked: how large is the workspace of this factorisation?

/// Calls `$define!` with every such function. A parameter is `skip`ped (handles, addresses), is a
/// `key` on which the answer depends, or is where the answer (`out`) goes.
#[macro_export]
macro_rules! solver_questions {
    ($define:ident) => {
        $define! {
            "cuSOLVER";
            (
                skip handle: Object, key m: i32, key n: i32, skip a: Data, key lda: i32,
                out elements: *mut i32
            ) => cusolverDnSgeqrf_bufferSize, cusolverDnDgeqrf_bufferSize,
                 cusolverDnCgeqrf_bufferSize, cusolverDnZgeqrf_bufferSize,
                 cusolverDnSgetrf_bufferSize, cusolverDnDgetrf_bufferSize,
                 cusolverDnCgetrf_bufferSize, cusolverDnZgetrf_bufferSize;
            (
                skip handle: Object, skip parameters: Object, key m: i64, key n: i64,
                key a_type: i32, skip a: Data, key lda: i64, key tau_type: i32, skip tau: Data,
                key compute_type: i32, out device_bytes: *mut usize, out host_bytes: *mut usize
            ) => cusolverDnXgeqrf_bufferSize;
            (skip handle: Object, key m: i32, key n: i32, out elements: *mut i32)
                => cusolverDnSgesvd_bufferSize, cusolverDnDgesvd_bufferSize,
                   cusolverDnCgesvd_bufferSize, cusolverDnZgesvd_bufferSize;
            (
                skip handle: Object, key vectors: i32, key economic: i32, key m: i32, key n: i32,
                skip a: Data, key lda: i32, skip s: Data, skip u: Data, key ldu: i32, skip v: Data,
                key ldv: i32, out elements: *mut i32, skip parameters: Object
            ) => cusolverDnSgesvdj_bufferSize, cusolverDnDgesvdj_bufferSize,
                 cusolverDnCgesvdj_bufferSize, cusolverDnZgesvdj_bufferSize;
            (
                skip handle: Object, key vectors: i32, key m: i32, key n: i32, skip a: Data,
                key lda: i32, skip s: Data, skip u: Data, key ldu: i32, skip v: Data, key ldv: i32,
                out elements: *mut i32, skip parameters: Object, key batch: i32
            ) => cusolverDnSgesvdjBatched_bufferSize, cusolverDnDgesvdjBatched_bufferSize,
                 cusolverDnCgesvdjBatched_bufferSize, cusolverDnZgesvdjBatched_bufferSize;
            (
                skip handle: Object, key vectors: i32, key rank: i32, key m: i32, key n: i32,
                skip a: Data, key lda: i32, skip a_step: i64, skip s: Data, skip s_step: i64,
                skip u: Data, key ldu: i32, skip u_step: i64, skip v: Data, key ldv: i32,
                skip v_step: i64, out elements: *mut i32, key batch: i32
            ) => cusolverDnSgesvdaStridedBatched_bufferSize,
                 cusolverDnDgesvdaStridedBatched_bufferSize,
                 cusolverDnCgesvdaStridedBatched_bufferSize,
                 cusolverDnZgesvdaStridedBatched_bufferSize;
            (
                skip handle: Object, key triangle: i32, key n: i32, skip a: Data, key lda: i32,
                out elements: *mut i32
            ) => cusolverDnSpotrf_bufferSize, cusolverDnDpotrf_bufferSize,
                 cusolverDnCpotrf_bufferSize, cusolverDnZpotrf_bufferSize;
            (
                skip handle: Object, skip parameters: Object, key triangle: i32, key n: i64,
                key a_type: i32, skip a: Data, key lda: i64, key compute_type: i32,
                out device_bytes: *mut usize, out host_bytes: *mut usize
            ) => cusolverDnXpotrf_bufferSize;
            (skip handle: Object, key n: i32, skip a: Data, key lda: i32, out elements: *mut i32)
                => cusolverDnSsytrf_bufferSize, cusolverDnDsytrf_bufferSize,
                   cusolverDnCsytrf_bufferSize, cusolverDnZsytrf_bufferSize;
            (
                skip handle: Object, key triangle: i32, key n: i64, key right_sides: i64,
                key a_type: i32, skip a: Data, key lda: i64, skip pivots: Data, key b_type: i32,
                skip b: Data, key ldb: i64, out device_bytes: *mut usize,
                out host_bytes: *mut usize
            ) => cusolverDnXsytrs_bufferSize;
            (
                skip handle: Object, key m: i32, key n: i32, key k: i32, skip a: Data,
                key lda: i32, skip tau: Data, out elements: *mut i32
            ) => cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize,
                 cusolverDnCungqr_bufferSize, cusolverDnZungqr_bufferSize;
            (
                skip handle: Object, key side: i32, key transpose: i32, key m: i32, key n: i32,
                key k: i32, skip a: Data, key lda: i32, skip tau: Data, skip c: Data, key ldc: i32,
                out elements: *mut i32
            ) => cusolverDnSormqr_bufferSize, cusolverDnDormqr_bufferSize,
                 cusolverDnCunmqr_bufferSize, cusolverDnZunmqr_bufferSize;
            (
                skip handle: Object, key vectors: i32, key triangle: i32, key n: i32, skip a: Data,
                key lda: i32, skip w: Data, out elements: *mut i32
            ) => cusolverDnSsyevd_bufferSize, cusolverDnDsyevd_bufferSize,
                 cusolverDnCheevd_bufferSize, cusolverDnZheevd_bufferSize;
            (
                skip handle: Object, skip parameters: Object, key vectors: i32, key triangle: i32,
                key n: i64, key a_type: i32, skip a: Data, key lda: i64, key w_type: i32,
                skip w: Data, key compute_type: i32, out device_bytes: *mut usize,
                out host_bytes: *mut usize
            ) => cusolverDnXsyevd_bufferSize;
            (
                skip handle: Object, skip parameters: Object, key vectors: i32, key triangle: i32,
                key n: i64, key a_type: i32, skip a: Data, key lda: i64, key w_type: i32,
                skip w: Data, key compute_type: i32, out device_bytes: *mut usize,
                out host_bytes: *mut usize, key batch: i64
            ) => cusolverDnXsyevBatched_bufferSize;
            (
                skip handle: Object, key vectors: i32, key triangle: i32, key n: i32, skip a: Data,
                key lda: i32, skip w: Data, out elements: *mut i32, skip parameters: Object
            ) => cusolverDnSsyevj_bufferSize, cusolverDnDsyevj_bufferSize,
                 cusolverDnCheevj_bufferSize, cusolverDnZheevj_bufferSize;
            (
                skip handle: Object, key vectors: i32, key triangle: i32, key n: i32, skip a: Data,
                key lda: i32, skip w: Data, out elements: *mut i32, skip parameters: Object,
                key batch: i32
            ) => cusolverDnSsyevjBatched_bufferSize, cusolverDnDsyevjBatched_bufferSize,
                 cusolverDnCheevjBatched_bufferSize, cusolverDnZheevjBatched_bufferSize;
            (
                skip handle: Object, skip parameters: Object, key left: i32, key right: i32,
                key n: i64, key a_type: i32, skip a: Data, key lda: i64, key w_type: i32,
                skip w: Data, key vl_type: i32, skip vl: Data, key ldvl: i64, key vr_type: i32,
                skip vr: Data, key ldvr: i64, key compute_type: i32,
                out device_bytes: *mut usize, out host_bytes: *mut usize
            ) => cusolverDnXgeev_bufferSize;
        }
    };
}
