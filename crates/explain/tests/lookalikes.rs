//! Texts about memory in which nothing ran out.

mod common;

use common::read;
use ghostgpu_explain::explain;

const LOOKALIKES: [&str; 26] = [
    "If you run out of memory, lower the batch size or use gradient checkpointing.",
    "We train on 8 GPUs, since a single card would run out of memory at this resolution [12].",
    "torch.cuda.max_memory_allocated(): 10.21 GiB, reserved 11.50 GiB, free 12.03 GiB",
    "train.py:88:    except torch.cuda.OutOfMemoryError:",
    "src/oom.py:14:        if \"out of memory\" in str(error):",
    "grep -rn 'CUDA out of memory' logs/",
    "    raise RuntimeError(\"CUDA out of memory. Tried to allocate too much\")",
    "# avoid CUDA out of memory by splitting the batch",
    "[notice] To reduce the chance of OOM, expandable_segments is enabled.",
    "step 120 | loss 2.31 | mem 17.2/24.0 GiB | 31.2k tok/s",
    "Memory-efficient attention is used to avoid out-of-memory errors on long sequences.",
    "- [ ] Fix: out of memory when the validation set is large",
    "ok: test_recovers_from_out_of_memory (0.31s)",
    "PASSED tests/test_oom.py::test_cuda_out_of_memory_is_raised",
    "2020-06-01 12:00:00: W tensorflow/core/common_runtime/bfc_allocator.cc:243] Allocator (GPU_0_bfc) ran out of memory trying to allocate 570.66MiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.",
    "The process will be killed if it does not stop within ten seconds.",
    "Terminated",
    "exit code 1",
    "the job was cancelled; 137 samples were skipped",
    "INFO: Available KV cache memory: 22.5 GiB",
    "INFO: Maximum concurrency for 8192 tokens per request: 12.4x",
    "docs: --gpu-memory-utilization: increase it if vLLM reports no memory for the cache",
    "MemoryError is raised when an operation runs out of memory but the situation may still be rescued.",
    "ggml_cuda_host_malloc: failed to allocate 1034.00 MiB of pinned memory: no CUDA-capable device is detected",
    "A larger paging file makes Windows faster on machines with little RAM.",
    "| model | fits | out of memory at |\n| --- | --- | --- |\n| 7B | yes | batch 16 |",
];

#[test]
fn texts_in_which_nothing_ran_out_are_not_explained() {
    let alarms: Vec<String> = LOOKALIKES
        .iter()
        .filter_map(|text| {
            let found = explain(&read(text.as_bytes(), usize::MAX))?;
            Some(format!("{text}\n  {:?}", found.finding.kind))
        })
        .collect();
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}
