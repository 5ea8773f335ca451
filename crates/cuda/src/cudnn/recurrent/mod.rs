//! Recurrent networks: descriptors, where the weights are, and how much memory a pass takes.

mod network;
mod recorded;
mod space;
mod weights;

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use ghostgpu_library_sizes::deep;
use network::{Cell, Network};

use super::objects::{Registry, descriptor_lifetime, read_array, write};
use super::tensors::{self, Tensor};
use super::{computed_in_workspace, dropout, status};
use crate::{call_log, notes};

/// What `cudnnRNNDataDescriptor_t` describes, as far as it changes a size.
#[derive(Clone, Debug, Default)]
struct Sequences {
    longest: u64,
    batch: u64,
    /// Time steps over all sequences of the batch, when padding is left out.
    total_steps: u64,
    /// As it stands in a recorded table.
    words: String,
}

/// What an RNN descriptor was set to.
#[derive(Clone, Debug)]
struct Described {
    network: Network,
    /// As it stands in a recorded table.
    words: String,
}

static NETWORKS: Registry<Mutex<Option<Described>>> = Registry::new();
static SEQUENCES: Registry<Mutex<Sequences>> = Registry::new();

descriptor_lifetime!(
    NETWORKS,
    Mutex::new(None),
    cudnnCreateRNNDescriptor,
    cudnnDestroyRNNDescriptor
);
descriptor_lifetime!(
    SEQUENCES,
    Mutex::new(Sequences::default()),
    cudnnCreateRNNDataDescriptor,
    cudnnDestroyRNNDataDescriptor
);

fn described(handle: *mut c_void) -> Option<Described> {
    let found = NETWORKS.get(handle)?;
    found.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn network(handle: *mut c_void) -> Option<Network> {
    described(handle).map(|described| described.network)
}

fn sequences(handle: *mut c_void) -> Option<Sequences> {
    let found = SEQUENCES.get(handle)?;
    Some(found.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// `CUDNN_RNN_PADDED_IO_ENABLED`
const PADDED_IO: u32 = 1;
/// `CUDNN_RNN_DOUBLE_BIAS`, the only mode PyTorch uses.
const DOUBLE_BIAS: i32 = 2;

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetRNNDescriptor_v8(
    handle: *mut c_void,
    algorithm: i32,
    cell: i32,
    bias: i32,
    direction: i32,
    input_mode: i32,
    data_type: i32,
    math_precision: i32,
    math_type: i32,
    input: i32,
    hidden: i32,
    projection: i32,
    layers: i32,
    dropout_handle: *mut c_void,
    flags: u32,
) -> i32 {
    let Some(found) = NETWORKS.get(handle) else {
        return status::BAD_PARAM;
    };
    let has_dropout = dropout::probability(dropout_handle) > 0.0;
    let words = deep::Network {
        algorithm,
        cell,
        bias,
        direction,
        input_mode,
        data_type,
        math_precision,
        math_type,
        input,
        hidden,
        projection,
        layers,
        flags,
        has_dropout,
    }
    .words();
    let Some(cell) = Cell::from_number(cell) else {
        return status::BAD_PARAM;
    };
    if bias != DOUBLE_BIAS || input_mode != 0 {
        crate::refuse::refuse(
            "cuDNN",
            "cudnnSetRNNDescriptor_v8 (other bias or input mode)",
        );
        return status::NOT_SUPPORTED;
    }
    let sizes = [input, hidden, projection, layers].map(u64::try_from);
    let [Ok(input), Ok(hidden), Ok(projection), Ok(layers)] = sizes else {
        return status::BAD_PARAM;
    };
    let made = Network {
        algorithm,
        cell,
        directions: if direction == 0 { 1 } else { 2 },
        element_bytes: super::data_type::bytes(data_type),
        data_type,
        input,
        hidden,
        projection: if projection == 0 { hidden } else { projection },
        layers,
        has_dropout,
        is_padded: flags & PADDED_IO != 0,
    };
    call_log::call("cudnnSetRNNDescriptor_v8", || format!("{made:?}"));
    *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(Described {
        network: made,
        words,
    });
    status::SUCCESS
}

/// # Safety
/// `lengths` must hold `batch` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnSetRNNDataDescriptor(
    handle: *mut c_void,
    data_type: i32,
    layout: i32,
    longest: i32,
    batch: i32,
    vector: i32,
    lengths: *const i32,
    _padding_fill: *mut c_void,
) -> i32 {
    let Some(found) = SEQUENCES.get(handle) else {
        return status::BAD_PARAM;
    };
    // SAFETY: promised by the caller.
    let lengths = unsafe { read_array(lengths, batch) };
    let total_steps = lengths.iter().map(|&length| length.max(0) as u64).sum();
    let words = deep::Sequences {
        data_type,
        layout,
        longest,
        batch,
        vector,
        total_steps: total_steps as i64,
    }
    .words();
    let made = Sequences {
        longest: u64::try_from(longest).unwrap_or(0),
        batch: u64::try_from(batch).unwrap_or(0),
        total_steps,
        words,
    };
    call_log::call("cudnnSetRNNDataDescriptor", || format!("{made:?}"));
    *found.lock().unwrap_or_else(PoisonError::into_inner) = made;
    status::SUCCESS
}

/// # Safety
/// `bytes` must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetRNNWeightSpaceSize(
    _handle: *mut c_void,
    rnn: *mut c_void,
    bytes: *mut usize,
) -> i32 {
    let Some(Described { network, words }) = described(rnn) else {
        return status::BAD_PARAM;
    };
    let size = recorded::weight_bytes(&words).unwrap_or_else(|| weights::total_bytes(&network));
    call_log::call("cudnnGetRNNWeightSpaceSize", || size.to_string());
    // SAFETY: promised by the caller.
    if unsafe { write(bytes, size as usize) } {
        status::SUCCESS
    } else {
        status::BAD_PARAM_NULL_POINTER
    }
}

/// # Safety
/// The results must be null or valid. The weight space is only an address here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetRNNWeightParams(
    _handle: *mut c_void,
    rnn: *mut c_void,
    pseudo_layer: i32,
    _weight_bytes: usize,
    weight_space: *const c_void,
    matrix: i32,
    matrix_descriptor: *mut c_void,
    matrix_address: *mut *mut c_void,
    bias_descriptor: *mut c_void,
    bias_address: *mut *mut c_void,
) -> i32 {
    let Some(network) = network(rnn) else {
        return status::BAD_PARAM;
    };
    let (Ok(layer), Ok(matrix)) = (u64::try_from(pseudo_layer), u64::try_from(matrix)) else {
        return status::BAD_PARAM;
    };
    let Some(place) = weights::place(&network, layer, matrix) else {
        return status::BAD_PARAM;
    };
    let describe = |rows: u64, columns: u64| Tensor {
        data_type: network.data_type,
        dimensions: vec![1, rows as i32, columns as i32],
        strides: vec![(rows * columns) as i32, columns as i32, 1],
    };
    let at = |offset: u64| weight_space.wrapping_byte_add(offset as usize).cast_mut();
    tensors::set_tensor(matrix_descriptor, describe(place.rows, place.columns));
    // SAFETY: promised by the caller.
    unsafe { write(matrix_address, at(place.matrix_offset)) };
    match place.bias_offset {
        Some(offset) => {
            tensors::set_tensor(bias_descriptor, describe(network.hidden, 1));
            // SAFETY: promised by the caller.
            unsafe { write(bias_address, at(offset)) };
        }
        None => {
            let nothing = Tensor {
                data_type: network.data_type,
                ..Tensor::default()
            };
            tensors::set_tensor(bias_descriptor, nothing);
            // SAFETY: promised by the caller.
            unsafe { write(bias_address, std::ptr::null_mut()) };
        }
    }
    status::SUCCESS
}

/// # Safety
/// The results must be null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnGetRNNTempSpaceSizes(
    _handle: *mut c_void,
    rnn: *mut c_void,
    forward_mode: i32,
    x: *mut c_void,
    work_bytes: *mut usize,
    reserve_bytes: *mut usize,
) -> i32 {
    let (Some(Described { network, words }), Some(sequences)) = (described(rnn), sequences(x))
    else {
        return status::BAD_PARAM;
    };
    let batch = space::Batch {
        size: sequences.batch,
        longest: sequences.longest,
        steps: if network.is_padded {
            sequences.longest * sequences.batch
        } else {
            sequences.total_steps
        },
    };
    let is_training = forward_mode != 0;
    let recorded = recorded::temporary_bytes(&words, forward_mode, &sequences.words);
    if recorded.is_empty()
        && let Some(doubt) = space::doubt(&network, &batch)
    {
        notes::assume(doubt);
    }
    let work = recorded
        .work
        .unwrap_or_else(|| space::work_bytes(&network, &batch, is_training));
    let reserve = match is_training {
        true => recorded
            .reserve
            .unwrap_or_else(|| space::reserve_bytes(&network, &batch)),
        false => 0,
    };
    call_log::call("cudnnGetRNNTempSpaceSizes", || {
        format!("{network:?}, {batch:?}, mode {forward_mode}: {work}, {reserve}")
    });
    // SAFETY: promised by the caller.
    unsafe {
        write(work_bytes, work as usize);
        write(reserve_bytes, reserve as usize);
    }
    status::SUCCESS
}

computed_in_workspace! {
    cudnnRNNForward(
        handle, rnn, mode, lengths, x_layout, x, y_layout, y, h_layout, hx, hy, c_layout, cx, cy,
        weight_bytes, weights, workspace_bytes,
    );
    cudnnRNNBackwardData_v8(
        handle, rnn, lengths, y_layout, y, dy, x_layout, dx, h_layout, hx, dhy, dhx, c_layout, cx,
        dcy, dcx, weight_bytes, weights, workspace_bytes,
    );
    cudnnRNNBackwardWeights_v8(
        handle, rnn, mode, lengths, x_layout, x, h_layout, hx, y_layout, y, weight_bytes, weights,
        workspace_bytes,
    );
}
