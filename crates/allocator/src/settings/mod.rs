//! The allocator's options: what `PYTORCH_CUDA_ALLOC_CONF` says, and what a release makes of it.
//!
//! A text that PyTorch rejects is rejected here, with PyTorch's own message. The grammar changed in
//! 2.10, so there are two readers.

mod options_since_2_10;
mod options_until_2_9;
mod tokens;

use crate::release::Release;
use crate::rounding::{DEFAULT_LARGE_SEGMENT_BYTES, Divisions};

/// "No limit", for sizes.
pub const UNLIMITED: u64 = u64::MAX;

/// Every option, with its value. Options of the pinned-memory allocator are kept for completeness;
/// nothing in this crate depends on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `max_split_size_mb`, in bytes: larger blocks are never split. [`UNLIMITED`] by default.
    pub max_split_size: u64,
    /// `max_non_split_rounding_mb`, in bytes.
    pub max_non_split_rounding: u64,
    /// `large_segment_size_mb`, in bytes.
    pub large_segment_size: u64,
    /// `garbage_collection_threshold`; 0 is off.
    pub garbage_collection_threshold: f64,
    pub roundup_power2_divisions: Divisions,
    pub expandable_segments: bool,
    pub release_lock_on_cudamalloc: bool,
    pub graph_capture_record_stream_reuse: bool,
    /// Read once, when the allocator is created.
    pub per_process_memory_fraction: f64,
    pub throw_on_cudamalloc_oom: bool,
    /// `backend:cudaMallocAsync`: another allocator altogether, which this crate does not replicate.
    pub uses_malloc_async: bool,
    /// Address space of one expandable segment, where `expandable_segments_reserve` says it.
    pub expandable_segments_reserve: Option<ReserveSize>,
    pub pinned: PinnedSettings,
    /// The text that was read last, empty if none.
    pub text: String,
}

/// The value of `expandable_segments_reserve`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReserveSize {
    FractionOfCard(f64),
    Gibibytes(f64),
}

/// Options of the pinned host allocator.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedSettings {
    pub use_cuda_host_register: bool,
    pub num_register_threads: u64,
    pub use_background_threads: bool,
    pub reserve_segment_size_mb: u64,
    pub free_catch_all: bool,
    pub max_round_threshold_mb: Option<u64>,
    pub max_cached_size_mb: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_split_size: UNLIMITED,
            max_non_split_rounding: DEFAULT_LARGE_SEGMENT_BYTES,
            large_segment_size: DEFAULT_LARGE_SEGMENT_BYTES,
            garbage_collection_threshold: 0.0,
            roundup_power2_divisions: Divisions::default(),
            expandable_segments: false,
            release_lock_on_cudamalloc: false,
            graph_capture_record_stream_reuse: false,
            per_process_memory_fraction: 1.0,
            throw_on_cudamalloc_oom: false,
            uses_malloc_async: false,
            expandable_segments_reserve: None,
            pinned: PinnedSettings {
                use_cuda_host_register: false,
                num_register_threads: 1,
                use_background_threads: false,
                reserve_segment_size_mb: 0,
                free_catch_all: false,
                max_round_threshold_mb: None,
                max_cached_size_mb: None,
            },
            text: String::new(),
        }
    }
}

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SettingsError {
    /// The Python exception that PyTorch raises.
    pub exception: PythonException,
    /// PyTorch's own sentence.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonException {
    ValueError,
    RuntimeError,
    IndexError,
}

impl PythonException {
    /// The name of the Python class.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ValueError => "ValueError",
            Self::RuntimeError => "RuntimeError",
            Self::IndexError => "IndexError",
        }
    }
}

impl Settings {
    /// Reads a text as `release` does, from the defaults on.
    pub fn parse(text: &str, release: Release) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        settings.apply(text, release)?;
        Ok(settings)
    }

    /// Reads a text on top of what is set, as a call at run time does. Some options fall back to their
    /// defaults at every call, others keep their value. After an error the options before the bad one
    /// are in force, as in PyTorch.
    pub fn apply(&mut self, text: &str, release: Release) -> Result<(), SettingsError> {
        self.max_split_size = UNLIMITED;
        self.roundup_power2_divisions = Divisions::default();
        self.garbage_collection_threshold = 0.0;
        text.clone_into(&mut self.text);
        if release.at_least(10) {
            options_since_2_10::apply(self, text, release)
        } else {
            options_until_2_9::apply(self, text, release)
        }
    }

    /// The bytes of address space that one expandable segment reserves, before rounding to pages.
    pub(crate) fn expandable_reserve(&self, total_bytes: u64) -> u64 {
        // No card is larger, and whole pages beyond it still have an address.
        let total_bytes = total_bytes.min(1 << 56);
        let full = total_bytes + total_bytes / 8;
        let wanted = match self.expandable_segments_reserve {
            None => return full,
            Some(ReserveSize::FractionOfCard(part)) => part * total_bytes as f64,
            Some(ReserveSize::Gibibytes(count)) => count * (1_u64 << 30) as f64,
        };
        // A float above the range of u64 becomes u64::MAX, which the smaller side then replaces.
        (wanted as u64).min(full)
    }
}

/// What a snapshot says about the settings in its `allocator_settings`, for [`Settings::from_snapshot`].
/// Fields are `None` where the snapshot has no such key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotSettings {
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub text: Option<String>,
    /// Signed: -1 is no limit.
    pub max_split_size: Option<i64>,
    pub garbage_collection_threshold: Option<f64>,
    pub expandable_segments: Option<bool>,
    pub release_lock_on_cudamalloc: Option<bool>,
    pub graph_capture_record_stream_reuse: Option<bool>,
    /// Pairs of the interval's start in MiB and the divisions there.
    pub roundup_power2_divisions: Vec<(u64, u64)>,
}

impl Settings {
    /// The settings a snapshot was made with. Large segment size and non-split rounding are not
    /// recorded as such: they come from the text. Where the text cannot be read, the recorded values
    /// stand and the reason is returned beside them.
    #[must_use]
    pub fn from_snapshot(
        recorded: &SnapshotSettings,
        release: Release,
    ) -> (Self, Option<SettingsError>) {
        let mut settings = Self::default();
        let text = recorded.text.as_deref().unwrap_or_default();
        let trouble = settings.apply(text, release).err();
        if let Some(bytes) = recorded.max_split_size {
            settings.max_split_size = u64::try_from(bytes).unwrap_or(UNLIMITED);
        }
        if let Some(threshold) = recorded.garbage_collection_threshold {
            settings.garbage_collection_threshold = threshold;
        }
        if let Some(on) = recorded.expandable_segments {
            settings.expandable_segments = on;
        }
        if let Some(on) = recorded.release_lock_on_cudamalloc {
            settings.release_lock_on_cudamalloc = on;
        }
        if let Some(on) = recorded.graph_capture_record_stream_reuse {
            settings.graph_capture_record_stream_reuse = on;
        }
        for &(mebibytes, divisions) in &recorded.roundup_power2_divisions {
            if mebibytes > 0 {
                let index = (63 - mebibytes.leading_zeros()) as usize;
                settings.roundup_power2_divisions.0[index.min(Divisions::ENTRIES - 1)] = divisions;
            }
        }
        (settings, trouble)
    }
}
