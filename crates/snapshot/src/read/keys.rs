//! The names that PyTorch uses in a snapshot, in one table.
//!
//! They are interned into a new heap in this order, so that a key's handle is its constant's number, and
//! an event is read by comparing numbers.

use ghostgpu_pickle::Heap;

use crate::events::EventKind;

macro_rules! keys {
    ($($constant:ident = $text:literal;)*) => {
        // Actions come first: their numbers are those of `EventKind`.
        keys!(@number EventKind::KNOWN.len() as u32; $($constant)*);

        const ALL: &[&str] = &[$($text),*];
    };
    (@number $next:expr; $first:ident $($rest:ident)*) => {
        pub(super) const $first: u32 = $next;
        keys!(@number $next + 1; $($rest)*);
    };
    (@number $next:expr;) => {};
}

keys! {
    // Trace entries.
    ACTION = "action";
    ADDR = "addr";
    DEVICE_FREE = "device_free";
    SIZE = "size";
    STREAM = "stream";
    TIME_US = "time_us";
    FRAMES = "frames";
    FORWARD_FRAMES = "forward_frames";
    COMPILE_CONTEXT = "compile_context";
    USER_METADATA = "user_metadata";
    INTERNAL_METADATA = "internal_metadata";
    POOL_ID = "pool_id";
    CATEGORY = "category";
    // Frames.
    FILENAME = "filename";
    LINE = "line";
    NAME = "name";
    FX_NODE_OP = "fx_node_op";
    FX_NODE_NAME = "fx_node_name";
    FX_NODE_TARGET = "fx_node_target";
    FX_NODE_INFO = "fx_node_info";
    FX_ORIGINAL_TRACE = "fx_original_trace";
    // The top.
    SEGMENTS = "segments";
    DEVICE_TRACES = "device_traces";
    ALLOCATOR_SETTINGS = "allocator_settings";
    EXTERNAL_ANNOTATIONS = "external_annotations";
    HOST_SEGMENTS = "host_segments";
    HOST_TRACES = "host_traces";
    CATEGORIES = "categories";
    // Segments and blocks.
    DEVICE = "device";
    ADDRESS = "address";
    TOTAL_SIZE = "total_size";
    ALLOCATED_SIZE = "allocated_size";
    ACTIVE_SIZE = "active_size";
    REQUESTED_SIZE = "requested_size";
    SEGMENT_TYPE = "segment_type";
    SEGMENT_POOL_ID = "segment_pool_id";
    IS_EXPANDABLE = "is_expandable";
    BLOCKS = "blocks";
    STATE = "state";
    HISTORY = "history";
    REAL_SIZE = "real_size";
    CPP_FRAMES = "cpp_frames";
    SMALL = "small";
    LARGE = "large";
    ACTIVE_ALLOCATED = "active_allocated";
    ACTIVE_PENDING_FREE = "active_pending_free";
    ACTIVE_AWAITING_FREE = "active_awaiting_free";
    INACTIVE = "inactive";
    // Settings.
    PYTORCH_CUDA_ALLOC_CONF = "PYTORCH_CUDA_ALLOC_CONF";
    MAX_SPLIT_SIZE = "max_split_size";
    GARBAGE_COLLECTION_THRESHOLD = "garbage_collection_threshold";
    EXPANDABLE_SEGMENTS = "expandable_segments";
    PINNED_NUM_REGISTER_THREADS = "pinned_num_register_threads";
    RELEASE_LOCK_ON_CUDAMALLOC = "release_lock_on_cudamalloc";
    PINNED_USE_CUDA_HOST_REGISTER = "pinned_use_cuda_host_register";
    GRAPH_CAPTURE_RECORD_STREAM_REUSE = "graph_capture_record_stream_reuse";
    ROUNDUP_POWER2_DIVISIONS = "roundup_power2_divisions";
    MAX_ROUND_THRESHOLD = "max_round_threshold";
    MAX_CACHED_SIZE = "max_cached_size";
    TRACE_ALLOC_OVERFLOWED = "trace_alloc_overflowed";
    TRACE_ALLOC_MAX_ENTRIES = "trace_alloc_max_entries";
    // Annotations.
    STAGE = "stage";
    START = "START";
    END = "END";
}

/// A heap in which every key has its constant's number.
pub(super) fn heap_with_keys() -> Heap {
    let mut heap = Heap::default();
    for kind in EventKind::KNOWN {
        heap.intern(kind.action());
    }
    for key in ALL {
        heap.intern(key);
    }
    heap
}

/// The text of a key's constant.
pub(super) fn text(key: u32) -> &'static str {
    let at = (key as usize).checked_sub(EventKind::KNOWN.len());
    at.and_then(|at| ALL.get(at)).copied().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_the_number_of_its_constant() {
        let mut heap = heap_with_keys();
        assert_eq!(
            heap.string_count(),
            EventKind::KNOWN.len() + ALL.len(),
            "a key stands in the table twice"
        );
        assert_eq!(
            heap.intern("external_annotations").index() as u32,
            EXTERNAL_ANNOTATIONS
        );
        for kind in EventKind::KNOWN {
            assert_eq!(heap.intern(kind.action()).index(), kind as usize);
        }
    }
}
