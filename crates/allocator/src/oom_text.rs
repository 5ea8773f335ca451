//! The sentence in `torch.OutOfMemoryError`, in the wording of each release.

use crate::release::Release;

/// What was known when a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// What the caller requested.
    pub requested_bytes: u64,
    pub rounded_bytes: u64,
    /// The request to the driver: the figure after "Tried to allocate".
    pub segment_bytes: u64,
    pub total_bytes: u64,
    /// What the driver had left.
    pub free_bytes: u64,
    pub limit_bytes: Option<u64>,
    pub allocated_bytes: u64,
    pub reserved_bytes: u64,
    /// What private pools have cached. PyTorch's sentence calls it "allocated in private pools".
    pub private_pools_free_bytes: u64,
    pub expandable_segments: bool,
    /// The address space of one expandable segment, where a request is larger than that.
    pub exceeded_reserve_bytes: Option<u64>,
}

/// A process on the card, for the part of the sentence that NVML supplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessOnCard {
    /// The one that failed.
    This {
        bytes: u64,
    },
    Other {
        pid: u32,
        bytes: u64,
    },
}

const CONF_2_2: &str = " If reserved but unallocated memory is large try setting \
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation \
    for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
const CONF_2_10: &str = " If reserved but unallocated memory is large try setting \
    PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation \
    for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
const CONF_2_11: &str = " If reserved but unallocated memory is large try setting \
    PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation \
    for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html\
    #optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
const SPLIT_2_1: &str = " If reserved but unallocated memory is large try setting \
    max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and \
    PYTORCH_CUDA_ALLOC_CONF";
const SPLIT_2_0: &str = " If reserved memory is >> allocated memory try setting max_split_size_mb \
    to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
const ADDRESS_SPACE_2_15: &str = " expandable_segments is enabled. If instead the process is \
    running out of virtual address space (VSZ), expandable segments may be over-reserving VA (each \
    segment reserves ~9/8 of device memory, times the number of streams); reduce it via \
    PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / expandable_segments_reserve_by_class.";

/// A size as PyTorch prints it in this sentence.
#[must_use]
pub fn size_text(bytes: u64) -> String {
    let value = bytes as f64;
    if bytes <= 1 << 10 {
        format!("{bytes} bytes")
    } else if bytes <= 1 << 20 {
        format!("{:.2} KiB", value / 1024.0)
    } else if bytes <= 1 << 30 {
        format!("{:.2} MiB", value / 1_048_576.0)
    } else {
        format!("{:.2} GiB", value / 1_073_741_824.0)
    }
}

impl OutOfMemory {
    /// The whole sentence. `device` is the visible ordinal; `processes` is what NVML lists, nothing
    /// where it cannot tell.
    #[must_use]
    pub fn text(&self, release: Release, device: u32, processes: &[ProcessOnCard]) -> String {
        if release.at_least(1) {
            self.text_since_2_1(release, device, processes)
        } else {
            self.text_2_0(device)
        }
    }

    fn text_2_0(&self, device: u32) -> String {
        format!(
            "CUDA out of memory. Tried to allocate {} (GPU {device}; {} total capacity; {} already \
             allocated; {} free; {}{} reserved in total by PyTorch){SPLIT_2_0}",
            size_text(self.segment_bytes),
            size_text(self.total_bytes),
            size_text(self.allocated_bytes),
            size_text(self.free_bytes),
            self.allowed(),
            size_text(self.reserved_bytes),
        )
    }

    fn allowed(&self) -> String {
        self.limit_bytes.map_or_else(String::new, |limit| {
            format!("{} allowed; ", size_text(limit))
        })
    }

    fn text_since_2_1(&self, release: Release, device: u32, processes: &[ProcessOnCard]) -> String {
        let capacity = if release.at_least(2) {
            "capacity"
        } else {
            "capacty"
        };
        let processes: String = processes.iter().map(ProcessOnCard::text).collect();
        let allowed = if release.at_least(5) {
            self.allowed()
        } else {
            String::new()
        };
        let in_pools = if release.at_least(4) {
            self.private_pools_free_bytes
        } else {
            0
        };
        let pools = if in_pools > 0 {
            format!(
                "with {} allocated in private pools (e.g., CUDA Graphs), ",
                size_text(in_pools)
            )
        } else {
            String::new()
        };
        let allocated = self.allocated_bytes + in_pools;
        format!(
            "CUDA out of memory. Tried to allocate {}. GPU {device} has a total {capacity} of {} of \
             which {} is free. {processes}{allowed}Of the allocated memory {} is allocated by \
             PyTorch, {pools}and {} is reserved by PyTorch but unallocated.{}",
            size_text(self.segment_bytes),
            size_text(self.total_bytes),
            size_text(self.free_bytes),
            size_text(allocated),
            size_text(self.reserved_bytes.wrapping_sub(allocated)),
            self.hint(release),
        )
    }

    fn hint(&self, release: Release) -> String {
        match release {
            _ if release.at_least(15) && self.exceeded_reserve_bytes.is_some() => format!(
                " This allocation exceeds the expandable-segment reserve of {} for this stream, and \
                 a single allocation cannot span expandable segments. Raise \
                 PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve or \
                 expandable_segments_reserve_by_class (or unset it) so that a segment is at least \
                 {}.",
                size_text(self.exceeded_reserve_bytes.unwrap_or_default()),
                size_text(self.segment_bytes),
            ),
            _ if release.at_least(15) && self.expandable_segments => ADDRESS_SPACE_2_15.to_owned(),
            _ if release.at_least(11) => CONF_2_11.to_owned(),
            _ if release.at_least(10) => CONF_2_10.to_owned(),
            _ if release.at_least(2) => CONF_2_2.to_owned(),
            _ => SPLIT_2_1.to_owned(),
        }
    }
}

impl ProcessOnCard {
    fn text(&self) -> String {
        match self {
            Self::This { bytes } => format!(
                "Including non-PyTorch memory, this process has {} memory in use. ",
                size_text(*bytes)
            ),
            Self::Other { pid, bytes } => {
                format!("Process {pid} has {} memory in use. ", size_text(*bytes))
            }
        }
    }
}
