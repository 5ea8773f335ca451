//! Failures outside PyTorch's caching allocator: what each kind means.

use super::{Reasoned, Situation, Suspect};
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use ghostgpu_text::grouped;

/// A single request for more host memory than this is a mistake on most machines.
const ABSURD_ON_A_HOST: u64 = 256 << 30;

pub fn situation(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let requested = figures.requested;
    match finding.kind {
        Kind::CudaAbsurdSize | Kind::CudnnWorkspace => {
            Reasoned::new(Situation::ShapeBug, "no card has that much memory").and(format!(
                "likely {}",
                match finding.kind {
                    Kind::CudaAbsurdSize => Suspect::Overflow.sentence(None),
                    _ => Suspect::Convolution.sentence(None),
                }
            ))
        }
        Kind::CudaRejected => Reasoned::new(
            Situation::FractionLimit,
            "the request would have exceeded per_process_memory_fraction, and throw_on_cudamalloc_oom is \
             on: it never reached the driver",
        ),
        Kind::CpuAllocator | Kind::PythonMemory
            if requested.is_some_and(|requested| requested.bytes >= ABSURD_ON_A_HOST) =>
        {
            Reasoned::new(
                Situation::ShapeBug,
                format!(
                    "a single request for {} is more than most machines have",
                    requested.unwrap_or_default()
                ),
            )
            .and(format!("likely {}", super::suspect(finding).sentence(requested)))
        }
        Kind::CpuAllocator | Kind::PythonMemory => Reasoned::new(
            Situation::HostMemory,
            match requested {
                Some(requested) => format!("{requested} of RAM was requested; the GPU is not involved"),
                None => "RAM was requested; the GPU is not involved".to_owned(),
            },
        )
        .and_if(shape(finding)),
        Kind::HostKill | Kind::JobLimit | Kind::HostKillLikely | Kind::DataLoaderKilled => {
            killed(finding)
        }
        Kind::SharedMemory => Reasoned::new(
            Situation::SharedMemory,
            "DataLoader workers pass batches through /dev/shm, and it is full (containers have 64 MiB by \
             default)",
        ),
        Kind::PinnedMemory => Reasoned::new(
            Situation::PinnedMemory,
            "CUDA also reports `out of memory` for pinned memory, which is host RAM",
        )
        .and_if(requested.map(|requested| format!("{requested} was to be pinned"))),
        Kind::MpsAllocator => unified(finding),
        Kind::KernelSharedMemory => kernel(finding),
        Kind::VllmNoCache | Kind::VllmSequence | Kind::VllmNotFree | Kind::VllmSampler => {
            serving(finding)
        }
        Kind::LlamaCpp => Reasoned::new(
            Situation::ModelDoesNotFit,
            match requested {
                Some(requested) => format!("a single request for {requested} failed: the card had no more"),
                None => "the message gives no figures".to_owned(),
            },
        )
        .and("layers on the card, KV cache and scratch space are allocated at startup: reduce any of them"),
        Kind::Jax | Kind::TensorFlow | Kind::BfcAllocator | Kind::OtherAllocator => {
            framework(finding)
        },
        Kind::DispatchedElsewhere => Reasoned::new(
            Situation::ModelDoesNotFit,
            "accelerate placed some layers on the CPU because the card had no room, and quantized layers \
             cannot run there",
        ),
        Kind::CudaAllocatorBare | Kind::CuPy | Kind::Paddle => Reasoned::new(
            Situation::Full,
            match requested {
                Some(requested) => format!("{requested} requested, and the card had no more"),
                None => "the message gives no figures: the rest of it is missing".to_owned(),
            },
        ),
        _ => outside(finding),
    }
}

fn shape(finding: &Finding) -> Option<String> {
    let shape = finding.figures.text_named("shape")?;
    Some(format!("for an array of shape {shape}"))
}

fn killed(finding: &Finding) -> Reasoned {
    let resident = finding.figures.amount_named("resident");
    let reason = match finding.kind {
        Kind::HostKill => {
            "the kernel says so itself: RAM was exhausted, and it killed this process"
        }
        Kind::JobLimit => {
            "the job reached its RAM limit, set by a batch system, a container or Ray"
        }
        Kind::DataLoaderKilled => {
            "a worker that dies without a message was most likely killed by the kernel's OOM killer"
        }
        _ => {
            "the log shows only signal 9; unless someone typed `kill -9`, that was the kernel's OOM killer \
             or a batch system's limit (check `dmesg -T | grep -i oom`)"
        }
    };
    Reasoned::new(Situation::HostMemory, reason)
        .and_if(resident.map(|resident| format!("the process had {resident} in RAM")))
}

fn unified(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let other = figures.amount_named("other allocations");
    let (Some(allocated), Some(allowed)) = (figures.allocated, figures.allowed) else {
        return Reasoned::new(
            Situation::Full,
            "PyTorch reached its limit of unified memory",
        );
    };
    let others_share = other.filter(|other| other.bytes * 4 > allowed.bytes);
    let reason = format!("PyTorch holds {allocated} of the {allowed} it may use");
    match others_share {
        Some(other) => Reasoned::new(Situation::OtherProcess, reason).and(format!(
            "other GPU allocations, by this process and other programs, take {other}"
        )),
        None => Reasoned::new(Situation::Full, reason),
    }
}

fn kernel(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let (requested, limit) = (
        figures.requested.unwrap_or_default(),
        figures.allowed.unwrap_or_default(),
    );
    Reasoned::new(
        Situation::KernelSharedMemory,
        format!(
            "one block of the kernel needs {} bytes of on-chip memory, and this card has {}",
            grouped(requested.bytes),
            grouped(limit.bytes)
        ),
    )
    .and("the kernel's block sizes and the card decide this, not the batch size or the model")
}

fn serving(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let reasoned = Reasoned::new(
        match finding.kind {
            Kind::VllmNotFree => Situation::OtherProcess,
            _ => Situation::ServingCache,
        },
        match finding.kind {
            Kind::VllmNoCache => {
                "the weights and the profiling run used up vLLM's share of the card \
                 (gpu_memory_utilization)"
                    .to_owned()
            }
            Kind::VllmNotFree => format!(
                "{} of {} was free at startup, and vLLM was to use {}",
                figures.free.unwrap_or_default(),
                figures.total.unwrap_or_default(),
                figures.requested.unwrap_or_default()
            ),
            Kind::VllmSampler => {
                "the profiling run with many dummy requests did not fit".to_owned()
            }
            _ => match (figures.requested, figures.free) {
                (Some(requested), Some(free)) => format!(
                    "one sequence of maximum length needs {requested} of KV cache, and {free} is left"
                ),
                _ => "one sequence of maximum length needs more KV cache than is left".to_owned(),
            },
        },
    );
    let lengths = (
        figures.count_named("sequence length"),
        figures.count_named("length that fits"),
    );
    match lengths {
        (Some(length), Some(fits)) => reasoned.and(format!(
            "the maximum length is {} tokens, and {} would fit",
            grouped(length),
            grouped(fits)
        )),
        _ => reasoned,
    }
}

fn framework(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let requested = figures.requested;
    if let (Some(requested), Some(limit)) = (requested, figures.allowed.or(figures.total))
        && requested.exceeds(limit)
    {
        return Reasoned::new(
            Situation::ShapeBug,
            format!("a single request for {requested} exceeds all there is ({limit})"),
        );
    }
    // No card has this much.
    if let Some(requested) = requested.filter(|requested| requested.bytes > 300 << 30) {
        return Reasoned::new(
            Situation::ShapeBug,
            format!("a single request for {requested} is more than any card has"),
        );
    }
    let library = figures.text_named(LIBRARY).unwrap_or("the library");
    let reason = match finding.kind {
        Kind::OtherAllocator => &format!(
            "{library} allocates from the driver directly, outside PyTorch's cache, and nothing was left"
        ),
        Kind::Jax => "JAX takes 75 % of the card at startup and serves requests from that pool",
        _ => "TensorFlow takes the whole card at startup and serves requests from that pool",
    };
    let request = requested.map(|requested| format!("{requested} requested"));
    let used = match (figures.allocated, figures.allowed) {
        (Some(used), Some(limit)) => Some(format!("{used} of {limit} was in use")),
        _ => figures
            .amount_named("in total")
            .map(|total| format!("the compiled program needs {total} in total")),
    };
    Reasoned::new(Situation::FrameworkPool, reason)
        .and_if(request)
        .and_if(used)
}

fn outside(finding: &Finding) -> Reasoned {
    let reason = match finding.kind {
        Kind::CudaMapping => {
            "the driver could not map pages: the card is full, or another process took the rest first"
        }
        Kind::Nccl => {
            "NCCL allocates buffers for every communicator and channel from the driver, and PyTorch's \
             cache has taken most of the card"
        }
        Kind::CudaCall => {
            "contexts, kernel code and handles are allocated by the driver; the message gives no figures"
        }
        _ => {
            "CUDA libraries allocate handles and workspaces from the driver, and get only what PyTorch's \
             cache has not taken"
        }
    };
    let reasoned = Reasoned::new(Situation::OutsideTheAllocator, reason);
    match finding.kind.is_uncertain() {
        true => reasoned.and(
            "a bad index or a mismatched installation raises the same error: if it goes away with \
             CUDA_LAUNCH_BLOCKING=1 and a smaller batch, it is memory",
        ),
        false => reasoned,
    }
}
