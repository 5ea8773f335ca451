//! Programs about which nothing is known but what their last line says, and what programs other than PyTorch
//! are told.

mod common;

use common::{corpus, heldout, read};
use ghostgpu_explain::{Kind, Memory, explain};

/// Public reports of programs that have no family of their own, and whose memory each is about.
const LAST_LINES: [(&str, Memory); 10] = [
    // ComputationalRadiationPhysics/picongpu#3064
    (
        "terminate called after throwing an instance of 'CUDA::error' \n  what():  /scratch/ws/picongpu/thirdParty/mallocMC/src/include/mallocMC/reservePoolPolicies/SimpleCudaMalloc_impl.hpp(42):\nerror: out of memory",
        Memory::Device,
    ),
    // lammps/lammps#1473
    (
        "warning: Cuda API error detected: cudaCreateTextureObject returned (0x2)\n\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  cudaCreateTextureObject( & tex_obj , & resDesc, & texDesc, NULL ) error( cudaErrorMemoryAllocation): out of memory /home/david/git/lammps-clean/lib/kokkos/core/src/Cuda/Kokkos_CudaSpace.cpp:290\nTraceback functionality not available",
        Memory::Device,
    ),
    // openmm/openmm#3975
    (
        "simtk.openmm.OpenMMException: Error creating array interactingAtoms: CUDA_ERROR_OUT_OF_MEMORY (2)",
        Memory::Device,
    ),
    // lammps/lammps#2040
    (
        "- Using acceleration for lj/cut:\n-  with 1 proc(s) per device.\nERROR: Insufficient memory on accelerator (src/GPU/gpu_extra.h:38)\nLast command: run 100",
        Memory::Device,
    ),
    // mlc-ai/mlc-llm#1462
    (
        "InternalError: Check failed: (e == cudaSuccess || e == cudaErrorCudartUnloading) is false: CUDA: out of memory\nStack trace:\n  [bt] (0) /home/u/mlc-llm/tvm/build/libtvm_runtime.so(tvm::runtime::Backtrace[abi:cxx11]()+0x27) [0x7ffff7312f17]",
        Memory::Device,
    ),
    // NVlabs/instant-ngp#1400
    (
        "ERROR: Not enough GPU memory to match 10501 features. Reduce the maximum number of matches.\nERROR: SiftGPU not fully supported",
        Memory::Device,
    ),
    // colmap/colmap#724
    (
        "PatchMatch::Run\n---------------\nCUDA error at /home/code/colmap/src/mvs/gpu_mat.h:167 - out of memory\nCUDA error at /home/code/colmap/src/mvs/cuda_array_wrapper.h:157 - driver shutting down",
        Memory::Device,
    ),
    // bubbliiiing/yolo3-pytorch#188
    (
        "fatal   : Memory allocation failure\nRuntimeError: CUDA error: unknown error\nCUDA kernel errors might be asynchronously reported at some other API call,so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1.\nEpoch 1/200:   0%|          | 0/8275 [00:11<?, ?it/s<class 'dict'>]",
        Memory::Unknown,
    ),
    // MiguelMonteiro/CRFasRNNLayer#18
    (
        "permutohedral_lattice/src/DeviceMemoryAllocator.h:68] GPU memory allocation failed (might be due to insufficient memory)",
        Memory::Device,
    ),
    // ComputationalRadiationPhysics/picongpu#3433
    (
        "Unhandled exception of type 'St13runtime_error' with message '/scratch/ws/1/s...-ml_streaming/pic_env/build/picongpu/thirdParty/cupla/alpaka/include/alpaka/mem/buf/BufUniformCudaHipRt.hpp(360) 'cudaMalloc( &memPtr, static_cast<std::size_t>(widthBytes))' returned error  : 'cudaErrorMemoryAllocation': 'out of memory'!', terminating",
        Memory::Device,
    ),
];

#[test]
fn the_last_words_of_any_program_are_read() {
    for (text, memory) in LAST_LINES {
        let found = explain(&read(text.as_bytes(), usize::MAX));
        let found = found.unwrap_or_else(|| panic!("nothing was recognised in {text}"));
        assert_eq!(found.finding.kind.memory(), memory, "{text}");
    }
}

#[test]
fn a_line_that_was_wrapped_once_is_read_like_the_whole_one() {
    for text in [
        "InternalError: Check failed: (e == cudaSuccess) is false: CUDA: out of memory",
        "CUDA error at src/mvs/gpu_mat.h:167 - out of memory",
    ] {
        let whole = explain(&read(text.as_bytes(), usize::MAX)).expect("a message");
        for (place, _) in text.match_indices(' ') {
            let wrapped = format!("{}\n{}", &text[..place], &text[place + 1..]);
            let found = explain(&read(wrapped.as_bytes(), usize::MAX));
            let found = found.unwrap_or_else(|| panic!("nothing was recognised in {wrapped}"));
            assert_eq!(found.finding.kind, whole.finding.kind, "{wrapped}");
        }
    }
}

/// Killed processes name no program: most of those that people ask about train with PyTorch.
fn is_anonymous(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::HostKill | Kind::HostKillLikely | Kind::JobLimit | Kind::Unsaid
    )
}

#[test]
fn programs_other_than_pytorch_are_not_told_to_change_pytorch() {
    let mut tried = 0;
    let mut wrong = Vec::new();
    for message in corpus().into_iter().chain(heldout()) {
        let log = read(message.text.as_bytes(), usize::MAX);
        let Some(found) = explain(&log) else { continue };
        let finding = &found.finding;
        let is_other = !finding.is_pytorch() && !finding.mentions_pytorch();
        if !is_other || is_anonymous(finding.kind) {
            continue;
        }
        tried += 1;
        for advice in &found.advice {
            let is_of_pytorch = ["torch.", "DataLoader(", "PYTORCH_"]
                .iter()
                .any(|word| advice.command.contains(word));
            if is_of_pytorch && !advice.name.starts_with("empty-cache-for-others") {
                wrong.push(format!("{}: {}", message.source, advice.command));
            }
        }
    }
    assert!(tried > 80, "{tried}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
