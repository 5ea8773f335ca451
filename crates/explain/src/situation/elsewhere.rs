//! Failures that are not PyTorch's allocator's: what each kind means by itself.

use super::{Reasoned, Situation, Suspect};
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use ghostgpu_text::grouped;

/// More of the machine's memory than this at once is a mistake on most machines.
const ABSURD_ON_A_HOST: u64 = 256 << 30;

pub fn situation(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let asked = figures.asked;
    match finding.kind {
        Kind::CudaAbsurdSize | Kind::CudnnWorkspace => {
            Reasoned::new(Situation::ShapeBug, "no card has so much memory").and(format!(
                "likely {}",
                match finding.kind {
                    Kind::CudaAbsurdSize => Suspect::Overflow.sentence(None),
                    _ => Suspect::Convolution.sentence(None),
                }
            ))
        }
        Kind::CudaRejected => Reasoned::new(
            Situation::FractionLimit,
            "the request would have passed per_process_memory_fraction, and \
             throw_on_cudamalloc_oom is on: the driver was not even asked",
        ),
        Kind::CpuAllocator | Kind::PythonMemory
            if asked.is_some_and(|asked| asked.bytes >= ABSURD_ON_A_HOST) =>
        {
            Reasoned::new(
                Situation::ShapeBug,
                format!(
                    "{} at once is more than most machines have",
                    asked.unwrap_or_default()
                ),
            )
            .and(format!("likely {}", super::suspect(finding).sentence(asked)))
        }
        Kind::CpuAllocator | Kind::PythonMemory => Reasoned::new(
            Situation::HostMemory,
            match asked {
                Some(asked) => format!("{asked} of RAM were asked for; the GPU has no part in this"),
                None => "RAM was asked for; the GPU has no part in this".to_owned(),
            },
        )
        .and_if(shape(finding)),
        Kind::HostKill | Kind::JobLimit | Kind::HostKillLikely | Kind::DataLoaderKilled => {
            killed(finding)
        }
        Kind::SharedMemory => Reasoned::new(
            Situation::SharedMemory,
            "DataLoader workers hand batches over through /dev/shm, and it is full (containers have \
             64 MiB unless told otherwise)",
        ),
        Kind::PinnedMemory => Reasoned::new(
            Situation::PinnedMemory,
            "CUDA reports `out of memory` for page-locked memory too, and that is the machine's RAM",
        )
        .and_if(asked.map(|asked| format!("{asked} were to be page-locked"))),
        Kind::MpsAllocator => unified(finding),
        Kind::KernelSharedMemory => kernel(finding),
        Kind::VllmNoCache | Kind::VllmSequence | Kind::VllmNotFree | Kind::VllmSampler => {
            serving(finding)
        }
        Kind::LlamaCpp => Reasoned::new(
            Situation::ModelDoesNotFit,
            match asked {
                Some(asked) => format!("{asked} were asked for in one piece, and the card had no more"),
                None => "the text names no figures".to_owned(),
            },
        )
        .and("layers on the card, KV cache and scratch space are taken at the start: less of each fits"),
        Kind::Jax | Kind::TensorFlow | Kind::BfcAllocator | Kind::OtherAllocator => {
            framework(finding)
        },
        Kind::DispatchedElsewhere => Reasoned::new(
            Situation::ModelDoesNotFit,
            "accelerate placed some layers on the CPU, because the card had no room for them, and \
             quantised layers cannot lie there",
        ),
        Kind::CudaAllocatorBare | Kind::CuPy | Kind::Paddle => Reasoned::new(
            Situation::Full,
            match asked {
                Some(asked) => format!("{asked} were asked for, and the card had no more"),
                None => "the text names no figures: the rest of the message is missing".to_owned(),
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
        Kind::HostKill => "the kernel's own message: no RAM was left, and it chose this process",
        Kind::JobLimit => {
            "the job's limit of RAM was reached, which a batch system, a container or Ray sets"
        }
        Kind::DataLoaderKilled => {
            "a worker that is killed without a word has most often met the kernel's OOM killer"
        }
        _ => {
            "nothing but signal 9 is known; without somebody typing `kill -9`, that is the kernel's OOM \
             killer or a batch system's limit (`dmesg -T | grep -i oom` tells)"
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
    let reason = format!("PyTorch has {allocated} of {allowed} that it allows itself");
    match others_share {
        Some(other) => Reasoned::new(Situation::OtherProcess, reason).and(format!(
            "{other} are other allocations on the GPU, of this process and of other programs"
        )),
        None => Reasoned::new(Situation::Full, reason),
    }
}

fn kernel(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let (asked, limit) = (
        figures.asked.unwrap_or_default(),
        figures.allowed.unwrap_or_default(),
    );
    Reasoned::new(
        Situation::KernelSharedMemory,
        format!(
            "one block of the kernel wants {} bytes on the chip, and this card has {}",
            grouped(asked.bytes),
            grouped(limit.bytes)
        ),
    )
    .and("that is set by the kernel's block sizes and the card's model, not by the batch or the model")
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
                "the weights and the trial run have used up vLLM's share of the card \
                 (gpu_memory_utilization)"
                    .to_owned()
            }
            Kind::VllmNotFree => format!(
                "{} of {} were free at the start, and {} were to be used",
                figures.free.unwrap_or_default(),
                figures.total.unwrap_or_default(),
                figures.asked.unwrap_or_default()
            ),
            Kind::VllmSampler => "the trial run with many dummy requests did not fit".to_owned(),
            _ => match (figures.asked, figures.free) {
                (Some(asked), Some(free)) => format!(
                    "one sequence of full length needs {asked} of KV cache, and {free} are left for it"
                ),
                _ => "one sequence of full length needs more KV cache than is left".to_owned(),
            },
        },
    );
    let lengths = (
        figures.count_named("sequence length"),
        figures.count_named("length that fits"),
    );
    match lengths {
        (Some(length), Some(fits)) => reasoned.and(format!(
            "{} tokens are asked for, {} would fit",
            grouped(length),
            grouped(fits)
        )),
        _ => reasoned,
    }
}

fn framework(finding: &Finding) -> Reasoned {
    let figures = &finding.figures;
    let asked = figures.asked;
    if let (Some(asked), Some(limit)) = (asked, figures.allowed.or(figures.total))
        && asked.exceeds(limit)
    {
        return Reasoned::new(
            Situation::ShapeBug,
            format!("{asked} were asked for at once, and {limit} is all there is"),
        );
    }
    // No card of today has so much.
    if let Some(asked) = asked.filter(|asked| asked.bytes > 300 << 30) {
        return Reasoned::new(
            Situation::ShapeBug,
            format!("{asked} at once is more than any card has"),
        );
    }
    let library = figures.text_named(LIBRARY).unwrap_or("the library");
    let reason = match finding.kind {
        Kind::OtherAllocator => &format!(
            "{library} takes memory from the driver itself, beside PyTorch's cache, and there was no more"
        ),
        Kind::Jax => "JAX takes 75 % of the card at its start and serves requests from that pool",
        _ => "TensorFlow takes the whole card at its start and serves requests from that pool",
    };
    let request = asked.map(|asked| format!("{asked} were asked for"));
    let used = match (figures.allocated, figures.allowed) {
        (Some(used), Some(limit)) => Some(format!("{used} of {limit} were in use")),
        _ => figures
            .amount_named("in total")
            .map(|total| format!("the compiled program needs {total} in all")),
    };
    Reasoned::new(Situation::FrameworkPool, reason)
        .and_if(request)
        .and_if(used)
}

fn outside(finding: &Finding) -> Reasoned {
    let reason = match finding.kind {
        Kind::CudaMapping => {
            "the driver could not map pages: the card is full, or another process took the rest at that \
             moment"
        }
        Kind::Nccl => {
            "NCCL takes buffers for every communicator and channel from the driver, after PyTorch's \
             cache has had its share"
        }
        Kind::CudaCall => {
            "contexts, kernels' code and handles come from the driver directly; the text names no \
             figures"
        }
        _ => {
            "handles and workspaces of CUDA's libraries come from the driver directly, and PyTorch's \
             cache leaves them what it has not taken yet"
        }
    };
    let reasoned = Reasoned::new(Situation::OutsideTheAllocator, reason);
    match finding.kind.is_uncertain() {
        true => reasoned.and(
            "the same text also comes from a bad index or a mismatched installation: with \
             CUDA_LAUNCH_BLOCKING=1 and a smaller batch it is memory if it goes away",
        ),
        false => reasoned,
    }
}
