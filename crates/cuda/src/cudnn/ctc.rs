//! The CTC loss: its descriptor and its workspace.
//!
//! The sizes were recorded from cuDNN 9.19 on an H200 for 176 combinations of steps, batch, alphabet
//! and label length; the formulas reproduce all of them. Neither the algorithm nor computing gradients
//! makes a difference.

use std::ffi::c_void;
use std::sync::Mutex;

use super::objects::{Registry, descriptor_lifetime, read_array, write};
use super::{computed_in_workspace, status, tensors};
use crate::call_log;

/// What `cudnnCTCLossDescriptor_t` describes, as far as it changes a size.
#[derive(Clone, Copy, Default)]
struct CtcLoss {
    longest_label: i32,
}

static LOSSES: Registry<Mutex<CtcLoss>> = Registry::new();

descriptor_lifetime!(
    LOSSES,
    Mutex::new(CtcLoss::default()),
    cudnnCreateCTCLossDescriptor,
    cudnnDestroyCTCLossDescriptor
);

fn set_longest_label(handle: *mut c_void, longest_label: i32) -> i32 {
    let Some(found) = LOSSES.get(handle) else {
        return status::BAD_PARAM;
    };
    if let Ok(mut value) = found.lock() {
        value.longest_label = longest_label;
    }
    status::SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetCTCLossDescriptorEx(
    handle: *mut c_void,
    _compute_type: i32,
    _normalisation: i32,
    _gradient_mode: i32,
) -> i32 {
    set_longest_label(handle, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetCTCLossDescriptor_v8(
    handle: *mut c_void,
    _compute_type: i32,
    _normalisation: i32,
    _gradient_mode: i32,
    longest_label: i32,
) -> i32 {
    set_longest_label(handle, longest_label)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetCTCLossDescriptor_v9(
    handle: *mut c_void,
    _compute_type: i32,
    _normalisation: i32,
    _gradient_mode: i32,
    longest_label: i32,
) -> i32 {
    set_longest_label(handle, longest_label)
}

/// Labels on the host, whose lengths are an argument.
///
/// # Safety
/// `label_lengths` must hold one value per sequence of `probabilities`; `bytes` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetCTCLossWorkspaceSize(
    _handle: *mut c_void,
    probabilities: *mut c_void,
    _gradients: *mut c_void,
    _labels: *const i32,
    label_lengths: *const i32,
    _input_lengths: *const i32,
    _algorithm: i32,
    _loss: *mut c_void,
    bytes: *mut usize,
) -> i32 {
    let Some([steps, batch, alphabet]) = dimensions(probabilities) else {
        return status::BAD_PARAM;
    };
    // SAFETY: promised by the caller.
    let lengths = unsafe { read_array(label_lengths, batch as i32) };
    let label = lengths.iter().copied().max().unwrap_or(0).max(0) as u64;
    let size = common_bytes(steps, batch, alphabet, label) + 4 * batch * (3 * label + 5);
    call_log::call("cudnnGetCTCLossWorkspaceSize", || size.to_string());
    // SAFETY: promised by the caller.
    unsafe { write(bytes, size as usize) };
    status::SUCCESS
}

/// Labels on the card, whose greatest length is in the descriptor.
///
/// # Safety
/// `bytes` must be valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetCTCLossWorkspaceSize_v8(
    _handle: *mut c_void,
    _algorithm: i32,
    loss: *mut c_void,
    probabilities: *mut c_void,
    _gradients: *mut c_void,
    bytes: *mut usize,
) -> i32 {
    let (Some([steps, batch, alphabet]), Some(loss)) =
        (dimensions(probabilities), LOSSES.get(loss))
    else {
        return status::BAD_PARAM;
    };
    let label = loss.lock().map_or(0, |loss| loss.longest_label).max(0) as u64;
    let size = common_bytes(steps, batch, alphabet, label) + 4 * batch * (2 * label + 3);
    call_log::call("cudnnGetCTCLossWorkspaceSize_v8", || size.to_string());
    // SAFETY: promised by the caller.
    unsafe { write(bytes, size as usize) };
    status::SUCCESS
}

fn dimensions(probabilities: *mut c_void) -> Option<[u64; 3]> {
    let found = tensors::tensor(probabilities)?.dimensions;
    let [steps, batch, alphabet] = found.as_slice() else {
        return None;
    };
    Some([*steps as u64, *batch as u64, *alphabet as u64])
}

/// Forward and backward variables over the label with blanks, and the normalised probabilities.
fn common_bytes(steps: u64, batch: u64, alphabet: u64, label: u64) -> u64 {
    4 * batch * steps * (2 * (2 * label + 1) + alphabet)
}

computed_in_workspace! {
    cudnnCTCLoss(
        handle, x_layout, x, labels, label_lengths, input_lengths, costs, gradients_layout,
        gradients, algorithm, loss,
    );
    cudnnCTCLoss_v8(
        handle, algorithm, loss, x_layout, x, labels, label_lengths, input_lengths, costs,
        gradients_layout, gradients, workspace_bytes,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_are_those_of_an_h200() {
        // steps 50, batch 3, alphabet 28, labels of 20: 66,780 with labels on the host, 66,516 else.
        let common = common_bytes(50, 3, 28, 20);
        assert_eq!(common + 4 * 3 * (3 * 20 + 5), 66_780);
        assert_eq!(common + 4 * 3 * (2 * 20 + 3), 66_516);
    }
}
