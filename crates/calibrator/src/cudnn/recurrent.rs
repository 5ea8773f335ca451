//! Recurrent networks and dropout: the sizes of weights, workspaces, reserves and random states.

use std::ffi::c_void;

use ghostgpu_library_sizes::deep::{Network, Sequences};

use crate::objects::Objects;
use crate::questions::{followed, recorded};
use crate::real;

type Object = *mut c_void;

static NETWORKS: Objects<Network> = Objects::new();
static SEQUENCES: Objects<Sequences> = Objects::new();
static DROPOUTS: Objects<f32> = Objects::new();

fn words(parameter: &str, handle: Object) -> String {
    let words = match parameter {
        "network" => NETWORKS.get(handle).map(|network| network.words()),
        _ => SEQUENCES.get(handle).map(|sequences| sequences.words()),
    };
    words.unwrap_or_else(|| "unknown".to_owned())
}

macro_rules! define {
    ($library:literal; $($rest:tt)+) => {
        recorded! { real::CUDNN, words; $($rest)+ }
    };
}

ghostgpu_library_sizes::recurrent_questions!(define);

followed! {
    real::CUDNN;
    cudnnSetDropoutDescriptor(
        descriptor: Object, handle: Object, probability: f32, states: Object, bytes: usize,
        seed: u64
    ) {
        DROPOUTS.insert(descriptor, probability);
    }
    cudnnRestoreDropoutDescriptor(
        descriptor: Object, handle: Object, probability: f32, states: Object, bytes: usize,
        seed: u64
    ) {
        DROPOUTS.insert(descriptor, probability);
    }
    cudnnSetRNNDescriptor_v8(
        descriptor: Object, algorithm: i32, cell: i32, bias: i32, direction: i32,
        input_mode: i32, data_type: i32, math_precision: i32, math_type: i32, input: i32,
        hidden: i32, projection: i32, layers: i32, dropout: Object, flags: u32
    ) {
        NETWORKS.insert(descriptor, Network {
            algorithm, cell, bias, direction, input_mode, data_type, math_precision, math_type,
            input, hidden, projection, layers, flags,
            has_dropout: DROPOUTS.get(dropout).is_some_and(|probability| probability > 0.0),
        });
    }
    cudnnSetRNNDataDescriptor(
        descriptor: Object, data_type: i32, layout: i32, longest: i32, batch: i32, vector: i32,
        lengths: *const i32, padding: *mut c_void
    ) {
        let count = usize::try_from(batch).unwrap_or(0);
        let total_steps = match lengths.is_null() {
            true => i64::from(longest) * i64::from(batch),
            // SAFETY: the real library has accepted `batch` lengths.
            false => unsafe { std::slice::from_raw_parts(lengths, count) }
                .iter().map(|&length| i64::from(length)).sum(),
        };
        SEQUENCES.insert(descriptor, Sequences {
            data_type, layout, longest, batch, vector, total_steps,
        });
    }
    cudnnDestroyRNNDescriptor(descriptor: Object) {
        NETWORKS.remove(descriptor);
    }
    cudnnDestroyRNNDataDescriptor(descriptor: Object) {
        SEQUENCES.remove(descriptor);
    }
}
