//! What a message says beyond its kind and its figures, by its words.
//!
//! Only here and in `families` are the words of messages compared, so that reasons and advice follow from facts.

use crate::finding::{Finding, LIBRARY};
use crate::kind::Kind;

/// Whether the message has one of these, in small letters.
fn says(finding: &Finding, signs: &[&str]) -> bool {
    let text = finding.text.to_lowercase();
    signs.iter().any(|sign| text.contains(sign))
}

/// A daemon ended the process before the kernel had to.
pub fn is_early(finding: &Finding) -> bool {
    says(
        finding,
        &["due to memory", "due to swap", "systemd-oomd", "badness"],
    )
}

/// As macOS says that it ended a process.
pub fn is_from_macos(finding: &Finding) -> bool {
    finding.text.contains("Killed: 9")
}

/// The system had no room for another process.
pub fn is_failed_fork(finding: &Finding) -> bool {
    finding.text.contains("Errno 12")
}

/// Ray's store of objects, which lies in shared memory.
pub fn is_object_store(finding: &Finding) -> bool {
    says(finding, &["objectstore", "object store"])
}

/// NCCL asked for shared memory.
pub fn is_from_nccl(finding: &Finding) -> bool {
    finding.text.contains("nccl")
}

/// llama.cpp or another program on its library.
pub fn is_ggml(finding: &Finding) -> bool {
    finding.text.contains("ggml") || finding.figures.text_named(LIBRARY) == Some("llama.cpp")
}

/// The same, of a message about pinned memory.
pub fn is_pinned_by_ggml(finding: &Finding) -> bool {
    finding.text.contains("ggml") || finding.text.contains("of pinned memory")
}

/// llama.cpp's scratch space for one graph: the weights and the KV cache were allocated before it.
pub fn is_scratch(finding: &Finding) -> bool {
    finding.kind == Kind::LlamaCpp && finding.text.contains("gallocr")
}

/// llama.cpp's check after a call, while it computes.
pub fn is_while_computing(finding: &Finding) -> bool {
    finding.text.contains("current device")
}

/// PyTorch could not ask NVML for its figures.
pub fn is_without_nvml(finding: &Finding) -> bool {
    finding.text.contains("NVML")
}

/// SGLang names the share of the card that it was given.
pub fn names_share(finding: &Finding) -> bool {
    finding.text.contains("mem-fraction-static")
}

/// TensorFlow names the device, as it does at startup.
pub fn names_device(finding: &Finding) -> bool {
    finding.text.contains("from device")
}

/// A kernel for a TPU.
pub fn is_tpu_kernel(finding: &Finding) -> bool {
    finding.text.contains("memory space")
}

/// The message names AMD's interface.
pub fn is_rocm(finding: &Finding) -> bool {
    says(finding, &["hiperror", "hipmalloc", "rocm", "hip error"])
}

/// The message names an interface of pictures, which cards of any make have.
pub fn is_other_interface(finding: &Finding) -> bool {
    says(finding, &["rif_error", "d3d", "opencl", "vulkan", "metal"])
}

/// A card of Cambricon's; the message's first word is the device's name.
pub fn is_mlu(finding: &Finding) -> bool {
    says(finding, &["mlu"])
}

/// A chip that Paddle calls by the name of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chip {
    Xpu,
    Npu,
    Mlu,
    Dcu,
}

pub fn chip(finding: &Finding) -> Option<Chip> {
    let chips = [
        ("on xpu", Chip::Xpu),
        ("on npu", Chip::Npu),
        ("on mlu", Chip::Mlu),
        ("on dcu", Chip::Dcu),
    ];
    let found = chips.into_iter().find(|(sign, _)| says(finding, &[sign]));
    found.map(|(_, chip)| chip)
}

/// Who limits the memory of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    Kubernetes,
    Ray,
    Pbs,
    Lsf,
    Systemd,
    Yarn,
    Lambda,
    Heroku,
    /// A notebook in somebody's cloud.
    HostedNotebook,
    /// A program that looks at what is available before it begins.
    Program,
    Unknown,
}

/// Who set the limit that the message tells of.
pub fn limiter(finding: &Finding) -> Limiter {
    let signs: [(&[&str], Limiter); 10] = [
        (&["oomkilled", "low on resource"], Limiter::Kubernetes),
        (
            &["ray", "node running low", "tasks / actors", "tasks/actors"],
            Limiter::Ray,
        ),
        (&["pbs"], Limiter::Pbs),
        (&["memlimit"], Limiter::Lsf),
        (
            &["systemd", "oom-kill'", "by the oom killer"],
            Limiter::Systemd,
        ),
        (
            &["yarn", "physical memory limits", "virtual memory limits"],
            Limiter::Yarn,
        ),
        (&["runtime exited", "runtime.outofmemory"], Limiter::Lambda),
        (&["memory quota"], Limiter::Heroku),
        (
            &["available ram", "ram 后崩溃", "ram后崩溃"],
            Limiter::HostedNotebook,
        ),
        (&["than is available"], Limiter::Program),
    ];
    let found = signs.iter().find(|(signs, _)| says(finding, signs));
    found.map_or(Limiter::Unknown, |(_, limiter)| *limiter)
}

/// Slurm tells it, or whoever words it like Slurm.
pub fn is_like_slurm(finding: &Finding) -> bool {
    says(
        finding,
        &[
            "slurm",
            "srun",
            "oom-kill",
            "oom_kill",
            "out_of_me",
            "memory limit",
        ],
    )
}

/// Whoever set the limit runs other programs than trainings.
pub fn is_no_host_of_trainings(finding: &Finding) -> bool {
    says(
        finding,
        &[
            "yarn",
            "runtime exited",
            "runtime.outofmemory",
            "memory quota",
        ],
    )
}

/// The limit is that of a control group.
pub fn names_cgroup(finding: &Finding) -> bool {
    says(finding, &["cgroup"])
}
