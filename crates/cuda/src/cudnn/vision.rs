//! Pooling and spatial transformers: descriptors that change no size, and work with no workspace.

use std::ffi::c_void;

use super::objects::{Registry, descriptor_lifetime};
use super::{computed, status};

static POOLINGS: Registry<()> = Registry::new();
static SPATIAL_TRANSFORMERS: Registry<()> = Registry::new();

descriptor_lifetime!(
    POOLINGS,
    (),
    cudnnCreatePoolingDescriptor,
    cudnnDestroyPoolingDescriptor
);
descriptor_lifetime!(
    SPATIAL_TRANSFORMERS,
    (),
    cudnnCreateSpatialTransformerDescriptor,
    cudnnDestroySpatialTransformerDescriptor
);

/// Its other parameters decide values, not sizes, and are left out of the declaration.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetPooling2dDescriptor(handle: *mut c_void) -> i32 {
    match POOLINGS.get(handle) {
        Some(_) => status::SUCCESS,
        None => status::BAD_PARAM,
    }
}

/// Its other parameters decide values, not sizes, and are left out of the declaration.
#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetSpatialTransformerNdDescriptor(handle: *mut c_void) -> i32 {
    match SPATIAL_TRANSFORMERS.get(handle) {
        Some(_) => status::SUCCESS,
        None => status::BAD_PARAM,
    }
}

computed!(
    cudnnPoolingForward,
    cudnnSpatialTfGridGeneratorForward,
    cudnnSpatialTfGridGeneratorBackward,
    cudnnSpatialTfSamplerForward,
    cudnnSpatialTfSamplerBackward,
);
