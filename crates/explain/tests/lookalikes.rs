//! Texts about memory in which nothing ran out.

mod common;

use common::read;
use ghostgpu_explain::explain;

const LOOKALIKES: [&str; 80] = [
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
    "  File \"/opt/conda/lib/python3.7/site-packages/torch/serialization.py\", line 604, in _save\n    zip_file.write_record(name, storage.data_ptr(), num_bytes)\nOSError: [Errno 28] No space left on device",
    "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: \"No space left on device\" })",
    "OSError: [Errno 122] Disk quota exceeded: '/home/u/ckpt/iter_0004000.pth'",
    "## 1.12.0 - 2025-09-23\n\n### Changed\n\n- Fix OOM when work with amount of data\n- It was possible that an export request failed due to OOM, this has been fixed.",
    "- The game should now use 75% less memory than before. This is a huge decrease, and many of you will no longer get \"Out of memory errors\"",
    "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [12,0,0] Assertion `t >= 0 && t < n_classes` failed.\nRuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: misaligned address",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "(train_rft pid=2657296) 2024-05-11 14:10:52.227 n176-080-198:2657296:2658232 [0] include/alloc.h:102 NCCL WARN Cuda failure 1 'invalid argument'\n(train_rft pid=2657296) 2024-05-11 14:10:52.227 n176-080-198:2657296:2658232 [0] NCCL INFO transport/p2p.cc:204 -> 1",
    "[rank3]:[E509 12:01:22.114 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1183, OpType=ALLREDUCE, NumelIn=26214400, NumelOut=26214400, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.",
    "RuntimeError: The size of tensor a (512) must match the size of tensor b (77) at non-singleton dimension 1\nRuntimeError: mat1 and mat2 shapes cannot be multiplied (32x2048 and 512x10)",
    "RecursionError: maximum recursion depth exceeded while calling a Python object",
    "OSError: [Errno 24] Too many open files: '/data/train/00001.npz'\nRuntimeError: received 0 items of ancdata",
    "Namespace(batch_size=16, oom_retry=True, max_oom_retries=3, memory_limit='24GB', out_of_memory_policy='skip', gpu_memory_fraction=0.9)",
    "2021-03-01 10:00:00 | INFO | train | epoch 001: 100 / 5000 loss=11.2, ppl=2352, wps=30122, ups=3.1, wpb=9712, bsz=312, num_updates=100, lr=1.2e-05, gnorm=4.2, clip=100, oom=0, train_wall=32, gb_free=6.2, wall=45",
    "vm.oom_kill_allocating_task = 0\nvm.overcommit_memory = 1",
    "|===========================================================================|\n|                  PyTorch CUDA memory summary, device ID 0                 |\n|---------------------------------------------------------------------------|\n|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |\n|===========================================================================|\n|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    "I used to get CUDA out of memory on my 8 GB card. After lowering the resolution to 512 everything works, 20 images without a problem. Thanks!",
    "try:\n    out = model(x)\nexcept RuntimeError as e:\n    if 'out of memory' in str(e):\n        print('| WARNING: ran out of memory, skipping batch')\n        torch.cuda.empty_cache()\n    else:\n        raise e",
    "INFO: autotune: 14 of 60 configs skipped because they need more shared memory than the device has",
    "2024-03-01 12:00:00.000000: I external/xla/xla/service/service.cc:168] XLA service 0x5581 initialized for platform CUDA\nI external/xla/xla/pjrt/gpu/gpu_helpers.cc:114] Using BFC allocator.\nXLA backend allocating 11811160064 bytes on device 0 for BFCAllocator.",
    "Epoch 3: RAM used 23.1/64.0 GB, swap 0, GPU mem 10.4G/11.0G, CPU mem 91%",
    "[2023-07-04 17:31:27,755] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 953850\nKeyboardInterrupt",
    "torch.distributed.elastic.multiprocessing.api: [WARNING] Sending process 4112 closing signal SIGTERM\nexitcode  : -15 (pid: 4112)",
    "RuntimeError: DataLoader worker (pid 4412) is killed by signal: Segmentation fault.",
    "/usr/lib/python3.9/multiprocessing/resource_tracker.py:216: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up at shutdown",
    "tritonclient.utils.InferenceServerException: [StatusCode.INTERNAL] onnx runtime error 2: not enough space: expected 270080, got 261760",
    "NVRM: Xid (PCI:0000:3b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate.\nRuntimeError: CUDA error: uncorrectable ECC error encountered",
    "[04/27 13:03:34 d2.utils.events]:  eta: 4:00:48  iter: 319  total_loss: 2.127  lr: 0.0007992  max_mem: 8277M",
    "If your machine has less than 96GB of RAM and lots of CPU cores, ninja might run too many parallel compilation jobs that could exhaust the amount of RAM.",
    "CUDA_ERROR_OUT_OF_MEMORY means the driver could not obtain some resource; it is not proof that device memory is exhausted.",
    "If you encounter a CUDA OOM error, the steps you can take to reduce your memory usage are:\n- Reduce `--batch-size`\n- Reduce `--img-size`",
    "InternalError: Check failed: (offset + needed_size <= this->buffer.size) is false: storage allocation failure, attempted to allocate 16785408 at offset 0 in region that is 16777216bytes",
    "FATAL ERROR: CudaTileListKernel::buildTileLists, maximum shared memory allocation exceeded. Too many atoms in a patch",
    "[TensorRT-LLM][ERROR] CUDA runtime error in cudaSetDevice(device): invalid device ordinal (/app/tensorrt_llm/cpp/tensorrt_llm/runtime/utils/sessionUtils.cpp:34)",
    "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 2Gi.",
    "+ kill -9 4412\nstopping old server (pid 4412)",
    "  --oom-score-adj int              Tune host's OOM preferences (-1000 to 1000)\n  --oom-kill-disable               Disable OOM Killer\n  -m, --memory bytes               Memory limit",
    "except torch.cuda.OutOfMemoryError as error:\n    logger.warning('CUDA out of memory, halving the batch')",
    "Windows created a temporary paging file because of a problem with your paging file configuration.",
    "ptxas info    : Used 255 registers, 1024 bytes cumulative stack size, 49152 bytes smem",
    "[INFO] Killed 3 stale workers before restart",
    "slurmstepd: error: *** JOB 1234 ON node1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***",
    "2023-09-20 19-03-32: resize arrays\n2023-09-20 19-03-32: 710 MB GPU memory used\n2023-09-20 19-03-46: 723 MB GPU memory used",
    "Total VRAM 24564 MB, total RAM 65298 MB\nSet vram state to: NORMAL_VRAM\nHint: your device supports --cuda-malloc for potential speed improvements.",
    "[Memory Management] Current Free GPU Memory (MB) =  10103.83\n[Memory Management] Model Memory (MB) =  2144.35\n[Memory Management] Estimated Remaining GPU Memory (MB) =  6935.48",
    "Error unknown error at line 1485 in file /tmp/build-via-sdist-dwvr4b0k/cubnm-0.0.5/src/ext/bnm.cu",
    "Using >2G memory is expected, therefore closing.\nDecreasing videos_per_gpu=32 to 10 in the config file passed that error.",
    "The program should raise a more specific error when the simulations exceed GPU memory, and not crash with out of memory errors.",
    "FAILED: CMakeFiles/foo.dir/a.cpp.o \nerror: 'cudaMallocAsync' was not declared in this scope\nninja: build stopped: subcommand failed.",
    "\"State\": {\"Status\": \"exited\", \"OOMKilled\": false, \"Dead\": false, \"ExitCode\": 0}",
    "    resources:\n      limits:\n        memory: 64Gi\n        nvidia.com/gpu: 1",
    "RELEASE NOTES: fixed an error where the exporter failed with out of memory on large scenes.",
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
