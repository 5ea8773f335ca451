//! cuSPARSELt (products with 2:4 sparse matrices): structures are accepted, but how large the
//! compressed matrix and the workspace are is refused, and nothing works without.
//!
//! Declarations written from NVIDIA's public documentation "cuSPARSELt", release 0.8. Its structures
//! belong to the caller and are opaque to it; we leave them as they are.

use crate::{harmless, refused};

const NOT_SUPPORTED: i32 = 10;

harmless! {
    cusparseLtInit, cusparseLtDenseDescriptorInit, cusparseLtStructuredDescriptorInit,
    cusparseLtMatDescriptorDestroy, cusparseLtMatmulDescriptorInit, cusparseLtMatmulDescSetAttribute,
    cusparseLtMatmulAlgSelectionInit, cusparseLtMatmulAlgSetAttribute, cusparseLtMatmulPlanInit,
    cusparseLtMatmulPlanDestroy,
}

refused! {
    "cuSPARSELt", NOT_SUPPORTED;
    cusparseLtSpMMACompressedSize2, cusparseLtSpMMACompress2, cusparseLtMatmulGetWorkspace,
    cusparseLtMatmulAlgGetAttribute, cusparseLtMatmulSearch, cusparseLtMatmul,
}
