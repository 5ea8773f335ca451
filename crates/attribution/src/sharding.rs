//! What memory is for in code that distributes a model over ranks, recognised by the functions on the stack.

use ghostgpu_recording::{FrameId, Names, StackId};

/// What memory is for, between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Whole parameters, gathered from the shards of all ranks.
    GatheredParameters,
    /// Buffers in which gradients are collected and sent.
    Buffer,
}

/// The end of a file's path, the prefixes of functions in it, and what they allocate.
type Functions = (&'static str, &'static [&'static str], Exchange);

const FUNCTIONS: [Functions; 9] = [
    // PyTorch's FSDP2.
    (
        "fsdp/_fully_shard/_fsdp_collectives.py",
        &[
            "foreach_all_gather",
            "all_gather_copy_in",
            "_get_param_all_gather_inputs",
        ],
        Exchange::GatheredParameters,
    ),
    (
        "fsdp/_fully_shard/_fsdp_param.py",
        &[
            "init_all_gather_outputs",
            "alloc_all_gather_outputs",
            "init_unsharded_param",
            "all_gather_inputs",
        ],
        Exchange::GatheredParameters,
    ),
    (
        "fsdp/_fully_shard/_fsdp_collectives.py",
        &["foreach_reduce"],
        Exchange::Buffer,
    ),
    // FSDP1.
    (
        "fsdp/_flat_param.py",
        &[
            "_alloc_padded_unsharded_flat_param",
            "_all_gather_flat_param",
            "_use_low_precision_shard",
        ],
        Exchange::GatheredParameters,
    ),
    (
        "fsdp/_runtime_utils.py",
        &["_reduce_grad", "_get_reduce_scatter_tensors"],
        Exchange::Buffer,
    ),
    // DistributedDataParallel makes its buckets in C++.
    (
        "nn/parallel/distributed.py",
        &["_ddp_init_helper", "_pre_forward"],
        Exchange::Buffer,
    ),
    // DeepSpeed.
    (
        "deepspeed/runtime/zero/partition_parameters.py",
        &["all_gather", "_all_gather", "_allgather"],
        Exchange::GatheredParameters,
    ),
    (
        "deepspeed/runtime/zero/stage3.py",
        &[
            "__add_grad_to_ipg_bucket",
            "__avg_scatter",
            "_DeepSpeedZeroOptimizer_Stage3__setup",
        ],
        Exchange::Buffer,
    ),
    (
        "deepspeed/runtime/zero/stage_1_and_2.py",
        &[
            "setup_buckets",
            "allreduce_",
            "average_tensor",
            "buffered_reduce_fallback",
        ],
        Exchange::Buffer,
    ),
];

/// What each stack of a recording allocates, if it is one of these.
#[derive(Debug)]
pub struct Exchanges {
    by_stack: Vec<Option<Exchange>>,
}

impl Exchanges {
    pub fn of(names: &Names) -> Self {
        let frames: Vec<Option<Exchange>> = names
            .frames
            .iter()
            .map(|frame| of_function(&frame.file, &frame.function))
            .collect();
        let of_frame = |frame: &FrameId| frames.get(frame.0 as usize).copied().flatten();
        let stacks = names.stacks.iter();
        Self {
            by_stack: stacks
                .map(|stack| stack.iter().find_map(of_frame))
                .collect(),
        }
    }

    pub fn of_stack(&self, stack: StackId) -> Option<Exchange> {
        self.by_stack.get(stack.0 as usize).copied().flatten()
    }
}

fn of_function(file: &str, function: &str) -> Option<Exchange> {
    // Python 3.11 and later record `Class.function`.
    let function = function.rsplit('.').next().unwrap_or(function);
    let is_meant = |(end, beginnings, _): &&Functions| {
        file.ends_with(end) && beginnings.iter().any(|begin| function.starts_with(begin))
    };
    FUNCTIONS.iter().find(is_meant).map(|found| found.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_file_and_the_beginning_of_their_name() {
        let package = "/venv/lib/python3.11/site-packages/";
        for (file, function, expected) in [
            (
                "torch/distributed/fsdp/_fully_shard/_fsdp_param.py",
                "FSDPParam.alloc_all_gather_outputs",
                Some(Exchange::GatheredParameters),
            ),
            (
                "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py",
                "foreach_reduce_scatter_copy_in",
                Some(Exchange::Buffer),
            ),
            (
                "torch/distributed/fsdp/_flat_param.py",
                "_alloc_padded_unsharded_flat_param",
                Some(Exchange::GatheredParameters),
            ),
            ("torch/nn/parallel/distributed.py", "_run_ddp_forward", None),
            (
                "torch/nn/parallel/distributed.py",
                "_pre_forward",
                Some(Exchange::Buffer),
            ),
            (
                "deepspeed/runtime/zero/partition_parameters.py",
                "_allgather_params_coalesced",
                Some(Exchange::GatheredParameters),
            ),
            ("my/_fsdp_param.py", "alloc_all_gather_outputs", None),
        ] {
            let found = of_function(&format!("{package}{file}"), function);
            assert_eq!(found, expected, "{file}: {function}");
        }
    }
}
