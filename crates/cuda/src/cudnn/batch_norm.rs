//! Batch normalisation: how much workspace and reserve it takes.
//!
//! Sizes were recorded from cuDNN 9.19 on an H200 for 84 shapes, three data types and both layouts. Only
//! the persistent mode with channels last takes any workspace; no mode takes a reserve.

use std::ffi::c_void;

use super::objects::write;
use super::tensors::{self, Tensor};
use super::{computed, computed_in_workspace, data_type, status};
use crate::{call_log, notes};

/// `CUDNN_BATCHNORM_SPATIAL_PERSISTENT`
const PERSISTENT: i32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Forward,
    Backward,
}

/// # Safety
/// `bytes` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    _handle: *mut c_void,
    mode: i32,
    _operations: i32,
    x: *mut c_void,
    _z: *mut c_void,
    _y: *mut c_void,
    _scale: *mut c_void,
    _activation: *mut c_void,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: promised by the caller.
    unsafe { answer(mode, x, Pass::Forward, bytes) }
}

/// # Safety
/// `bytes` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    _handle: *mut c_void,
    mode: i32,
    _operations: i32,
    x: *mut c_void,
    _y: *mut c_void,
    _dy: *mut c_void,
    _dz: *mut c_void,
    _dx: *mut c_void,
    _scale: *mut c_void,
    _activation: *mut c_void,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: promised by the caller.
    unsafe { answer(mode, x, Pass::Backward, bytes) }
}

/// # Safety
/// `bytes` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    _handle: *mut c_void,
    _mode: i32,
    operations: i32,
    _activation: *mut c_void,
    _x: *mut c_void,
    bytes: *mut usize,
) -> i32 {
    if operations != 0 {
        // Fused activations keep a bit mask; PyTorch never asks for them.
        return status::NOT_SUPPORTED;
    }
    // SAFETY: promised by the caller.
    if unsafe { write(bytes, 0) } {
        status::SUCCESS
    } else {
        status::BAD_PARAM_NULL_POINTER
    }
}

/// # Safety
/// `bytes` must be null or valid.
unsafe fn answer(mode: i32, x: *mut c_void, pass: Pass, bytes: *mut usize) -> i32 {
    let Some(x) = tensors::tensor(x) else {
        return status::BAD_PARAM;
    };
    let size = if mode == PERSISTENT && has_channels_last(&x) {
        persistent_bytes(&x, pass)
    } else {
        0
    };
    call_log::call("batch normalisation workspace", || format!("{x:?}: {size}"));
    // SAFETY: promised by the caller.
    if unsafe { write(bytes, size as usize) } {
        status::SUCCESS
    } else {
        status::BAD_PARAM_NULL_POINTER
    }
}

fn has_channels_last(x: &Tensor) -> bool {
    x.strides.get(1) == Some(&1) && x.dimensions.get(1).is_some_and(|&channels| channels > 1)
}

/// A pair of partial sums for each block of pixels and each group of channels, and flags.
fn persistent_bytes(x: &Tensor, pass: Pass) -> u64 {
    let channels = x.dimensions.get(1).copied().unwrap_or(0).max(0) as u64;
    let spatial = x.dimensions.iter().skip(2);
    let pixels: u64 = x
        .dimensions
        .first()
        .into_iter()
        .chain(spatial)
        .map(|&size| size as u64)
        .product();
    let is_wide = channels.is_multiple_of(4);
    if !is_wide && channels > MEASURED_ODD_CHANNELS {
        notes::assume(
            "batch normalisation with the channels last and their number not a multiple of 4 was \
             measured for 3 channels only; its workspace of a few KiB is taken from there",
        );
    }
    let (group, blocks_together) = if is_wide { (64, 1) } else { (4, 4) };
    let groups = channels.div_ceil(group);
    let pixels_per_block = match (pass, x.data_type) {
        (Pass::Backward, _) => 96,
        (Pass::Forward, data_type::FLOAT | data_type::DOUBLE) => 64,
        (Pass::Forward, _) => 160,
    };
    let blocks = groups * pixels.div_ceil(pixels_per_block * blocks_together);
    let sums = 2 * 4 * group;
    match pass {
        Pass::Forward => (sums + 4) * blocks + 1072 + 4 * groups,
        Pass::Backward => sums * blocks + 1056 + 4 * groups,
    }
}

const MEASURED_ODD_CHANNELS: u64 = 3;

computed!(cudnnBatchNormalizationForwardInference);

computed_in_workspace! {
    cudnnBatchNormalizationForwardTrainingEx(
        handle, mode, operations, alpha, beta, x_layout, x, z_layout, z, y_layout, y,
        statistics_layout, scale, bias, running_mean, running_variance, saved_mean, saved_deviation,
        activation,
    );
    cudnnBatchNormalizationBackwardEx(
        handle, mode, operations, alpha_data, beta_data, alpha_parameters, beta_parameters,
        x_layout, x, y_layout, y, dy_layout, dy, dz_layout, dz, dx_layout, dx, statistics_layout,
        scale, bias, scale_gradient, bias_gradient, saved_mean, saved_deviation, activation,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data_type: i32, dimensions: [i32; 4], forward: u64, backward: u64) {
        let [_, channels, height, width] = dimensions;
        let x = Tensor {
            data_type,
            dimensions: dimensions.to_vec(),
            strides: vec![channels * height * width, 1, channels * width, channels],
        };
        assert!(has_channels_last(&x));
        assert_eq!(
            persistent_bytes(&x, Pass::Forward),
            forward,
            "{dimensions:?} forward"
        );
        assert_eq!(
            persistent_bytes(&x, Pass::Backward),
            backward,
            "{dimensions:?} backward"
        );
    }

    #[test]
    fn the_sizes_are_those_of_an_h200() {
        check(data_type::HALF, [1, 64, 112, 112], 41_840, 68_132);
        check(data_type::HALF, [2, 100, 13, 13], 4_176, 5_160);
        check(data_type::HALF, [2, 1024, 14, 14], 25_904, 42_080);
        check(data_type::HALF, [1, 3, 32, 32], 1_148, 1_156);
        check(data_type::HALF, [16, 3, 32, 32], 2_012, 2_436);
        check(data_type::BFLOAT16, [2, 24, 56, 56], 21_716, 34_852);
    }

    #[test]
    fn single_precision_sums_fewer_pixels_at_a_time() {
        check(data_type::FLOAT, [1, 1024, 14, 14], 34_160, 25_696);
    }
}
