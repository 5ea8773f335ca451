//! Failures outside PyTorch's caching allocator: what each kind means.

use ghostgpu_text::grouped;

use super::allocator::MORE_THAN_ANY_CARD;
use super::{Reasoned, Situation, Suspect};
use crate::catalogue::Catalogue;
use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;
use crate::said;
use crate::say;

/// A single request for more host memory than this is a mistake on most machines.
const ABSURD_ON_A_HOST: u64 = 256 << 30;

/// llama.cpp's scratch space is usually smaller than this.
const LARGE_SCRATCH: u64 = 2 << 30;

pub fn situation(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let requested = finding.figures.requested;
    let simple = |situation, id: &str| Reasoned::new(situation, say!(catalogue, id));
    match finding.kind {
        Kind::CudaAbsurdSize | Kind::CudnnWorkspace => {
            let suspect = match finding.kind {
                Kind::CudaAbsurdSize => Suspect::Overflow,
                _ => Suspect::Convolution,
            };
            simple(Situation::ShapeBug, "no-card-has-it").and(suspect.sentence(None, catalogue))
        }
        Kind::NcclDuplicate => simple(Situation::RanksOnOneCard, "nccl-refuses-shared-card")
            .and(say!(catalogue, "local-rank-mistake")),
        Kind::CudaRejected => simple(Situation::FractionLimit, "rejected"),
        Kind::CpuAllocator | Kind::PythonMemory | Kind::TensorFlowHost => {
            in_ram(finding, catalogue)
        }
        Kind::OtherHost => in_ram(finding, catalogue),
        Kind::HostKill
        | Kind::JobLimit
        | Kind::HostKillLikely
        | Kind::DataLoaderKilled
        | Kind::WorkersDied => killed(finding, catalogue),
        Kind::PageFile => simple(Situation::HostMemory, "page-file-full"),
        Kind::LlamaCppHost => {
            let asked =
                requested.map(|requested| say!(catalogue, "ram-requested", requested = requested));
            simple(Situation::HostMemory, "llama-in-ram").and_if(asked)
        }
        Kind::OllamaMemory if requested.is_none() => simple(Situation::HostMemory, "ollama-exited"),
        Kind::OllamaMemory => Reasoned::new(
            Situation::HostMemory,
            say!(
                catalogue,
                "ollama-needs",
                requested = requested.unwrap_or_default(),
                free = finding.figures.free.unwrap_or_default()
            ),
        ),
        Kind::SharedMemory if said::is_from_nccl(finding) => {
            simple(Situation::SharedMemory, "shm-full-nccl")
        }
        Kind::SharedMemory if said::is_object_store(finding) => {
            simple(Situation::SharedMemory, "object-store-full")
        }
        Kind::SharedMemory => simple(Situation::SharedMemory, "shm-full"),
        Kind::Metal => simple(Situation::Full, "metal-full"),
        Kind::Jetson => simple(Situation::Full, "jetson-shares"),
        Kind::XpuCall => simple(Situation::Full, "level-zero-full"),
        Kind::PinnedMemory => {
            let pinned =
                requested.map(|requested| say!(catalogue, "to-be-pinned", requested = requested));
            let is_ggml = said::is_pinned_by_ggml(finding);
            let fallback = is_ggml.then(|| say!(catalogue, "pinned-fallback"));
            simple(Situation::PinnedMemory, "pinned-is-ram")
                .and_if(pinned)
                .and_if(fallback)
        }
        Kind::MpsAllocator => unified(finding, catalogue),
        Kind::Mlx => metal(finding, catalogue),
        Kind::KernelSharedMemory => kernel(finding, catalogue),
        Kind::VllmNoCache
        | Kind::VllmSequence
        | Kind::VllmNotFree
        | Kind::VllmSampler
        | Kind::SglangNoCache
        | Kind::TgiWarmup => serving(finding, catalogue),
        Kind::LlamaCpp => {
            let reason = match requested {
                Some(requested) => say!(catalogue, "one-request-failed", requested = requested),
                None => say!(catalogue, "no-figures"),
            };
            let is_large = requested.is_some_and(|requested| requested.bytes >= LARGE_SCRATCH);
            let scratch = match is_large {
                true => Situation::OneLargeRequest,
                false => Situation::Full,
            };
            match said::is_scratch(finding) {
                true => Reasoned::new(scratch, reason).and(say!(catalogue, "llama-scratch")),
                false if said::is_while_computing(finding) => {
                    Reasoned::new(Situation::Full, reason).and(say!(catalogue, "llama-at-startup"))
                }
                false => Reasoned::new(Situation::ModelDoesNotFit, reason)
                    .and(say!(catalogue, "llama-at-startup")),
            }
        }
        Kind::OtherAllocator if finding.figures.text_named(LIBRARY) == Some("FlashInfer") => {
            simple(Situation::Full, "flashinfer-full")
        }
        Kind::OtherAllocator if !is_beside_pytorch(finding) => full(finding, catalogue),
        Kind::Jax | Kind::TensorFlow | Kind::BfcAllocator | Kind::OtherAllocator => {
            framework(finding, catalogue)
        }
        Kind::DispatchedElsewhere => simple(Situation::ModelDoesNotFit, "placed-on-cpu"),
        Kind::CudaAllocatorBare | Kind::CudaProgram | Kind::CuPy | Kind::Paddle => {
            full(finding, catalogue)
        }
        Kind::Unsaid => simple(Situation::Unsaid, "neither-which"),
        _ if !finding.is_pytorch() => beside_a_framework(finding, catalogue),
        _ => outside(finding, catalogue),
    }
}

/// cuBLAS, cuDNN and their like, below a framework other than PyTorch.
fn beside_a_framework(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let library = finding.figures.text_named(LIBRARY).unwrap_or_default();
    let reason = say!(catalogue, "libraries-beside", library = library);
    let situation = match library {
        "TensorFlow" | "JAX" => Situation::FrameworkPool,
        _ => Situation::Full,
    };
    let uncertain = finding.kind.is_uncertain();
    let uncertain = uncertain.then(|| say!(catalogue, "other-causes-of-start"));
    Reasoned::new(situation, reason).and_if(uncertain)
}

/// PyTorch keeps a cache on the same card.
fn is_beside_pytorch(finding: &Finding) -> bool {
    let library = finding.figures.text_named(LIBRARY);
    match library {
        // They have pools of their own.
        Some("ONNX Runtime" | "RAPIDS") => true,
        Some("FAISS" | "TensorRT") => finding.mentions_pytorch(),
        _ => false,
    }
}

/// A counter below zero, printed as an enormous amount: what is in use is not the program's.
fn counts_below_zero(finding: &Finding, catalogue: &Catalogue) -> Option<Reasoned> {
    let allocated = finding.figures.allocated?;
    (allocated.bytes >= MORE_THAN_ANY_CARD).then(|| {
        let reason = say!(catalogue, "allocated-impossible", allocated = allocated);
        Reasoned::new(Situation::OtherProcess, reason)
    })
}

/// A request that no device can satisfy.
fn impossible(finding: &Finding, catalogue: &Catalogue) -> Option<Reasoned> {
    let figures = &finding.figures;
    let requested = figures.requested?;
    let exceeds_all = |limit| {
        say!(
            catalogue,
            "exceeds-all",
            requested = requested,
            limit = limit
        )
    };
    let reason = match figures.allowed.or(figures.total) {
        // What a program needs at once may be more than a small card has, without any mistake.
        Some(limit) if requested.exceeds(limit) && finding.kind == Kind::CudaProgram => {
            return Some(Reasoned::new(Situation::Full, exceeds_all(limit)));
        }
        Some(limit) if requested.exceeds(limit) => exceeds_all(limit),
        _ if requested.bytes >= MORE_THAN_ANY_CARD => {
            say!(catalogue, "exceeds-any-card", requested = requested)
        }
        _ => return None,
    };
    Some(Reasoned::new(Situation::ShapeBug, reason))
}

fn full(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let mistaken = counts_below_zero(finding, catalogue);
    if let Some(mistaken) = mistaken.or_else(|| impossible(finding, catalogue)) {
        return mistaken;
    }
    let figures = &finding.figures;
    let reason = match (figures.requested, figures.free) {
        (Some(requested), Some(free)) => {
            say!(
                catalogue,
                "request-with-free",
                requested = requested,
                free = free
            )
        }
        (Some(requested), None) => {
            say!(catalogue, "request-without-room", requested = requested)
        }
        // Most programs other than PyTorch never give any.
        (None, _) if matches!(finding.kind, Kind::OtherAllocator | Kind::CudaProgram) => {
            say!(catalogue, "no-figures")
        }
        (None, _) if said::is_without_nvml(finding) => say!(catalogue, "nvml-missing"),
        // It never gave any.
        (None, _) if finding.wording.is_some() => say!(catalogue, "no-figures"),
        (None, _) => say!(catalogue, "figures-missing"),
    };
    let used = match (figures.allocated, figures.allowed.or(figures.total)) {
        (Some(used), Some(limit)) => {
            Some(say!(catalogue, "of-which-used", used = used, limit = limit))
        }
        _ => None,
    };
    Reasoned::new(Situation::Full, reason).and_if(used)
}

fn in_ram(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let requested = finding.figures.requested;
    if let Some(requested) = requested.filter(|requested| requested.bytes >= ABSURD_ON_A_HOST) {
        let reason = say!(catalogue, "more-than-machines-have", requested = requested);
        let likely = super::suspect(finding).sentence(Some(requested), catalogue);
        return Reasoned::new(Situation::ShapeBug, reason).and(likely);
    }
    let reason = match requested {
        Some(requested) => say!(catalogue, "ram-requested", requested = requested),
        None => say!(catalogue, "ram-requested-unknown"),
    };
    let shape = finding.figures.text_named("shape");
    let shape = shape.map(|shape| say!(catalogue, "array-shape", shape = shape));
    Reasoned::new(Situation::HostMemory, reason).and_if(shape)
}

fn killed(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let id = match finding.kind {
        Kind::HostKill if said::is_early(finding) => "daemon-says-so",
        Kind::HostKill => "kernel-says-so",
        Kind::JobLimit => "job-limit",
        Kind::DataLoaderKilled | Kind::WorkersDied => "worker-died",
        // macOS has no `dmesg` that tells.
        _ if said::is_from_macos(finding) => "only-signal-nine-mac",
        _ => "only-signal-nine",
    };
    let resident = finding.figures.amount_named("resident");
    let resident = resident.map(|resident| say!(catalogue, "resident", resident = resident));
    Reasoned::new(Situation::HostMemory, say!(catalogue, id)).and_if(resident)
}

fn unified(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let figures = &finding.figures;
    let other = figures.amount_named("other allocations");
    if let (Some(requested), None, None) = (figures.requested, figures.allocated, figures.allowed) {
        let reason = say!(catalogue, "mac-buffer", requested = requested);
        return Reasoned::new(Situation::OneLargeRequest, reason);
    }
    let (Some(allocated), Some(allowed)) = (figures.allocated, figures.allowed) else {
        return Reasoned::new(Situation::Full, say!(catalogue, "mac-limit"));
    };
    let others_share = other.filter(|other| other.bytes * 4 > allowed.bytes);
    let reason = say!(
        catalogue,
        "mac-holds",
        allocated = allocated,
        allowed = allowed
    );
    match others_share {
        Some(other) => Reasoned::new(Situation::OtherProcess, reason).and(say!(
            catalogue,
            "mac-others",
            other = other
        )),
        None => Reasoned::new(Situation::Full, reason),
    }
}

fn metal(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let figures = &finding.figures;
    let requested = figures.requested.unwrap_or_default();
    let reason = match figures.allowed {
        Some(allowed) => say!(
            catalogue,
            "metal-buffer",
            requested = requested,
            allowed = allowed
        ),
        None => say!(catalogue, "metal-buffer-unknown", requested = requested),
    };
    Reasoned::new(Situation::OneLargeRequest, reason)
}

fn kernel(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let figures = &finding.figures;
    let (requested, limit) = (
        figures.requested.unwrap_or_default(),
        figures.allowed.unwrap_or_default(),
    );
    let reason = say!(
        catalogue,
        "kernel-needs",
        requested = grouped(requested.bytes),
        limit = grouped(limit.bytes)
    );
    Reasoned::new(Situation::KernelSharedMemory, reason).and(say!(catalogue, "kernel-decides"))
}

fn serving(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let figures = &finding.figures;
    let situation = match finding.kind {
        Kind::VllmNotFree => Situation::OtherProcess,
        _ => Situation::ServingCache,
    };
    let reason = match finding.kind {
        Kind::VllmNoCache => say!(catalogue, "vllm-share-used"),
        Kind::VllmSampler => say!(catalogue, "vllm-dummy-requests"),
        Kind::SglangNoCache if !said::names_share(finding) => {
            say!(catalogue, "sglang-pool-full")
        }
        Kind::SglangNoCache => say!(catalogue, "sglang-share-used"),
        Kind::TgiWarmup => {
            let tokens = figures.count_named("tokens").unwrap_or_default();
            say!(catalogue, "tgi-tokens", tokens = grouped(tokens))
        }
        Kind::VllmNotFree => say!(
            catalogue,
            "vllm-not-free",
            free = figures.free.unwrap_or_default(),
            total = figures.total.unwrap_or_default(),
            requested = figures.requested.unwrap_or_default()
        ),
        _ => match (figures.requested, figures.free) {
            (Some(requested), Some(free)) => {
                say!(
                    catalogue,
                    "sequence-needs",
                    requested = requested,
                    free = free
                )
            }
            _ => say!(catalogue, "sequence-needs-more"),
        },
    };
    let lengths = (
        figures.count_named("sequence length"),
        figures.count_named("length that fits"),
    );
    let lengths = match lengths {
        (Some(length), Some(fits)) => Some(say!(
            catalogue,
            "length-that-fits",
            length = grouped(length),
            fits = grouped(fits)
        )),
        _ => None,
    };
    Reasoned::new(situation, reason).and_if(lengths)
}

fn framework(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let figures = &finding.figures;
    let requested = figures.requested.unwrap_or_default();
    // At startup TensorFlow requests the whole card, as large as the driver says it is.
    let is_startup = said::names_device(finding);
    if is_startup && requested.bytes >= MORE_THAN_ANY_CARD {
        let reason = say!(catalogue, "card-size-wrong", requested = requested);
        return Reasoned::new(Situation::FreeButRefused, reason);
    }
    if let Some(impossible) = impossible(finding, catalogue) {
        return impossible;
    }
    let needed = figures.amount_named("in total");
    // Only a TPU's compiler gives a total and no request.
    if let (Kind::Jax, None, Some(needed), Some(total)) =
        (finding.kind, figures.requested, needed, figures.total)
    {
        let reason = say!(catalogue, "tpu-program", needed = needed, total = total);
        return Reasoned::new(Situation::FrameworkPool, reason);
    }
    if finding.is_on_tpu() {
        let free = figures.free.unwrap_or_default();
        let reason = say!(catalogue, "tpu-buffer", requested = requested, free = free);
        return Reasoned::new(Situation::Full, reason);
    }
    let reason = match finding.kind {
        Kind::OtherAllocator => {
            let library = figures.text_named(LIBRARY).unwrap_or_default();
            match finding.mentions_pytorch() {
                true => say!(catalogue, "library-direct", library = library),
                false => say!(catalogue, "library-alone", library = library),
            }
        }
        Kind::Jax => say!(catalogue, "jax-pool"),
        _ => say!(catalogue, "tf-pool"),
    };
    let request = figures
        .requested
        .map(|requested| say!(catalogue, "asked-for", requested = requested));
    let used = match (figures.allocated, figures.allowed) {
        (Some(used), Some(limit)) => {
            Some(say!(catalogue, "of-which-used", used = used, limit = limit))
        }
        _ => needed.map(|total| say!(catalogue, "program-needs", total = total)),
    };
    Reasoned::new(Situation::FrameworkPool, reason)
        .and_if(request)
        .and_if(used)
}

fn outside(finding: &Finding, catalogue: &Catalogue) -> Reasoned {
    let id = match finding.kind {
        Kind::CudaMapping => "mapping-failed",
        Kind::Nccl => "nccl-buffers",
        Kind::CudaCall => "call-without-figures",
        _ => "libraries-get-the-rest",
    };
    let uncertain = finding.kind.is_uncertain();
    let uncertain = uncertain.then(|| say!(catalogue, "other-causes"));
    Reasoned::new(Situation::OutsideTheAllocator, say!(catalogue, id)).and_if(uncertain)
}
