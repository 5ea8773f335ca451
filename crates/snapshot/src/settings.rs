//! What the snapshot says about the allocator's settings (from torch 2.3 on).

/// The key `allocator_settings`. What a release does not record is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllocatorSettings {
    /// The last settings text, as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub text: Option<String>,
    /// `None` inside: no limit.
    pub max_split_bytes: Option<Option<u64>>,
    pub garbage_collection_threshold: Option<f64>,
    pub expandable_segments: Option<bool>,
    pub pinned_num_register_threads: Option<u64>,
    pub release_lock_on_cudamalloc: Option<bool>,
    pub pinned_use_cuda_host_register: Option<bool>,
    pub graph_capture_record_stream_reuse: Option<bool>,
    /// Divisions by size in MiB: 1, 2, 4, … 32768.
    pub roundup_power2_divisions: Vec<(u64, u64)>,
    pub max_round_threshold_bytes: Option<Option<u64>>,
    pub max_cached_bytes: Option<Option<u64>>,
    /// Whether the ring of trace entries overflowed, where PyTorch says so.
    pub trace_overflowed: Option<bool>,
    pub trace_max_entries: Option<u64>,
}
