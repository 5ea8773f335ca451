//! The allocator's settings, as far as they are known.

use std::io::{self, Write};

use super::SnapshotWriter;
use crate::settings::AllocatorSettings;

impl<W: Write> SnapshotWriter<'_, W> {
    pub(super) fn settings(&mut self, settings: &AllocatorSettings) -> io::Result<()> {
        self.pickle.dict()?;
        self.pickle.open()?;
        self.pickle.string("PYTORCH_CUDA_ALLOC_CONF")?;
        self.pickle.string(settings.text.as_deref().unwrap_or(""))?;
        let bounded = [
            ("max_split_size", settings.max_split_bytes),
            ("max_round_threshold", settings.max_round_threshold_bytes),
            ("max_cached_size", settings.max_cached_bytes),
        ];
        for (key, bytes) in bounded {
            if let Some(bytes) = bytes {
                self.pickle.string(key)?;
                self.pickle
                    .integer(bytes.map_or(-1, |bytes| bytes as i64))?;
            }
        }
        if let Some(threshold) = settings.garbage_collection_threshold {
            self.pickle.string("garbage_collection_threshold")?;
            self.pickle.float(threshold)?;
        }
        let flags = [
            ("expandable_segments", settings.expandable_segments),
            (
                "release_lock_on_cudamalloc",
                settings.release_lock_on_cudamalloc,
            ),
            (
                "pinned_use_cuda_host_register",
                settings.pinned_use_cuda_host_register,
            ),
            (
                "graph_capture_record_stream_reuse",
                settings.graph_capture_record_stream_reuse,
            ),
            ("trace_alloc_overflowed", settings.trace_overflowed),
        ];
        for (key, flag) in flags {
            if let Some(flag) = flag {
                self.pickle.string(key)?;
                self.pickle.boolean(flag)?;
            }
        }
        if let Some(entries) = settings.trace_max_entries {
            self.unsigned("trace_alloc_max_entries", entries)?;
        }
        if let Some(threads) = settings.pinned_num_register_threads {
            self.unsigned("pinned_num_register_threads", threads)?;
        }
        self.pickle.string("roundup_power2_divisions")?;
        self.pickle.dict()?;
        match settings.roundup_power2_divisions.as_slice() {
            [] => {}
            [(size, divisions)] => {
                self.unsigned(&size.to_string(), *divisions)?;
                self.pickle.set_item()?;
            }
            many => {
                self.pickle.open()?;
                for (size, divisions) in many {
                    self.unsigned(&size.to_string(), *divisions)?;
                }
                self.pickle.set_items()?;
            }
        }
        self.pickle.set_items()
    }
}
